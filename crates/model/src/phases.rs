//! Where the time of a request went, as far as the client can see: details by phase, and the slowest requests.

use serde::{Deserialize, Serialize};

use crate::{Exchange, Nanos};

/// How often, how long in all, and the extremes. Exact; recording never allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurationSummary {
    /// How many.
    pub count: u64,
    /// Sum, in ns.
    #[serde(rename = "sum_ns")]
    pub sum: Nanos,
    /// The shortest; [`Nanos::MAX`] of none.
    #[serde(rename = "min_ns", with = "crate::units::never_is_null")]
    pub min: Nanos,
    /// The longest.
    #[serde(rename = "max_ns")]
    pub max: Nanos,
}

impl Default for DurationSummary {
    fn default() -> DurationSummary {
        DurationSummary { count: 0, sum: Nanos::ZERO, min: Nanos::MAX, max: Nanos::ZERO }
    }
}

impl DurationSummary {
    /// Adds one time.
    #[inline]
    pub fn record(&mut self, time: Nanos) {
        self.count += 1;
        self.sum = self.sum.saturating_add(time);
        // Rarely true: a branch is cheaper than to store it each time.
        if time < self.min {
            self.min = time;
        }
        if time > self.max {
            self.max = time;
        }
    }

    /// Adds so many times of 0.
    pub fn record_zeros(&mut self, count: u64) {
        self.count += count;
        self.min = if count > 0 { Nanos::ZERO } else { self.min };
    }

    /// The mean, rounded down; `None` of none.
    pub fn mean(&self) -> Option<Nanos> {
        self.sum.0.checked_div(self.count).map(Nanos)
    }

    /// Adds another lane's.
    pub fn merge(&mut self, other: &DurationSummary) {
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

/// The phases of a request. Each counts only the requests that had it: a kept-alive connection is opened once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phases {
    /// From the start of a connect until the socket was connected.
    pub connect: DurationSummary,
    /// From there until the TLS handshake was done.
    pub handshake: DurationSummary,
    /// From the first byte of the request handed to the kernel to the last; 0 where one call took all.
    pub write: DurationSummary,
    /// From the first byte sent to the first byte of the answer seen.
    pub first_byte: DurationSummary,
    /// From there to the last byte of the answer.
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

/// The slowest good answers of a run.
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
    /// Takes the request in, if it is one of the slowest. `from` is the start of the window.
    #[inline]
    pub fn record(&mut self, exchange: &Exchange, from: Nanos) {
        self.record_times(exchange.response_time(), exchange.service_time(), exchange.due.saturating_sub(from));
    }

    /// As [`Slowest::record`]; `due` is since the start of the window.
    #[inline]
    pub(crate) fn record_times(&mut self, response_time: Nanos, service_time: Nanos, due: Nanos) {
        if self.requests.len() < KEPT || self.requests.last().is_some_and(|last| response_time > last.response_time) {
            self.insert(SlowRequest { response_time, service_time, due });
        }
    }

    #[cold]
    fn insert(&mut self, request: SlowRequest) {
        // The whole value decides, so that lanes merged in any order keep the same ones.
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
