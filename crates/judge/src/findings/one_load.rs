//! Only one load was tried and no limit was seen, so it is unknown whether more load brings more
//! throughput.

use serde::{Deserialize, Serialize};

use super::Finding;
use crate::sweep_points::{self, SweepPoint};
use crate::words::{count_of, rate_in_words};

/// Only one load was tried and no limit was seen, so it is unknown whether more load brings more
/// throughput.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OneLoad {
    /// Connections.
    pub connections: u32,
    /// Throughput, in requests per second.
    pub rate_per_s: f64,
}

/// Holds if there is one load and no limit is known.
pub(super) fn of(points: &[SweepPoint<'_>]) -> Option<Finding> {
    let [only] = points else { return None };
    sweep_points::known_limit(points)
        .is_none()
        .then(|| OneLoad { connections: only.run.connections, rate_per_s: only.rate }.into())
}

impl OneLoad {
    pub(super) fn sentence(&self) -> String {
        let OneLoad { connections, rate_per_s } = self;

        let n = count_of(*connections, "connection");
        let rate = rate_in_words(*rate_per_s);
        format!(
            "{rate} requests/s at {n}; a single load does not tell whether the server is saturated."
        )
    }
}
