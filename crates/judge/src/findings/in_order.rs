//! All requests take about as long as if served first come, first served.

use model::Nanos;
use serde::{Deserialize, Serialize};

use super::Finding;
use crate::sweep_points::SweepPoint;
use crate::words::{brief, load};

/// How long the requests of a load took, and how long each would take if they were served first
/// come, first served.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OrderEvidence {
    /// The load.
    pub multiple: f64,
    /// Connections there.
    pub connections: u32,
    /// The median.
    #[serde(rename = "p50_ns")]
    pub p50: Nanos,
    /// The 95th percentile.
    #[serde(rename = "p95_ns")]
    pub p95: Nanos,
    /// Connections / throughput.
    #[serde(rename = "first_come_first_served_ns")]
    pub in_order: Nanos,
}

impl OrderEvidence {
    pub(super) fn of(point: &SweepPoint<'_>) -> Option<OrderEvidence> {
        Some(OrderEvidence {
            multiple: point.multiple,
            connections: point.run.connections,
            p50: point.run.response_time(0.50).time()?,
            p95: point.run.response_time(0.95).time()?,
            in_order: point.in_order(),
        })
    }
}

/// All requests take about as long as if served first come, first served.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InOrder(OrderEvidence);

/// A run is in order if its median is at least the first of these multiples of connections /
/// throughput, and its 95th percentile at most the second.
const ORDERLY: [f64; 2] = [0.67, 1.5];

/// Judges a run without two distinct groups of response times.
pub(super) fn of(point: &SweepPoint<'_>) -> Option<Finding> {
    let seen = OrderEvidence::of(point)?;
    let ratio = |time: Nanos| time.0 as f64 / seen.in_order.0 as f64;
    let is_in_order = ratio(seen.p50) >= ORDERLY[0] && ratio(seen.p95) <= ORDERLY[1];
    is_in_order.then(|| InOrder(seen).into())
}

impl InOrder {
    pub(super) fn sentence(&self) -> String {
        let OrderEvidence { multiple, p50, p95, in_order, .. } = &self.0;
        format!(
            "It is fair: at {} half of the requests take {} or less, 95 % at most {}; first come, first served, each would take {}.",
            load(*multiple),
            brief(*p50),
            brief(*p95),
            brief(*in_order)
        )
    }
}
