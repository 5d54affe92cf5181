//! It completes more the more connections there are, up to the highest load that was tried.

use serde::{Deserialize, Serialize};

use super::{Finding, rates_unclear};
use crate::sweep_points::{self, SweepPoint};
use crate::words::{count_of, rate_in_words};

/// It completes more the more connections there are, up to the highest load that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StillRising {
    /// The most connections that were tried.
    pub connections: u32,
    /// What it completes there, in requests per second.
    pub rate_per_s: f64,
}

/// Where the best throughput was reached at the highest load alone, and no limit is known.
/// `variation`: coefficient of variation of the service times.
pub(super) fn of(points: &[SweepPoint<'_>], variation: f64) -> Option<Finding> {
    let last = points.last()?;
    let is_rising = sweep_points::saturation(points).is_none()
        && sweep_points::known_limit(points).is_none()
        && !rates_unclear::are_unclear(points, variation);
    is_rising
        .then(|| StillRising { connections: last.run.connections, rate_per_s: last.rate }.into())
}

impl StillRising {
    pub(super) fn sentence(&self) -> String {
        let StillRising { connections, rate_per_s } = self;

        let (n, rate) = (count_of(*connections, "connection"), rate_in_words(*rate_per_s));
        format!(
            "Throughput still rises at {n}, the highest load tried: the server does at least {rate} requests/s."
        )
    }
}
