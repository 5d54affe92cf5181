//! Requests are missing from the log because the disk was too slow.

use super::{Assessment, Grade};

/// Grade, sentence and hint.
pub(super) fn assess(dropped: u64) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence = format!("{dropped} requests are missing from the log: the disk was too slow");
    let hint = "log to a faster disk, or lower the rate";
    Assessment::new(grade, sentence, hint)
}
