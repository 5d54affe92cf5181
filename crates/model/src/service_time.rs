//! What one request takes alone ([`ServiceTime`]): a distribution, whose mean determines every
//! rate, and how well that mean is known.

use serde::{Deserialize, Serialize};

use crate::statistics::student;
use crate::usual_time::UsualTime;
use crate::{Histogram, Nanos, Tally};

/// Where the service time of a forecast comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceTimeSource {
    /// The user's delay (`-d`); nothing was measured.
    #[default]
    Given,
    /// Requests that were sent one at a time before the first run.
    Measured,
}

/// How long one request holds a slot when it is alone, and how that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredServiceTime")]
pub struct ServiceTime {
    /// The mean: every rate is computed from it.
    #[serde(rename = "mean_ns")]
    pub mean: Nanos,
    /// The lower end of the mean's 95 % interval, without time that holds no thread.
    #[serde(rename = "low_ns")]
    pub low: Nanos,
    /// The upper end; [`Nanos::MAX`] if unknown. It allows for long requests that are too rare to
    /// have been met.
    #[serde(rename = "high_ns", with = "crate::units::never_is_null")]
    pub high: Nanos,
    /// The median, which is never used for a rate.
    #[serde(rename = "median_ns")]
    pub median: Nanos,
    /// How long a typical request takes; `None` for fewer than two responses, and in older files.
    pub usual: Option<UsualTime>,
    /// The part of the mean that is the network round trip, as measured by the kernel; it holds no
    /// thread.
    #[serde(rename = "round_trip_ns")]
    pub round_trip: Nanos,
    /// Coefficient of variation: standard deviation / mean.
    pub variation: f64,
    /// Responses that were measured; 0 if the time was given, and in older files.
    pub answers: u64,
    /// The longest of them.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
    /// Where it comes from.
    pub source: ServiceTimeSource,
    /// The time that the user gave (`-d`).
    #[serde(rename = "given_ns")]
    pub given: Option<Nanos>,
    /// The part of the mean on a CPU, if measured.
    #[serde(rename = "cpu_ns")]
    pub cpu: Option<Nanos>,
    /// The longest first request of a worker, if it took notably longer than all later ones. First
    /// requests are not part of the distribution.
    #[serde(rename = "first_ns")]
    pub first: Option<Nanos>,
    /// The mean at the end of the server's life; `None` if it was not measured again.
    pub again: Option<MeanAgain>,
}

/// A log-normal distribution: `median · e^(sigma · z)`, with z standard normal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogNormalTime {
    /// Its median.
    pub median: Nanos,
    /// Standard deviation of its logarithm.
    pub sigma: f64,
}

/// A mean that was measured a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeanAgain {
    /// The mean.
    #[serde(rename = "mean_ns")]
    pub mean: Nanos,
    /// Responses that were measured.
    pub answers: u64,
    /// Whether it differs from the first by more than chance.
    pub differs: bool,
}

/// The form in files. Older ones have only a median, `time_ns`.
#[derive(Deserialize)]
struct StoredServiceTime {
    mean_ns: Option<Nanos>,
    time_ns: Option<Nanos>,
    low_ns: Option<Nanos>,
    high_ns: Option<Nanos>,
    median_ns: Option<Nanos>,
    usual: Option<UsualTime>,
    round_trip_ns: Option<Nanos>,
    variation: Option<f64>,
    answers: Option<u64>,
    longest_ns: Option<Nanos>,
    source: ServiceTimeSource,
    given_ns: Option<Nanos>,
    cpu_ns: Option<Nanos>,
    first_ns: Option<Nanos>,
    again: Option<MeanAgain>,
}

impl From<StoredServiceTime> for ServiceTime {
    fn from(stored: StoredServiceTime) -> ServiceTime {
        let older = stored.time_ns.unwrap_or_default();
        if stored.mean_ns.is_none() && stored.source == ServiceTimeSource::Given {
            return ServiceTime { cpu: stored.cpu_ns, ..ServiceTime::given(older) };
        }
        ServiceTime {
            mean: stored.mean_ns.unwrap_or(older),
            low: stored.low_ns.unwrap_or_default(),
            high: stored.high_ns.unwrap_or(Nanos::MAX),
            median: stored.median_ns.unwrap_or(older),
            usual: stored.usual,
            round_trip: stored.round_trip_ns.unwrap_or_default(),
            variation: stored.variation.unwrap_or_default(),
            answers: stored.answers.unwrap_or_default(),
            longest: stored.longest_ns.unwrap_or_default(),
            source: stored.source,
            given: stored.given_ns,
            cpu: stored.cpu_ns,
            first: stored.first_ns,
            again: stored.again,
        }
    }
}

/// If an event did not happen in `n` trials, its probability is at most 3 / n (95 %): "rule of
/// three", Hanley and Lippman-Hand, JAMA 249 (1983).
const RULE_OF_THREE: f64 = 3.0;
/// Two means that differ by a smaller share count as equal.
const SAME: f64 = 0.05;
/// With fewer responses, typical times are not compared.
const FEWEST: u64 = 8;
/// A coefficient of variation below which a time counts as constant.
const NEARLY_CONSTANT: f64 = 0.1;
/// A mean known to within this share is shown without its interval.
const WELL_KNOWN: f64 = 0.2;

impl ServiceTime {
    /// A service time that the user gives.
    pub fn given(time: Nanos) -> ServiceTime {
        ServiceTime {
            mean: time,
            low: time,
            high: time,
            median: time,
            usual: Some(UsualTime::given(time)),
            longest: time,
            given: Some(time),
            ..ServiceTime::default()
        }
    }

    /// Whether the true mean is within 20 % of this one, so that it may be shown without its
    /// interval.
    pub fn is_well_known(&self) -> bool {
        self.is_within(WELL_KNOWN)
    }

    /// Whether the true mean is within this share of it, either way.
    pub fn is_within(&self, share: f64) -> bool {
        let mean = self.mean.as_secs_f64();
        self.low.as_secs_f64() >= mean * (1.0 - share)
            && self.high.as_secs_f64() <= mean * (1.0 + share)
    }

    /// The log-normal distribution with this mean and variation; `None` if the time is nearly
    /// constant. Waits depend mostly on mean and variation (Pollaczek and Khinchine).
    pub fn log_normal(&self) -> Option<LogNormalTime> {
        if self.variation < NEARLY_CONSTANT {
            return None;
        }
        let square = self.variation.powi(2).ln_1p();
        let median = Nanos::from_secs_f64(self.mean.as_secs_f64() / (square / 2.0).exp());
        Some(LogNormalTime { median, sigma: square.sqrt() })
    }

    /// The part that holds a thread, without the network round trip. The lower end of the interval
    /// already excludes it.
    #[must_use]
    pub fn of_a_thread(self) -> ServiceTime {
        let high = if self.high == Nanos::MAX {
            Nanos::MAX
        } else {
            self.high.saturating_sub(self.round_trip)
        };
        let mean = self.mean.saturating_sub(self.round_trip);
        ServiceTime { mean, low: self.low.min(mean), high, round_trip: Nanos::ZERO, ..self }
    }

    /// How long the longest request of a load may have been in service: its response time, less a
    /// typical wait if there were more connections than slots.
    pub fn longest_in(&self, load: &Histogram, connections: u32, slots: u32) -> Nanos {
        let longest = load.max().unwrap_or_default();
        if connections <= slots {
            return longest;
        }
        let usual = load.quantile(0.5).unwrap_or_default();
        longest.saturating_sub(usual.saturating_sub(self.mean))
    }

    /// The same, allowing for requests as long as `longest` that are too rare to have been met: `n`
    /// responses say nothing about one in `n`.
    fn with_rare(self, longest: Nanos, n: u64) -> ServiceTime {
        if self.answers == 0 {
            return self;
        }
        let excess = longest.max(self.longest).saturating_sub(self.mean);
        let share = (RULE_OF_THREE / n as f64).min(1.0);
        let room = Nanos::from_secs_f64(excess.as_secs_f64() * share);
        ServiceTime { high: self.high.saturating_add(room), ..self }
    }

    /// Combines it with later measurements: responses measured alone at the end of the server's
    /// life, if any, and the longest known request. If the two measurements differ (a cache, a
    /// compiler, a busy machine), the interval spans both; otherwise rare long requests need less
    /// allowance.
    #[must_use]
    pub fn with_later(self, answers: &LoneResponses, longest: Nanos) -> ServiceTime {
        let longest = longest.max(self.longest);
        let first = self.with_rare(longest, self.answers);
        let Some(again) = answers.service_time().filter(|_| self.answers > 0) else { return first };
        let later = again.with_rare(longest, again.answers);
        let ratio = again.mean.as_secs_f64() / self.mean.as_secs_f64().max(1e-9);
        let is_same = (1.0 - SAME..=1.0 + SAME).contains(&ratio);
        let is_apart = later.low > first.high || first.low > later.high;
        let usual =
            self.usual.and_then(|then| Some((then, UsualTime::capped(&answers.times, then.cap)?)));
        let is_unusual =
            usual.is_some_and(|(then, now)| now.answers >= FEWEST && then.differs(&now, SAME));
        let differs = !is_same && is_apart || is_unusual;
        let again = Some(MeanAgain { mean: again.mean, answers: again.answers, differs });
        if !differs {
            let usual = self.usual.map(|usual| usual.with_as_long(answers.times.count()));
            let both = self.with_rare(longest, self.answers + answers.times.count());
            return ServiceTime { usual, again, ..both };
        }
        ServiceTime {
            low: first.low.min(later.low),
            high: first.high.max(later.high),
            usual: usual.map(|(then, now)| then.spanning(now)),
            again,
            ..first
        }
    }
}

/// How long a request of a class takes when it is the only one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassAlone {
    /// The class's name.
    pub name: String,
    /// Requests that were made for it, the one that was left out and failed ones included.
    pub requests: u64,
    /// The good responses that were measured.
    pub responses: u64,
    /// Their mean; `None` if there was none.
    #[serde(rename = "mean_ns")]
    pub mean: Option<Nanos>,
}

/// Responses to requests that were sent one at a time.
#[derive(Clone, Debug, Default)]
pub struct LoneResponses {
    /// From the first byte sent to the last byte received.
    pub times: Histogram,
    /// The sum of the times that may have held no thread: network round trips, and waiting for the
    /// rest of a response.
    pub on_the_way: Nanos,
    /// The round trips in that sum.
    pub round_trips: Nanos,
}

impl LoneResponses {
    /// From a load over one connection.
    pub fn of(tally: &Tally) -> LoneResponses {
        let round_trips = tally.network.round_trip.mean().unwrap_or_default().0;
        let round_trips = Nanos(round_trips.saturating_mul(tally.service_time.count()));
        LoneResponses {
            times: tally.service_time.clone(),
            on_the_way: round_trips.saturating_add(tally.phases.read.sum),
            round_trips,
        }
    }

    /// Adds others.
    pub fn merge(&mut self, other: &LoneResponses) {
        self.times.merge(&other.times);
        self.on_the_way = self.on_the_way.saturating_add(other.on_the_way);
        self.round_trips = self.round_trips.saturating_add(other.round_trips);
    }

    /// Whether the mean's error (95 %) is at most this share.
    pub fn is_known_within(&self, share: f64) -> bool {
        self.relative_error().is_some_and(|error| error <= share)
    }

    /// The coefficient of variation; `None` for fewer than two responses.
    fn variation(&self) -> Option<f64> {
        let n = self.times.count() as f64;
        let mean = self.times.mean().filter(|_| n > 1.0)?.as_secs_f64();
        let deviation = self.times.standard_deviation()?.as_secs_f64() * (n / (n - 1.0)).sqrt();
        Some(deviation / mean.max(1e-9))
    }

    /// The relative error of the mean (95 %).
    fn relative_error(&self) -> Option<f64> {
        let n = self.times.count();
        Some(student(n.saturating_sub(1)) * self.variation()? / (n as f64).sqrt())
    }

    /// The service time; `None` without responses.
    ///
    /// Times are skewed, and a sample lacks the longest ones. So the interval is computed on the
    /// logarithm and extends further up than down.
    pub fn service_time(&self) -> Option<ServiceTime> {
        let answers = self.times.count();
        let mean = self.times.mean()?;
        let scaled = |factor: f64| Nanos::from_secs_f64(mean.as_secs_f64() * factor);
        let error = self.relative_error();
        let on_the_way = Nanos(self.on_the_way.0 / answers.max(1));
        Some(ServiceTime {
            mean,
            low: error
                .map(|error| scaled((-error).exp()).saturating_sub(on_the_way))
                .unwrap_or_default(),
            high: error.map_or(Nanos::MAX, |error| scaled(error.exp())),
            median: self.times.quantile(0.5)?,
            usual: UsualTime::of(&self.times),
            round_trip: Nanos(self.round_trips.0 / answers.max(1)),
            variation: self.variation().unwrap_or_default(),
            answers,
            longest: self.times.max()?,
            source: ServiceTimeSource::Measured,
            ..ServiceTime::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Responses in groups of (count, milliseconds).
    fn answers(groups: &[(u64, u64)]) -> LoneResponses {
        let mut answers = LoneResponses::default();
        for (count, ms) in groups {
            (0..*count).for_each(|_| answers.times.record(Nanos::from_millis(*ms)));
        }
        answers
    }

    fn ms(time: Nanos) -> u64 {
        time.0 / 1_000_000
    }

    #[test]
    fn the_mean_not_the_median_is_used_for_two_kinds_of_requests() {
        let known = answers(&[(138, 20), (7, 1000)]).service_time().unwrap();
        assert_eq!((ms(known.mean), ms(known.median), ms(known.longest)), (67, 20, 1000));
        assert!((3.1..3.2).contains(&known.variation), "{}", known.variation);
        assert_eq!((ms(known.low), ms(known.high), known.is_well_known()), (40, 112, false));
        let none = LoneResponses::default();
        let rare = known.with_later(&none, Nanos::from_secs(1));
        assert_eq!(ms(rare.high), 131, "3 of 145 more could have taken a second");
    }

    #[test]
    fn few_responses_determine_a_constant_time_but_not_rare_ones() {
        let few = answers(&[(20, 20)]);
        assert!(few.is_known_within(0.05));
        let known = few.service_time().unwrap();
        assert_eq!((ms(known.low), ms(known.high)), (20, 20));
        let none = LoneResponses::default();
        assert_eq!(ms(known.with_later(&none, Nanos::from_millis(21)).high), 20);
        assert_eq!(ms(known.with_later(&none, Nanos::from_secs(2)).high), 317);
        let twice = known.with_later(&answers(&[(80, 20)]), Nanos::from_secs(2));
        assert_eq!(ms(twice.high), 79, "three of a hundred");
        assert!(!answers(&[(1, 20)]).is_known_within(0.05));
        let one = answers(&[(1, 20)]).service_time().unwrap();
        assert_eq!((one.low, one.high), (Nanos::ZERO, Nanos::MAX), "one response says nothing");
        assert_eq!(answers(&[]).service_time(), None);
    }

    #[test]
    fn time_without_a_thread_widens_the_interval_only_downwards() {
        let on_the_way = Nanos::from_millis(20 * 5);
        let known = LoneResponses { on_the_way, ..answers(&[(20, 20)]) }.service_time().unwrap();
        assert_eq!((ms(known.low), ms(known.mean), ms(known.high)), (15, 20, 20));
    }

    #[test]
    fn the_interval_spans_different_times_at_start_and_end() {
        let of = |groups: &[(u64, u64)]| answers(groups).service_time().unwrap();
        let slow = of(&[(20, 100)]);
        let none = Nanos::ZERO;
        let second = Nanos::from_secs(1);
        for (start, again, longest, differs, interval) in [
            (slow, answers(&[(50, 20)]), none, true, (20, 100)),
            (slow, answers(&[(50, 103)]), none, false, (100, 100)),
            (of(&[(138, 20), (7, 1000)]), answers(&[(50, 20)]), second, false, (40, 126)),
            (slow, answers(&[(1, 400)]), none, false, (100, 100)),
        ] {
            let both = start.with_later(&again, longest);
            assert_eq!(both.again.map(|again| again.differs), Some(differs), "{again:?}");
            assert_eq!((ms(both.low), ms(both.high)), interval, "{again:?}");
            assert_eq!(both.mean, start.mean);
        }
        assert_eq!(slow.with_later(&answers(&[]), none), slow, "there were no responses");
    }

    #[test]
    fn a_varying_time_has_a_distribution_with_its_mean_and_variation() {
        assert_eq!(answers(&[(20, 20), (1, 21)]).service_time().unwrap().log_normal(), None);
        let known = answers(&[(138, 20), (7, 1000)]).service_time().unwrap();
        let law = known.log_normal().unwrap();
        let spread = law.sigma.powi(2);
        let mean = law.median.as_millis_f64() * (spread / 2.0).exp();
        assert!((mean - known.mean.as_millis_f64()).abs() < 0.001, "{mean}");
        assert!((spread.exp_m1().sqrt() - known.variation).abs() < 1e-6);
    }

    #[test]
    fn an_older_file_has_only_a_median() {
        let read = |text: &str| serde_json::from_str::<ServiceTime>(text).unwrap();
        let given = read(r#"{"time_ns": 5, "source": "given", "cpu_ns": null}"#);
        assert_eq!(given, ServiceTime::given(Nanos(5)));
        let measured = read(r#"{"time_ns": 5, "source": "measured", "cpu_ns": 2}"#);
        let of = (measured.mean, measured.low, measured.high, measured.answers, measured.cpu);
        assert_eq!(of, (Nanos(5), Nanos::ZERO, Nanos::MAX, 0, Some(Nanos(2))));
        let now = answers(&[(3, 20), (1, 30)]).service_time().unwrap();
        assert_eq!(read(&serde_json::to_string(&now).unwrap()), now);
    }
}
