//! How many requests came when: counts by second, of which there are never more than a few thousand. A sink that runs
//! for days counts by two seconds then, by four, and so on; no request is lost by that.

use model::Nanos;
use serde::{Deserialize, Serialize};

/// The most counts: an hour and more in whole seconds.
const MOST: usize = 4096;

/// The requests of each span of time since the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrivalCounts {
    /// Seconds each count is about: 1, 2, 4, …
    pub seconds_each: u64,
    /// Requests, from the start on.
    pub counts: Vec<u64>,
}

impl Default for ArrivalCounts {
    fn default() -> ArrivalCounts {
        ArrivalCounts { seconds_each: 1, counts: Vec::new() }
    }
}

impl ArrivalCounts {
    /// Counts requests that came `since` the start.
    pub(crate) fn record(&mut self, since: Nanos, requests: u64) {
        if requests == 0 {
            return;
        }
        let mut place = (since.0 / 1_000_000_000 / self.seconds_each) as usize;
        if place >= self.counts.len() {
            while place >= MOST {
                self.fold();
                place /= 2;
            }
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += requests;
    }

    /// Adds another loop's.
    pub(crate) fn add(&mut self, other: &ArrivalCounts) {
        while self.seconds_each < other.seconds_each {
            self.fold();
        }
        let ratio = (self.seconds_each / other.seconds_each) as usize;
        let length = other.counts.len().div_ceil(ratio);
        if self.counts.len() < length {
            self.counts.resize(length, 0);
        }
        for (place, count) in other.counts.iter().enumerate() {
            self.counts[place / ratio] += count;
        }
    }

    /// Twice the span for each count.
    fn fold(&mut self) {
        self.counts = self.counts.chunks(2).map(|pair| pair.iter().sum()).collect();
        self.seconds_each *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(seconds: &[u64]) -> ArrivalCounts {
        let mut arrivals = ArrivalCounts::default();
        for second in seconds {
            arrivals.record(Nanos::from_secs(*second), 1);
        }
        arrivals
    }

    #[test]
    fn a_request_is_counted_in_its_second() {
        assert_eq!(of(&[0, 0, 2]).counts, [2, 0, 1]);
    }

    #[test]
    fn days_are_bounded() {
        let days = of(&[0, 1, 7, 10 * 86_400]);
        assert!(days.counts.len() <= MOST && days.seconds_each == 256, "{}", days.seconds_each);
        assert_eq!((days.counts[0], days.counts.iter().sum()), (3, 4u64));
    }

    proptest! {
        #[test]
        fn the_sum_of_two_is_recording_all_in_one(
            a in prop::collection::vec(0u64..20_000, 0..40), b in prop::collection::vec(0u64..200, 0..40),
        ) {
            let both = of(&[a.as_slice(), b.as_slice()].concat());
            let (mut ab, mut ba) = (of(&a), of(&b));
            ab.add(&of(&b));
            ba.add(&of(&a));
            prop_assert_eq!(&ab, &both);
            prop_assert_eq!(&ba, &both);
        }
    }
}
