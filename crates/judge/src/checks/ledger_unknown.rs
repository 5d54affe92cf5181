//! The server could not say how many requests it took, so nothing confirms our count.

use super::{Assessment, Grade};

/// Grade, sentence and hint.
pub(super) fn assess(reason: &str) -> Assessment {
    let grade = Grade::Note;
    let sentence = format!("the server's own count is unknown: {reason}");
    let hint = "if requests failed, find out why first; if the server keeps no count, give Puma its \
            control server, or use an app that names its worker in a header";
    Assessment::new(grade, sentence, hint)
}
