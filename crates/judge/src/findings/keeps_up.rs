//! Open loop: all that was offered was sent and completed.

use model::{PercentileTime, Run, Verdict};
use serde::{Deserialize, Serialize};

use super::{Finding, Offered, highest_percentile, within};
use crate::words::rate_in_words;

/// Open loop: all that was offered was sent and completed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeepsUp {
    /// Requests per second; `None` if the rate changes.
    pub offered_per_s: Option<f64>,
    /// The highest percentile that there are enough responses for.
    pub highest: Option<PercentileTime>,
}

/// Holds if the server was not behind.
pub(super) fn of(run: &Run, offered: Offered) -> Option<Finding> {
    let judgement = run.judgement.as_ref();
    let keeps_up = judgement.is_none_or(|judgement| judgement.verdict == Verdict::Unloaded);
    keeps_up.then(|| {
        KeepsUp {
            offered_per_s: offered.is_flat.then_some(offered.per_second),
            highest: highest_percentile(run),
        }
        .into()
    })
}

impl KeepsUp {
    pub(super) fn sentence(&self) -> String {
        let KeepsUp { offered_per_s, highest } = self;

        let offered = offered_per_s.map(|rate| format!("{} requests/s", rate_in_words(rate)));
        let offered = offered.as_deref().unwrap_or("what is offered");
        format!("The server keeps up with {offered}{}.", within(*highest))
    }
}
