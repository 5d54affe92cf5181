//! The client's view of a request's time: connect, handshake, write, first byte, read; the slowest
//! requests; and TCP's round trips and retransmissions.

use serde::{Deserialize, Serialize};

use crate::{DurationSummary, Exchange, Histogram, Nanos};

/// The phases of a request. Each counts only the requests that had it: a kept-alive connection is
/// opened once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phases {
    /// From the start of a connect until the socket was connected.
    pub connect: DurationSummary,
    /// From then until the TLS handshake was done.
    pub handshake: DurationSummary,
    /// From passing the first byte of the request to the kernel to passing the last; 0 if one call
    /// took all.
    pub write: DurationSummary,
    /// From the first byte sent to the first byte of the response.
    pub first_byte: DurationSummary,
    /// From there to the last byte of the response.
    pub read: DurationSummary,
}

impl Phases {
    /// Adds another lane's.
    pub fn merge(&mut self, other: &Phases) {
        self.connect.merge(&other.connect);
        self.handshake.merge(&other.handshake);
        self.write.merge(&other.write);
        self.first_byte.merge(&other.first_byte);
        self.read.merge(&other.read);
    }
}

/// How many of the slowest requests are kept.
const KEPT: usize = 10;

/// The slowest good responses of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Slowest {
    /// Slowest first; of equal ones, the earlier first.
    pub requests: Vec<SlowRequest>,
}

/// One of the slowest requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowRequest {
    /// Its response time.
    #[serde(rename = "response_time_ns")]
    pub response_time: Nanos,
    /// Its service time.
    #[serde(rename = "service_time_ns")]
    pub service_time: Nanos,
    /// When it was due, since the start of the measured window.
    #[serde(rename = "due_ns")]
    pub due: Nanos,
}

impl Slowest {
    /// Keeps the request if it is one of the slowest. `from`: the start of the window.
    #[inline]
    pub fn record(&mut self, exchange: &Exchange, from: Nanos) {
        self.record_times(
            exchange.response_time(),
            exchange.service_time(),
            exchange.due.saturating_sub(from),
        );
    }

    /// Like [`Slowest::record`]; `due` counts from the start of the window.
    #[inline]
    pub(crate) fn record_times(&mut self, response_time: Nanos, service_time: Nanos, due: Nanos) {
        if self.requests.len() < KEPT
            || self.requests.last().is_some_and(|last| response_time > last.response_time)
        {
            self.insert(SlowRequest { response_time, service_time, due });
        }
    }

    #[cold]
    fn insert(&mut self, request: SlowRequest) {
        // Compare all fields, so that lanes merged in any order keep the same requests.
        let key = |r: &SlowRequest| (std::cmp::Reverse(r.response_time), r.due, r.service_time);
        let at = self.requests.partition_point(|other| key(other) <= key(&request));
        self.requests.insert(at, request);
        self.requests.truncate(KEPT);
    }

    /// Adds another lane's.
    pub fn merge(&mut self, other: &Slowest) {
        for request in &other.requests {
            self.insert(*request);
        }
    }
}

/// What the kernel's TCP says of a run's connections (`TCP_INFO`).
///
/// It knows only our own retransmissions, not the server's, so the count of slow requests with a
/// retransmission is a lower bound of those that the network made slow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkPath {
    /// The shortest round trip of each connection to another machine, read when it ended.
    pub round_trip: DurationSummary,
    /// Retransmitted segments on those connections.
    pub retransmitted: u64,
    /// Measured requests that took [`NetworkPath::SLOW`] or longer, with any outcome.
    pub slow: u64,
    /// The times of those during which TCP retransmitted something.
    pub slow_with_retransmission: DurationSummary,
}

impl NetworkPath {
    /// TCP waits at least this long before it retransmits a lone segment (`TCP_RTO_MIN`,
    /// `include/net/tcp.h`; RFC 6298 says 1 s).
    pub const SLOW: Nanos = Nanos::from_millis(200);

    /// Records a slow measured request that took this time, and whether TCP retransmitted something
    /// meanwhile.
    pub fn record_slow(&mut self, took: Nanos, with_retransmission: bool) {
        self.slow += 1;
        if with_retransmission {
            self.slow_with_retransmission.record(took);
        }
    }

    /// Records a connection that ends.
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

    /// One round trip as a share of the mean service time, 0 to 1; `None` if either is unknown.
    pub fn share_of_round_trip(&self, service_time: &Histogram) -> Option<f64> {
        let round_trip = self.round_trip.mean()?;
        let mean = service_time.mean().filter(|mean| *mean > Nanos::ZERO)?;
        Some((round_trip.0 as f64 / mean.0 as f64).min(1.0))
    }

    /// The share of all service time spent in requests with a retransmission, 0 to 1; 0 without
    /// responses.
    pub fn share_of_retransmissions(&self, service_time: &Histogram) -> f64 {
        let all = service_time.sum().as_secs_f64();
        if all > 0.0 {
            (self.slow_with_retransmission.sum.as_secs_f64() / all).min(1.0)
        } else {
            0.0
        }
    }
}
