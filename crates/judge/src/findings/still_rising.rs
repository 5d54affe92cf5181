//! Throughput still rises with the number of connections, up to the highest load tried.

use serde::{Deserialize, Serialize};

use super::{Finding, rates_unclear};
use crate::sweep_points::{self, SweepPoint};
use crate::words::{count_of, rate_in_words};

/// Throughput still rises with the number of connections, up to the highest load tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StillRising {
    /// The most connections that were tried.
    pub connections: u32,
    /// Throughput there, in requests per second.
    pub rate_per_s: f64,
    /// Connections of the load below, if the rate has risen so little since that the server may be
    /// at its limit by now.
    pub hardly_since: Option<u32>,
    /// The rate there.
    pub rate_before_per_s: f64,
}

/// If the rate rises by less than this power of the connections, the rise may have ended before the
/// highest load. A rise in proportion is a power of 1; 10 % more at four times as many is 0.07.
const HARDLY: f64 = 0.25;

/// Holds if only the highest load reached the best throughput, and no limit is known. `variation`:
/// coefficient of variation of the service times.
pub(super) fn of(points: &[SweepPoint<'_>], variation: f64) -> Option<Finding> {
    let last = points.last()?;
    let is_rising = sweep_points::saturation(points).is_none()
        && sweep_points::known_limit(points).is_none()
        && !rates_unclear::are_unclear(points, variation);
    let before = points.iter().rev().nth(1).unwrap_or(last);
    let more_connections = f64::from(last.run.connections) / f64::from(before.run.connections);
    let is_hardly = last.rate / before.rate < more_connections.powf(HARDLY);
    is_rising.then(|| {
        StillRising {
            connections: last.run.connections,
            rate_per_s: last.rate,
            hardly_since: is_hardly.then_some(before.run.connections),
            rate_before_per_s: before.rate,
        }
        .into()
    })
}

impl StillRising {
    pub(super) fn sentence(&self) -> String {
        let StillRising { connections, rate_per_s, hardly_since, rate_before_per_s } = self;
        let rate = rate_in_words(*rate_per_s);
        if let Some(before) = hardly_since {
            return format!(
                "Throughput hardly rises any more: {} requests/s at {}, {rate} at {connections}.",
                rate_in_words(*rate_before_per_s),
                count_of(*before, "connection")
            );
        }
        let n = count_of(*connections, "connection");
        format!(
            "Throughput still rises at {n}, the highest load tried: the server does at least {rate} requests/s."
        )
    }
}
