//! Observations for the tests of what shows the board; and the board: the parts are the whole, what is absent is no zero, and what ends
//! leaves nothing of now.

use model::Nanos;
use probe::host::HostCounters;
use probe::processes::{ContextSwitches, CpuShare, ProcessSample};
use probe::sampler::{Observation, ServerSample};
use probe::sockets::ServerSockets;

use super::board::{ANOTHER, MOST_GONE, WatchBoard, Whose};
use super::quantity::Quantity;
use super::series::QuantitySeries;

/// A worker that has used so many tenths of a second of CPU.
pub(crate) fn member(pid: u32, tenths: u64, connections: Option<u32>) -> ProcessSample {
    let nanos = tenths * 100_000_000;
    ProcessSample {
        pid,
        parent: 10,
        title: format!("puma: cluster worker {}: 10 [app]", pid - 11),
        used: Some(CpuShare { cpu: nanos, run_queue: nanos / 10, threads: 8 }),
        switches: Some(ContextSwitches { voluntary: tenths * 100, involuntary: tenths }),
        memory_bytes: Some(40 << 20),
        connections,
    }
}

pub(crate) fn sample(seconds: u64, processes: Vec<ProcessSample>) -> Observation {
    let open = 12 + seconds as u32;
    Observation::Server(Box::new(ServerSample {
        at: Nanos::from_secs(seconds),
        sockets: Some(ServerSockets { open, accepted: 10, unread: Some(2), ..ServerSockets::default() }),
        processes,
        host: HostCounters::default(),
        room: None,
        age: None,
        missing: Vec::new(),
        cpu: Nanos::from_millis(2),
    }))
}

pub(crate) fn queue(millis: u64, length: u32) -> Observation {
    let queue = ServerSockets { accept_queue: length, limit: Some(1024), ..ServerSockets::default() };
    Observation::Queue { at: Nanos::from_millis(millis), queue: Some(queue) }
}

pub(crate) fn stats(seconds: u64) -> Observation {
    let text = r#"{"workers":2,"worker_status":[
        {"pid":11,"booted":true,"last_checkin":"1970-01-01T00:01:00Z",
         "last_status":{"backlog":0,"running":5,"pool_capacity":0,"max_threads":5}},
        {"pid":12,"booted":true,"last_checkin":"1970-01-01T00:01:00Z",
         "last_status":{"backlog":1,"running":5,"pool_capacity":2,"max_threads":5}}]}"#;
    let stats = probe::puma_stats::parse(text.as_bytes()).map_err(|error| error.to_string());
    let at = Nanos::from_secs(seconds);
    Observation::Statistics { at, wall: Nanos::from_secs(60) + at, cpu: Nanos(0), stats }
}

fn mean(board: &WatchBoard, of: Whose, quantity: Quantity) -> Option<f64> {
    board.of(of, quantity).and_then(QuantitySeries::mean)
}

#[test]
fn workers_are_the_whole() {
    let mut board = WatchBoard::default();
    board.take(sample(0, vec![member(11, 3, Some(6)), member(12, 0, Some(4))]));
    assert_eq!(board.last(Whose::Server, Quantity::Cpu), None, "one look tells no rate");
    board.take(sample(1, vec![member(11, 8, Some(6)), member(12, 1, Some(4))]));
    board.take(sample(3, vec![member(11, 9, Some(7)), member(12, 1, Some(2))]));
    for quantity in [Quantity::Cpu, Quantity::RunQueueWait, Quantity::Voluntary, Quantity::Involuntary] {
        let parts: Vec<Option<f64>> = [11, 12].map(|pid| mean(&board, Whose::Process(pid), quantity)).to_vec();
        let sum: f64 = parts.iter().flatten().sum();
        assert!((sum - mean(&board, Whose::Server, quantity).unwrap()).abs() < 1e-12, "{quantity}: {parts:?}");
    }
    // 0.7 s of CPU in 3 s.
    assert!((mean(&board, Whose::Server, Quantity::Cpu).unwrap() - 0.7 / 3.0).abs() < 1e-12);
    assert_eq!(board.last(Whose::Server, Quantity::Elsewhere), Some(1.0), "10 accepted, 7 and 2 of them seen");
    assert_eq!(board.last(Whose::Server, Quantity::Threads), Some(16.0));
    let share = board.share(11, Quantity::Cpu, QuantitySeries::mean).unwrap();
    assert!((share - 6.0 / 7.0).abs() < 1e-12, "{share}");
}

#[test]
fn a_worker_that_goes_leaves_its_figures_and_nothing_of_now() {
    let mut board = WatchBoard::default();
    board.take(sample(0, vec![member(11, 0, Some(6)), member(12, 0, Some(4))]));
    board.take(sample(1, vec![member(11, 5, Some(6)), member(12, 2, Some(4))]));
    board.take(sample(2, vec![member(11, 9, Some(6)), member(13, 0, Some(4))]));
    assert_eq!(board.last(Whose::Process(12), Quantity::Cpu), None);
    assert_eq!(mean(&board, Whose::Process(12), Quantity::Cpu), Some(0.2));
    assert!(!board.processes[&12].is_there && board.processes[&13].is_there);
    assert_eq!(board.processes[&13].first_seen, Nanos::from_secs(2));
    assert_eq!(
        board.of(Whose::Process(13), Quantity::Cpu).and_then(|series| series.last),
        None,
        "from its second look on"
    );
    assert!((board.last(Whose::Server, Quantity::Cpu).unwrap() - 0.4).abs() < 1e-12, "of whom both samples saw");
}

#[test]
fn what_is_absent_is_no_zero() {
    let mut board = WatchBoard::default();
    let blind = ProcessSample { used: None, switches: None, connections: None, ..member(11, 0, None) };
    board.take(sample(0, vec![blind.clone()]));
    board.take(sample(1, vec![blind]));
    for quantity in [Quantity::Cpu, Quantity::Voluntary, Quantity::Threads, Quantity::Elsewhere, Quantity::Overflows] {
        assert_eq!(board.last(Whose::Server, quantity), None, "{quantity}");
        assert_eq!(mean(&board, Whose::Server, quantity), None, "{quantity}");
    }
    assert_eq!(board.share(11, Quantity::Cpu, QuantitySeries::mean), None);
    board.take(sample(2, Vec::new()));
    assert_eq!(board.last(Whose::Server, Quantity::Threads), None, "no process is seen, which is not no thread");
}

#[test]
fn busy_threads_are_as_old_as_the_server_says() {
    let mut board = WatchBoard::default();
    board.take(stats(2));
    assert_eq!(board.last(Whose::Server, Quantity::Busy), Some(8.0));
    assert_eq!((board.last(Whose::Process(11), Quantity::Busy), board.slots), (Some(5.0), Some(10)));
    let two = Nanos::from_secs(2);
    assert_eq!(board.of(Whose::Server, Quantity::Busy).and_then(|series| series.staleness), Some((two, two)));
    board.take(Observation::Statistics {
        at: Nanos::from_secs(3),
        wall: Nanos::from_secs(63),
        cpu: Nanos(0),
        stats: Err("no answer".to_owned()),
    });
    assert_eq!(
        (board.last(Whose::Server, Quantity::Busy), board.last(Whose::Process(11), Quantity::Busy)),
        (None, None)
    );
    assert_eq!(board.missing(), ["busy threads: no answer"]);
}

#[test]
fn another_servers_statistics_are_not_taken() {
    let mut board = WatchBoard::default();
    board.take(sample(0, vec![member(21, 0, None), member(22, 0, None)]));
    board.take(stats(2));
    assert_eq!((board.last(Whose::Server, Quantity::Busy), board.slots), (None, None));
    assert_eq!(board.missing(), [format!("busy threads: {ANOTHER}")]);
    board.take(sample(1, vec![member(11, 0, None)]));
    board.take(stats(3));
    assert_eq!(board.last(Whose::Server, Quantity::Busy), Some(8.0));
    assert!(board.missing().is_empty());
}

#[test]
fn in_single_mode_the_slots_are_the_only_processs() {
    let text = r#"{"backlog":0,"running":5,"pool_capacity":2,"max_threads":5}"#;
    let poll = || Observation::Statistics {
        at: Nanos::from_secs(1),
        wall: Nanos::from_secs(61),
        cpu: Nanos(0),
        stats: probe::puma_stats::parse(text.as_bytes()).map_err(|error| error.to_string()),
    };
    let mut board = WatchBoard::default();
    board.take(poll());
    board.take(sample(0, vec![member(11, 0, None)]));
    board.take(poll());
    assert_eq!(
        (board.last(Whose::Server, Quantity::Busy), board.last(Whose::Process(11), Quantity::Busy)),
        (Some(3.0), Some(3.0))
    );
    board.take(sample(1, vec![member(11, 0, None), member(12, 0, None)]));
    board.take(poll());
    assert_eq!(board.last(Whose::Process(12), Quantity::Busy), None, "whose they are is not known");
}

#[test]
fn of_many_that_ended_the_last_are_kept() {
    let mut board = WatchBoard::default();
    for n in 0..100 {
        board.take(sample(n, vec![member(11 + n as u32, 0, None)]));
    }
    assert_eq!(board.processes.len(), MOST_GONE + 1);
    assert!(board.processes[&110].is_there && board.processes.contains_key(&109));
    assert!(board.of(Whose::Process(11), Quantity::Memory).is_none());
    assert_eq!(board.missing().len(), 1);
}
