//! Samples of a run ([`Watch`]): what server, kernel and app reported meanwhile, with a time axis
//! for each source, a curve for each quantity, and a series for each statsd metric and its tags.
//!
//! A value that could not be read is absent, never 0.

use serde::{Deserialize, Serialize};
use strum::{EnumMessage, IntoStaticStr, VariantArray};

use crate::Nanos;

/// The samples taken during a run's measured window and the wait for its last responses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// One for each source that answered.
    pub tracks: Vec<WatchTrack>,
    /// CPU time of sampling, all in our own threads, warm-up included.
    #[serde(rename = "cpu_ns")]
    pub cpu: Nanos,
    /// What could not be read and why, one line each.
    pub missing: Vec<String>,
}

/// The samples of one source; each reads all its curves together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchTrack {
    /// The source: `sock_diag`, `/proc/net/unix`, `/proc/PID/task/TID/schedstat`, `puma stats`.
    pub source: String,
    /// When each sample was taken, rising, since the start of the measured window.
    #[serde(rename = "at_ns")]
    pub at: Vec<Nanos>,
    /// The curves.
    pub curves: Vec<WatchCurve>,
}

/// One quantity over time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchCurve {
    /// The process id or worker that it belongs to; empty for the whole server.
    pub of: String,
    /// Its name: `accept_queue`, `open_connections`, `cpu`.
    pub name: String,
    /// The unit of the values: `connections`, `threads`, `requests`, `ns`.
    pub unit: String,
    /// One for each sample of its track; `None` if it could not be read.
    pub values: Vec<Option<u64>>,
    /// How old each value may have been when it was read, one for each sample; empty if all were
    /// current.
    #[serde(rename = "staleness_ns")]
    pub staleness: Vec<Option<Nanos>>,
}

/// The curves of how many of the server's connections each process holds.
pub const HELD_CONNECTIONS: &str = "held_connections";

/// Fewer samples than this are not enough for a mean.
pub const LEAST_SAMPLES: usize = 10;

impl Watch {
    /// The first curve with this name, and its track.
    pub fn curve<'a>(&'a self, name: &'a str) -> Option<(&'a WatchTrack, &'a WatchCurve)> {
        self.curves(name).next()
    }

    /// All curves with this name, each with its track.
    pub fn curves<'a>(
        &'a self,
        name: &'a str,
    ) -> impl Iterator<Item = (&'a WatchTrack, &'a WatchCurve)> + 'a {
        self.tracks.iter().flat_map(move |track| track.named(name).map(move |curve| (track, curve)))
    }

    /// How many of the `connections` each process holds, the largest number first. Known if at
    /// least half of the samples found all connections in processes, and these samples agree: then
    /// each connection stays with its process, and none waits in the kernel.
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
        // Even if some wait in the kernel, a sample may find all of them in processes for a moment.
        let is_steady =
            whole.windows(2).all(|pair| pair[0] == pair[1]) && whole.len() * 2 >= samples;
        whole.into_iter().next().filter(|_| is_steady)
    }
}

impl WatchTrack {
    /// Its curves with this name. A curve whose number of values differs from the number of samples
    /// is ignored.
    fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a WatchCurve> + 'a {
        self.curves
            .iter()
            .filter(move |curve| curve.name == name && curve.values.len() == self.at.len())
    }

    /// The mean over time of a curve of this track, from the start of the measured window up to
    /// `until`. Between two samples it uses their mean, so a late sample has the weight of the time
    /// that it covers. `None` for fewer than [`LEAST_SAMPLES`] samples, or if they don't cover at
    /// least 90 % of that time.
    pub fn mean(&self, curve: &WatchCurve, until: Nanos) -> Option<f64> {
        let samples = self.at.iter().zip(&curve.values).filter(|(at, _)| **at <= until);
        let known: Vec<(Nanos, u64)> =
            samples.filter_map(|(at, value)| Some((*at, (*value)?))).collect();
        let first = known.first()?.0;
        let last = known.last()?.0;
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
    /// The largest value.
    pub fn most(&self) -> Option<u64> {
        self.values.iter().flatten().max().copied()
    }

    /// For a counter: what it counted from the first sample to the last.
    pub fn counted(&self) -> Option<u64> {
        let known = || self.values.iter().flatten();
        known().next_back()?.checked_sub(*known().next()?)
    }
}

/// The statsd packets received during a run's measured window and the wait for its last responses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatsdReport {
    /// By metric, tags and type, rising.
    pub series: Vec<StatsdMetric>,
    /// Packets received in the window.
    pub packets: u64,
    /// Lines in them that were understood.
    pub lines: u64,
    /// Lines that are not statsd.
    pub malformed: u64,
    /// The first malformed line, shortened.
    pub first_malformed: Option<String>,
    /// `DogStatsD` events and service checks, which have no value.
    pub no_metrics: u64,
    /// Lines received between the previous run and the window; they are in no figure.
    pub before: u64,
    /// Lines left out because there were too many series already.
    pub left_out: u64,
    /// Packets that the kernel dropped because we read too slowly; `None` if it doesn't say.
    pub dropped_by_kernel: Option<u64>,
    /// CPU time of listening.
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
    /// Values received.
    pub values: u64,
    /// How many values they represent, given the sender's sample rate.
    pub stands_for: f64,
    /// The figures of the values; `None` for a set, whose values are names.
    pub figures: Option<StatsdFigures>,
}

/// Figures of the values of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatsdFigures {
    /// The sum of the values, weighted by the sample rate; for a counter, what it counted.
    pub sum: f64,
    /// `sum` / the number of values represented; for a gauge the mean of the reports, not over
    /// time.
    pub mean: f64,
    /// The last value received.
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
    /// `d`: one observation, to be aggregated on the server.
    #[strum(serialize = "d", message = "distribution")]
    Distribution,
    /// `s`: a name; distinct names are counted.
    #[strum(serialize = "s", message = "set")]
    Set,
}

impl MetricKind {
    /// All of them.
    pub const ALL: &[MetricKind] = MetricKind::VARIANTS;

    /// Its letter in a line.
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
    use crate::{Backlog, Exchange, Outcome, Run, Statistics, Tally, Window};

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
    fn a_late_sample_has_the_weight_of_the_time_it_covers() {
        // 21 samples of 4 in the first half, then two of 0.
        let mut samples: Vec<_> = (0..=20).map(|n| (n * 50, Some(4))).collect();
        samples.extend([(1001, Some(0)), (2000, Some(0))]);
        assert!((mean(&samples, 2000).unwrap() - 2.001).abs() < 1e-9, "{:?}", mean(&samples, 2000));
        let samples: Vec<_> = (0..=40).map(|n| (n * 50, (n % 2 == 0).then_some(7))).collect();
        assert_eq!(mean(&samples, 2000), Some(7.0), "an absent value is not 0");
        // Few samples, or a part of the window, give no mean.
        let samples: Vec<_> = (0..40).map(|n| (n * 50, Some(1))).collect();
        assert_eq!((mean(&samples[..9], 400), mean(&samples[..10], 450)), (None, Some(1.0)));
        assert_eq!(mean(&samples, 4000), None, "only half of the window");
        assert_eq!(mean(&[], 1000), None);
    }

    #[test]
    fn a_counter_gives_the_difference_between_its_ends() {
        let curve = WatchCurve {
            values: vec![None, Some(5), None, Some(12), None],
            ..WatchCurve::default()
        };
        assert_eq!((curve.counted(), curve.most()), (Some(7), Some(12)));
        assert_eq!(WatchCurve::default().counted(), None);
    }

    /// A closed loop in simulated time: `connections` on `slots` that each take 100 ms, with a new
    /// connection for each request, for 10 s after a warm-up of 1 s. The queue is sampled every 50
    /// ms, just after the events of that instant.
    fn played(connections: u64, slots: u64) -> Run {
        let window = Window { from: Nanos::from_secs(1), until: Nanos::from_secs(11) };
        let step = Nanos::from_millis(100);
        let mut tally = Tally::new(window, connections as usize);
        // First come, first served: in each round, `slots` requests end and connect again at once.
        let mut line: std::collections::VecDeque<Nanos> =
            (0..connections).map(|_| Nanos::ZERO).collect();
        // Each connection has its turn after all others.
        let mut turn = 0;
        let mut now = Nanos::ZERO;
        while now < window.until {
            let served: Vec<Nanos> =
                (0..slots.min(connections)).filter_map(|_| line.pop_front()).collect();
            now += step;
            for due in served {
                let exchange = Exchange { due, sent: due, ended: now, ..exchange(0, 0, 0) };
                tally.record(&exchange, turn % connections as usize);
                turn += 1;
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
    fn connections_without_a_response_hide_the_wait_in_a_closed_loop_only() {
        let mut run = played(10, 10);
        run.tally.per_connection.push(0);
        assert_eq!((run.connections_never_served(), run.accept_queue_wait()), (1, None));
        // An open loop does not need all of its connections.
        let backlog = Backlog {
            over: run.measured,
            offered: 100.0,
            at_end: 0,
            growth: 0.0,
            error: 0.0,
            late_growth: 0.0,
        };
        run.statistics = Some(Statistics { backlog: Some(backlog), ..Statistics::default() });
        assert_eq!(run.connections_never_served(), 0);
        assert_eq!(run.accept_queue_wait(), Some(Nanos::ZERO));
    }

    #[test]
    fn the_inferred_wait_is_exact_if_all_requests_wait_in_the_queue() {
        for (connections, slots, wait) in [(10, 10, 0), (40, 10, 300), (15, 10, 50), (7, 1, 600)] {
            let run = played(connections, slots);
            // A round ends every 100 ms, the first one at the start of the window.
            assert_eq!(run.tally.completed_in_window, slots * 100, "{connections}");
            assert_eq!(
                run.accept_queue_wait(),
                Some(Nanos::from_millis(wait)),
                "{connections} on {slots}"
            );
        }
    }

    #[test]
    fn with_failures_or_without_samples_no_wait_is_inferred() {
        let mut run = played(40, 10);
        let failed = Exchange { outcome: Outcome::TimedOut, ..exchange(2000, 2000, 3000) };
        run.tally.record(&failed, 0);
        assert_eq!(run.accept_queue_wait(), None);
        assert_eq!(Run { watch: None, ..played(40, 10) }.accept_queue_wait(), None);
    }
}
