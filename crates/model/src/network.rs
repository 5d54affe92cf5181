//! The network between generator and server, as far as it is seen from here.

use serde::{Deserialize, Serialize};

use crate::phases::DurationSummary;
use crate::{Histogram, Nanos};

/// Where the server of a load is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerLocation {
    /// On this machine: what the kernel holds for it can be seen here.
    #[default]
    Here,
    /// At an address of this machine that passes connections on. What is behind it is not seen here.
    Forwarded {
        /// The program that does it, such as `docker-proxy` or `ssh`; `None`: nobody listens here, so the kernel does (NAT).
        by: Option<String>,
    },
    /// At an address of another machine or network namespace.
    Elsewhere,
}

impl ServerLocation {
    /// Whether sockets, processes and counters of this machine are the server's.
    pub fn is_here(&self) -> bool {
        *self == ServerLocation::Here
    }
}

/// What the kernel's TCP says of a run's connections (`TCP_INFO`).
///
/// It knows what this end sent again. What the server sent again is not seen: the count of slow requests with a retransmission is a
/// lower bound of those that the network made slow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkPath {
    /// The shortest round trip of each connection to another machine, read when it ended.
    pub round_trip: DurationSummary,
    /// Segments that were sent again, on those connections.
    pub retransmitted: u64,
    /// Measured requests that took [`NetworkPath::SLOW`] or longer, whatever came of them.
    pub slow: u64,
    /// Of those: the time, from their begin, of each while which TCP sent something again.
    pub slow_with_retransmission: DurationSummary,
}

impl NetworkPath {
    /// TCP waits so long at least before it sends a lone segment again (`TCP_RTO_MIN`, `include/net/tcp.h`; RFC 6298 says 1 s).
    pub const SLOW: Nanos = Nanos::from_millis(200);

    /// Notes a slow measured request that took this time, and whether TCP sent something again meanwhile.
    pub fn record_slow(&mut self, took: Nanos, with_retransmission: bool) {
        self.slow += 1;
        if with_retransmission {
            self.slow_with_retransmission.record(took);
        }
    }

    /// Notes a connection that ends.
    pub fn record_connection(&mut self, round_trip: Nanos, retransmitted: u32) {
        if round_trip > Nanos::ZERO {
            self.round_trip.record(round_trip);
        }
        self.retransmitted += u64::from(retransmitted);
    }

    /// Adds another lane's.
    pub fn merge(&mut self, other: &NetworkPath) {
        self.round_trip.merge(&other.round_trip);
        self.retransmitted += other.retransmitted;
        self.slow += other.slow;
        self.slow_with_retransmission.merge(&other.slow_with_retransmission);
    }

    /// The share of the mean service time that one round trip is, 0 to 1; `None` where either is not known.
    pub fn share_of_round_trip(&self, service_time: &Histogram) -> Option<f64> {
        let round_trip = self.round_trip.mean()?;
        let mean = service_time.mean().filter(|mean| *mean > Nanos::ZERO)?;
        Some((round_trip.0 as f64 / mean.0 as f64).min(1.0))
    }

    /// The share of all service time that went by in requests with a retransmission, 0 to 1; 0 where nothing was answered.
    pub(crate) fn share_of_retransmissions(&self, service_time: &Histogram) -> f64 {
        let all = service_time.sum().as_secs_f64();
        if all > 0.0 { (self.slow_with_retransmission.sum.as_secs_f64() / all).min(1.0) } else { 0.0 }
    }
}
