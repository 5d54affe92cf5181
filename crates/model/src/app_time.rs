//! Where the response time went, by the app's own time stamps: before the app, in the app, and the
//! rest.
//!
//! If the request asks for it (`x-app-stamps`), the app stamps when it began and ended, with the
//! clock that all processes of a host share. The client knows when the request was due, sent and
//! answered. So for each request
//!
//! response time = send lag + before the app + app + rest
//!
//! where *before the app* is from the first byte sent to the app's start (kernel's accept queue,
//! server's own queue, the server's reading) and *rest* from the app's end to the last byte of the
//! response. If an app only says how long it took (`Server-Timing`), time before and after it
//! counts as rest. Responses whose stamps lie outside their request are counted and left out. A
//! lane keeps sums by response time, so the slowest requests are known without storing any.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Exchange, Nanos};

/// The request header that asks an app for its stamps, and the response header that has them:
/// `CLOCK_MONOTONIC` at its start and at its end, in whole nanoseconds.
pub const STAMPS: &str = "x-app-stamps";

/// What an app reported in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppTime {
    /// When it began and ended.
    Stamps {
        /// Its first instant.
        started: Nanos,
        /// Its last one.
        ended: Nanos,
    },
    /// How long it took.
    Took(Nanos),
}

/// How the app's part is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppSource {
    /// It stamped its start and its end.
    Stamps,
    /// It sent a duration in `Server-Timing`.
    ServerTiming,
}

/// Sums over some requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppTimeSums {
    /// How many.
    pub requests: u64,
    /// Sum of their response times.
    #[serde(rename = "response_time_sum_ns")]
    pub response_time: Nanos,
    /// From due to sent.
    #[serde(rename = "send_lag_sum_ns")]
    pub send_lag: Nanos,
    /// From sent to the app's start; `None` if that instant is unknown.
    #[serde(rename = "before_app_sum_ns")]
    pub before_app: Option<Nanos>,
    /// In the app.
    #[serde(rename = "app_sum_ns")]
    pub app: Nanos,
}

impl AppTimeSums {
    /// What is left: the time after the app, and before it if that is unknown.
    pub fn rest(&self) -> Nanos {
        let known = self.send_lag + self.before_app.unwrap_or(Nanos::ZERO) + self.app;
        self.response_time.saturating_sub(known)
    }

    /// The mean of a sum; `None` without requests.
    pub fn mean(&self, sum: Nanos) -> Option<Nanos> {
        sum.0.checked_div(self.requests).map(Nanos)
    }

    fn add(&mut self, other: &AppTimeSums) {
        // Without requests, a missing time does not make the sum unknown.
        self.before_app = match (self.requests, other.requests) {
            (0, _) => other.before_app,
            (_, 0) => self.before_app,
            _ => self.before_app.zip(other.before_app).map(|(mine, theirs)| mine + theirs),
        };
        self.requests += other.requests;
        self.response_time += other.response_time;
        self.send_lag += other.send_lag;
        self.app += other.app;
    }
}

/// Where the response times of a run's measured good responses went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppTimes {
    /// How the app's part is known.
    pub source: AppSource,
    /// Sums over all responses with the app's time.
    pub all: AppTimeSums,
    /// Sums over the slowest tenth of them, made of whole groups of equal times (to 0.1 %); `None`
    /// for fewer than 10.
    pub slowest: Option<AppTimeSums>,
    /// Good responses without the app's time, or from another source.
    pub silent: u64,
    /// Good responses whose stamps lie outside their request, or whose app took longer than their
    /// service time.
    pub impossible: u64,
}

/// The sums of a lane. Merged in any order, they equal those of a single lane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppTimeAccumulator {
    /// By source and response time, to 0.1 %.
    sums: BTreeMap<AppSource, BTreeMap<u64, AppTimeSums>>,
    silent: u64,
    impossible: u64,
}

/// The slowest requests that are looked at separately are one in this many.
const SLOWEST: u64 = 10;
/// Leading bits of a response time by which sums are distinguished: 2^-10 is 0.1 %.
const BITS: u32 = 11;

impl AppTimeAccumulator {
    /// Adds a measured good response and what its app reported, on the clock of the exchange.
    pub fn record(&mut self, exchange: &Exchange, app_time: Option<AppTime>) {
        let Some(app_time) = app_time else {
            self.silent += 1;
            return;
        };
        let Exchange { sent, ended: answered, .. } = *exchange;
        let (source, before_app, app) = match app_time {
            AppTime::Stamps { started, ended }
                if sent <= started && started <= ended && ended <= answered =>
            {
                (AppSource::Stamps, Some(started - sent), ended - started)
            }
            AppTime::Took(app) if app <= exchange.service_time() => {
                (AppSource::ServerTiming, None, app)
            }
            AppTime::Stamps { .. } | AppTime::Took(_) => {
                self.impossible += 1;
                return;
            }
        };
        let response_time = exchange.response_time();
        let one = AppTimeSums {
            requests: 1,
            response_time,
            send_lag: exchange.send_lag(),
            before_app,
            app,
        };
        self.sums
            .entry(source)
            .or_default()
            .entry(leading_bits(response_time))
            .or_default()
            .add(&one);
    }

    /// Adds another lane's.
    pub fn merge(&mut self, other: &AppTimeAccumulator) {
        for (source, groups) in &other.sums {
            let ours = self.sums.entry(*source).or_default();
            for (time, parts) in groups {
                ours.entry(*time).or_default().add(parts);
            }
        }
        self.silent += other.silent;
        self.impossible += other.impossible;
    }

    /// The result: by stamps if there are any. `None` if no response had the app's time.
    pub fn app_times(&self) -> Option<AppTimes> {
        let nothing = (&AppSource::Stamps, &BTreeMap::new());
        // The first source is stamps, if there are any.
        let (source, groups) =
            self.sums.first_key_value().or((self.impossible > 0).then_some(nothing))?;
        let (all, slowest) = whole_and_slowest(groups, |parts| parts.requests, AppTimeSums::add);
        let recorded: u64 =
            self.sums.values().flat_map(BTreeMap::values).map(|parts| parts.requests).sum();
        let silent = self.silent + recorded - all.requests;
        Some(AppTimes { source: *source, all, slowest, silent, impossible: self.impossible })
    }
}

/// The sum of all groups, which are keyed by response time, and of the slowest tenth of their
/// requests; `None` for fewer than 10.
pub(crate) fn whole_and_slowest<S: Default>(
    groups: &BTreeMap<u64, S>,
    requests: fn(&S) -> u64,
    add: fn(&mut S, &S),
) -> (S, Option<S>) {
    let sum = |count: usize| {
        let mut sum = S::default();
        groups.values().rev().take(count).for_each(|parts| add(&mut sum, parts));
        sum
    };
    let all = sum(groups.len());
    let slowest = slowest_groups(groups.values().rev().map(requests), requests(&all));
    let slowest = (requests(&all) >= SLOWEST).then(|| sum(slowest));
    (all, slowest)
}

/// How many groups of these sizes, the slowest first, come nearest to a tenth of all requests; at
/// least one. Groups are not split: if 9.9 % are slow, no fast ones are added to the slowest.
fn slowest_groups(sizes: impl Iterator<Item = u64>, all: u64) -> usize {
    let mut taken = 0_u64;
    let mut groups = 0;
    for size in sizes {
        let distance = (taken * SLOWEST).abs_diff(all);
        let distance_with_it = ((taken + size) * SLOWEST).abs_diff(all);
        if taken > 0 && distance_with_it >= distance {
            break;
        }
        taken += size;
        groups += 1;
    }
    groups
}

/// The time with all but its leading bits cleared.
pub(crate) fn leading_bits(time: Nanos) -> u64 {
    let low = (u64::BITS - time.0.leading_zeros()).saturating_sub(BITS);
    time.0 >> low << low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_fixtures::{exchange, stamps};
    use proptest::prelude::*;

    #[test]
    fn the_slowest_tenth_is_made_of_whole_groups() {
        // 99 slow and 901 fast ones: the fast ones are not among the slowest.
        for (sizes, groups) in
            [(&[99, 901][..], 1), (&[10, 40, 60, 890], 3), (&[1, 1, 8, 90], 3), (&[100], 1)]
        {
            assert_eq!(
                slowest_groups(sizes.iter().copied(), sizes.iter().sum()),
                groups,
                "{sizes:?}"
            );
        }
    }

    #[test]
    fn the_parts_add_up_to_the_whole() {
        let mut lane = AppTimeAccumulator::default();
        for n in 0..99 {
            lane.record(&exchange(n, n + 1, n + 106), Some(stamps(n + 4, n + 104)));
        }
        lane.record(&exchange(0, 1, 1000), Some(stamps(801, 901)));
        let app_times = lane.app_times().unwrap();
        assert_eq!(
            (app_times.source, app_times.all.requests, app_times.silent),
            (AppSource::Stamps, 100, 0)
        );
        assert_eq!(app_times.all.mean(app_times.all.app), Some(Nanos::from_millis(100)));
        assert_eq!(app_times.all.before_app, Some(Nanos::from_millis(99 * 3 + 800)));
        assert_eq!(app_times.all.rest(), Nanos::from_millis(99 * 2 + 99));
        let slowest = app_times.slowest.unwrap();
        assert_eq!((slowest.requests, slowest.before_app), (1, Some(Nanos::from_millis(800))));
        assert_eq!(slowest.rest(), Nanos::from_millis(99));
        // With only a duration, the time before the app is part of the rest.
        let mut lane = AppTimeAccumulator::default();
        lane.record(&exchange(0, 1, 100), Some(AppTime::Took(Nanos::from_millis(60))));
        lane.record(&exchange(0, 1, 100), None);
        let app_times = lane.app_times().unwrap();
        assert_eq!((app_times.source, app_times.silent), (AppSource::ServerTiming, 1));
        assert_eq!(
            (app_times.all.before_app, app_times.all.rest()),
            (None, Nanos::from_millis(39))
        );
        assert_eq!(AppTimeAccumulator::default().app_times(), None);
    }

    #[test]
    fn stamps_outside_the_request_are_counted_and_not_clamped() {
        let mut lane = AppTimeAccumulator::default();
        for app_time in
            [stamps(9, 50), stamps(60, 50), stamps(50, 101), AppTime::Took(Nanos::from_millis(91))]
        {
            lane.record(&exchange(5, 10, 100), Some(app_time));
        }
        let app_times = lane.app_times().unwrap();
        assert_eq!((app_times.impossible, app_times.all.requests), (4, 0));
        lane.record(&exchange(5, 10, 100), Some(stamps(10, 100)));
        assert_eq!(lane.app_times().unwrap().all.rest(), Nanos::ZERO);
        assert_eq!(lane.app_times().unwrap().slowest, None, "one request has no slowest tenth");
    }

    fn any_answer() -> impl Strategy<Value = (Exchange, Option<AppTime>)> {
        let times = (0u64..1000, 0u64..50, 0u64..900, 0u64..900, 0u64..50);
        (times, 0u8..10).prop_map(|((due, lag, before, app, rest), kind)| {
            let sent = due + lag;
            let app_time = match kind {
                0 => None,
                1 => Some(AppTime::Took(Nanos::from_millis(app))),
                // Before it was sent.
                2 => Some(stamps(sent.saturating_sub(1), sent + before)),
                _ => Some(stamps(sent + before, sent + before + app)),
            };
            (exchange(due, sent, sent + before + app + rest), app_time)
        })
    }

    proptest! {
        #[test]
        fn merged_lanes_equal_one_lane_and_lose_nothing(all in prop::collection::vec(any_answer(), 0..400), cut in 0usize..400) {
            let with_app_times = |answers: &[(Exchange, Option<AppTime>)]| {
                let mut lane = AppTimeAccumulator::default();
                for (exchange, app_time) in answers {
                    lane.record(exchange, *app_time);
                }
                lane
            };
            let (left, right) = all.split_at(cut.min(all.len()));
            let whole = with_app_times(&all);
            let mut merged = with_app_times(right);
            merged.merge(&with_app_times(left));
            prop_assert_eq!(&merged, &whole);
            let file = serde_json::to_string(&whole).unwrap();
            prop_assert_eq!(&serde_json::from_str::<AppTimeAccumulator>(&file).unwrap(), &whole);
            if let Some(app_times) = whole.app_times() {
                prop_assert_eq!(app_times.all.requests + app_times.silent + app_times.impossible, all.len() as u64);
                if let Some(slowest) = app_times.slowest {
                    prop_assert!(slowest.requests > 0 && slowest.requests <= app_times.all.requests);
                    prop_assert!(slowest.mean(slowest.response_time) >= app_times.all.mean(app_times.all.response_time));
                }
            }
        }

        #[test]
        fn a_key_is_the_time_to_a_thousandth(time in any::<u64>()) {
            let key = leading_bits(Nanos(time));
            prop_assert!(key <= time && (time - key) as f64 <= time as f64 / 1024.0);
        }
    }
}
