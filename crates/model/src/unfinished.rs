//! Requests that the user left without a response: those that were out when a run was stopped.
//!
//! Nobody waited for their responses, so they are neither failures nor responses, and they stand
//! apart from the [counts](crate::Counts). The one thing that is known of them is how long they had
//! waited; where that is longer than any response took, they belong above all responses.

use serde::{Deserialize, Serialize};

use crate::{Exchange, Histogram, Nanos};

/// The measured requests that had not ended when a run was stopped before its time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnfinishedRequests {
    /// Those that a connection was busy with.
    pub in_flight: u64,
    /// Open loop: those that were due, and for which no connection was free.
    pub not_sent: u64,
    /// How long each of them had been due.
    pub waited: Histogram,
}

impl UnfinishedRequests {
    /// One that a connection was busy with when the run was stopped.
    pub fn record_in_flight(&mut self, exchange: &Exchange) {
        self.in_flight += 1;
        self.waited.record(exchange.response_time());
    }

    /// One that was due and had no connection.
    pub fn record_not_sent(&mut self, exchange: &Exchange) {
        self.not_sent += 1;
        self.waited.record(exchange.response_time());
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.in_flight + self.not_sent
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    /// How many had waited longer than `longest`; all of them where there was no response at all.
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
    fn who_has_waited_longer_than_any_answer_took_is_told_apart() {
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
