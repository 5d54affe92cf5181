//! One load was tried, and the server is not seen to be at a limit: whether it does more under

use serde::{Deserialize, Serialize};

use super::Finding;
use crate::sweep_points::{self, SweepPoint};
use crate::words::{count_of, rate_in_words};

/// One load was tried, and the server is not seen to be at a limit: whether it does more under
/// another is not known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OneLoad {
    /// Connections.
    pub connections: u32,
    /// What it completes, in requests per second.
    pub rate_per_s: f64,
}

/// Where there is one load, and no limit is known.
pub(super) fn of(points: &[SweepPoint<'_>]) -> Option<Finding> {
    let [only] = points else { return None };
    sweep_points::known_limit(points)
        .is_none()
        .then(|| OneLoad { connections: only.run.connections, rate_per_s: only.rate }.into())
}

impl OneLoad {
    pub(super) fn sentence(&self) -> String {
        let OneLoad { connections, rate_per_s } = self;

        let (n, rate) = (count_of(*connections, "connection"), rate_in_words(*rate_per_s));
        format!(
            "{rate} requests/s at {n}; whether the server is saturated there, one load does not tell."
        )
    }
}
