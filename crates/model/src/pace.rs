//! When each request is due.
//!
//! A pace never sees a clock: the due time of request `n` depends on the pace, its seed and `n` alone, so that a
//! late sender cannot move the schedule and a run can be repeated to the nanosecond.

use serde::{Deserialize, Serialize};

use crate::{Nanos, Rate};

/// The law of the due times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Pace {
    /// Closed loop: a request is due the moment its connection's previous one has ended.
    Closed,
    /// Open loop, evenly spaced: request `n` is due at `n / rate`.
    Constant {
        /// Requests per second, in total.
        rate: Rate,
    },
    /// Open loop, a Poisson process: independent exponential gaps of mean `1 / rate`.
    Poisson {
        /// Requests per second, in total, on average.
        rate: Rate,
        /// Chooses the stream; the same seed gives the same due times for ever.
        seed: u64,
    },
}

impl Pace {
    /// The due times in order, from request 0, since the start of the run; `None` in a closed loop, where the
    /// answers decide.
    pub fn schedule(self) -> Option<Schedule> {
        (self != Pace::Closed).then_some(Schedule { pace: self, next: 0, elapsed: 0.0 })
    }

    /// The offered rate; `None` in a closed loop.
    pub fn rate(self) -> Option<Rate> {
        match self {
            Pace::Closed => None,
            Pace::Constant { rate } | Pace::Poisson { rate, .. } => Some(rate),
        }
    }
}

/// The due times of an open loop, one after the other. Endless, and monotone.
#[derive(Clone, Debug)]
pub struct Schedule {
    pace: Pace,
    next: u64,
    /// Seconds up to the last due time of a Poisson stream.
    elapsed: f64,
}

impl Iterator for Schedule {
    type Item = Nanos;

    fn next(&mut self) -> Option<Nanos> {
        let number = self.next;
        self.next += 1;
        match self.pace {
            Pace::Closed => None,
            // From the number each time, not by adding gaps: an error in the gap would grow with the run.
            Pace::Constant { rate } => Some(Nanos::from_secs_f64(number as f64 / rate.per_second())),
            Pace::Poisson { rate, seed } => {
                self.elapsed += exponential(seed, number) / rate.per_second();
                Some(Nanos::from_secs_f64(self.elapsed))
            }
        }
    }
}

/// The `number`-th draw from the exponential law of mean 1 of the stream `seed`.
fn exponential(seed: u64, number: u64) -> f64 {
    -uniform(seed, number).ln()
}

/// The `number`-th draw from (0, 1] of the stream `seed`: `SplitMix64` (Steele, Lea, Flood, OOPSLA 2014), which is a
/// mixing function of a counter and so needs no state.
pub fn uniform(seed: u64, number: u64) -> f64 {
    let mut z = mix(seed).wrapping_add(number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = mix(z);
    ((z >> 11) + 1) as f64 / (1u64 << 53) as f64
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(per_second: f64) -> Rate {
        Rate::new(per_second).unwrap()
    }

    #[test]
    fn a_closed_loop_has_no_schedule() {
        assert!(Pace::Closed.schedule().is_none());
    }

    #[test]
    fn a_constant_pace_does_not_drift() {
        // 3/s has no exact gap in nanoseconds; request 3·10^6 is due at 10^6 s all the same.
        let mut schedule = Pace::Constant { rate: rate(3.0) }.schedule().unwrap();
        assert_eq!(schedule.nth(3_000_000), Some(Nanos::from_secs(1_000_000)));
    }

    #[test]
    fn a_seed_is_a_stream() {
        let stream = |seed| Pace::Poisson { rate: rate(10.0), seed }.schedule().unwrap().take(100).collect::<Vec<_>>();
        assert_eq!(stream(1), stream(1));
        assert_ne!(stream(1), stream(2));
    }

    #[test]
    fn poisson_gaps_are_exponential() {
        // Anderson-Darling against the exponential law, mean estimated: 1 % critical value 1.959 / (1 + 0.6/n)
        // (methods of Stephens 1974). The seed is fixed, so this is a fact and not a chance.
        let due: Vec<f64> = Pace::Poisson { rate: rate(100.0), seed: 7 }
            .schedule()
            .unwrap()
            .take(5000)
            .map(Nanos::as_secs_f64)
            .collect();
        let mut gaps: Vec<f64> = due.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_by(f64::total_cmp);
        let n = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / n;
        let below = |x: f64| 1.0 - (-x / mean).exp();
        let sum: f64 = (0..gaps.len())
            .map(|i| {
                let weight = 2.0 * i as f64 + 1.0;
                weight * (below(gaps[i]).ln() + (1.0 - below(gaps[gaps.len() - 1 - i])).ln())
            })
            .sum();
        let statistic = (-n - sum / n) * (1.0 + 0.6 / n);
        assert!(statistic < 1.959, "A² = {statistic}");
        assert!((mean * 100.0 - 1.0).abs() < 0.05, "mean gap {mean}");
    }

    proptest! {
        #[test]
        fn due_times_never_fall(per_second in 0.01f64..1e6, seed in any::<u64>(), poisson in any::<bool>()) {
            let rate = rate(per_second);
            let pace = if poisson { Pace::Poisson { rate, seed } } else { Pace::Constant { rate } };
            let due: Vec<Nanos> = pace.schedule().unwrap().take(500).collect();
            prop_assert!(due.windows(2).all(|pair| pair[0] <= pair[1]));
        }

        #[test]
        fn a_constant_pace_counts_right_to_one(per_second in 0.1f64..1e5, seconds in 0.0f64..2.0) {
            let end = Nanos::from_secs_f64(seconds);
            let count = Pace::Constant { rate: rate(per_second) }.schedule().unwrap().take_while(|due| *due < end).count();
            prop_assert!((count as f64 - per_second * seconds).abs() <= 1.0);
        }
    }
}
