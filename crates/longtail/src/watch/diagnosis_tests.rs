//! What is concluded of each situation, in `tests/golden/watch_conclusions.txt`: each sentence where it is true, where it is not, and where it is
//! not decidable.

use std::fmt::Write as _;
use std::path::Path;

use model::Nanos;

use super::diagnosis::{WatchLimit, answer, attempts, since, why};
use super::evidence::{StartRate, WatchEvidence, WatchedWorker};
use super::waiting::{WaitingSpan, WaitingTrend};

/// A worker that computes so much, with five threads.
pub(crate) fn worker(index: u32, busy: u32, backlog: u32, cpu: f64) -> WatchedWorker {
    WatchedWorker {
        name: format!("worker {index}"),
        pid: Some(100 + index),
        threads: Some(5),
        busy: Some(busy),
        backlog: Some(backlog),
        connections: Some(20.0),
        cpu: Some(cpu),
        cpu_wait: Some(0.02),
        age: Some(Nanos::from_secs(4)),
        full_reports: if busy >= 5 { 3 } else { 0 },
        ..WatchedWorker::default()
    }
}

/// 40 connections on Puma 5.6.5 with 2 workers x 5 threads, of which each uses 70 % of a CPU.
pub(crate) fn saturated() -> WatchEvidence {
    WatchEvidence {
        watched: Nanos::from_secs(41),
        is_puma: true,
        version: Some("5.6.5".to_owned()),
        is_cluster: true,
        is_ruby: true,
        workers: vec![worker(0, 5, 13, 0.7), worker(1, 5, 17, 0.7)],
        rate: Some(StartRate { per_second: 99.0, seconds: 35.0, ..StartRate::default() }),
        still: Some(0.0),
        queue: Some(0.0),
        queue_most: Some(2.0),
        queue_limit: Some(1024),
        overflows: Some(0.0),
        connections: Some(40.0),
        span: Some(WaitingSpan { length: Nanos::from_secs(41), is_from_start: false }),
        trend: Some(WaitingTrend::Steady),
        cpu: Some(1.4),
        cpus: Some(2.0),
        busy_cpus: Some(1.5),
        cpu_wait: Some(0.04),
        ..WatchEvidence::default()
    }
}

/// Puma without a state file: what the kernel tells.
pub(crate) fn blind(queue: f64) -> WatchEvidence {
    let hidden =
        |worker: WatchedWorker| WatchedWorker { threads: None, busy: None, backlog: None, age: None, ..worker };
    WatchEvidence {
        workers: saturated().workers.into_iter().map(hidden).collect(),
        no_statistics: Some(String::new()),
        rate: None,
        still: None,
        queue: Some(queue),
        ..saturated()
    }
}

/// With these workers.
fn of(workers: impl IntoIterator<Item = WatchedWorker>) -> WatchEvidence {
    WatchEvidence { workers: workers.into_iter().collect(), ..saturated() }
}

/// Nobody sends anything.
fn idle() -> WatchEvidence {
    WatchEvidence {
        rate: Some(StartRate { seconds: 5.0, ..StartRate::default() }),
        still: Some(30.0),
        span: None,
        trend: None,
        cpu: Some(0.002),
        busy_cpus: Some(0.1),
        connections: Some(0.0),
        ..of([worker(0, 0, 0, 0.001), worker(1, 0, 0, 0.001)])
    }
}

/// All CPUs are used, so much of each by a worker whose threads wait for the rest.
fn computing(cpu: f64) -> WatchEvidence {
    let workers = [0, 1].map(|index| WatchedWorker { cpu_wait: Some(1.0 - cpu), ..worker(index, 5, 15, cpu) });
    let (used, waiting) = (Some(2.0 * cpu), Some(2.0 - 2.0 * cpu));
    WatchEvidence { cpu: used, busy_cpus: Some(1.98), cpu_wait: waiting, ..of(workers) }
}

/// Each worker has nearly a whole CPU of eight.
fn locked() -> WatchEvidence {
    let workers = [worker(0, 5, 15, 0.97), worker(1, 5, 15, 0.95)];
    WatchEvidence { cpus: Some(8.0), cpu: Some(1.92), busy_cpus: Some(2.5), ..of(workers) }
}

fn version(version: &str, seen: WatchEvidence) -> WatchEvidence {
    WatchEvidence { version: Some(version.to_owned()), ..seen }
}

fn situations() -> Vec<(&'static str, WatchEvidence)> {
    let second = |change: fn(&mut WatchedWorker)| {
        let mut other = worker(1, 5, 0, 0.0);
        change(&mut other);
        of([worker(0, 5, 13, 0.7), other])
    };
    let behind = worker(0, 5, 13, 0.5);
    let full = WatchEvidence { still: Some(0.0), ..of([worker(0, 5, 0, 0.1), worker(1, 5, 0, 0.1)]) };
    let full = WatchEvidence {
        connections: Some(0.0),
        cpu: Some(0.002),
        busy_cpus: Some(0.1),
        span: None,
        trend: None,
        ..full
    };
    let sleeping = [0, 1].map(|index| WatchedWorker { cpu_wait: Some(0.03), ..worker(index, 5, 15, 0.01) });
    let waiting = [0, 1].map(|index| WatchedWorker { cpu_wait: Some(0.5), ..worker(index, 3, 0, 0.9) });
    let reported_once = [0, 1].map(|index| WatchedWorker { full_reports: 1, ..worker(index, 5, 15, 0.5) });
    let rare = [0, 1].map(|index| WatchedWorker { age: Some(Nanos::from_secs(40)), ..worker(index, 5, 0, 0.0) });
    let alone = WatchedWorker { name: "process 7".to_owned(), ..worker(0, 5, 12, 0.3) };
    let far =
        |worker: WatchedWorker| WatchedWorker { cpu: None, cpu_wait: None, connections: None, age: None, ..worker };
    let far = WatchEvidence {
        is_elsewhere: true,
        is_ruby: false,
        queue: None,
        connections: None,
        cpu: None,
        cpus: None,
        busy_cpus: None,
        cpu_wait: None,
        ..of(saturated().workers.into_iter().map(far))
    };
    let span = |seconds| Some(WaitingSpan { length: Nanos::from_secs(seconds), is_from_start: true });
    vec![
        ("all threads are busy, CPUs are left", saturated()),
        (
            "the same, though connections are uneven: no thread is free in either",
            of([worker(0, 5, 30, 0.7), worker(1, 5, 0, 0.7)]),
        ),
        (
            "a build beside it uses up the CPUs while its threads sleep",
            WatchEvidence { cpu: Some(0.02), busy_cpus: Some(2.0), cpu_wait: Some(0.06), ..of(sleeping) },
        ),
        ("CPUs are used up by threads that compute", computing(0.7)),
        ("CPUs are used up, mostly by others", computing(0.3)),
        ("nobody waits for a thread, all for a CPU", WatchEvidence { workers: waiting.into(), ..computing(0.7) }),
        ("a quota, of which nobody else takes", WatchEvidence { cpus: Some(1.4), busy_cpus: None, ..computing(0.7) }),
        ("each worker has a whole CPU, and some are left", locked()),
        ("JRuby has no such lock", WatchEvidence { is_ruby: false, ..locked() }),
        (
            "one of the workers sleeps",
            WatchEvidence { workers: vec![worker(0, 5, 15, 0.97), worker(1, 5, 15, 0.2)], ..locked() },
        ),
        ("a worker has free threads beside one that is behind", of([behind.clone(), worker(1, 2, 0, 0.2)])),
        ("it may be behind for a moment", of([WatchedWorker { full_reports: 1, ..behind }, worker(1, 2, 0, 0.2)])),
        ("idle: no request in 30 s is no standstill", idle()),
        ("one thread is busy", WatchEvidence { workers: vec![worker(0, 1, 0, 0.1), worker(1, 0, 0, 0.1)], ..idle() }),
        ("a connection waits for a moment, now and then", WatchEvidence { queue: Some(0.3), ..idle() }),
        ("all threads were busy in reports that are older than the end of the load", full.clone()),
        ("all threads are busy, nobody waits", WatchEvidence { connections: Some(10.0), ..full }),
        ("one report of each worker", WatchEvidence { rate: None, trend: None, ..of(reported_once) }),
        (
            "connections wait though threads are free",
            WatchEvidence { queue: Some(12.2), ..of([worker(0, 3, 0, 0.1), worker(1, 2, 0, 0.1)]) },
        ),
        ("no state file", blind(30.0)),
        ("no state file, Puma 7", version("7.1.0", blind(30.0))),
        ("no state file, nobody waits", blind(0.0)),
        ("no Puma", WatchEvidence { is_puma: false, version: None, ..blind(1.0) }),
        ("another user's processes", WatchEvidence { workers: Vec::new(), cpu: None, cpus: None, ..blind(3.0) }),
        ("on another machine", far),
        (
            "single mode of Puma 8",
            WatchEvidence { is_cluster: false, cpu: Some(0.3), cpu_wait: Some(0.02), ..version("8.0.2", of([alone])) },
        ),
        ("requests hold all threads", WatchEvidence { still: Some(20.0), ..saturated() }),
        ("Puma 4 does not count requests", WatchEvidence { still: None, ..saturated() }),
        ("a worker has ended", second(|worker| worker.is_gone = true)),
        (
            "a worker has not booted",
            second(|worker| {
                (worker.is_booting, worker.threads, worker.busy, worker.backlog) = (true, None, None, None);
            }),
        ),
        ("a worker has not reported", second(|worker| worker.age = Some(Nanos::from_secs(40)))),
        ("all workers report so rarely", of(rare)),
        ("the accept queue is full", blind(1024.0)),
        ("the accept queue is nearly full", blind(1023.0)),
        ("the server has ended", WatchEvidence { ended: Some(Nanos::from_secs(12)), ..saturated() }),
        ("more and more wait", WatchEvidence { trend: Some(WaitingTrend::Grows(3.25)), ..saturated() }),
        (
            "fewer and fewer wait, from the start",
            WatchEvidence { trend: Some(WaitingTrend::Shrinks(2.0)), span: span(7), ..saturated() },
        ),
        ("the first sample", WatchEvidence { span: span(0), ..saturated() }),
    ]
}

#[test]
fn each_situation_has_its_conclusion() {
    let mut text = String::new();
    for (name, seen) in situations() {
        let limit = WatchLimit::of(&seen);
        let _ = writeln!(text, "{name}: {limit:?}");
        let labelled = |label: &'static str, line: Option<String>| line.map(|line| format!("{label}{line}"));
        let lines = answer(&seen).into_iter();
        let lines = lines.chain(labelled("Since: ", since(&seen))).chain(labelled("Why: ", why(&seen, limit)));
        let tried = attempts(&seen, limit).into_iter().map(|attempt| format!("Try: {attempt}"));
        let lines: Vec<String> = lines.chain(tried).map(|line| format!("  {line}\n")).collect();
        text += &(lines.concat() + "\n");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/watch_conclusions.txt");
    testkit::golden::expect(&path, &text);
}
