//! A few requests wait many times as long as the others, and the app is not the reason.

use model::{Nanos, TwoGroups};
use serde::{Deserialize, Serialize};

use super::{Finding, requests_of, two_groups_of};
use crate::sweep_points::SweepPoint;
use crate::words::{brief, load};

/// A few requests wait many times as long as the others, and the app is not the reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unfair {
    /// The load.
    pub multiple: f64,
    /// Connections there.
    pub connections: u32,
    /// The class of the requests that were compared, where they are told apart; absent in older
    /// files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The fast and the slow requests.
    pub groups: TwoGroups,
    /// How long each would take if served first come, first served: connections / throughput
    /// (Little's law).
    #[serde(rename = "first_come_first_served_ns")]
    pub in_order: Nanos,
}

/// If service is unfair, the fast group takes at most this multiple of the time in order.
const FAST: f64 = 0.75;
/// The slow group then takes at least this multiple.
const SLOW: f64 = 1.5;

/// Judges the fast and the slow requests at the highest load, if the app is not the reason for
/// them.
pub(super) fn of(
    point: &SweepPoint<'_>,
    groups: &TwoGroups,
    class: Option<&str>,
) -> Option<Finding> {
    let in_order = point.in_order();
    let is_unfair = groups.fast_mean.0 as f64 <= FAST * in_order.0 as f64
        && groups.slow_mean.0 as f64 >= SLOW * in_order.0 as f64;
    is_unfair.then(|| {
        Unfair {
            multiple: point.multiple,
            connections: point.run.connections,
            class: class.map(str::to_owned),
            groups: *groups,
            in_order,
        }
        .into()
    })
}

impl Unfair {
    pub(super) fn sentence(&self) -> String {
        let Unfair { multiple, class, groups, in_order, .. } = self;

        let at = load(*multiple);
        let groups = two_groups_of(groups, &requests_of(class.as_deref()));
        let each = brief(*in_order);
        format!(
            "It is unfair: at {at}, {groups}. Served first come, first served, each would take about {each}."
        )
    }
}
