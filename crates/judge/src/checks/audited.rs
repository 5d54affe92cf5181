//! What the audit of another generator's figures found.

use model::ClaimGrade;

use super::{Assessment, Grade};

/// Grade, sentence and hint.
pub(super) fn assess(by: &str, check: &str, is: ClaimGrade, text: &str) -> Assessment {
    let grade = match is {
        ClaimGrade::Fails => Grade::Failed,
        ClaimGrade::Doubtful => Grade::Doubtful,
        ClaimGrade::Explains | ClaimGrade::Holds | ClaimGrade::Unchecked => Grade::Note,
    };
    let sentence = format!("{by}'s own figures: {check} {is}: {text}");
    let hint = "longtail audit FILE lists every check of a tool's output";
    Assessment::new(grade, sentence, hint)
}
