//! The server was still busy when we stopped waiting for it to become idle: the next run starts
//! with its backlog.

use model::Nanos;

use super::{Assessment, Grade};

/// Grade, sentence and hint.
pub(super) fn assess(waited: Nanos, what: &str) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence =
        format!("the server was still busy {:.1} s after the run: {what}", waited.as_secs_f64());
    let hint = "run fewer multiples, or each on its own";
    Assessment::new(grade, sentence, hint)
}
