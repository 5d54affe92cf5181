//! What one request takes when no other is there ([`ServiceTime`]): a distribution, of which the
//! mean sets every rate. How well the mean is known is part of it.

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
    /// Requests that were made one at a time, before the first run.
    Measured,
}

/// How long a slot is held by one request when no other is there, and how that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredServiceTime")]
pub struct ServiceTime {
    /// The mean: every rate is computed from it.
    #[serde(rename = "mean_ns")]
    pub mean: Nanos,
    /// The true mean is hardly less (95 %). What of the time holds no thread is left out of it.
    #[serde(rename = "low_ns")]
    pub low: Nanos,
    /// Nor is it more; [`Nanos::MAX`] where nothing is known of that. It has room for long requests
    /// that are too rare to have been met.
    #[serde(rename = "high_ns", with = "crate::units::never_is_null")]
    pub high: Nanos,
    /// Half of the requests take no longer. Never used for a rate.
    #[serde(rename = "median_ns")]
    pub median: Nanos,
    /// What a usual request takes; `None` of fewer than two responses, and of older files.
    pub usual: Option<UsualTime>,
    /// Of the mean: the way there and back, by the kernel's own measure; no thread is held by it.
    #[serde(rename = "round_trip_ns")]
    pub round_trip: Nanos,
    /// Coefficient of variation: the standard deviation in means.
    pub variation: f64,
    /// Responses that were measured; 0 where the time was given, and of older files.
    pub answers: u64,
    /// The longest of them.
    #[serde(rename = "longest_ns")]
    pub longest: Nanos,
    /// Where it comes from.
    pub source: ServiceTimeSource,
    /// What the user said that it is (`-d`).
    #[serde(rename = "given_ns")]
    pub given: Option<Nanos>,
    /// Of the mean: on a CPU, where it was measured.
    #[serde(rename = "cpu_ns")]
    pub cpu: Option<Nanos>,
    /// The longest first request of a worker, where it took notably longer than all that came
    /// later. First requests are not part of the distribution.
    #[serde(rename = "first_ns")]
    pub first: Option<Nanos>,
    /// The same at the end of the server's life; `None` where it was not measured again.
    pub again: Option<MeanAgain>,
}

/// A log-normal law: `median · e^(sigma · z)`, with z standard normal.
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
    /// Whether it is another one than at first, beyond what chance does.
    pub differs: bool,
}

/// As it stands in a file. Older ones have a median, `time_ns`, in place of the distribution.
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

/// Where nothing happened in `n` trials, it happens in 3 / n of them at the most (95 %): "rule of
/// three", Hanley and Lippman-Hand, JAMA 249 (1983).
const RULE_OF_THREE: f64 = 3.0;
/// Two means that differ by less, as a share, count as equal.
const SAME: f64 = 0.05;
/// Of fewer responses what a usual request takes is not compared.
const FEWEST: u64 = 8;
/// A coefficient of variation below which a time counts as constant.
const NEARLY_CONSTANT: f64 = 0.1;
/// A mean that is known so well is told without its interval.
const WELL_KNOWN: f64 = 0.2;

impl ServiceTime {
    /// What the user says that it is.
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

    /// Whether the true mean is within 20 % of this one: then the figure may stand alone.
    pub fn is_well_known(&self) -> bool {
        self.is_within(WELL_KNOWN)
    }

    /// Whether the true mean is within such a share of this one, either way.
    pub fn is_within(&self, share: f64) -> bool {
        let mean = self.mean.as_secs_f64();
        self.low.as_secs_f64() >= mean * (1.0 - share)
            && self.high.as_secs_f64() <= mean * (1.0 + share)
    }

    /// The log-normal law of this mean and this variation; `None` where the time is nearly
    /// constant. Of the waits behind such requests mean and variation say most (Pollaczek and
    /// Khinchine).
    pub fn log_normal(&self) -> Option<LogNormalTime> {
        if self.variation < NEARLY_CONSTANT {
            return None;
        }
        let square = self.variation.powi(2).ln_1p();
        let median = Nanos::from_secs_f64(self.mean.as_secs_f64() / (square / 2.0).exp());
        Some(LogNormalTime { median, sigma: square.sqrt() })
    }

    /// The part of it for which a thread is held: without the way there and back. The lower end of
    /// its interval has been without it all along.
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

    /// With room for requests as long as `longest` that are too rare to have been met: `n`
    /// responses say nothing of what one in `n` does.
    fn with_rare(self, longest: Nanos, n: u64) -> ServiceTime {
        if self.answers == 0 {
            return self;
        }
        let excess = longest.max(self.longest).saturating_sub(self.mean);
        let share = (RULE_OF_THREE / n as f64).min(1.0);
        let room = Nanos::from_secs_f64(excess.as_secs_f64() * share);
        ServiceTime { high: self.high.saturating_add(room), ..self }
    }

    /// With what was seen later: the responses of the same at the end of the server's life, of
    /// which there may be none, and the longest time of a request that is known. Where the two
    /// measurements differ (a cache, a compiler, a busy machine), the interval spans both; else
    /// there is less room for long requests that are too rare to have been met.
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

/// Responses to requests that were made one at a time.
#[derive(Clone, Debug, Default)]
pub struct LoneResponses {
    /// From the first byte sent to the last byte back.
    pub times: Histogram,
    /// How much of these times, in sum, may have held no thread: the way there and back, and
    /// waiting for the rest of a response that had begun.
    pub on_the_way: Nanos,
    /// Of that: the way there and back.
    pub round_trips: Nanos,
}

impl LoneResponses {
    /// Those of a load over one connection.
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

    /// Whether chance puts the mean off by such a share at the most (95 %).
    pub fn is_known_within(&self, share: f64) -> bool {
        self.relative_error().is_some_and(|error| error <= share)
    }

    /// The coefficient of variation; `None` of fewer than two responses.
    fn variation(&self) -> Option<f64> {
        let n = self.times.count() as f64;
        let mean = self.times.mean().filter(|_| n > 1.0)?.as_secs_f64();
        let deviation = self.times.standard_deviation()?.as_secs_f64() * (n / (n - 1.0)).sqrt();
        Some(deviation / mean.max(1e-9))
    }

    /// How far off chance may have put the mean (95 %), as a share of it.
    fn relative_error(&self) -> Option<f64> {
        let n = self.times.count();
        Some(student(n.saturating_sub(1)) * self.variation()? / (n as f64).sqrt())
    }

    /// What they say of the service time; `None` of none.
    ///
    /// Times are skewed: what a sample lacks is its longest ones. So the interval is one of the
    /// logarithm, and reaches farther up than down.
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

    /// Responses of which these many took so many milliseconds.
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
    fn the_mean_and_not_the_median_stands_for_requests_of_two_kinds() {
        let known = answers(&[(138, 20), (7, 1000)]).service_time().unwrap();
        assert_eq!((ms(known.mean), ms(known.median), ms(known.longest)), (67, 20, 1000));
        assert!((3.1..3.2).contains(&known.variation), "{}", known.variation);
        assert_eq!((ms(known.low), ms(known.high), known.is_well_known()), (40, 112, false));
        let none = LoneResponses::default();
        let rare = known.with_later(&none, Nanos::from_secs(1));
        assert_eq!(ms(rare.high), 131, "3 of 145 more could have taken a second");
    }

    #[test]
    fn a_constant_time_is_known_by_few_answers_and_what_is_rare_is_not() {
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
        assert_eq!((one.low, one.high), (Nanos::ZERO, Nanos::MAX), "of one answer nothing");
        assert_eq!(answers(&[]).service_time(), None);
    }

    #[test]
    fn what_holds_no_thread_widens_the_interval_downwards_only() {
        let on_the_way = Nanos::from_millis(20 * 5);
        let known = LoneResponses { on_the_way, ..answers(&[(20, 20)]) }.service_time().unwrap();
        assert_eq!((ms(known.low), ms(known.mean), ms(known.high)), (15, 20, 20));
    }

    #[test]
    fn where_the_end_differs_from_the_start_the_interval_spans_both() {
        let of = |groups: &[(u64, u64)]| answers(groups).service_time().unwrap();
        let slow = of(&[(20, 100)]);
        let (none, second) = (Nanos::ZERO, Nanos::from_secs(1));
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
        assert_eq!(slow.with_later(&answers(&[]), none), slow, "nothing was answered");
    }

    #[test]
    fn a_time_that_varies_has_a_law_of_its_mean_and_variation() {
        assert_eq!(answers(&[(20, 20), (1, 21)]).service_time().unwrap().log_normal(), None);
        let known = answers(&[(138, 20), (7, 1000)]).service_time().unwrap();
        let law = known.log_normal().unwrap();
        let spread = law.sigma.powi(2);
        let mean = law.median.as_millis_f64() * (spread / 2.0).exp();
        assert!((mean - known.mean.as_millis_f64()).abs() < 0.001, "{mean}");
        assert!((spread.exp_m1().sqrt() - known.variation).abs() < 1e-6);
    }

    #[test]
    fn an_older_file_has_a_median_of_which_no_more_is_known() {
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
