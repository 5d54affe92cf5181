//! A condition of the user's ended the run (`--stop-if`).

use super::{Assessment, Grade};

/// Grade, sentence and hint.
pub(super) fn assess(condition: &str) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence = format!("the run ended early: {condition}");
    let hint = "as asked (--stop-if): the figures cover the time before";
    Assessment::new(grade, sentence, hint)
}
