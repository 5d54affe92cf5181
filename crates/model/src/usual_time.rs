//! How long a typical request takes ([`UsualTime`]): a capped mean. Unlike the plain mean, which
//! depends on the few longest requests, it changes little by chance, and clearly if most requests
//! wait.

use serde::{Deserialize, Serialize};

use crate::statistics::student;
use crate::{Histogram, Nanos};

/// The mean of the times, with longer ones counted as [`UsualTime::cap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsualTime {
    /// The most that a time counts for.
    #[serde(rename = "cap_ns")]
    pub cap: Nanos,
    /// The mean.
    #[serde(rename = "mean_ns")]
    pub mean: Nanos,
    /// The lower end of its 95 % interval.
    #[serde(rename = "low_ns")]
    pub low: Nanos,
    /// The upper end, not counting long requests that are too rare to have been met.
    #[serde(rename = "high_ns")]
    pub high: Nanos,
    /// The number of responses; 0 if the time was given.
    pub answers: u64,
}

/// The cap, in medians. With two, the wait for one other request counts in full, and a rare long
/// request for no more than that.
const CAP: u64 = 2;
/// If an event did not happen in `n` trials, its probability is at most 3 / n (95 %).
const RULE_OF_THREE: f64 = 3.0;

impl UsualTime {
    /// From independent times; `None` for fewer than two.
    pub fn of(times: &Histogram) -> Option<UsualTime> {
        UsualTime::capped(times, times.quantile(0.5)? * CAP)
    }

    /// The same with the cap of other times, to compare with them.
    pub fn capped(times: &Histogram, cap: Nanos) -> Option<UsualTime> {
        let n = times.count();
        if n < 2 {
            return None;
        }
        let moments = times.capped_moments(cap);
        let deviation = moments.deviation * (n as f64 / (n - 1) as f64).sqrt();
        let error = student(n - 1) * deviation / moments.mean.max(1.0) / (n as f64).sqrt();
        let time = |ns: f64| Nanos(ns.round() as u64);
        Some(UsualTime {
            cap,
            mean: time(moments.mean),
            low: time(moments.mean * (-error).exp()),
            high: time((moments.mean * error.exp()).min(cap.0 as f64)),
            answers: n,
        })
    }

    /// From a given time.
    pub fn given(time: Nanos) -> UsualTime {
        UsualTime { cap: time * CAP, mean: time, low: time, high: time, answers: 0 }
    }

    /// The same, with each time shorter by `part`.
    #[must_use]
    pub fn without(self, part: Nanos) -> UsualTime {
        let [cap, mean, low, high] =
            [self.cap, self.mean, self.low, self.high].map(|time| time.saturating_sub(part));
        UsualTime { cap, mean, low, high, ..self }
    }

    /// An interval that covers both.
    #[must_use]
    pub fn spanning(self, other: UsualTime) -> UsualTime {
        UsualTime { low: self.low.min(other.low), high: self.high.max(other.high), ..self }
    }

    /// Whether two with the same cap differ by more than this share and by more than chance.
    pub fn differs(&self, other: &UsualTime, share: f64) -> bool {
        let log = |time: Nanos| (time.0.max(1) as f64).ln();
        let by_chance = |one: &UsualTime| log(one.mean) - log(one.low);
        let apart = (log(self.mean) - log(other.mean)).abs();
        apart > by_chance(self) + by_chance(other) + share.ln_1p()
    }

    /// The same with `answers` more responses that took as long.
    #[must_use]
    pub fn with_as_long(self, answers: u64) -> UsualTime {
        UsualTime { answers: self.answers + answers, ..self }
    }

    /// The upper end with room for long requests that are too rare to have been met.
    fn high_with_rare(&self) -> f64 {
        let share = match self.answers {
            0 => 0.0,
            n => (RULE_OF_THREE / n as f64).min(1.0),
        };
        self.high.0 as f64 + share * self.cap.saturating_sub(self.mean).0 as f64
    }

    /// The lower bound of the ratio to `other`.
    pub fn least_ratio(&self, other: &UsualTime) -> f64 {
        self.low.0 as f64 / other.high_with_rare().max(1.0)
    }

    /// The upper bound of the ratio to `other`.
    pub fn most_ratio(&self, other: &UsualTime) -> f64 {
        self.high_with_rare() / other.low.0.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(groups: &[(u64, u64)]) -> Histogram {
        let mut times = Histogram::default();
        for (count, ms) in groups {
            (0..*count).for_each(|_| times.record(Nanos::from_millis(*ms)));
        }
        times
    }

    fn ms(usual: UsualTime) -> [u64; 4] {
        [usual.cap, usual.low, usual.mean, usual.high].map(|time| (time.0 + 500_000) / 1_000_000)
    }

    #[test]
    fn rare_long_requests_count_little_and_waits_count_much() {
        let known = UsualTime::of(&times(&[(138, 20), (7, 1000)])).unwrap();
        assert_eq!(ms(known), [40, 20, 21, 22], "the mean is 67 ms, 40 to 112");
        let waiting = UsualTime::capped(&times(&[(1380, 30), (70, 1010)]), known.cap).unwrap();
        assert!(waiting.least_ratio(&known) > 1.3, "{waiting:?}");
        // A pool of nine for ten threads: one request in nine waits for a whole other one.
        let wave = UsualTime::capped(&times(&[(1230, 20), (150, 40), (70, 1010)]), known.cap);
        assert!((1.05..1.15).contains(&(wave.unwrap().mean.0 as f64 / known.mean.0 as f64)));
    }

    #[test]
    fn few_responses_leave_a_wide_interval() {
        let few = UsualTime::of(&times(&[(20, 20)])).unwrap();
        assert_eq!(ms(few), [40, 20, 20, 20]);
        let later = UsualTime::capped(&times(&[(17, 20), (3, 40)]), few.cap).unwrap();
        assert!(later.most_ratio(&few) > 1.15 && later.least_ratio(&few) < 1.0);
        let many = few.with_as_long(200);
        assert!(
            few.most_ratio(&few) > 1.14 && many.most_ratio(&many) < 1.02,
            "up to three of n may be long"
        );
        assert_eq!(UsualTime::of(&times(&[(1, 20)])), None);
        let both = few.spanning(UsualTime::given(Nanos::from_millis(3)));
        assert_eq!(ms(both), [40, 3, 20, 20]);
        assert_eq!(ms(few.without(Nanos::from_millis(5))), [35, 15, 15, 15]);
    }
}
