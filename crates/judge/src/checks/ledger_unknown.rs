//! The server could not be asked how many requests it took, so nothing confirms ours.

use super::{Assessment, Grade};

/// Grade, sentence and hint.
pub(super) fn assess(reason: &str) -> Assessment {
    let grade = Grade::Note;
    let sentence = format!("the server's own count is unknown: {reason}");
    let hint = "where requests failed, see why first; where it has none, give Puma its \
            control server, or use an app that names its worker in a header";
    Assessment::new(grade, sentence, hint)
}
