//! Response times are spread out; the figures don't say whether the server or the app is the
//! reason.

use model::Nanos;
use serde::{Deserialize, Serialize};

use super::Finding;
use crate::sweep_points::SweepPoint;
use crate::words::{brief, load};

/// Response times are spread out; the figures don't say whether the server or the app is the
/// reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The load.
    pub multiple: f64,
    /// Connections there.
    pub connections: u32,
    /// The median.
    #[serde(rename = "p50_ns")]
    p50: Nanos,
    /// The 95th percentile.
    #[serde(rename = "p95_ns")]
    p95: Nanos,
    /// Connections / throughput.
    #[serde(rename = "first_come_first_served_ns")]
    pub in_order: Nanos,
}

/// Describes a run that is not in order, and whose response times form no two distinct groups.
pub(super) fn of(point: &SweepPoint<'_>) -> Option<Finding> {
    let multiple = point.multiple;
    let connections = point.run.connections;
    let in_order = point.in_order();
    let p50 = point.run.response_time(0.50).time()?;
    let p95 = point.run.response_time(0.95).time()?;
    Some(Spread { multiple, connections, p50, p95, in_order }.into())
}

impl Spread {
    pub(super) fn sentence(&self) -> String {
        let Spread { multiple, p50, p95, in_order, .. } = self;
        format!(
            "At {} half of the requests take {} or less, and 5 % more than {}; served first come, first served, each would take about {}.",
            load(*multiple),
            brief(*p50),
            brief(*p95),
            brief(*in_order)
        )
    }
}
