//! What a usual request takes ([`UsualTime`]): a mean in which no request counts for much more than
//! the others. Chance moves it far less than the mean, which hangs on the few that take longest;
//! and whoever waits moves it more.

use serde::{Deserialize, Serialize};

use crate::statistics::student;
use crate::{Histogram, Nanos};

/// The mean of the times, each counted as [`UsualTime::cap`] where it is longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsualTime {
    /// No time counts for more.
    #[serde(rename = "cap_ns")]
    pub cap: Nanos,
    /// The mean.
    #[serde(rename = "mean_ns")]
    pub mean: Nanos,
    /// The true one is hardly less (95 %).
    #[serde(rename = "low_ns")]
    pub low: Nanos,
    /// Nor is it more, but for long requests that are too rare to have been met.
    #[serde(rename = "high_ns")]
    pub high: Nanos,
    /// How many there were; 0 where the time was given.
    pub answers: u64,
}

/// The cap, in medians. Two: a request that waits for another one is counted, and one of the rare
/// long ones counts for no more than that.
const CAP: u64 = 2;
/// Where nothing happened in `n` trials, it happens in 3 / n of them at the most (95 %).
const RULE_OF_THREE: f64 = 3.0;

impl UsualTime {
    /// Of independent times; `None` of fewer than two.
    pub fn of(times: &Histogram) -> Option<UsualTime> {
        UsualTime::capped(times, times.quantile(0.5)? * CAP)
    }

    /// The same with the cap of others, to be compared with them.
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

    /// Of a time that is given.
    pub fn given(time: Nanos) -> UsualTime {
        UsualTime { cap: time * CAP, mean: time, low: time, high: time, answers: 0 }
    }

    /// All of it so much shorter.
    #[must_use]
    pub fn without(self, way: Nanos) -> UsualTime {
        let [cap, mean, low, high] =
            [self.cap, self.mean, self.low, self.high].map(|time| time.saturating_sub(way));
        UsualTime { cap, mean, low, high, ..self }
    }

    /// What holds both.
    #[must_use]
    pub fn spanning(self, other: UsualTime) -> UsualTime {
        UsualTime { low: self.low.min(other.low), high: self.high.max(other.high), ..self }
    }

    /// Whether two of the same cap differ by more than such a share and chance.
    pub fn differs(&self, other: &UsualTime, share: f64) -> bool {
        let log = |time: Nanos| (time.0.max(1) as f64).ln();
        let by_chance = |one: &UsualTime| log(one.mean) - log(one.low);
        let apart = (log(self.mean) - log(other.mean)).abs();
        apart > by_chance(self) + by_chance(other) + share.ln_1p()
    }

    /// With as many more that took as long.
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

    /// So many times as long as `other` at the least.
    pub fn least_ratio(&self, other: &UsualTime) -> f64 {
        self.low.0 as f64 / other.high_with_rare().max(1.0)
    }

    /// So many times as long as `other` at the most.
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
    fn what_is_rare_and_long_counts_for_little_and_who_waits_for_much() {
        let known = UsualTime::of(&times(&[(138, 20), (7, 1000)])).unwrap();
        assert_eq!(ms(known), [40, 20, 21, 22], "the mean is 67 ms, 40 to 112");
        let waiting = UsualTime::capped(&times(&[(1380, 30), (70, 1010)]), known.cap).unwrap();
        assert!(waiting.least_ratio(&known) > 1.3, "{waiting:?}");
        // A pool of nine for ten: one in nine waits for a whole request.
        let wave = UsualTime::capped(&times(&[(1230, 20), (150, 40), (70, 1010)]), known.cap);
        assert!((1.05..1.15).contains(&(wave.unwrap().mean.0 as f64 / known.mean.0 as f64)));
    }

    #[test]
    fn of_few_answers_little_is_known() {
        let few = UsualTime::of(&times(&[(20, 20)])).unwrap();
        assert_eq!(ms(few), [40, 20, 20, 20]);
        let later = UsualTime::capped(&times(&[(17, 20), (3, 40)]), few.cap).unwrap();
        assert!(later.most_ratio(&few) > 1.15 && later.least_ratio(&few) < 1.0);
        let many = few.with_as_long(200);
        assert!(
            few.most_ratio(&few) > 1.14 && many.most_ratio(&many) < 1.02,
            "three of n may be long"
        );
        assert_eq!(UsualTime::of(&times(&[(1, 20)])), None);
        let both = few.spanning(UsualTime::given(Nanos::from_millis(3)));
        assert_eq!(ms(both), [40, 3, 20, 20]);
        assert_eq!(ms(few.without(Nanos::from_millis(5))), [35, 15, 15, 15]);
    }
}
