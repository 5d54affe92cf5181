//! Response times vary so much that the runs are too short to tell whether throughput still rises.

use model::statistics::STANDARD_ERRORS;
use serde::{Deserialize, Serialize};

use super::Finding;
use crate::server_limit::SAME_RATE;
use crate::sweep_points::SweepPoint;
use crate::words::{count_of, rate_in_words, share};

/// The rates at the lowest and the highest load, and their error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RatesUnclear {
    /// The fewest connections.
    pub connections: u32,
    /// The rate there, in requests per second.
    pub rate_per_s: f64,
    /// The most connections.
    pub most_connections: u32,
    /// The rate there.
    pub most_per_s: f64,
    /// The relative error of a rate (95 %), from the scatter of the request times.
    pub error: f64,
}

/// The relative error of a load's rate, if the request times have this coefficient of variation.
fn error_of(point: &SweepPoint<'_>, variation: f64) -> f64 {
    STANDARD_ERRORS * variation / (point.run.tally.counts.good().max(1) as f64).sqrt()
}

/// Whether chance alone can explain by how much the rate at the highest load exceeds that at the
/// lowest, and could explain more than 5 %.
pub(super) fn are_unclear(points: &[SweepPoint<'_>], variation: f64) -> bool {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return false };
    let error = error_between(first, last, variation);
    let growth = last.rate / first.rate - 1.0;
    points.len() > 1 && error > SAME_RATE && growth <= error
}

/// By what share the rates of two loads may differ by chance.
pub(super) fn error_between(one: &SweepPoint<'_>, other: &SweepPoint<'_>, variation: f64) -> f64 {
    error_of(one, variation).hypot(error_of(other, variation))
}

/// Holds if neither saturation nor a rise is shown.
pub(super) fn of(points: &[SweepPoint<'_>], variation: f64) -> Option<Finding> {
    let first = points.first()?;
    let last = points.last()?;
    are_unclear(points, variation).then(|| {
        RatesUnclear {
            connections: first.run.connections,
            rate_per_s: first.rate,
            most_connections: last.run.connections,
            most_per_s: last.rate,
            error: error_of(first, variation).max(error_of(last, variation)),
        }
        .into()
    })
}

impl RatesUnclear {
    pub(super) fn sentence(&self) -> String {
        let [low, high] = [self.rate_per_s, self.most_per_s].map(rate_in_words);
        format!(
            "{low} requests/s at {}, {high} at {}: the runs are too short to tell whether \
             throughput still rises. Request times vary so much that each rate is known to ± {} \
             only.",
            count_of(self.connections, "connection"),
            self.most_connections,
            share(self.error)
        )
    }
}
