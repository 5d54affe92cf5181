//! A closed loop: the rate at which its connections completed requests.

use model::{Limit, LoadPlan, Nanos, Run};
use serde::{Deserialize, Serialize};

use super::{Finding, HighestPercentile};
use crate::words::{count_of, rate_in_words};

/// A closed loop: the rate at which its connections completed requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClosedLoop {
    /// Connections.
    pub connections: u32,
    /// Requests per second.
    pub rate_per_s: f64,
    /// The highest percentile that there are enough responses for, and its time.
    pub highest: Option<HighestPercentile>,
    /// Whether each connection pauses between two requests.
    pub pauses: bool,
    /// Whether no connection sent a second request, so that there was nothing to pause between.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once_each: bool,
    /// Whether the limit is CPUs of which others used a part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_shared_cpus: bool,
}

/// Describes the run of a closed loop.
pub(super) fn of(run: &Run, plan: &LoadPlan) -> Finding {
    ClosedLoop {
        connections: plan.load.connections,
        rate_per_s: run.completed_rate(),
        highest: HighestPercentile::of(run),
        pauses: plan.load.think > Nanos::ZERO,
        once_each: run.requests().is_some_and(|all| all <= u64::from(plan.load.connections)),
        on_shared_cpus: matches!(run.limit(), Some(Limit::SharedCpus(_))),
    }
    .into()
}

impl ClosedLoop {
    pub(super) fn sentence(&self) -> String {
        let ClosedLoop { connections, rate_per_s, highest, pauses, once_each, on_shared_cpus } =
            self;

        let pace = match (*pauses, *connections) {
            _ if *once_each => "",
            (true, 1) => " that pauses between requests",
            (true, _) => " that pause between requests",
            (false, 1) => " that never pauses",
            (false, _) => " that never pause",
        };
        let n = count_of(*connections, "connection");
        let within = highest.map(HighestPercentile::clause).unwrap_or_default();
        let shared = if *on_shared_cpus {
            ". The CPUs are shared; on CPUs of its own the server would do more"
        } else {
            ""
        };
        format!("{} requests/s over {n}{pace}{within}{shared}.", rate_in_words(*rate_per_s))
    }
}
