//! There are two kinds of requests, and no run without waiting says whether the app makes them.

use model::{LoadPlan, Nanos, Pace, Run, TwoGroups};
use serde::{Deserialize, Serialize};

use super::{Finding, two_groups};
use crate::sweep_points::SweepPoint;
use crate::words::{brief, count_of};

/// There are two kinds of requests, and no run without waiting says whether the app makes them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Undecided {
    /// Connections.
    pub connections: u32,
    /// The two kinds of requests.
    pub groups: TwoGroups,
    /// Connections / throughput.
    #[serde(rename = "first_come_first_served_ns")]
    pub in_order: Nanos,
}

/// Of a sweep without a run in which nobody waits.
pub(super) fn of(point: &SweepPoint<'_>, groups: &TwoGroups) -> Finding {
    let (connections, in_order) = (point.run.connections, point.in_order());
    Undecided { connections, groups: *groups, in_order }.into()
}

/// Two kinds of requests in a closed loop: one load does not say who makes them.
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
            "At {}, {}; first come, first served, each would take about {}. Whether the server's order or the app makes some slow, one load does not tell.",
            count_of(*connections, "connection"),
            two_groups(groups),
            brief(*in_order)
        )
    }
}
