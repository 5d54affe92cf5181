//! The log lacks requests: the disk was too slow for it.

use super::{Assessment, Grade};

/// Grade, sentence and hint.
pub(super) fn assess(dropped: u64) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence = format!("the log lacks {dropped} requests: the disk was too slow for it");
    let hint = "log to a faster disk, or lower the rate";
    Assessment::new(grade, sentence, hint)
}
