//! Samples of a run ([`Watch`]): what server, kernel and app said while it went on, one time axis a
//! source and one curve a quantity; and one series for each statsd metric and its tags.
//!
//! A value that could not be had is absent, never 0.

use serde::{Deserialize, Serialize};
use strum::{EnumMessage, IntoStaticStr, VariantArray};

use crate::Nanos;

/// The readings that were taken during a run's measured window and the wait for its last answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// One for each source that answered.
    pub tracks: Vec<WatchTrack>,
    /// CPU time that sampling took of this machine, all in our own threads, the warm-up's samples
    /// included.
    #[serde(rename = "cpu_ns")]
    pub cpu: Nanos,
    /// What could not be read and why, a line each.
    pub missing: Vec<String>,
}

/// The readings of one source, all of a row taken in one sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchTrack {
    /// Who said it: `sock_diag`, `/proc/net/unix`, `/proc/PID/task/TID/schedstat`, `puma stats`.
    pub source: String,
    /// When each sample was taken, rising, since the start of the measured window.
    #[serde(rename = "at_ns")]
    pub at: Vec<Nanos>,
    /// What was seen.
    pub curves: Vec<WatchCurve>,
}

/// How one quantity went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchCurve {
    /// Of whom: a process by its id, a worker; empty for the whole server.
    pub of: String,
    /// What: `accept_queue`, `open_connections`, `cpu`.
    pub name: String,
    /// The unit of the values: `connections`, `threads`, `requests`, `ns`.
    pub unit: String,
    /// One for each sample of its track; `None` where it could not be had.
    pub values: Vec<Option<u64>>,
    /// How old each value may have been when it was read, one for each sample; empty where all were
    /// read as they were.
    #[serde(rename = "staleness_ns")]
    pub staleness: Vec<Option<Nanos>>,
}

/// The curves of how many of the server's connections each process holds.
pub const HELD_CONNECTIONS: &str = "held_connections";

/// Fewer samples than this tell no mean.
pub const LEAST_SAMPLES: usize = 10;

impl Watch {
    /// The curve of that name and its track; where several have it, the first.
    pub fn curve<'a>(&'a self, name: &'a str) -> Option<(&'a WatchTrack, &'a WatchCurve)> {
        self.curves(name).next()
    }

    /// All curves of that name, each with its track.
    pub fn curves<'a>(
        &'a self,
        name: &'a str,
    ) -> impl Iterator<Item = (&'a WatchTrack, &'a WatchCurve)> + 'a {
        self.tracks.iter().flat_map(move |track| track.named(name).map(move |curve| (track, curve)))
    }

    /// Connections of each process that held any, the fullest first, of a run with so many. Known
    /// if every sample that found all of them agrees, and at least half of the samples found them:
    /// then a connection stays with its process, and none waits in the kernel.
    pub fn held_connections(&self, connections: u32) -> Option<Vec<u32>> {
        let curves: Vec<&WatchCurve> =
            self.curves(HELD_CONNECTIONS).map(|(_, curve)| curve).collect();
        let samples = curves.first().map_or(0, |curve| curve.values.len());
        let in_sample = |sample: usize| {
            let mut held: Vec<u32> = curves
                .iter()
                .filter_map(|curve| curve.values.get(sample).copied().flatten())
                .filter(|held| *held > 0)
                .map(|held| held as u32)
                .collect();
            held.sort_unstable_by(|a, b| b.cmp(a));
            (held.iter().sum::<u32>() == connections).then_some(held)
        };
        let whole: Vec<Vec<u32>> = (0..samples).filter_map(in_sample).collect();
        // When some wait in the kernel, a sample may still find all of them for a moment.
        let is_steady =
            whole.windows(2).all(|pair| pair[0] == pair[1]) && whole.len() * 2 >= samples;
        whole.into_iter().next().filter(|_| is_steady)
    }
}

impl WatchTrack {
    /// Its curves of that name. One with another number of values than there were samples is of no
    /// use to anybody.
    fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a WatchCurve> + 'a {
        self.curves
            .iter()
            .filter(move |curve| curve.name == name && curve.values.len() == self.at.len())
    }

    /// Mean over time of a curve of this track from the start of the measured window up to `until`:
    /// between two samples the mean of the two, so that samples that came late weigh as much as the
    /// time they stand for. `None` of fewer than [`LEAST_SAMPLES`] samples, and where they leave
    /// out more than a tenth of that time.
    pub fn mean(&self, curve: &WatchCurve, until: Nanos) -> Option<f64> {
        let samples = self.at.iter().zip(&curve.values).filter(|(at, _)| **at <= until);
        let known: Vec<(Nanos, u64)> =
            samples.filter_map(|(at, value)| Some((*at, (*value)?))).collect();
        let (first, last) = (known.first()?.0, known.last()?.0);
        let covered = last.saturating_sub(first);
        if known.len() < LEAST_SAMPLES || covered.as_secs_f64() < 0.9 * until.as_secs_f64() {
            return None;
        }
        let twice = |pair: &[(Nanos, u64)]| {
            u128::from(pair[1].0.saturating_sub(pair[0].0).0)
                * (u128::from(pair[0].1) + u128::from(pair[1].1))
        };
        let twice_the_area: u128 = known.windows(2).map(twice).sum();
        Some(twice_the_area as f64 / 2.0 / covered.0 as f64)
    }
}

impl WatchCurve {
    /// The largest value that was seen.
    pub fn most(&self) -> Option<u64> {
        self.values.iter().flatten().max().copied()
    }

    /// Of a counter: what it counted from the first sample to the last.
    pub fn counted(&self) -> Option<u64> {
        let known = || self.values.iter().flatten();
        known().next_back()?.checked_sub(*known().next()?)
    }
}

/// What was received during a run's measured window and the wait for its last answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatsdReport {
    /// By metric, tags and type, rising.
    pub series: Vec<StatsdMetric>,
    /// Packets that came in the window.
    pub packets: u64,
    /// Lines of them that were understood.
    pub lines: u64,
    /// Lines that are no statsd.
    pub malformed: u64,
    /// The first of those, shortened.
    pub first_malformed: Option<String>,
    /// `DogStatsD`'s events and service checks: they have no value.
    pub no_metrics: u64,
    /// Lines that came before the window, since the run before: they are in no figure.
    pub before: u64,
    /// Lines left out because there were too many series already.
    pub left_out: u64,
    /// Packets that the kernel dropped because we read too slowly; `None` where it does not say.
    pub dropped_by_kernel: Option<u64>,
    /// CPU time that the listening took of this machine.
    #[serde(rename = "cpu_ns")]
    pub cpu: Nanos,
}

/// One metric with its tags.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatsdMetric {
    /// As it was sent: `puma.backlog`.
    pub metric: String,
    /// As they were sent, sorted: `grouping:web`, `canary`.
    pub tags: Vec<String>,
    /// What its values are.
    pub kind: MetricKind,
    /// Values that came.
    pub values: u64,
    /// How many they stand for: each value once for each that the sender left out by its sample
    /// rate.
    pub stands_for: f64,
    /// The figures of the values; `None` of a set, whose values are names.
    pub figures: Option<StatsdFigures>,
}

/// What the values of a series come to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatsdFigures {
    /// Sum of the values, each as often as it stands for; of a counter, what it counted.
    pub sum: f64,
    /// `sum` over what they stand for; of a gauge the mean of what was reported, and not over time.
    pub mean: f64,
    /// The value that came last.
    pub last: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// The types of statsd and `DogStatsD`.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    EnumMessage,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
pub enum MetricKind {
    /// `c`: each value is added.
    #[strum(serialize = "c", message = "counter")]
    Counter,
    /// `g`: each value replaces the one before.
    #[strum(serialize = "g", message = "gauge")]
    Gauge,
    /// `ms`: a time in milliseconds.
    #[strum(serialize = "ms", message = "timer, ms")]
    Timer,
    /// `h`: one observation.
    #[strum(serialize = "h", message = "histogram")]
    Histogram,
    /// `d`: one observation, to be put together on the server.
    #[strum(serialize = "d", message = "distribution")]
    Distribution,
    /// `s`: a name, of which the different ones count.
    #[strum(serialize = "s", message = "set")]
    Set,
}

impl MetricKind {
    /// All of them.
    pub const ALL: &[MetricKind] = MetricKind::VARIANTS;

    /// As a line spells it.
    pub fn letter(self) -> &'static str {
        self.into()
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.get_message().unwrap_or_default()
    }
}

impl StatsdReport {
    /// The first series of that metric.
    pub fn of(&self, metric: &str) -> Option<&StatsdMetric> {
        self.series.iter().find(|series| series.metric == metric)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_fixtures::exchange;
    use crate::{Exchange, Outcome, Run, Tally, Window};

    fn track(samples: &[(u64, Option<u64>)]) -> WatchTrack {
        let curve = WatchCurve {
            name: "accept_queue".to_owned(),
            values: samples.iter().map(|(_, value)| *value).collect(),
            ..WatchCurve::default()
        };
        let at = samples.iter().map(|(at, _)| Nanos::from_millis(*at)).collect();
        WatchTrack { at, curves: vec![curve], ..WatchTrack::default() }
    }

    fn mean(samples: &[(u64, Option<u64>)], until: u64) -> Option<f64> {
        let track = track(samples);
        track.mean(&track.curves[0], Nanos::from_millis(until))
    }

    #[test]
    fn a_late_sample_weighs_as_much_as_the_time_it_stands_for() {
        // 4 for the first half in 20 samples, 0 after it in 2.
        let mut samples: Vec<_> = (0..=20).map(|n| (n * 50, Some(4))).collect();
        samples.extend([(1001, Some(0)), (2000, Some(0))]);
        assert!((mean(&samples, 2000).unwrap() - 2.001).abs() < 1e-9, "{:?}", mean(&samples, 2000));
        let samples: Vec<_> = (0..=40).map(|n| (n * 50, (n % 2 == 0).then_some(7))).collect();
        assert_eq!(mean(&samples, 2000), Some(7.0), "what is absent is no zero");
        // Few samples, or a part of the window, tell no mean.
        let samples: Vec<_> = (0..40).map(|n| (n * 50, Some(1))).collect();
        assert_eq!((mean(&samples[..9], 400), mean(&samples[..10], 450)), (None, Some(1.0)));
        assert_eq!(mean(&samples, 4000), None, "half of the window");
        assert_eq!(mean(&[], 1000), None);
    }

    #[test]
    fn a_counter_tells_what_came_between() {
        let curve = WatchCurve {
            values: vec![None, Some(5), None, Some(12), None],
            ..WatchCurve::default()
        };
        assert_eq!((curve.counted(), curve.most()), (Some(7), Some(12)));
        assert_eq!(WatchCurve::default().counted(), None);
    }

    /// Simulated time, closed loop: `connections` on `slots` that each take 100 ms, a new
    /// connection for each request, for 10 s after a warm-up of 1 s. The queue is looked at each 50
    /// ms, just after what happened then.
    fn played(connections: u64, slots: u64) -> Run {
        let (window, step) = (
            Window { from: Nanos::from_secs(1), until: Nanos::from_secs(11) },
            Nanos::from_millis(100),
        );
        let mut tally = Tally::new(window, connections as usize);
        // Whoever came first is served first: each round, `slots` of them end, and come again at
        // once.
        let mut line: std::collections::VecDeque<Nanos> =
            (0..connections).map(|_| Nanos::ZERO).collect();
        let mut now = Nanos::ZERO;
        while now < window.until {
            let served: Vec<Nanos> =
                (0..slots.min(connections)).filter_map(|_| line.pop_front()).collect();
            now += step;
            for due in served {
                tally.record(&Exchange { due, sent: due, ended: now, ..exchange(0, 0, 0) }, 0);
                line.push_back(now);
            }
        }
        let waiting = Some(connections.saturating_sub(slots));
        let samples: Vec<_> = (0..=200).map(|n| (50 * n, waiting)).collect();
        let track = WatchTrack { source: "sock_diag".to_owned(), ..track(&samples) };
        Run {
            watch: Some(Watch { tracks: vec![track], ..Watch::default() }),
            ..Run::recorded(connections as u32, tally, window.until - window.from, window.until)
        }
    }

    #[test]
    fn the_wait_is_exact_where_everybody_waits_in_that_queue() {
        for (connections, slots, wait) in [(10, 10, 0), (40, 10, 300), (15, 10, 50), (7, 1, 600)] {
            let run = played(connections, slots);
            // A round ends each 100 ms, the first of the window at its start.
            assert_eq!(run.tally.completed_in_window, slots * 100, "{connections}");
            assert_eq!(
                run.accept_queue_wait(),
                Some(Nanos::from_millis(wait)),
                "{connections} on {slots}"
            );
        }
    }

    #[test]
    fn where_requests_failed_or_nobody_looked_nothing_is_inferred() {
        let mut run = played(40, 10);
        let failed = Exchange { outcome: Outcome::TimedOut, ..exchange(2000, 2000, 3000) };
        run.tally.record(&failed, 0);
        assert_eq!(run.accept_queue_wait(), None);
        assert_eq!(Run { watch: None, ..played(40, 10) }.accept_queue_wait(), None);
    }
}
