//! The parts are the whole, what is absent is no zero, and what ends leaves nothing of now.

use model::Nanos;
use probe::family::Member;

use super::looks::MOST_GONE;
use super::samples::{look, member, queue, stats};
use super::statistics::ANOTHER;
use super::{Board, Of};
use crate::watch::quantity::Quantity;
use crate::watch::sampler::Seen;
use crate::watch::series::Series;

fn mean(board: &Board, of: Of, quantity: Quantity) -> Option<f64> {
    board.of(of, quantity).and_then(Series::mean)
}

#[test]
fn workers_are_the_whole() {
    let mut board = Board::default();
    board.take(look(0, vec![member(11, 3, Some(6)), member(12, 0, Some(4))]));
    assert_eq!(board.last(Of::All, Quantity::Cpu), None, "one look tells no rate");
    board.take(look(1, vec![member(11, 8, Some(6)), member(12, 1, Some(4))]));
    board.take(look(3, vec![member(11, 9, Some(7)), member(12, 1, Some(2))]));
    for quantity in [Quantity::Cpu, Quantity::RunQueueWait, Quantity::Voluntary, Quantity::Involuntary] {
        let parts: Vec<Option<f64>> = [11, 12].map(|pid| mean(&board, Of::Process(pid), quantity)).to_vec();
        let sum: f64 = parts.iter().flatten().sum();
        assert!((sum - mean(&board, Of::All, quantity).unwrap()).abs() < 1e-12, "{quantity}: {parts:?}");
    }
    // 0.7 s of CPU in 3 s.
    assert!((mean(&board, Of::All, Quantity::Cpu).unwrap() - 0.7 / 3.0).abs() < 1e-12);
    assert_eq!(board.last(Of::All, Quantity::Elsewhere), Some(1.0), "10 accepted, 7 and 2 of them seen");
    assert_eq!(board.last(Of::All, Quantity::Threads), Some(16.0));
    let share = board.share(11, Quantity::Cpu, Series::mean).unwrap();
    assert!((share - 6.0 / 7.0).abs() < 1e-12, "{share}");
}

#[test]
fn a_worker_that_goes_leaves_its_figures_and_nothing_of_now() {
    let mut board = Board::default();
    board.take(look(0, vec![member(11, 0, Some(6)), member(12, 0, Some(4))]));
    board.take(look(1, vec![member(11, 5, Some(6)), member(12, 2, Some(4))]));
    board.take(look(2, vec![member(11, 9, Some(6)), member(13, 0, Some(4))]));
    assert_eq!(board.last(Of::Process(12), Quantity::Cpu), None);
    assert_eq!(mean(&board, Of::Process(12), Quantity::Cpu), Some(0.2));
    assert!(!board.processes()[&12].is_there && board.processes()[&13].is_there);
    assert_eq!(board.processes()[&13].first_seen, Nanos::from_secs(2));
    assert_eq!(board.of(Of::Process(13), Quantity::Cpu).and_then(Series::last), None, "from its second look on");
    assert!((board.last(Of::All, Quantity::Cpu).unwrap() - 0.4).abs() < 1e-12, "of whom both looks saw");
}

#[test]
fn what_is_absent_is_no_zero() {
    let mut board = Board::default();
    let blind = Member { used: None, switches: None, connections: None, ..member(11, 0, None) };
    board.take(look(0, vec![blind.clone()]));
    board.take(look(1, vec![blind]));
    for quantity in [Quantity::Cpu, Quantity::Voluntary, Quantity::Threads, Quantity::Elsewhere, Quantity::Overflows] {
        assert_eq!(board.last(Of::All, quantity), None, "{quantity}");
        assert_eq!(mean(&board, Of::All, quantity), None, "{quantity}");
    }
    assert_eq!(board.share(11, Quantity::Cpu, Series::mean), None);
    board.take(look(2, Vec::new()));
    assert_eq!(board.last(Of::All, Quantity::Threads), None, "no process is seen, which is not no thread");
}

#[test]
fn busy_slots_are_as_old_as_the_server_says() {
    let mut board = Board::default();
    board.take(stats(2));
    assert_eq!(board.last(Of::All, Quantity::Busy), Some(8.0));
    assert_eq!((board.last(Of::Process(11), Quantity::Busy), board.slots()), (Some(5.0), Some(10)));
    let two = Nanos::from_secs(2);
    assert_eq!(board.of(Of::All, Quantity::Busy).and_then(Series::staleness), Some((two, two)));
    board.take(Seen::Stats {
        at: Nanos::from_secs(3),
        wall: Nanos::from_secs(63),
        cpu: Nanos(0),
        stats: Err("no answer".to_owned()),
    });
    assert_eq!((board.last(Of::All, Quantity::Busy), board.last(Of::Process(11), Quantity::Busy)), (None, None));
    assert_eq!(board.missing(), ["busy slots: no answer"]);
}

#[test]
fn another_servers_statistics_are_not_taken() {
    let mut board = Board::default();
    board.take(look(0, vec![member(21, 0, None), member(22, 0, None)]));
    board.take(stats(2));
    assert_eq!((board.last(Of::All, Quantity::Busy), board.slots()), (None, None));
    assert_eq!(board.missing(), [format!("busy slots: {ANOTHER}")]);
    board.take(look(1, vec![member(11, 0, None)]));
    board.take(stats(3));
    assert_eq!(board.last(Of::All, Quantity::Busy), Some(8.0));
    assert!(board.missing().is_empty());
}

#[test]
fn in_single_mode_the_slots_are_the_only_processs() {
    let text = r#"{"backlog":0,"running":5,"pool_capacity":2,"max_threads":5}"#;
    let poll = || Seen::Stats {
        at: Nanos::from_secs(1),
        wall: Nanos::from_secs(61),
        cpu: Nanos(0),
        stats: probe::puma_stats::parse(text).map_err(|error| error.to_string()),
    };
    let mut board = Board::default();
    board.take(poll());
    board.take(look(0, vec![member(11, 0, None)]));
    board.take(poll());
    assert_eq!(
        (board.last(Of::All, Quantity::Busy), board.last(Of::Process(11), Quantity::Busy)),
        (Some(3.0), Some(3.0))
    );
    board.take(look(1, vec![member(11, 0, None), member(12, 0, None)]));
    board.take(poll());
    assert_eq!(board.last(Of::Process(12), Quantity::Busy), None, "whose they are is not known");
}

#[test]
fn of_many_that_ended_the_last_are_kept() {
    let mut board = Board::default();
    for n in 0..100 {
        board.take(look(n, vec![member(11 + n as u32, 0, None)]));
    }
    assert_eq!(board.processes().len(), MOST_GONE + 1);
    assert!(board.processes()[&110].is_there && board.processes().contains_key(&109));
    assert!(board.of(Of::Process(11), Quantity::Memory).is_none());
    assert_eq!(board.missing().len(), 1);
}

#[test]
fn a_plot_has_the_longest_queue_of_each_look() {
    let mut board = Board::default();
    for (millis, length) in [(0, 1), (50, 7), (100, 2)] {
        board.take(queue(millis, length));
    }
    board.take(look(1, Vec::new()));
    board.take(look(2, Vec::new()));
    assert_eq!(board.plotted(Quantity::AcceptQueue), [Some(7.0), None]);
    assert_eq!((board.queue_limit(), board.looks()), (Some(1024), (3, 2)));
}
