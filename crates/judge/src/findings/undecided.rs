//! Some requests are far slower than the others, and without a run in which none waits it is
//! unknown whether the app is the reason.

use model::{LoadPlan, Nanos, Pace, Profile, Run, TwoGroups};
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
    /// Connections / throughput; `None` in an open loop, in which requests come when they are due.
    #[serde(
        rename = "first_come_first_served_ns",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub in_order: Option<Nanos>,
}

/// Describes a sweep without a run in which no request waits.
pub(super) fn of(point: &SweepPoint<'_>, groups: &TwoGroups) -> Finding {
    let connections = point.run.connections;
    let in_order = Some(point.in_order());
    Undecided { connections, groups: *groups, in_order }.into()
}

/// Describes a load: a single one doesn't tell who makes the slow requests slow. Where the rate
/// changes, the fast requests may be those of its lower part.
pub(super) fn of_load(run: &Run, plan: &LoadPlan) -> Option<Finding> {
    let connections = plan.load.connections;
    let in_order = match &plan.load.pace {
        Pace::Closed if plan.load.think == Nanos::ZERO => {
            let in_order = f64::from(connections) / run.completed_rate().max(1e-9);
            Some(Nanos::from_secs_f64(in_order))
        }
        Pace::Open { profile: Profile::Flat { .. }, .. } => None,
        Pace::Closed | Pace::Open { .. } => return None,
    };
    // Where requests are told apart, the groups may just be two classes, whose times the report has.
    let is_alike = run.tally.classes.is_empty();
    let is_complete = run.tally.counts.censored() == 0;
    let groups = run.tally.response_time.two_groups().filter(|_| is_complete && is_alike)?;
    Some(Undecided { connections, groups, in_order }.into())
}

impl Undecided {
    pub(super) fn sentence(&self) -> String {
        let Undecided { connections, groups, in_order } = self;
        let groups = two_groups(groups);
        let what = match in_order {
            Some(in_order) => format!(
                "At {}, {groups}; first come, first served, each would take about {}.",
                count_of(*connections, "connection"),
                brief(*in_order)
            ),
            None => format!("{groups}."),
        };
        format!(
            "{what} A single load does not tell whether the server's order or the app makes some slow."
        )
    }
}
