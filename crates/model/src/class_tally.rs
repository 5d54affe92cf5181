//! What was recorded of the requests of one class, where a load sends several classes.
//!
//! A request of a class is recorded here and nowhere else. The figures of all requests are the sum
//! of all classes: [`Tally::add_classes`](crate::Tally::add_classes) makes it once, when a lane is
//! asked for its tally.

use serde::{Deserialize, Serialize};

use crate::histogram::BucketIndex;
use crate::{Counts, Exchange, Histogram, Nanos, Outcome, UnfinishedRequests};

/// What was recorded of one class: the fields of [`Tally`](crate::Tally) of the same names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassTally {
    /// The class's name.
    pub name: String,
    /// Its measured requests by outcome.
    pub counts: Counts,
    /// Its requests that are not measured, by outcome.
    pub unmeasured: Counts,
    /// Its measured requests that the user left without a response by stopping the run.
    #[serde(default, skip_serializing_if = "UnfinishedRequests::is_empty")]
    pub unfinished: UnfinishedRequests,
    /// Response times of the good responses.
    pub response_time: Histogram,
    /// Response times of the responses that were not good.
    pub failed_response_time: Histogram,
}

/// The places where the ends of requests are recorded, in the tally of a class or in that of all.
pub(crate) struct RecordedOutcomes<'a> {
    pub(crate) counts: &'a mut Counts,
    pub(crate) unmeasured: &'a mut Counts,
    pub(crate) response_time: &'a mut Histogram,
    pub(crate) failed_response_time: &'a mut Histogram,
}

impl RecordedOutcomes<'_> {
    /// Records how a request ended.
    #[inline(always)]
    pub(crate) fn record(self, exchange: &Exchange, is_measured: bool, is_good: bool) {
        if !is_measured {
            self.unmeasured.record(exchange.outcome);
            return;
        }
        self.counts.record(exchange.outcome);
        if is_good {
            self.response_time.record(exchange.response_time());
        } else if !exchange.outcome.is_censored() && exchange.outcome != Outcome::Skipped {
            self.failed_response_time.record(exchange.response_time());
        }
    }
}

impl ClassTally {
    /// Nothing recorded yet, with room for all times.
    pub fn new(name: &str) -> ClassTally {
        let mut class = ClassTally { name: name.to_owned(), ..ClassTally::default() };
        class.response_time.make_room();
        class.failed_response_time.make_room();
        class
    }

    pub(crate) fn outcomes(&mut self) -> RecordedOutcomes<'_> {
        RecordedOutcomes {
            counts: &mut self.counts,
            unmeasured: &mut self.unmeasured,
            response_time: &mut self.response_time,
            failed_response_time: &mut self.failed_response_time,
        }
    }

    /// Records a response time of the fast path; [`ClassTally::add_alike`] counts the response.
    #[inline(always)]
    pub fn record_at(&mut self, place: BucketIndex, response_time: Nanos) {
        self.response_time.record_at(place, response_time);
    }

    /// Counts responses with this status whose times were recorded by [`ClassTally::record_at`].
    pub fn add_alike(&mut self, status: u16, answers: u64) {
        self.counts.add_answered(status, answers);
    }

    /// The measured requests that became due, with any outcome.
    pub fn due(&self) -> u64 {
        self.counts.total() + self.unfinished.total()
    }

    /// All requests, including unmeasured ones.
    pub fn all_requests(&self) -> u64 {
        self.due() + self.unmeasured.total()
    }

    /// Adds what another lane or another run recorded of the same class.
    ///
    /// # Panics
    /// If it is another class.
    pub fn merge(&mut self, other: &ClassTally) {
        assert_eq!(self.name, other.name, "tallies of two classes");
        self.counts.merge(&other.counts);
        self.unmeasured.merge(&other.unmeasured);
        self.unfinished.merge(&other.unfinished);
        self.response_time.merge(&other.response_time);
        self.failed_response_time.merge(&other.failed_response_time);
    }
}
