//! Reads `/stats` of any Puma: what each worker counts, and how old that is.
//!
//! In cluster mode each worker sends its figures to the master every `worker_check_interval`
//! (default 5 s), and the master hands out the last ones: whoever asks sooner gets the same figures
//! again. `requests_count` counts requests that were *started*, from Puma 5.0 on. A field that a
//! version does not have is absent.

use std::sync::atomic::AtomicBool;

use jiff::Timestamp;
use model::{ControlServer, Nanos};
use serde::Deserialize;
use serde_json::Value;

use crate::control;
use crate::http::{LONGEST_EXCHANGE, LONGEST_POLL};

/// No Puma has more workers, threads or waiting requests, or has started more requests, than these
/// limits. A response that says so is not Puma's, and its sums might overflow.
const MOST_WORKERS: usize = 10_000;
const MOST_THREADS: u32 = 100_000;
const MOST_REQUESTS: u64 = 1 << 48;

/// What Puma says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PumaStats {
    /// Puma's version; from 6.0 on it says so.
    pub version: Option<String>,
    /// Whether it runs worker processes (cluster mode).
    pub cluster: bool,
    /// How often its workers were replaced one after the other; absent in single mode.
    pub phase: Option<u32>,
    /// Its workers; in single mode one, without a pid.
    pub workers: Vec<WorkerStats>,
}

/// What one worker says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerStats {
    /// Its number among the workers; absent in single mode.
    pub index: Option<u32>,
    /// Process id; absent in single mode.
    pub pid: Option<u32>,
    /// Whether it has booted and reported at least once.
    pub ready: bool,
    /// When the master last had its report, as it writes it (whole seconds); absent in single mode,
    /// where figures are live.
    pub last_checkin: Option<String>,
    /// The most threads that it may have.
    pub max_threads: Option<u32>,
    /// Requests that it has started since it booted; Puma 5.0 and later.
    pub requests_count: Option<u64>,
    /// Requests that wait in the worker for a thread.
    pub backlog: Option<u32>,
    /// The largest backlog since the statistics were last read; Puma 7 and later.
    pub backlog_max: Option<u32>,
    /// Threads that are free or could still be started.
    pub pool_capacity: Option<u32>,
    /// Threads that it has. From Puma 8 on there may be more than `max_threads`: for each request
    /// that the app marks as waiting for I/O (`puma.mark_as_io_bound`) another thread may be
    /// started, up to `max_io_threads`.
    pub running: Option<u32>,
    /// Threads among these whose request is marked as waiting for I/O; Puma 8 and later.
    pub io_threads: Option<u32>,
    /// Busy threads plus requests that wait for one; newer versions.
    pub busy_and_waiting: Option<u32>,
}

/// Asks for the statistics, until `over`.
///
/// # Errors
/// If the control server does not respond, or not with statistics (it may not have any
/// yet).
pub fn read(control: &ControlServer, over: &AtomicBool) -> Result<PumaStats, String> {
    parse(&control::ask(control, "stats", LONGEST_EXCHANGE, over)?)
}

/// As [`read`], but gives up soon, for callers that ask again anyway.
///
/// # Errors
/// As [`read`].
pub fn read_soon(control: &ControlServer, over: &AtomicBool) -> Result<PumaStats, String> {
    parse(&control::ask(control, "stats", LONGEST_POLL, over)?)
}

/// Parses the body of `/stats`.
///
/// # Errors
/// If it is not JSON of that form.
pub fn parse(text: &[u8]) -> Result<PumaStats, String> {
    #[derive(Deserialize)]
    struct InCluster {
        pid: u32,
        index: Option<u32>,
        booted: bool,
        last_checkin: Option<String>,
        last_status: Value,
    }
    let stats: Value = control::understood(text)?;
    let version = stats.pointer("/versions/puma").and_then(Value::as_str).map(str::to_owned);
    let Some(statuses) = stats.get("worker_status") else {
        let alone = worker(WorkerStats { ready: true, ..WorkerStats::default() }, &stats);
        return Ok(PumaStats { version, cluster: false, phase: None, workers: vec![alone] });
    };
    let statuses: Vec<InCluster> =
        Deserialize::deserialize(statuses).map_err(|error| error.to_string())?;
    if statuses.len() > MOST_WORKERS {
        return Err(format!(
            "the control server names {} workers: it is not Puma's",
            statuses.len()
        ));
    }
    let of_cluster = |one: InCluster| {
        let InCluster { pid, index, booted, last_checkin, last_status } = one;
        let named = WorkerStats {
            pid: Some(pid),
            index,
            ready: booted,
            last_checkin,
            ..WorkerStats::default()
        };
        worker(named, &last_status)
    };
    Ok(PumaStats {
        version,
        cluster: true,
        phase: stats.get("phase").and_then(Value::as_u64).and_then(|phase| phase.try_into().ok()),
        workers: statuses.into_iter().map(of_cluster).collect(),
    })
}

/// The same worker with the figures of its status.
fn worker(named: WorkerStats, status: &Value) -> WorkerStats {
    let count = |name: &str| status.get(name).and_then(Value::as_u64);
    let threads = |name: &str| {
        let number = count(name).and_then(|number| u32::try_from(number).ok());
        number.filter(|number| *number <= MOST_THREADS)
    };
    WorkerStats {
        ready: named.ready && status.get("backlog").is_some(),
        max_threads: threads("max_threads"),
        requests_count: count("requests_count").filter(|count| *count <= MOST_REQUESTS),
        backlog: threads("backlog"),
        backlog_max: threads("backlog_max"),
        pool_capacity: threads("pool_capacity"),
        running: threads("running"),
        io_threads: threads("io_threads"),
        busy_and_waiting: threads("busy_threads"),
        ..named
    }
}

impl WorkerStats {
    /// Busy threads: those with a request, or with a connection that may send one. That is the
    /// maximum less the free ones. If there are more threads than the maximum, `pool_capacity` is 0
    /// even while some are free; then Puma's own count of busy threads is taken, less the requests
    /// that wait.
    pub fn busy_threads(&self) -> Option<u32> {
        match (self.busy_and_waiting, self.backlog) {
            (Some(sum), Some(waiting)) if self.slots() > self.max_threads => {
                Some(sum.saturating_sub(waiting))
            }
            _ => Some(self.max_threads?.saturating_sub(self.pool_capacity?)),
        }
    }

    /// Requests that it can process at a time just now: the maximum of threads, or all threads if
    /// there are more.
    pub fn slots(&self) -> Option<u32> {
        Some(self.max_threads?.max(self.running.unwrap_or(0)))
    }

    /// How old the figures may be at the wall-clock time `wall`: since the worker last reported,
    /// which Puma tells in whole seconds, rounded down. Zero in single mode; `None` if the time is
    /// not understood or lies ahead.
    pub fn age(&self, wall: Nanos) -> Option<Nanos> {
        if self.last_checkin.is_none() {
            return Some(Nanos::ZERO);
        }
        wall.0.checked_sub(self.reported_at()?.0).map(Nanos)
    }

    /// When it last reported, by the wall clock of its machine; `None` in single mode, and if the
    /// time is not understood.
    pub fn reported_at(&self) -> Option<Nanos> {
        let checkin = self.last_checkin.as_ref()?.parse::<Timestamp>().ok()?.as_nanosecond();
        u64::try_from(checkin).ok().map(Nanos)
    }
}

impl PumaStats {
    /// Whether every worker has booted and reported.
    pub fn is_ready(&self) -> bool {
        !self.workers.is_empty() && self.workers.iter().all(|worker| worker.ready)
    }

    /// Whether every worker has reported again since `before` was read, so that nothing in here is
    /// older than that. Single mode is always fresh.
    pub fn is_newer_than(&self, before: &PumaStats) -> bool {
        self.workers.iter().all(|worker| match &worker.last_checkin {
            None => true,
            Some(checkin) => {
                let earlier = before.workers.iter().find(|other| other.pid == worker.pid);
                earlier.is_none_or(|earlier| earlier.last_checkin.as_ref() != Some(checkin))
            }
        })
    }

    /// Requests started in all workers, if each of them says.
    pub fn requests_count(&self) -> Option<u64> {
        self.workers.iter().map(|worker| worker.requests_count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTER_5_6: &str = include_str!("puma_stats_5.6.json");

    #[test]
    fn a_worker_that_has_not_reported_is_not_ready() {
        let stats = parse(CLUSTER_5_6.as_bytes()).unwrap();
        assert!(stats.cluster && !stats.is_ready());
        assert_eq!(
            (stats.workers[0].requests_count, stats.workers[1].index, &stats.version),
            (Some(7), Some(1), &None)
        );
        assert_eq!(stats.requests_count(), None, "absent is not 0");
    }

    #[test]
    fn single_mode_is_one_worker_and_always_fresh() {
        let stats = parse(
            br#"{"started_at":"x","backlog":0,"running":5,"pool_capacity":5,"max_threads":5,"requests_count":3,"versions":{"puma":"8.0.2"}}"#,
        )
        .unwrap();
        assert!(!stats.cluster && stats.is_ready() && stats.is_newer_than(&stats.clone()));
        assert_eq!((stats.requests_count(), stats.version), (Some(3), Some("8.0.2".to_owned())));
        let puma_3 =
            parse(br#"{"backlog":0,"running":5,"pool_capacity":5,"max_threads":5}"#).unwrap();
        assert_eq!((puma_3.requests_count(), puma_3.is_ready()), (None, true));
    }

    #[test]
    fn threads_for_requests_that_wait_for_io_are_slots_beyond_the_maximum() {
        // Of Puma 8.0.2, `threads 5, 5` and `max_io_threads 5`.
        let worker = |running: u32, busy: u32, backlog: u32, capacity: u32, io: u32| {
            let text = format!(
                r#"{{"backlog":{backlog},"running":{running},"pool_capacity":{capacity},"busy_threads":{busy},"io_threads":{io},"max_threads":5,"requests_count":3}}"#
            );
            parse(text.as_bytes()).unwrap().workers.remove(0)
        };
        for (case, worker, slots, busy) in [
            ("idle", worker(5, 0, 0, 5, 0), 5, 0),
            ("all wait", worker(10, 13, 3, 0, 10), 10, 10),
            ("two of them are free again", worker(8, 6, 0, 0, 3), 8, 6),
            ("as before 8", worker(5, 9, 4, 0, 0), 5, 5),
        ] {
            assert_eq!(
                (worker.slots(), worker.busy_threads()),
                (Some(slots), Some(busy)),
                "{case}"
            );
        }
    }

    #[test]
    fn figures_are_fresh_when_every_worker_has_checked_in_again() {
        let before = parse(CLUSTER_5_6.as_bytes()).unwrap();
        assert!(!before.is_newer_than(&before));
        let one = parse(CLUSTER_5_6.replacen(":05Z", ":10Z", 1).as_bytes()).unwrap();
        assert!(!one.is_newer_than(&before));
        let both = parse(CLUSTER_5_6.replace(":05Z", ":10Z").as_bytes()).unwrap();
        assert!(both.is_newer_than(&before));
    }

    #[test]
    fn a_workers_figures_are_as_old_as_its_report() {
        let stats = parse(CLUSTER_5_6.as_bytes()).unwrap();
        // 2026-01-01T00:00:05Z
        let reported = Nanos::from_secs(1_767_225_605);
        assert_eq!(
            stats.workers[0].age(reported + Nanos::from_millis(4300)),
            Some(Nanos::from_millis(4300))
        );
        assert_eq!(
            stats.workers[0].age(reported.saturating_sub(Nanos(1))),
            None,
            "a report of tomorrow"
        );
        let odd = WorkerStats { last_checkin: Some("soon".to_owned()), ..stats.workers[0].clone() };
        assert_eq!(odd.age(reported), None);
        let single = WorkerStats { last_checkin: None, ..odd };
        assert_eq!(single.age(reported), Some(Nanos::ZERO));
        assert_eq!(single.busy_threads(), Some(0));
        assert_eq!(stats.workers[1].busy_threads(), None, "absent is not 0");
    }

    #[test]
    fn what_is_no_json_is_an_error() {
        assert!(parse(b"Unsupported action").is_err());
        assert!(parse("[".repeat(10_000).as_bytes()).is_err());
    }

    #[test]
    fn figures_that_no_puma_has_are_absent() {
        let worker = r#"{"pid":9,"booted":true,"last_status":{"backlog":4294967295,"max_threads":4294967295,"pool_capacity":0,"requests_count":18446744073709551615}}"#;
        let stats = |workers: usize| {
            let workers = vec![worker; workers].join(",");
            parse(format!("{{\"worker_status\":[{workers}]}}").as_bytes())
        };
        let seen = stats(2).unwrap();
        assert_eq!((seen.requests_count(), seen.workers[1].max_threads), (None, None));
        assert_eq!(seen.workers[0].backlog, None);
        assert!(stats(MOST_WORKERS + 1).is_err());
    }
}
