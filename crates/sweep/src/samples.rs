//! Samples server and kernel during a run and makes a [`Watch`] of it, whose time starts with the
//! measured window. Counters start at 0 with the window, or when their process is born. What could
//! not be read is absent.
//!
//! [`probe::sampler`] reads connections and processes 4 times a second; once a second it looks for
//! new processes, counts each process's connections and reads the server's statistics. Its threads
//! share nothing with the lanes. Memory is bounded: when a list is full, every second sample is
//! dropped, and from then on every second one is skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use model::samples::{HELD_CONNECTIONS, WatchCurve, WatchTrack};
use model::{ControlServer, Nanos, SystemClock, Watch};
use probe::processes::ProcessSample;
use probe::puma_stats::{PumaStats, WorkerStats};
use probe::sampler::{self, Observation, Sampler, SamplingPlan, ServerSample, ThinnedList};
use probe::sockets::ServerSockets;

/// How often a server is sampled during a run.
pub(crate) const SAMPLING: SamplingPlan =
    SamplingPlan { period: Nanos::from_millis(250), search_every: 4, has_details: false };

/// The latest value of each quantity, by its name and the process it belongs to, for the live
/// display. The sampling threads write it; lanes don't touch it.
#[derive(Debug, Default)]
pub struct LiveReadings(Mutex<BTreeMap<(&'static str, String), u64>>);

impl LiveReadings {
    /// Sets a quantity; `None` removes it.
    pub fn set(&self, name: &'static str, of: &str, value: Option<u64>) {
        let mut readings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match value {
            Some(value) => readings.insert((name, of.to_owned()), value),
            None => readings.remove(&(name, of.to_owned())),
        };
    }

    /// All quantities: name, process, value.
    pub fn all(&self) -> Vec<(&'static str, String, u64)> {
        let readings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        readings.iter().map(|((name, of), value)| (*name, of.clone(), *value)).collect()
    }
}

/// The samples of sockets and processes, by the run's clock: up to five minutes at the full rate,
/// longer at a lower one.
#[derive(Default)]
pub(crate) struct SampledServer {
    source: &'static str,
    queue: ThinnedList<(Nanos, Option<ServerSockets>), 6000>,
    samples: ThinnedList<ServerSample, 1200>,
    missing: BTreeSet<String>,
    cpu: Nanos,
}

/// The server's statistics, each with its time by the run's clock and by the wall clock.
#[derive(Default)]
pub(crate) struct PolledStatistics {
    polls: ThinnedList<StatisticsPoll, 6000>,
    cpu: Nanos,
}

#[derive(Clone)]
struct StatisticsPoll {
    at: Nanos,
    wall: Nanos,
    stats: Option<PumaStats>,
}

/// Samples server and kernel until `over` is raised.
pub(crate) fn sample(
    sampler: Sampler,
    clock: &SystemClock,
    over: &AtomicBool,
    live: &LiveReadings,
) -> SampledServer {
    let mut seen = SampledServer { source: sampler.source(), ..SampledServer::default() };
    sampler.run(clock, over, |observation| {
        match observation {
            Observation::Queue { at, queue } => {
                live.set("accept_queue", "", queue.map(|queue| u64::from(queue.accept_queue)));
                seen.queue.push((at, queue));
            }
            Observation::Server(mut sample) => {
                live.set(
                    "open_connections",
                    "",
                    sample.sockets.map(|sockets| u64::from(sockets.open)),
                );
                seen.cpu = sample.cpu;
                seen.missing.extend(std::mem::take(&mut sample.missing));
                seen.samples.push(*sample);
            }
            _ => {}
        }
        true
    });
    seen
}

/// Polls the server's statistics until `over` is raised. `single` names the only worker in single
/// mode, whose statistics have no pid.
pub(crate) fn poll(
    control: &ControlServer,
    clock: &SystemClock,
    over: &AtomicBool,
    live: &LiveReadings,
    single: &str,
) -> PolledStatistics {
    let mut polled = PolledStatistics::default();
    sampler::poll(control, clock, Nanos::ZERO, over, |observation| {
        let Observation::Statistics { at, wall, cpu, stats } = observation else { return true };
        for worker in stats.iter().flat_map(|stats| &stats.workers) {
            for (name, _, value) in WORKER_FIGURES {
                live.set(name, &name_of(worker, single), value(worker));
            }
        }
        polled.cpu = cpu;
        polled.polls.push(StatisticsPoll { at, wall, stats: stats.ok() });
        true
    });
    polled
}

/// A figure of `T`: its name, its unit, and its value.
type Figure<T> = (&'static str, &'static str, fn(&T) -> Option<u64>);

const QUEUE_FIGURES: [Figure<ServerSockets>; 2] = [
    ("accept_queue", "connections", |seen| Some(seen.accept_queue.into())),
    ("accept_queue_limit", "connections", |seen| seen.limit.map(u64::from)),
];
const SOCKET_FIGURES: [Figure<ServerSockets>; 2] = [
    ("open_connections", "connections", |seen| Some(seen.open.into())),
    ("unread_connections", "connections", |seen| seen.unread.map(u64::from)),
];
/// The first two are counters.
const PROCESS_FIGURES: [Figure<ProcessSample>; 3] = [
    ("cpu", "ns", |seen| Some(seen.used?.cpu)),
    ("run_queue_wait", "ns", |seen| Some(seen.used?.run_queue)),
    ("threads", "threads", |seen| Some(seen.used?.threads)),
];
const COUNTERS: usize = 2;
const WORKER_FIGURES: [Figure<WorkerStats>; 7] = [
    ("backlog", "requests", |worker| worker.backlog.map(u64::from)),
    ("backlog_max", "requests", |worker| worker.backlog_max.map(u64::from)),
    ("busy_threads", "threads", |worker| worker.busy_threads().map(u64::from)),
    ("pool_capacity", "threads", |worker| worker.pool_capacity.map(u64::from)),
    ("slots", "threads", |worker| worker.slots().map(u64::from)),
    ("io_threads", "threads", |worker| worker.io_threads.map(u64::from)),
    ("requests_count", "requests", |worker| worker.requests_count),
];

/// A worker's name.
fn name_of(worker: &WorkerStats, single: &str) -> String {
    worker.pid.map_or_else(|| single.to_owned(), |pid| pid.to_string())
}

/// All samples from the instant `from` on.
pub(crate) fn watch(
    seen: &SampledServer,
    polled: Option<&PolledStatistics>,
    from: Nanos,
    single: &str,
) -> Watch {
    let queue: Vec<_> = seen.queue.items().iter().filter(|(at, _)| *at >= from).collect();
    let samples: Vec<&ServerSample> =
        seen.samples.items().iter().filter(|sample| sample.at >= from).collect();
    let pids: BTreeSet<u32> =
        samples.iter().flat_map(|sample| &sample.processes).map(|process| process.pid).collect();
    let at: Vec<Nanos> = samples.iter().map(|sample| sample.at - from).collect();
    let queues = QUEUE_FIGURES
        .map(|figure| curve("", figure, queue.iter().map(|(_, queue)| queue.as_ref())));
    let sockets = SOCKET_FIGURES
        .map(|figure| curve("", figure, samples.iter().map(|sample| sample.sockets.as_ref())));
    let mut watch = Watch {
        tracks: Vec::new(),
        cpu: seen.cpu,
        missing: seen.missing.iter().cloned().collect(),
    };
    watch.tracks.push(track(
        seen.source,
        queue.iter().map(|(at, _)| *at - from).collect(),
        queues.into(),
    ));
    watch.tracks.push(track(seen.source, at.clone(), sockets.into()));
    let of_processes = pids.iter().flat_map(|pid| process_curves(*pid, &samples)).collect();
    watch.tracks.push(track("/proc/PID/task/TID/schedstat", at, of_processes));
    watch.tracks.push(held_track(&pids, &samples, from));
    if let Some(PolledStatistics { polls, cpu }) = polled {
        let polls = polls.items();
        watch.cpu += *cpu;
        let failed = polls.iter().filter(|poll| poll.stats.is_none()).count();
        if failed > 0 {
            watch.missing.push(format!(
                "the server's statistics: {failed} of {} polls had no response",
                polls.len()
            ));
        }
        let polls: Vec<&StatisticsPoll> = polls.iter().filter(|poll| poll.at >= from).collect();
        watch.tracks.push(statistics_track(&polls, from, single));
    }
    watch.tracks.retain(|track| !track.curves.is_empty());
    watch
}

fn curve<'a, T: 'a>(
    of: &str,
    (name, unit, value): Figure<T>,
    seen: impl Iterator<Item = Option<&'a T>>,
) -> WatchCurve {
    let values = seen.map(|seen| seen.and_then(value)).collect();
    WatchCurve {
        of: of.to_owned(),
        name: name.to_owned(),
        unit: unit.to_owned(),
        values,
        staleness: Vec::new(),
    }
}

/// A track of those curves that have at least one value.
fn track(source: &str, at: Vec<Nanos>, mut curves: Vec<WatchCurve>) -> WatchTrack {
    curves.retain(|curve| curve.values.iter().any(Option::is_some));
    WatchTrack { source: source.to_owned(), at, curves }
}

/// The process in each sample.
fn seen_of<'a>(
    pid: u32,
    samples: &'a [&ServerSample],
) -> impl Iterator<Item = Option<&'a ProcessSample>> {
    samples.iter().map(move |sample| sample.processes.iter().find(|process| process.pid == pid))
}

fn process_curves(pid: u32, samples: &[&ServerSample]) -> Vec<WatchCurve> {
    let was_there = samples
        .first()
        .is_some_and(|sample| sample.processes.iter().any(|process| process.pid == pid));
    let mut curves =
        PROCESS_FIGURES.map(|figure| curve(&pid.to_string(), figure, seen_of(pid, samples)));
    for counter in &mut curves[..COUNTERS] {
        // A counter starts at 0 with the window, or with the birth of its process.
        let before = if was_there { counter.values.first().copied().flatten() } else { Some(0) };
        for value in &mut counter.values {
            *value = value.zip(before).and_then(|(value, before)| value.checked_sub(before));
        }
    }
    curves.into()
}

/// How many connections each process held, which is not read in every sample.
fn held_track(pids: &BTreeSet<u32>, samples: &[&ServerSample], from: Nanos) -> WatchTrack {
    let counts_connections = |sample: &&&ServerSample| {
        sample.processes.iter().any(|process| process.connections.is_some())
    };
    let samples: Vec<&ServerSample> = samples.iter().filter(counts_connections).copied().collect();
    let held: Figure<ProcessSample> =
        (HELD_CONNECTIONS, "connections", |seen| seen.connections.map(u64::from));
    let curves =
        pids.iter().map(|pid| curve(&pid.to_string(), held, seen_of(*pid, &samples))).collect();
    track("/proc/PID/fd", samples.iter().map(|sample| sample.at - from).collect(), curves)
}

fn statistics_track(polls: &[&StatisticsPoll], from: Nanos, single: &str) -> WatchTrack {
    let workers =
        |poll: &StatisticsPoll| poll.stats.clone().map_or_else(Vec::new, |stats| stats.workers);
    let names: BTreeSet<String> = polls
        .iter()
        .flat_map(|poll| workers(poll))
        .map(|worker| name_of(&worker, single))
        .collect();
    let mut curves = Vec::new();
    for name in &names {
        let said: Vec<Option<WorkerStats>> = polls
            .iter()
            .map(|poll| workers(poll).into_iter().find(|worker| name_of(worker, single) == *name))
            .collect();
        let ages: Vec<Option<Nanos>> = said
            .iter()
            .zip(polls)
            .map(|(worker, poll)| worker.as_ref().and_then(|worker| worker.age(poll.wall)))
            .collect();
        let is_live = said
            .iter()
            .zip(&ages)
            .all(|(worker, age)| worker.is_none() || *age == Some(Nanos::ZERO));
        for figure in WORKER_FIGURES {
            let staleness = if is_live { Vec::new() } else { ages.clone() };
            curves.push(WatchCurve {
                staleness,
                ..curve(name, figure, said.iter().map(Option::as_ref))
            });
        }
    }
    track("puma stats", polls.iter().map(|poll| poll.at - from).collect(), curves)
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe::processes::CpuShare;
    use probe::puma_stats;

    const FROM: Nanos = Nanos::from_secs(3);

    fn names(track: &WatchTrack) -> Vec<(&str, &str)> {
        track.curves.iter().map(|curve| (curve.of.as_str(), curve.name.as_str())).collect()
    }

    fn process(pid: u32, cpu: u64, connections: Option<u32>) -> ProcessSample {
        let used =
            (cpu > 0).then_some(CpuShare { cpu, children: 0, run_queue: cpu / 10, threads: 3 });
        ProcessSample { pid, used, connections, ..ProcessSample::default() }
    }

    /// Samples at 2.95, 3, 3.01 and 3.25 s. Process 12 cannot be read, and 13 is born before the
    /// last sample.
    fn seen() -> SampledServer {
        let ms = Nanos::from_millis;
        let mut seen =
            SampledServer { source: "sock_diag", cpu: ms(1), ..SampledServer::default() };
        for (at, length) in [(2900, Some(9)), (3000, Some(1)), (3050, None), (3100, Some(4))] {
            seen.queue.push((
                ms(at),
                length.map(|accept_queue| ServerSockets {
                    accept_queue,
                    limit: Some(128),
                    ..ServerSockets::default()
                }),
            ));
        }
        for (at, cpu, held) in
            [(2950, 100, Some(9)), (3000, 150, None), (3010, 200, Some(3)), (3250, 400, None)]
        {
            let sockets =
                Some(ServerSockets { listening: true, open: 6, ..ServerSockets::default() });
            let mut processes = vec![process(11, cpu, held), process(12, 0, None)];
            processes.extend((at == 3250).then(|| process(13, 70, None)));
            seen.samples.push(ServerSample {
                at: ms(at),
                sockets,
                processes,
                ..ServerSample::default()
            });
        }
        seen
    }

    #[test]
    fn time_starts_with_the_window_and_unreadable_values_are_absent() {
        let watch = watch(&seen(), None, FROM, "");
        let (track, queue) = watch.curve("accept_queue").unwrap();
        assert_eq!(track.at, [0, 50, 100].map(Nanos::from_millis));
        assert_eq!(queue.values, [Some(1), None, Some(4)]);
        assert_eq!(names(track), [("", "accept_queue"), ("", "accept_queue_limit")]);
        // Unread connections are not known.
        assert_eq!(names(&watch.tracks[1]), [("", "open_connections")]);
        let figures = ["cpu", "run_queue_wait", "threads"];
        let expected: Vec<(&str, &str)> =
            ["11", "13"].into_iter().flat_map(|of| figures.map(|name| (of, name))).collect();
        assert_eq!(names(&watch.tracks[2]), expected);
        let values: Vec<&[Option<u64>]> =
            watch.tracks[2].curves.iter().map(|curve| curve.values.as_slice()).collect();
        assert_eq!(values[0], [Some(0), Some(50), Some(250)], "a counter starts with the window");
        assert_eq!(values[2], [Some(3); 3]);
        assert_eq!(values[3], [None, None, Some(70)], "a new process counts from its birth");
        assert_eq!(names(&watch.tracks[3]), [("11", "held_connections")]);
        assert_eq!(watch.tracks[3].at, [Nanos::from_millis(10)]);
        assert_eq!(
            (watch.tracks[3].curves[0].values.as_slice(), watch.tracks.len()),
            (&[Some(3)][..], 4)
        );
    }

    #[test]
    fn statistics_have_an_age_and_a_failed_poll_is_a_gap() {
        let text = br#"{"workers":1,"worker_status":[{"pid":11,"booted":true,"last_checkin":"1970-01-01T00:01:00Z",
            "last_status":{"backlog":2,"running":5,"pool_capacity":1,"max_threads":5}}]}"#;
        let stats = puma_stats::parse(text).unwrap();
        let mut polled = PolledStatistics { cpu: Nanos(1), ..PolledStatistics::default() };
        for (seconds, stats) in [(2, Some(stats.clone())), (3, Some(stats)), (4, None)] {
            let wall = Nanos::from_secs(59 + seconds);
            polled.polls.push(StatisticsPoll { at: Nanos::from_secs(seconds), wall, stats });
        }
        let watch = watch(&seen(), Some(&polled), FROM, "");
        let track = &watch.tracks[4];
        assert_eq!(
            names(track),
            [("11", "backlog"), ("11", "busy_threads"), ("11", "pool_capacity"), ("11", "slots")]
        );
        assert_eq!(track.curves[1].values, [Some(4), None]);
        assert_eq!(track.curves[1].staleness, [Some(Nanos::from_secs(2)), None]);
        assert_eq!(watch.missing, ["the server's statistics: 1 of 3 polls had no response"]);
        assert_eq!(watch.cpu, Nanos(1_000_001));
    }

    #[test]
    fn a_reading_that_is_gone_is_not_shown() {
        let live = LiveReadings::default();
        live.set("accept_queue", "", Some(3));
        live.set("backlog", "71", Some(1));
        live.set("accept_queue", "", None);
        assert_eq!(live.all(), [("backlog", "71".to_owned(), 1)]);
    }
}
