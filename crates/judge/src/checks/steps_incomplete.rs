//! The steps of a load are not told apart, because the thread that sorts requests by step was too
//! slow for them.

use super::{Assessment, Grade};

/// Grade, sentence and hint.
pub(super) fn assess(dropped: u64) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence = format!(
        "the steps are not told apart: {dropped} requests were too many to be sorted by step"
    );
    let hint = "lower the rate, or leave longtail another core";
    Assessment::new(grade, sentence, hint)
}
