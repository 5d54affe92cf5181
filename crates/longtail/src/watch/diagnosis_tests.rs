//! Each sentence of the answer where it is true, where it is not, and where it is not decidable.

use model::Nanos;

use super::diagnosis::{UnknownLimit, WatchLimit, answer, attempts, since, wait_estimate, why};
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

fn idle() -> WatchEvidence {
    WatchEvidence {
        workers: vec![worker(0, 0, 0, 0.001), worker(1, 0, 0, 0.001)],
        rate: Some(StartRate { seconds: 5.0, ..StartRate::default() }),
        still: Some(30.0),
        span: None,
        trend: None,
        cpu: Some(0.002),
        busy_cpus: Some(0.1),
        connections: Some(0.0),
        ..saturated()
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

fn said(seen: &WatchEvidence) -> String {
    answer(seen).join(" ")
}

fn reason(seen: &WatchEvidence) -> String {
    why(seen, WatchLimit::of(seen)).unwrap_or_default()
}

fn tried(seen: &WatchEvidence) -> String {
    attempts(seen, WatchLimit::of(seen)).join("\n")
}

/// The mock-up's case. Uneven connections are not the cause, and no thread's wait for a CPU is summed up.
#[test]
fn threads_are_the_limit_where_all_are_busy_and_cpus_are_left() {
    let seen = saturated();
    assert_eq!(WatchLimit::of(&seen), WatchLimit::Threads);
    let expected = "All 10 threads are busy. 30 requests wait inside the workers, none in the accept queue. A request \
                    waits about 303 ms on average (estimate: 30 waiting / 99 a second). CPU 1.40 of 2.";
    assert_eq!(said(&seen), expected);
    let why = reason(&seen);
    assert!(why.starts_with("40 connections, 10 threads: saturated. Threads, not CPUs, are the limit"), "{why}");
    assert!(why.contains("14 % of its time") && why.contains("ten requests of a connection in a row"), "{why}");
    assert_eq!(since(&seen).unwrap(), "41.0 s ago; steady");
    let command = "longtail predict -w2 -t5:5 --service 101ms --cpu 14.1ms -c 40";
    assert!(tried(&seen).contains("25 % idle") && tried(&seen).ends_with(command), "{}", tried(&seen));
    let uneven = WatchEvidence { workers: vec![worker(0, 5, 30, 0.7), worker(1, 5, 0, 0.7)], ..saturated() };
    assert_eq!(WatchLimit::of(&uneven), WatchLimit::Threads, "no thread is free in either");
}

/// A build beside the server uses up the CPUs while its threads sleep.
#[test]
fn cpus_that_others_use_up_are_no_limit_of_threads_that_sleep() {
    let workers = [0, 1].map(|index| WatchedWorker { cpu_wait: Some(0.03), ..worker(index, 5, 15, 0.01) });
    let seen = WatchEvidence {
        workers: workers.into(),
        cpu: Some(0.02),
        busy_cpus: Some(2.0),
        cpu_wait: Some(0.06),
        ..saturated()
    };
    assert_eq!(WatchLimit::of(&seen), WatchLimit::Threads);
    assert!(said(&seen).ends_with("CPU 0.020 of 2 (with other processes 2.00)."), "{}", said(&seen));
    assert!(!tried(&seen).contains("idle"), "{}", tried(&seen));
}

#[test]
fn cpus_are_the_limit_where_they_are_used_up_by_threads_that_compute() {
    let computing = |cpu: f64| {
        let workers = [0, 1].map(|index| WatchedWorker { cpu_wait: Some(1.0 - cpu), ..worker(index, 5, 15, cpu) });
        WatchEvidence {
            workers: workers.into(),
            cpu: Some(2.0 * cpu),
            busy_cpus: Some(1.98),
            cpu_wait: Some(2.0 - 2.0 * cpu),
            ..saturated()
        }
    };
    let seen = computing(0.7);
    assert_eq!(WatchLimit::of(&seen), WatchLimit::Cpus);
    assert!(said(&seen).ends_with("Threads that could run wait for a CPU 30 % of that time."), "{}", said(&seen));
    assert!(reason(&seen).contains("More threads make it no faster"), "{}", reason(&seen));
    assert!(tried(&seen).contains("a request takes 14.1 ms of CPU"), "{}", tried(&seen));
    assert!(reason(&computing(0.3)).starts_with("Other processes use 1.3"), "{}", reason(&computing(0.3)));
    // Nobody waits for a thread, all for a CPU.
    let workers = [0, 1].map(|index| WatchedWorker { cpu_wait: Some(0.5), ..worker(index, 3, 0, 0.9) });
    let alone = WatchEvidence { workers: workers.into(), ..computing(0.7) };
    assert_eq!(WatchLimit::of(&alone), WatchLimit::Cpus);
    // A quota of half a CPU: nobody else takes of it.
    let quota = WatchEvidence { cpus: Some(1.4), busy_cpus: None, ..computing(0.7) };
    assert_eq!(WatchLimit::of(&quota), WatchLimit::Cpus);
    assert!(said(&quota).contains("CPU 1.40 of 1.40."), "{}", said(&quota));
}

#[test]
fn rubys_lock_is_the_limit_where_each_worker_has_a_whole_cpu_and_some_are_left() {
    let workers = vec![worker(0, 5, 15, 0.97), worker(1, 5, 15, 0.95)];
    let seen = WatchEvidence { workers, cpus: Some(8.0), cpu: Some(1.92), busy_cpus: Some(2.5), ..saturated() };
    assert_eq!(WatchLimit::of(&seen), WatchLimit::RubyLock);
    assert!(tried(&seen).starts_with("`workers 3` or more"), "{}", tried(&seen));
    let jruby = WatchEvidence { is_ruby: false, ..seen.clone() };
    assert_eq!(WatchLimit::of(&jruby), WatchLimit::Threads);
    let workers = vec![worker(0, 5, 15, 0.97), worker(1, 5, 15, 0.2)];
    assert_eq!(WatchLimit::of(&WatchEvidence { workers, ..seen }), WatchLimit::Threads, "one of them sleeps");
}

#[test]
fn a_worker_with_free_threads_beside_one_that_is_behind_is_an_imbalance() {
    let seen = WatchEvidence { workers: vec![worker(0, 5, 13, 0.5), worker(1, 2, 0, 0.2)], ..saturated() };
    assert_eq!(WatchLimit::of(&seen), WatchLimit::Imbalance);
    assert!(reason(&seen).contains("3 threads of others are free"), "{}", reason(&seen));
    assert_eq!(wait_estimate(&seen), None, "it matters to which worker one comes");
    assert!(tried(&seen).contains("wait_for_less_busy_worker") && tried(&seen).contains("not measured"));
    let moment = WatchedWorker { full_reports: 1, ..worker(0, 5, 13, 0.5) };
    let seen = WatchEvidence { workers: vec![moment, worker(1, 2, 0, 0.2)], ..saturated() };
    assert_eq!(WatchLimit::of(&seen), WatchLimit::Unknown(UnknownLimit::FreeThreads));
}

#[test]
fn nobody_waits_at_an_idle_server_or_one_with_free_threads() {
    let seen = idle();
    assert_eq!(
        WatchLimit::of(&seen),
        WatchLimit::Nothing,
        "no request in 30 s is no standstill where no thread is busy"
    );
    assert_eq!(said(&seen), "None of 10 threads is busy. Nobody waits. CPU 0.002 of 2.");
    assert_eq!((reason(&seen), tried(&seen), since(&seen)), (String::new(), String::new(), None));
    let seen = WatchEvidence { workers: vec![worker(0, 1, 0, 0.1), worker(1, 0, 0, 0.1)], ..idle() };
    assert!(said(&seen).starts_with("1 of 10 threads is busy. Nobody waits."), "{}", said(&seen));
    let seen = WatchEvidence { queue: Some(0.3), ..idle() };
    assert!(said(&seen).contains("Nobody waits."), "one for a moment, now and then");
    let full = WatchEvidence { workers: vec![worker(0, 5, 0, 0.1), worker(1, 5, 0, 0.1)], still: Some(0.0), ..idle() };
    assert!(reason(&full).contains("who comes now waits") && tried(&full).is_empty(), "{}", reason(&full));
    assert!(
        said(&full)
            .starts_with("No connection is open now; in Puma's last report, 4.00 s old, 10 of 10 threads were busy."),
        "a report may be older than the end of the load: {}",
        said(&full)
    );
    let connected = WatchEvidence { connections: Some(10.0), ..full };
    assert!(said(&connected).starts_with("All 10 threads are busy."), "{}", said(&connected));
}

#[test]
fn one_report_or_old_reports_are_no_ground_for_a_conclusion() {
    let once = |index| WatchedWorker { full_reports: 1, ..worker(index, 5, 15, 0.5) };
    let seen = WatchEvidence { workers: vec![once(0), once(1)], rate: None, trend: None, ..saturated() };
    assert_eq!(WatchLimit::of(&seen), WatchLimit::Unknown(UnknownLimit::OneReport));
    assert!(
        said(&seen).starts_with("All 10 threads are busy.") && !said(&seen).contains("estimate"),
        "{}",
        said(&seen)
    );
    assert!(tried(&seen).contains("--for 30s") && since(&seen).unwrap().contains("too short to say"));
    let free = vec![worker(0, 3, 0, 0.1), worker(1, 2, 0, 0.1)];
    let seen = WatchEvidence { workers: free, queue: Some(12.2), ..saturated() };
    assert_eq!(WatchLimit::of(&seen), WatchLimit::Unknown(UnknownLimit::FreeThreads));
    assert!(said(&seen).contains("12 connections wait in the accept queue, no request inside"), "{}", said(&seen));
}

#[test]
fn without_a_state_file_only_the_accept_queue_is_seen() {
    let seen = blind(30.0);
    assert_eq!(WatchLimit::of(&seen), WatchLimit::Unknown(UnknownLimit::NoStatistics));
    let expected =
        "30 connections wait in the accept queue. Whether requests wait inside Puma is not visible. CPU 1.40 of 2.";
    assert_eq!(said(&seen), expected);
    assert!(reason(&seen).contains("Puma 6 and older leave connections there"), "{}", reason(&seen));
    let seven = WatchEvidence { version: Some("7.1.0".to_owned()), ..blind(30.0) };
    assert_eq!(reason(&seven), "Not visible without statistics.");
    let seen = blind(0.0);
    assert_eq!(WatchLimit::of(&seen), WatchLimit::Nothing);
    assert!(said(&seen).starts_with("Nobody waits in the accept queue. Whether"), "{}", said(&seen));
    let other = WatchEvidence { is_puma: false, version: None, ..blind(1.0) };
    let expected = "1 connection waits in the accept queue. What waits inside the server is not visible.";
    assert!(said(&other).starts_with(expected), "{}", said(&other));
    let hidden = WatchEvidence { workers: Vec::new(), cpu: None, cpus: None, ..blind(3.0) };
    assert!(!said(&hidden).contains("CPU"), "{}", said(&hidden));
}

#[test]
fn of_a_server_on_another_machine_its_own_words_alone_are_known() {
    let far =
        |worker: WatchedWorker| WatchedWorker { cpu: None, cpu_wait: None, connections: None, age: None, ..worker };
    let seen = WatchEvidence {
        is_elsewhere: true,
        workers: saturated().workers.into_iter().map(far).collect(),
        is_ruby: false,
        queue: None,
        connections: None,
        cpu: None,
        cpus: None,
        busy_cpus: None,
        cpu_wait: None,
        ..saturated()
    };
    assert_eq!(WatchLimit::of(&seen), WatchLimit::Unknown(UnknownLimit::NoCpu));
    assert!(
        said(&seen).contains("wait inside the workers; the accept queue is not visible from here"),
        "{}",
        said(&seen)
    );
    assert!(reason(&seen).starts_with("saturated. Whether"), "{}", reason(&seen));
}

#[test]
fn single_mode_and_puma_seven_are_said_as_they_are() {
    let alone = WatchedWorker { name: "process 7".to_owned(), ..worker(0, 5, 12, 0.3) };
    let seen = WatchEvidence {
        is_cluster: false,
        version: Some("8.0.2".to_owned()),
        workers: vec![alone],
        cpu: Some(0.3),
        cpu_wait: Some(0.02),
        ..saturated()
    };
    assert!(said(&seen).starts_with("All 5 threads are busy. 12 requests wait inside Puma, none"), "{}", said(&seen));
    assert!(!reason(&seen).contains("Puma 6"), "{}", reason(&seen));
    assert!(tried(&seen).contains("predict -w1 -t5:5"), "{}", tried(&seen));
}

#[test]
fn a_standstill_is_said_where_requests_hold_all_threads() {
    let seen = WatchEvidence { still: Some(20.0), ..saturated() };
    assert_eq!(WatchLimit::of(&seen), WatchLimit::Standstill(20.0));
    assert!(reason(&seen).starts_with("No request has begun for 20 s") && wait_estimate(&seen).is_none());
    let seen = WatchEvidence { still: None, ..saturated() };
    assert_eq!(WatchLimit::of(&seen), WatchLimit::Threads, "Puma 4 does not count requests");
}

#[test]
fn a_worker_that_is_not_there_is_named() {
    let gone = WatchedWorker { is_gone: true, ..worker(1, 5, 0, 0.0) };
    let booting = WatchedWorker { is_booting: true, threads: None, busy: None, backlog: None, ..worker(1, 0, 0, 0.0) };
    let silent = WatchedWorker { age: Some(Nanos::from_secs(40)), ..worker(1, 5, 0, 0.0) };
    let cases = [
        (gone, "Worker 1 has ended"),
        (booting, "Worker 1 has not booted yet."),
        (silent, "Worker 1 has not reported for 40.0 s: it may hang."),
    ];
    for (other, part) in cases {
        let seen = WatchEvidence { workers: vec![worker(0, 5, 13, 0.7), other], ..saturated() };
        assert!(said(&seen).contains(part), "{}", said(&seen));
    }
    let slow = |index| WatchedWorker { age: Some(Nanos::from_secs(40)), ..worker(index, 5, 0, 0.0) };
    let seen = WatchEvidence { workers: vec![slow(0), slow(1)], ..saturated() };
    assert!(!said(&seen).contains("may hang"), "all report so rarely");
}

#[test]
fn a_full_accept_queue_an_end_and_a_trend_are_said() {
    let seen = WatchEvidence { queue: Some(1024.0), ..blind(1024.0) };
    assert!(said(&seen).contains("The accept queue is full (1024 of 1024)"), "{}", said(&seen));
    assert!(!said(&blind(1023.0)).contains("is full"));
    let seen = WatchEvidence { ended: Some(Nanos::from_secs(12)), ..saturated() };
    assert!(said(&seen).starts_with("The server ended 12.0 s after the watch began. Before that:"), "{}", said(&seen));
    for (trend, part) in
        [(WaitingTrend::Grows(3.25), "; 3.25 more each second"), (WaitingTrend::Shrinks(2.0), "; 2 fewer each second")]
    {
        let seen = WatchEvidence { trend: Some(trend), ..saturated() };
        assert!(since(&seen).unwrap().ends_with(part), "{:?}", since(&seen));
    }
    let span = Some(WaitingSpan { length: Nanos::from_secs(7), is_from_start: true });
    assert!(since(&WatchEvidence { span, ..saturated() }).unwrap().starts_with("the watch began, 7.00 s ago"));
    let span = Some(WaitingSpan { length: Nanos::ZERO, is_from_start: true });
    assert_eq!(since(&WatchEvidence { span, ..saturated() }), None, "the first sample");
}
