//! What the audit of another generator's figures found.

use model::FindingGrade;

use super::{Assessment, Grade};

/// Grade, sentence and hint.
pub(super) fn assess(by: &str, check: &str, is: FindingGrade, text: &str) -> Assessment {
    let grade = match is {
        FindingGrade::Fails => Grade::Failed,
        FindingGrade::Doubtful => Grade::Doubtful,
        FindingGrade::Explains => Grade::Note,
    };
    let sentence = format!("{by}'s own figures: {check} {is}: {text}");
    let hint = "longtail audit FILE lists every check of a tool's output";
    Assessment::new(grade, sentence, hint)
}
