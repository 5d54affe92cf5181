//! Open loop: all that was offered was sent and completed.

use model::{PercentileTime, Run, Verdict};
use serde::{Deserialize, Serialize};

use super::{Finding, Offered, highest_percentile, within};
use crate::words::rate_in_words;

/// If less than this share of what was offered ended within the measured time, the sentence says
/// so.
const NOTABLE: f64 = 0.99;

/// Open loop: all that was offered was sent and completed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeepsUp {
    /// Requests per second; `None` if the rate changes.
    pub offered_per_s: Option<f64>,
    /// Completed within the measured time, in requests per second, if that is notably less than was
    /// offered: the last requests ended after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_per_s: Option<f64>,
    /// The highest percentile that there are enough responses for.
    pub highest: Option<PercentileTime>,
}

/// Holds if the server was not behind.
pub(super) fn of(run: &Run, offered: Offered) -> Option<Finding> {
    let judgement = run.judgement.as_ref();
    let keeps_up = judgement.is_none_or(|judgement| judgement.verdict == Verdict::Unloaded);
    let completed = run.completed_under_load();
    let is_less = offered.is_flat && completed < NOTABLE * offered.per_second;
    // Requests that failed did not only end late.
    let is_lost = is_less && run.tally.counts.failed() > 0;
    (keeps_up && !is_lost).then(|| {
        KeepsUp {
            offered_per_s: offered.is_flat.then_some(offered.per_second),
            completed_per_s: is_less.then_some(completed),
            highest: highest_percentile(run),
        }
        .into()
    })
}

impl KeepsUp {
    pub(super) fn sentence(&self) -> String {
        let KeepsUp { offered_per_s, completed_per_s, highest } = self;
        let offered = offered_per_s.map(|rate| format!("{} requests/s", rate_in_words(rate)));
        let offered = offered.as_deref().unwrap_or("what is offered");
        let late = completed_per_s.map(|rate| {
            format!(
                " ({}/s ended within the measured time, the others after it)",
                rate_in_words(rate)
            )
        });
        let late = late.unwrap_or_default();
        format!("The server keeps up with {offered}{late}{}.", within(*highest))
    }
}
