//! When request `n` is due ([`Pace`]).
//!
//! A pace never reads a clock: the due time of request `n` depends only on the pace, its seed and
//! `n`. So a late sender cannot move the schedule, and a run can be repeated to the nanosecond.
//!
//! An open loop has two parts. A *profile* says how many requests should have become due by a time;
//! an *arrival law* spaces them: `S(n)` is the n-th point of a process with one arrival per unit.
//! Request `n` is due when the profile reaches `S(n)`, so every law works with every profile.

use serde::{Deserialize, Serialize};

use crate::{Nanos, Rate, RecordedTimes};

/// How due times are determined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Pace {
    /// Closed loop: a request is due as soon as its connection's previous one has ended.
    Closed,
    /// Open loop: requests become due by a schedule, whatever the server does.
    Open {
        /// How many requests are due by when.
        profile: Profile,
        /// How they are spaced.
        arrivals: Arrivals,
        /// The seed of a random law; the same seed always gives the same due times.
        seed: u64,
        /// Requests due at the same instant; the rate in requests per second stays that of the
        /// profile.
        burst: u32,
    },
}

/// Random arrivals are drawn one by one. For more than this many, it makes no visible difference
/// whether the window ends with the last response or with the next arrival.
const LONGEST_COUNT: u64 = 10_000_000;
/// The longest run: 30 days, the limit of `--for`.
const LONGEST_RUN: Nanos = Nanos::from_secs(30 * 24 * 3600);

/// The rate over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Profile {
    /// A constant rate.
    Flat {
        /// Requests per second, in total.
        #[serde(rename = "rate_per_s")]
        rate: Rate,
    },
    /// A linear ramp from one rate to another, which then stays.
    Ramp {
        /// At the start.
        #[serde(rename = "from_per_s")]
        from: Rate,
        /// At the end.
        #[serde(rename = "to_per_s")]
        to: Rate,
        /// How long it takes.
        #[serde(rename = "over_ns")]
        over: Nanos,
    },
    /// One rate after the other, each for the same time; the last one stays.
    Steps {
        /// Each step's rate; not empty.
        #[serde(rename = "rates_per_s")]
        rates: Vec<Rate>,
        /// Each step's length.
        #[serde(rename = "each_ns")]
        each: Nanos,
    },
    /// As the requests of a log came, which is replayed.
    Recorded {
        /// When they are due.
        #[serde(flatten)]
        recorded: RecordedTimes,
    },
}

/// A part of a profile whose figures are told apart: a step, or a tenth of a ramp.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProfilePart {
    /// When it begins, since the start of the schedule.
    pub from: Nanos,
    /// When it ends; [`Nanos::MAX`] for the last one, whose rate stays.
    pub until: Nanos,
    /// Requests per second when it begins.
    pub rate_from: f64,
    /// Requests per second when it ends.
    pub rate_to: f64,
}

/// The parts of a ramp.
const PARTS_OF_RAMP: u64 = 10;

/// How arrivals are spaced, at one per unit on average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Evenly spaced.
    #[default]
    Constant,
    /// Independent exponential gaps: a Poisson process, like many independent users.
    Poisson,
    /// Independent gaps, uniform from 0 to 2 units.
    Uniform,
}

impl Pace {
    /// An open loop at an even rate.
    pub fn constant(rate: Rate) -> Pace {
        Pace::Open {
            profile: Profile::Flat { rate },
            arrivals: Arrivals::Constant,
            seed: 0,
            burst: 1,
        }
    }

    /// The due times in order, from request 0, since the start of the run; `None` in a closed loop,
    /// where they depend on the responses.
    pub fn schedule(&self) -> Option<DueTimes> {
        match self {
            Pace::Closed => None,
            Pace::Open { profile, arrivals, seed, burst } => Some(DueTimes {
                profile: profile.clone(),
                arrivals: *arrivals,
                seed: *seed,
                burst: u64::from(*burst).max(1),
                number: 0,
                units: 0.0,
                due: Nanos::ZERO,
            }),
        }
    }

    /// Whether requests become due by a schedule.
    pub fn is_open(&self) -> bool {
        *self != Pace::Closed
    }

    /// Requests per second that become due, if it is the same rate all the time; `None` otherwise, and
    /// in a closed loop.
    pub fn constant_rate(&self) -> Option<f64> {
        match self {
            Pace::Open { profile: Profile::Flat { rate }, .. } => Some(rate.per_second()),
            Pace::Open { .. } | Pace::Closed => None,
        }
    }

    /// How long `count` requests of an open loop take that are due after `warm_up`: until the next
    /// one would be due, so that at an even rate this is count / rate. `None` in a closed loop,
    /// without requests, and if there are too many or the time is too long.
    pub fn time_of_count(&self, count: u64, warm_up: Nanos) -> Option<Nanos> {
        let is_even = matches!(self, Pace::Open { arrivals: Arrivals::Constant, .. });
        let others = count.checked_sub(1).filter(|others| is_even || *others < LONGEST_COUNT)?;
        let unmeasured = self.schedule()?.take_while(|due| *due < warm_up).count();
        let mut due_times = self.schedule()?;
        let last = due_times.nth(unmeasured.saturating_add(usize::try_from(others).ok()?))?;
        if last.saturating_sub(warm_up) > LONGEST_RUN {
            return None;
        }
        // The other requests of its burst are due at the same instant.
        let end = due_times.find(|due| *due > last)?;
        Some(end.saturating_sub(warm_up)).filter(|time| *time <= LONGEST_RUN)
    }
}

impl Profile {
    /// When `count` requests should have become due, in seconds.
    fn time_of(&self, count: f64) -> f64 {
        match self {
            Profile::Flat { rate } => count / rate.per_second(),
            Profile::Ramp { from, to, over } => {
                let a = from.per_second();
                let b = to.per_second();
                let length = over.as_secs_f64();
                let in_ramp = f64::midpoint(a, b) * length;
                if count >= in_ramp {
                    return length + (count - in_ramp) / b;
                }
                // a·t + (b − a)·t² / 2·length = count, solved in the form without cancellation.
                let slope = (b - a) / length;
                2.0 * count / (a + (a * a + 2.0 * slope * count).max(0.0).sqrt())
            }
            Profile::Steps { rates, each } => {
                let length = each.as_secs_f64();
                let mut left = count;
                for (step, rate) in rates.iter().enumerate() {
                    let in_step = rate.per_second() * length;
                    if left < in_step || step + 1 == rates.len() {
                        return step as f64 * length + left / rate.per_second();
                    }
                    left -= in_step;
                }
                0.0
            }
            Profile::Recorded { recorded } => recorded.due(count as u64).as_secs_f64(),
        }
    }

    /// The highest rate of the profile.
    ///
    /// # Panics
    /// If there is no step, which the flags prevent.
    pub fn peak(&self) -> Rate {
        match self {
            Profile::Flat { rate } => *rate,
            Profile::Ramp { from, to, .. } => higher(*from, *to),
            Profile::Steps { rates, .. } => {
                rates.iter().copied().reduce(higher).expect("there is a step")
            }
            Profile::Recorded { recorded } => recorded.peak,
        }
    }

    /// Its steps, or the tenths of a ramp, in order of time; none where the rate does not change
    /// by plan.
    pub fn parts(&self) -> Vec<ProfilePart> {
        let mut parts = match self {
            Profile::Flat { .. } | Profile::Recorded { .. } => Vec::new(),
            Profile::Ramp { from, to, over } => {
                let first = from.per_second();
                let tenth = (to.per_second() - first) / PARTS_OF_RAMP as f64;
                let part = |number: u64| ProfilePart {
                    from: Nanos(over.0 * number / PARTS_OF_RAMP),
                    until: Nanos(over.0 * (number + 1) / PARTS_OF_RAMP),
                    rate_from: first + tenth * number as f64,
                    rate_to: first + tenth * (number + 1) as f64,
                };
                (0..PARTS_OF_RAMP).map(part).collect()
            }
            Profile::Steps { rates, each } => {
                let step = |(number, rate): (u64, &Rate)| ProfilePart {
                    from: *each * number,
                    until: *each * (number + 1),
                    rate_from: rate.per_second(),
                    rate_to: rate.per_second(),
                };
                (0..).zip(rates).map(step).collect()
            }
        };
        if let Some(last) = parts.last_mut() {
            last.until = Nanos::MAX;
        }
        parts
    }

    /// How long the profile takes, if it ends by itself.
    pub fn length(&self) -> Option<Nanos> {
        match self {
            Profile::Flat { .. } => None,
            Profile::Recorded { recorded } => Some(recorded.lasts),
            Profile::Ramp { over, .. } => Some(*over),
            Profile::Steps { rates, each } => Some(*each * rates.len() as u64),
        }
    }
}

fn higher(one: Rate, other: Rate) -> Rate {
    if one < other { other } else { one }
}

/// The due times of an open loop, an endless, monotone sequence.
#[derive(Clone, Debug)]
pub struct DueTimes {
    profile: Profile,
    arrivals: Arrivals,
    seed: u64,
    burst: u64,
    number: u64,
    /// `S` of the last point.
    units: f64,
    /// The due time of the current burst.
    due: Nanos,
}

impl Iterator for DueTimes {
    type Item = Nanos;

    #[inline]
    fn next(&mut self) -> Option<Nanos> {
        let number = self.number;
        self.number += 1;
        if self.burst > 1 && !number.is_multiple_of(self.burst) {
            return Some(self.due);
        }
        let point = number / self.burst;
        self.units = match self.arrivals {
            // Compute it from the number instead of adding gaps, whose rounding errors would add
            // up.
            Arrivals::Constant => point as f64,
            // The first request of a random stream has a gap before it, like every other.
            Arrivals::Poisson => self.units - uniform(self.seed, point).ln(),
            Arrivals::Uniform => self.units + 2.0 * uniform(self.seed, point),
        };
        self.due = Nanos::from_secs_f64(self.profile.time_of(self.units * self.burst as f64));
        Some(self.due)
    }

    fn nth(&mut self, n: usize) -> Option<Nanos> {
        if self.arrivals != Arrivals::Constant {
            for _ in 0..n {
                self.next()?;
            }
            return self.next();
        }
        // An even schedule follows from the number alone: jump to the first request of the burst,
        // then continue.
        let number = self.number.saturating_add(n as u64).min(u64::MAX - 1);
        self.number = number - number % self.burst;
        let due = self.next();
        self.number = number + 1;
        due
    }
}

/// The `number`-th draw from (0, 1] of the stream `seed`: `SplitMix64` (Steele, Lea, Flood, OOPSLA
/// 2014), a mixing function of a counter, which needs no state.
pub fn uniform(seed: u64, number: u64) -> f64 {
    ((random_bits(mix(seed), number) >> 11) + 1) as f64 / (1u64 << 53) as f64
}

/// The `number`-th draw of 64 bits of a stream whose seed is [mixed](mix).
#[inline]
pub(crate) fn random_bits(stream: u64, number: u64) -> u64 {
    mix(stream.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}

/// Spreads a seed over all bits.
pub(crate) fn mix(mut z: u64) -> u64 {
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

    fn flat(per_second: f64, arrivals: Arrivals, seed: u64) -> Pace {
        Pace::Open { profile: Profile::Flat { rate: rate(per_second) }, arrivals, seed, burst: 1 }
    }

    fn due(pace: &Pace, n: usize) -> Vec<Nanos> {
        pace.schedule().unwrap().take(n).collect()
    }

    fn count_before(pace: &Pace, end: Nanos) -> usize {
        pace.schedule().unwrap().take_while(|due| *due < end).count()
    }

    #[test]
    fn a_count_takes_count_over_rate_with_any_warm_up() {
        let even = Pace::constant(rate(20.0));
        for (count, warm_up_ms, takes_ms) in
            [(5, 0, 250), (1, 0, 50), (5, 1000, 250), (5, 1010, 290)]
        {
            let warm_up = Nanos::from_millis(warm_up_ms);
            assert_eq!(
                even.time_of_count(count, warm_up),
                Some(Nanos::from_millis(takes_ms)),
                "{count} after {warm_up}"
            );
        }
        let profile = Profile::Flat { rate: rate(20.0) };
        let bursts = Pace::Open { profile, arrivals: Arrivals::Constant, seed: 0, burst: 4 };
        assert_eq!(bursts.time_of_count(5, Nanos::ZERO), Some(Nanos::from_millis(400)));
        let steps =
            Profile::Steps { rates: vec![rate(10.0), rate(20.0)], each: Nanos::from_secs(1) };
        let steps = Pace::Open { profile: steps, arrivals: Arrivals::Constant, seed: 0, burst: 1 };
        assert_eq!(steps.time_of_count(20, Nanos::ZERO), Some(Nanos::from_millis(1500)));
        for arrivals in [Arrivals::Poisson, Arrivals::Uniform] {
            let random = flat(20.0, arrivals, 7);
            let time = random.time_of_count(50, Nanos::ZERO).unwrap();
            assert_eq!(count_before(&random, time), 50);
            assert_eq!(random.time_of_count(u64::MAX, Nanos::ZERO), None);
        }
        assert_eq!(even.time_of_count(u64::MAX, Nanos::ZERO), None);
        assert_eq!(even.time_of_count(0, Nanos::ZERO), None);
        assert_eq!(Pace::Closed.time_of_count(5, Nanos::ZERO), None);
    }

    #[test]
    fn skipping_in_a_schedule_equals_stepping_through_it() {
        for burst in [1, 3] {
            for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
                let profile = Profile::Flat { rate: rate(7.0) };
                let pace = Pace::Open { profile, arrivals, seed: 3, burst };
                let all = due(&pace, 60);
                for step in 1..8 {
                    let skipped: Vec<Nanos> =
                        pace.schedule().unwrap().skip(step).step_by(step).take(5).collect();
                    let expected: Vec<Nanos> =
                        all.iter().skip(step).step_by(step).take(5).copied().collect();
                    assert_eq!(skipped, expected, "{arrivals:?} {burst} {step}");
                }
            }
        }
    }

    #[test]
    fn the_parts_of_a_profile_follow_each_other_and_the_last_one_stays() {
        let ramp = Profile::Ramp { from: rate(100.0), to: rate(50.0), over: Nanos::from_secs(20) };
        let steps = Profile::Steps { rates: vec![rate(3.0); 4], each: Nanos::from_secs(2) };
        for (profile, count, length) in [(ramp, 10, 2), (steps, 4, 2)] {
            let parts = profile.parts();
            assert_eq!((parts.len(), parts[count - 1].until), (count, Nanos::MAX));
            assert!(parts.windows(2).all(|pair| pair[0].until == pair[1].from));
            assert_eq!(parts[1].until - parts[1].from, Nanos::from_secs(length));
            assert!(parts[0].rate_from >= profile.peak().per_second());
        }
        assert_eq!(Profile::Flat { rate: rate(3.0) }.parts(), []);
    }

    #[test]
    fn a_constant_pace_does_not_drift_and_may_be_slow_or_in_bursts() {
        assert!(Pace::Closed.schedule().is_none(), "a closed loop has no schedule");
        // 3/s has no exact gap in nanoseconds, but request 3·10^6 is due at exactly 10^6 s.
        let mut schedule = Pace::constant(rate(3.0)).schedule().unwrap();
        assert_eq!(schedule.nth(3_000_000), Some(Nanos::from_secs(1_000_000)));
        let every_four = Pace::constant(rate(0.25));
        assert_eq!(due(&every_four, 3), [Nanos::ZERO, Nanos::from_secs(4), Nanos::from_secs(8)]);
        let profile = Profile::Flat { rate: rate(10.0) };
        let bursts = Pace::Open { profile, arrivals: Arrivals::Constant, seed: 0, burst: 5 };
        let millis: Vec<u64> = due(&bursts, 12).iter().map(|due| due.0 / 1_000_000).collect();
        assert_eq!(millis, [0, 0, 0, 0, 0, 500, 500, 500, 500, 500, 1000, 1000]);
    }

    /// Requests due before this many seconds: the area under the profile.
    #[test]
    fn ramps_and_steps_have_their_area() {
        let ramp =
            |from, to| Profile::Ramp { from: rate(from), to: rate(to), over: Nanos::from_secs(10) };
        let steps = Profile::Steps {
            rates: vec![rate(100.0), rate(200.0), rate(50.0)],
            each: Nanos::from_secs(2),
        };
        for (profile, areas) in [
            // A trapezium, then the second rate.
            (ramp(100.0, 1000.0), vec![(5, 1625), (10, 5500), (11, 6500)]),
            (ramp(1000.0, 100.0), vec![(10, 5500)]),
            (steps, vec![(2, 200), (4, 600), (6, 700), (8, 800)]),
        ] {
            let pace = Pace::Open { profile, arrivals: Arrivals::Constant, seed: 0, burst: 1 };
            for (seconds, area) in areas {
                assert_eq!(
                    count_before(&pace, Nanos::from_secs(seconds)),
                    area,
                    "{pace:?} to {seconds} s"
                );
            }
        }
    }

    /// The Anderson-Darling statistic of `sample` against the law with distribution function
    /// `below`.
    fn anderson_darling(mut sample: Vec<f64>, below: impl Fn(f64) -> f64) -> f64 {
        sample.sort_by(f64::total_cmp);
        let n = sample.len() as f64;
        let sum: f64 = (0..sample.len())
            .map(|i| {
                let weight = 2.0 * i as f64 + 1.0;
                weight * (below(sample[i]).ln() + (1.0 - below(sample[sample.len() - 1 - i])).ln())
            })
            .sum();
        -n - sum / n
    }

    fn gaps(pace: &Pace, n: usize) -> Vec<f64> {
        due(pace, n + 1).windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect()
    }

    #[test]
    fn gaps_follow_their_distribution() {
        // 1 % critical values (Stephens 1974): 1.959 / (1 + 0.6/n) if the mean is estimated, 3.857
        // for a fully known distribution. The seeds are fixed, so the result does not depend on
        // chance.
        for seed in 1..=5 {
            let poisson = gaps(&flat(100.0, Arrivals::Poisson, seed), 5000);
            let mean = poisson.iter().sum::<f64>() / 5000.0;
            let exponential =
                anderson_darling(poisson, |x| 1.0 - (-x / mean).exp()) * (1.0 + 0.6 / 5000.0);
            assert!(
                exponential < 1.959 && (mean * 100.0 - 1.0).abs() < 0.05,
                "seed {seed}: A² = {exponential}, mean {mean}"
            );
            let gaps = gaps(&flat(100.0, Arrivals::Uniform, seed), 5000);
            let uniform = anderson_darling(gaps, |x| (x / 0.02).clamp(1e-12, 1.0 - 1e-12));
            assert!(uniform < 3.857, "seed {seed}: A² = {uniform}");
        }
    }

    #[test]
    fn a_poisson_count_is_within_three_and_a_half_deviations() {
        for seed in 1..=20 {
            let n =
                count_before(&flat(500.0, Arrivals::Poisson, seed), Nanos::from_secs(20)) as f64;
            assert!(((n - 10_000.0) / 100.0).abs() <= 3.5, "seed {seed}: {n}");
        }
    }

    fn any_profile() -> impl Strategy<Value = Profile> {
        let any_rate = || (0.01f64..1e5).prop_map(rate);
        prop_oneof![
            any_rate().prop_map(|rate| Profile::Flat { rate }),
            (any_rate(), any_rate(), 1u64..10_000).prop_map(|(from, to, ms)| Profile::Ramp {
                from,
                to,
                over: Nanos::from_millis(ms)
            }),
            (prop::collection::vec(any_rate(), 1..5), 1u64..10_000)
                .prop_map(|(rates, ms)| Profile::Steps { rates, each: Nanos::from_millis(ms) }),
        ]
    }

    proptest! {
        #[test]
        fn due_times_never_fall(profile in any_profile(), law in 0..3, seed in any::<u64>(), burst in 1u32..5) {
            let arrivals = [Arrivals::Constant, Arrivals::Poisson, Arrivals::Uniform][law as usize];
            let due = due(&Pace::Open { profile: profile.clone(), arrivals, seed, burst }, 500);
            prop_assert!(due.windows(2).all(|pair| pair[0] <= pair[1]));
            let pace = Pace::Open { profile, arrivals, seed, burst };
            let again: Pace = serde_json::from_str(&serde_json::to_string(&pace).unwrap()).unwrap();
            prop_assert_eq!(super::tests::due(&again, 500), due, "the same seed gives the same \
                 stream, also after reading it from JSON");
        }

        #[test]
        fn a_constant_pace_has_the_right_count_to_within_one(per_second in 0.1f64..1e5, seconds in 0.0f64..2.0) {
            let count = count_before(&Pace::constant(rate(per_second)), Nanos::from_secs_f64(seconds));
            prop_assert!((count as f64 - per_second * seconds).abs() <= 1.0);
        }
    }
}
