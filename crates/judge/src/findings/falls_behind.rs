//! Open loop: less was completed than was offered, for an unknown reason.

use model::{Backlog, Run};
use serde::{Deserialize, Serialize};

use super::{Finding, Offered};
use crate::verdict;
use crate::words::rate_in_words;

/// Open loop: less was completed than was offered, for an unknown reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FallsBehind {
    /// Requests per second.
    pub offered_per_s: f64,
    /// Completed, in requests per second.
    pub completed_per_s: f64,
    /// Requests in flight when the last one became due.
    pub under_way: Option<u64>,
}

/// Describes a server that neither keeps up nor is clearly overloaded.
pub(super) fn of(run: &Run, offered: Offered) -> Finding {
    let backlog = run.statistics.as_ref().and_then(|statistics| statistics.backlog);
    FallsBehind {
        offered_per_s: offered.per_second,
        completed_per_s: run.completed_under_load(),
        under_way: backlog
            .filter(Backlog::grows)
            .map(|backlog| backlog.at_end)
            .or_else(|| verdict::left_at_end(run)),
    }
    .into()
}

impl FallsBehind {
    pub(super) fn sentence(&self) -> String {
        let FallsBehind { offered_per_s, completed_per_s, under_way } = self;

        let [offered, completed] = [*offered_per_s, *completed_per_s].map(rate_in_words);
        let behind = format!("Of {offered} requests/s the server completes {completed}");
        match under_way {
            Some(n) => format!(
                "{behind}; {n} had no response when the load ended. It is overloaded, or some \
                 requests take very long."
            ),
            None => format!("{behind}."),
        }
    }
}
