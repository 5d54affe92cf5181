//! Workers were replaced during the run. More may have come and gone between the two readings.

use super::{Assessment, Grade};
use crate::words::counted;

/// Grade, sentence and hint.
pub(super) fn assess(new: u32) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence =
        format!("the server replaced at least {} during the run", counted(new, "worker"));
    let hint = "see the server's log: a worker that dies or is phased out spoils the run";
    Assessment::new(grade, sentence, hint)
}
