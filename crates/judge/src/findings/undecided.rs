//! Some requests are far slower than the others, and without a run in which none waits it is
//! unknown whether the app is the reason.

use model::{LoadPlan, Nanos, Pace, Run, TwoGroups};
use serde::{Deserialize, Serialize};

use super::{Finding, two_groups};
use crate::sweep_points::SweepPoint;
use crate::words::{brief, count_of};

/// Some requests are far slower than the others, and without a run in which none waits it is
/// unknown whether the app is the reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Undecided {
    /// Connections.
    pub connections: u32,
    /// The fast and the slow requests.
    pub groups: TwoGroups,
    /// Connections / throughput.
    #[serde(rename = "first_come_first_served_ns")]
    pub in_order: Nanos,
}

/// Describes a sweep without a run in which no request waits.
pub(super) fn of(point: &SweepPoint<'_>, groups: &TwoGroups) -> Finding {
    let connections = point.run.connections;
    let in_order = point.in_order();
    Undecided { connections, groups: *groups, in_order }.into()
}

/// Describes a closed loop: one load doesn't tell who makes the slow requests slow.
pub(super) fn of_load(run: &Run, plan: &LoadPlan) -> Option<Finding> {
    let is_closed = plan.load.pace == Pace::Closed
        && plan.load.think == Nanos::ZERO
        && run.tally.counts.censored() == 0;
    let groups = run.tally.response_time.two_groups().filter(|_| is_closed)?;
    let in_order =
        Nanos::from_secs_f64(f64::from(plan.load.connections) / run.completed_rate().max(1e-9));
    Some(Undecided { connections: plan.load.connections, groups, in_order }.into())
}

impl Undecided {
    pub(super) fn sentence(&self) -> String {
        let Undecided { connections, groups, in_order } = self;
        format!(
            "At {}, {}; served first come, first served, each would take about {}. A single load does not tell whether the server's order or the app makes some slow.",
            count_of(*connections, "connection"),
            two_groups(groups),
            brief(*in_order)
        )
    }
}
