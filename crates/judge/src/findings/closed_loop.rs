//! Closed loop: what came back over connections that never pause.

use model::{LoadPlan, Nanos, PercentileTime, Run};
use serde::{Deserialize, Serialize};

use super::{Finding, highest_percentile, within};
use crate::words::{count_of, rate_in_words};

/// Closed loop: what came back over connections that never pause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClosedLoop {
    /// Connections.
    pub connections: u32,
    /// Requests per second.
    pub rate_per_s: f64,
    /// Which percentile is the highest that the answers bear, 0 to 1, and what it is.
    pub highest: Option<PercentileTime>,
    /// Each connection pauses between two requests.
    pub pauses: bool,
}

/// Of a load that sends as soon as it may.
pub(super) fn of(run: &Run, plan: &LoadPlan) -> Finding {
    ClosedLoop {
        connections: plan.load.connections,
        rate_per_s: run.completed_rate(),
        highest: highest_percentile(run),
        pauses: plan.load.think > Nanos::ZERO,
    }
    .into()
}

impl ClosedLoop {
    pub(super) fn sentence(&self) -> String {
        let ClosedLoop { connections, rate_per_s, highest, pauses } = self;

        let never = if *pauses { "that pause between requests" } else { "that never pause" };
        let n = count_of(*connections, "connection");
        format!("{} requests/s over {n} {never}{}.", rate_in_words(*rate_per_s), within(*highest))
    }
}
