//! Other programs used the server's CPUs up, so that requests were late says nothing about it.

use super::{Assessment, Grade};
use crate::words::tenths;

/// Grade, sentence and hint.
pub(super) fn assess(others: f64, of: f64) -> Assessment {
    let sentence = format!(
        "other programs used {} of the {of} CPUs meanwhile, and hardly any was idle",
        tenths(others)
    );
    let hint = "wait until the machine is idle, or give the server CPUs of its own (taskset)";
    Assessment::new(Grade::Failed, sentence, hint)
}
