//! Open loop with a changing rate: more was offered than the server can do.

use model::Run;
use serde::{Deserialize, Serialize};

use super::{Finding, Offered};
use crate::words::rate_in_words;

/// Open loop with a changing rate: more was offered than the server can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peaked {
    /// The highest throughput over 3 seconds in a row, in requests per second.
    pub completed_per_s: f64,
}

/// Seconds over which the peak is averaged; over fewer it would be noise.
const PEAK: usize = 3;

/// Judges a rate that changes: the backlog must have grown all the time.
pub(super) fn of(run: &Run, offered: Offered) -> Option<Finding> {
    let statistics = run.statistics.as_ref()?;
    statistics.backlog.filter(|_| statistics.is_overload(&run.tally))?;
    (!offered.is_flat).then(|| Peaked { completed_per_s: peak(run) }.into())
}

/// The most good responses per second over [`PEAK`] seconds in a row.
fn peak(run: &Run) -> f64 {
    let completed: Vec<u64> =
        run.tally.series.seconds.iter().map(|second| second.completed).collect();
    let most = completed.windows(PEAK).map(|seconds| seconds.iter().sum::<u64>()).max();
    most.map_or(run.completed_rate(), |most| most as f64 / PEAK as f64)
}

impl Peaked {
    pub(super) fn sentence(&self) -> String {
        let Peaked { completed_per_s } = self;
        format!(
            "The server completes at most {} requests/s; requests beyond that wait, and a mean or a percentile would only reflect the length of the test.",
            rate_in_words(*completed_per_s)
        )
    }
}
