//! Observations for the tests of what shows the board; and the board: the parts are the whole, what is absent is no zero, and what ends
//! leaves nothing of now.

use model::Nanos;
use probe::host::HostCounters;
use probe::processes::{CpuShare, ProcessSample};
use probe::sampler::{Observation, ServerSample};
use probe::sockets::ServerSockets;

use super::board::{ANOTHER, WatchBoard, Whose};
use super::series::{Quantity, QuantitySeries};

/// A worker that has used so many tenths of a second of CPU.
pub(crate) fn member(pid: u32, tenths: u64, connections: Option<u32>) -> ProcessSample {
    let nanos = tenths * 100_000_000;
    ProcessSample {
        pid,
        title: format!("puma: cluster worker {}: 10 [app]", pid - 11),
        used: Some(CpuShare { cpu: nanos, run_queue: nanos / 10, threads: 8 }),
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
    let stats = probe::puma_stats::parse(text.as_bytes());
    let at = Nanos::from_secs(seconds);
    Observation::Statistics { at, wall: Nanos::from_secs(60) + at, cpu: Nanos(0), stats }
}

fn mean(board: &WatchBoard, whose: Whose, quantity: Quantity) -> Option<f64> {
    board.of(whose, quantity).and_then(QuantitySeries::mean)
}

#[test]
fn workers_are_the_whole() {
    let mut board = WatchBoard::default();
    board.take(sample(0, vec![member(11, 3, Some(6)), member(12, 0, Some(4))]));
    assert_eq!(board.last(Whose::Server, Quantity::Cpu), None, "one look tells no rate");
    board.take(sample(1, vec![member(11, 8, Some(6)), member(12, 1, Some(4))]));
    board.take(sample(3, vec![member(11, 9, Some(7)), member(12, 1, Some(2))]));
    for quantity in [Quantity::Cpu, Quantity::RunQueueWait] {
        let parts: Vec<Option<f64>> = [11, 12].map(|pid| mean(&board, Whose::Process(pid), quantity)).to_vec();
        let sum: f64 = parts.iter().flatten().sum();
        assert!((sum - mean(&board, Whose::Server, quantity).unwrap()).abs() < 1e-12, "{quantity:?}: {parts:?}");
    }
    // 0.7 s of CPU in 3 s.
    assert!((mean(&board, Whose::Server, Quantity::Cpu).unwrap() - 0.7 / 3.0).abs() < 1e-12);
}

#[test]
fn of_a_worker_that_has_ended_nothing_is_left_but_that_puma_names_it() {
    let mut board = WatchBoard::default();
    board.take(sample(0, vec![member(11, 0, Some(6)), member(12, 0, Some(4))]));
    board.take(stats(0));
    board.take(sample(1, vec![member(11, 5, Some(6)), member(12, 2, Some(4))]));
    board.take(sample(2, vec![member(11, 9, Some(6)), member(13, 0, Some(4))]));
    board.take(stats(2));
    assert!(board.series.keys().all(|(whose, _)| *whose != Whose::Process(12)), "{:?}", board.series.keys());
    assert!(!board.processes[&12].is_there && board.processes[&13].is_there);
    assert_eq!(board.last(Whose::Process(13), Quantity::Cpu), None, "from its second look on");
    assert!((board.last(Whose::Server, Quantity::Cpu).unwrap() - 0.4).abs() < 1e-12, "of whom both samples saw");
    let text = r#"{"workers":1,"worker_status":[{"pid":13,"booted":true,"last_status":{"backlog":0,"running":5}}]}"#;
    let stats = probe::puma_stats::parse(text.as_bytes());
    let at = Nanos::from_secs(3);
    board.take(Observation::Statistics { at, wall: at, cpu: Nanos(0), stats });
    board.take(sample(3, vec![member(13, 1, Some(4))]));
    assert_eq!(board.processes.keys().collect::<Vec<_>>(), [&13], "nobody names the others");
}

#[test]
fn what_is_absent_is_no_zero() {
    let mut board = WatchBoard::default();
    let blind = ProcessSample { used: None, connections: None, ..member(11, 0, None) };
    board.take(sample(0, vec![blind.clone()]));
    board.take(sample(1, vec![blind]));
    for quantity in [Quantity::Cpu, Quantity::RunQueueWait, Quantity::ListenOverflows] {
        assert_eq!(board.last(Whose::Server, quantity), None, "{quantity:?}");
        assert_eq!(mean(&board, Whose::Server, quantity), None, "{quantity:?}");
    }
    assert_eq!(board.last(Whose::Process(11), Quantity::Connections), None);
}

#[test]
fn statistics_that_do_not_come_leave_nothing_of_now() {
    let mut board = WatchBoard::default();
    board.take(stats(2));
    let busy = |board: &WatchBoard, whose| board.last(whose, Quantity::BusyThreads);
    assert_eq!((busy(&board, Whose::Server), busy(&board, Whose::Process(11))), (Some(8.0), Some(5.0)));
    board.take(Observation::Statistics {
        at: Nanos::from_secs(3),
        wall: Nanos::from_secs(63),
        cpu: Nanos(0),
        stats: Err("no answer".to_owned()),
    });
    assert_eq!((busy(&board, Whose::Server), busy(&board, Whose::Process(11))), (None, None));
    assert_eq!(board.statistics, Some(Err("no answer".to_owned())));
}

#[test]
fn another_servers_statistics_are_not_taken() {
    let mut board = WatchBoard::default();
    board.take(sample(0, vec![member(21, 0, None), member(22, 0, None)]));
    board.take(stats(2));
    assert_eq!(board.last(Whose::Server, Quantity::BusyThreads), None);
    assert_eq!(board.statistics, Some(Err(ANOTHER.to_owned())));
    board.take(sample(1, vec![member(11, 0, None)]));
    board.take(stats(3));
    assert_eq!(board.last(Whose::Server, Quantity::BusyThreads), Some(8.0));
}

#[test]
fn in_single_mode_the_slots_are_the_only_processs() {
    let text = r#"{"backlog":0,"running":5,"pool_capacity":2,"max_threads":5}"#;
    let poll = || Observation::Statistics {
        at: Nanos::from_secs(1),
        wall: Nanos::from_secs(61),
        cpu: Nanos(0),
        stats: probe::puma_stats::parse(text.as_bytes()),
    };
    let mut board = WatchBoard::default();
    board.take(poll());
    board.take(sample(0, vec![member(11, 0, None)]));
    board.take(poll());
    assert_eq!(
        (board.last(Whose::Server, Quantity::BusyThreads), board.last(Whose::Process(11), Quantity::BusyThreads)),
        (Some(3.0), Some(3.0))
    );
    board.take(sample(1, vec![member(11, 0, None), member(12, 0, None)]));
    board.take(poll());
    assert_eq!(board.last(Whose::Process(12), Quantity::BusyThreads), None, "whose they are is not known");
}
