//! Requests that the user left without a response by stopping the run.
//!
//! Longtail did not wait for their responses, so they are neither good nor failed, and are kept
//! apart from the [counts](crate::Counts). Only their waiting time is known; if it is longer than
//! any response took, they rank above all responses.

use serde::{Deserialize, Serialize};

use crate::{Exchange, Histogram, Nanos};

/// The measured requests that had not ended when a run was stopped early.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnfinishedRequests {
    /// Requests in flight on a connection.
    pub in_flight: u64,
    /// Open loop: requests that were due but had no free connection.
    pub not_sent: u64,
    /// For how long each of them had been due.
    pub waited: Histogram,
}

impl UnfinishedRequests {
    /// Records a request in flight when the run was stopped.
    pub fn record_in_flight(&mut self, exchange: &Exchange) {
        self.in_flight += 1;
        self.waited.record(exchange.response_time());
    }

    /// Records a request that was due but had no connection.
    pub fn record_not_sent(&mut self, exchange: &Exchange) {
        self.not_sent += 1;
        self.waited.record(exchange.response_time());
    }

    /// Their number.
    pub fn total(&self) -> u64 {
        self.in_flight + self.not_sent
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    /// How many had waited longer than `longest`; all of them if there was no response at all.
    pub fn longer_than(&self, longest: Option<Nanos>) -> u64 {
        let longest = longest.map_or(Nanos::ZERO, Histogram::edge);
        self.waited.buckets().filter(|(waited, _)| *waited > longest).map(|(_, n)| n).sum()
    }

    /// Adds another lane's.
    pub fn merge(&mut self, other: &UnfinishedRequests) {
        self.in_flight += other.in_flight;
        self.not_sent += other.not_sent;
        self.waited.merge(&other.waited);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_fixtures::exchange;

    #[test]
    fn requests_that_waited_longer_than_any_response_are_counted() {
        let mut unfinished = UnfinishedRequests::default();
        assert!(unfinished.is_empty());
        unfinished.record_in_flight(&exchange(1000, 1000, 1030));
        unfinished.record_in_flight(&exchange(1000, 1000, 1040));
        unfinished.record_not_sent(&exchange(1000, 1000, 6000));
        assert_eq!((unfinished.total(), unfinished.in_flight, unfinished.not_sent), (3, 2, 1));
        assert_eq!(unfinished.longer_than(Some(Nanos::from_millis(40))), 1);
        assert_eq!(unfinished.longer_than(Some(Nanos::from_secs(6))), 0);
        assert_eq!(unfinished.longer_than(None), 3);
    }
}
