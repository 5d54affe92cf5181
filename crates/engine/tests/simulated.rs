//! The request loop in exact simulated time: a stepped clock, a scripted server, figures compared with `==`.
//!
//! The wire here is a model of a server with a pool of slots and one first-come-first-served line, which may be frozen
//! once (a garbage collection, a stop of the virtual machine). Connecting and sending take no time at all.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use engine::{
    ConnectionDriver, ConnectionError, ConnectionEvent, Lane, LaneEnd, LaneProgress, LoadSpec, Transport, render,
};
use model::{
    AppTime, BadResponse, Clock, Exchange, GeneratorFacts, Judgement, Late, LoadPlan, Nanos, Outcome, Pace, Rate,
    Statistics, Tally, Timestamps, Timing, Verdict, doubts, verdict,
};
use rustix::event::epoll::EventFlags;
use testkit::clock::Stepped;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nx-worker-pid: 7\r\ncontent-length: 2\r\n\r\nok";

/// A server: `slots` slots of `service` time each, frozen for `stall.1` from `stall.0` on.
struct Scripted {
    clock: Stepped,
    service: Nanos,
    stall: Option<(Nanos, Nanos)>,
    free_at: BinaryHeap<Reverse<Nanos>>,
    answers: BinaryHeap<Reverse<(Nanos, u64, usize)>>,
    order: u64,
    inbox: Vec<VecDeque<u8>>,
    /// Connections whose first use is refused.
    refused: Vec<bool>,
    /// Whether every use is.
    always_refuses: bool,
    /// How long connecting takes, of a server that answers as soon as it is connected, and never again.
    greets_after: Option<Nanos>,
    /// Connections on their way.
    connecting: Vec<bool>,
    /// When the kernel received what is in the inbox, by the wall clock.
    stamps: Vec<Option<Nanos>>,
    /// Whether the app says when it began and ended, as it is asked to.
    stamping: bool,
    /// How late the lane is woken for news.
    late: Nanos,
    /// When the wall clock is set, and by how much.
    set_wall_at: Option<(Nanos, i64)>,
    /// When each connection was closed first.
    closed: Rc<RefCell<Vec<Option<Nanos>>>>,
}

impl Scripted {
    fn new(clock: &Stepped, connections: usize, slots: usize, service: Nanos) -> Scripted {
        Scripted {
            clock: clock.clone(),
            service,
            stall: None,
            free_at: (0..slots).map(|_| Reverse(Nanos::ZERO)).collect(),
            answers: BinaryHeap::new(),
            order: 0,
            inbox: vec![VecDeque::new(); connections],
            refused: vec![false; connections],
            always_refuses: false,
            greets_after: None,
            connecting: vec![false; connections],
            stamps: vec![None; connections],
            stamping: false,
            late: Nanos::ZERO,
            set_wall_at: None,
            closed: Rc::new(RefCell::new(vec![None; connections])),
        }
    }
}

impl ConnectionDriver for Scripted {
    fn open(&mut self, slot: usize) -> Result<(), ConnectionError> {
        if let Some(after) = self.greets_after {
            self.order += 1;
            self.answers.push(Reverse((self.clock.now() + after, self.order, slot)));
            self.connecting[slot] = true;
        }
        if self.always_refuses || std::mem::take(&mut self.refused[slot]) {
            Err(ConnectionError::Refused)
        } else {
            Ok(())
        }
    }

    fn has_unasked(&self, slot: usize) -> bool {
        !self.inbox[slot].is_empty()
    }

    fn is_connected(&self, _slot: usize) -> bool {
        true
    }

    fn local_port(&self, slot: usize) -> Option<u16> {
        Some(1000 + slot as u16)
    }

    fn wait(&mut self, at_most: Nanos, events: &mut Vec<ConnectionEvent>) {
        events.clear();
        let until = self.clock.now() + at_most;
        let next = self.answers.peek().map_or(Nanos::MAX, |Reverse((due, ..))| *due);
        let woken = if next < until { next + self.late } else { until };
        let before = self.clock.now();
        self.clock.set(woken.max(before));
        if let Some((at, by)) = self.set_wall_at
            && at <= self.clock.now()
        {
            self.clock.set_wall(by);
            self.set_wall_at = None;
        }
        let wall = self.clock.wall();
        while let Some(Reverse((due, _, slot))) = self.answers.peek().copied() {
            if due > self.clock.now() {
                break;
            }
            self.answers.pop();
            self.connecting[slot] = false;
            if self.stamping {
                let (started, ended) = (due.saturating_sub(self.service).0, due.0);
                let stamps = format!("x-app-stamps: {started} {ended}\r\n");
                let answer = format!("HTTP/1.1 200 OK\r\nx-worker-pid: 7\r\n{stamps}content-length: 2\r\n\r\nok");
                self.inbox[slot].extend(answer.bytes());
            } else {
                self.inbox[slot].extend(ANSWER);
            }
            self.stamps[slot] = Some(wall - (self.clock.now() - due));
            events.push(ConnectionEvent { slot: slot as u32, flags: EventFlags::IN | EventFlags::OUT });
        }
    }

    fn receive(&mut self, slot: usize, buffer: &mut [u8]) -> Result<usize, ConnectionError> {
        let n = self.inbox[slot].len().min(buffer.len());
        if n == 0 {
            return Err(ConnectionError::WouldBlock);
        }
        for (place, byte) in buffer.iter_mut().zip(self.inbox[slot].drain(..n)) {
            *place = byte;
        }
        Ok(n)
    }

    fn stamp(&self, slot: usize) -> Option<Nanos> {
        self.stamps[slot]
    }

    fn send(&mut self, slot: usize, bytes: &[u8]) -> Result<usize, ConnectionError> {
        if self.connecting[slot] {
            return Err(ConnectionError::WouldBlock);
        }
        if self.greets_after.is_some() {
            return Ok(bytes.len());
        }
        let Reverse(free) = self.free_at.pop().expect("a server has slots");
        let mut start = free.max(self.clock.now());
        if let Some((from, length)) = self.stall
            && (from..from + length).contains(&start)
        {
            start = from + length;
        }
        let mut end = start + self.service;
        if let Some((from, length)) = self.stall
            && start < from
            && end > from
        {
            end += length;
        }
        self.free_at.push(Reverse(end));
        self.order += 1;
        self.answers.push(Reverse((end, self.order, slot)));
        Ok(bytes.len())
    }

    fn close(&mut self, slot: usize) {
        self.inbox[slot].clear();
        self.closed.borrow_mut()[slot].get_or_insert(self.clock.now());
    }
}

fn shape(connections: u32, pace: Pace) -> LoadSpec {
    let transport = Transport::tcp(([127, 0, 0, 1], 1).into());
    LoadSpec {
        pace,
        timeout: Nanos::from_secs(3600),
        worker_header: "x-worker-pid".to_owned(),
        keep_exchanges: true,
        ..LoadSpec::closed(transport, render("GET", "simulated", "/", true), connections)
    }
}

fn run(shape: &LoadSpec, wire: Scripted) -> LaneEnd {
    let clock = wire.clock.clone();
    Lane::new(shape, shape.shares()[0], clock, wire, Nanos::ZERO, None)
        .run(&AtomicBool::new(false), &LaneProgress::default())
}

/// The exact percentile of `times`, by nearest rank.
fn exact(exchanges: &[Exchange], time: impl Fn(&Exchange) -> Nanos, q: f64) -> Nanos {
    let mut times: Vec<Nanos> = exchanges.iter().map(time).collect();
    times.sort_unstable();
    times[(q * times.len() as f64 - 1e-9).ceil() as usize - 1]
}

/// One connection, a request due every 10 ms for 30 s; the server takes 1 ms and is frozen for 1.4 s from 10 s on.
fn stalled() -> LaneEnd {
    let clock = Stepped::default();
    let mut wire = Scripted::new(&clock, 1, 1, Nanos::from_millis(1));
    wire.stall = Some((Nanos::from_secs(10), Nanos::from_millis(1400)));
    let mut shape = shape(1, Pace::constant(Rate::new(100.0).unwrap()));
    shape.measured = Some(Nanos::from_secs(30));
    run(&shape, wire)
}

#[test]
fn a_stall_is_seen_by_everyone_who_was_due_in_it() {
    let end = stalled();
    let ms = Nanos::from_millis;
    assert_eq!(end.exchanges.len(), 3000);
    let response = |q| exact(&end.exchanges, Exchange::response_time, q);
    assert_eq!(
        [response(0.5), response(0.9), response(0.99), response(0.999), response(1.0)],
        [ms(1), ms(1), ms(1131), ms(1374), ms(1401)]
    );
    let mean = end.tally.response_time.mean().unwrap();
    assert_eq!(mean, Nanos(37_530_000));
}

#[test]
fn a_late_sender_hides_nothing() {
    // From the send alone the same run looks fine: one request in 3000 was slow. That is what coordinated omission hides.
    let end = stalled();
    let service = |q| exact(&end.exchanges, Exchange::service_time, q);
    assert_eq!([service(0.5), service(0.99), service(0.999), service(1.0)].map(|t| t.0 / 1_000_000), [1, 1, 1, 1401]);
    assert_eq!(end.tally.service_time.mean(), Some(Nanos(1_466_666)));
    assert!(end.exchanges.iter().all(|e| e.response_time() == e.send_lag() + e.service_time()));
}

/// A server that takes 20 ms and stalls for 400 ms once, for as many as there are connections, and the verdict on two seconds of it.
fn judged(connections: u32, pace: Pace) -> (Tally, Judgement) {
    let mut wire =
        Scripted::new(&Stepped::default(), connections as usize, connections as usize, Nanos::from_millis(20));
    wire.stall = Some((Nanos::from_millis(500), Nanos::from_millis(400)));
    let mut shape = shape(connections, pace.clone());
    shape.measured = Some(Nanos::from_secs(2));
    let end = run(&shape, wire);
    let (mut study, times) = (testkit::load::closed(), &doubts::LOAD_PERCENTILES);
    study.plan = LoadPlan { pace, connections, length: shape.measured, warm_up: Nanos::ZERO, ..study.plan };
    study.run.statistics = Some(Statistics::of(&end.tally, &end.batches, times));
    study.run.generator = GeneratorFacts::default();
    (study.run.measured, study.run.tally) = (Nanos::from_secs(2), end.tally);
    let judgement = verdict::of_load(&study.run, &study.plan);
    (study.run.tally, judgement)
}

#[test]
fn a_server_that_stalls_is_the_limit_and_never_the_generator() {
    for pace in [Pace::Closed, Pace::constant(Rate::new(400.0).unwrap())] {
        let (tally, judgement) = judged(8, pace);
        assert_eq!(tally.generator_lag.max(), Some(Nanos::ZERO), "whatever was late, the generator was not");
        assert_eq!(judgement.verdict, Verdict::ServerBound, "{judgement:?}");
    }
}

#[test]
fn an_answer_that_is_there_before_its_request_is_sent_is_a_bad_response() {
    let mut wire = Scripted::new(&Stepped::default(), 1, 1, Nanos::from_millis(1));
    wire.greets_after = Some(Nanos::from_millis(2));
    let mut shape = shape(1, Pace::Closed);
    shape.requests_total = Some(3);
    let tally = run(&shape, wire).tally;
    assert_eq!(tally.bad_responses.iter().collect::<Vec<_>>(), [(BadResponse::BeforeRequest, 3)]);
    assert_eq!((tally.counts.total(), tally.connections_opened), (3, 3));
}

#[test]
fn the_backlog_is_what_is_due_and_not_answered() {
    // Five slots of 100 ms are 50 a second: of 60 ten more wait each second, of 50 none, whether time ends the run or a count.
    for (rate, growth) in [(60.0, 10.0), (50.0, 0.0), (20.0, 0.0)] {
        for is_counted in [false, true] {
            let mut shape = shape(400, Pace::constant(Rate::new(rate).unwrap()));
            if is_counted {
                shape.requests_total = Some(10 * rate as u64);
            } else {
                shape.measured = Some(Nanos::from_secs(10));
            }
            let wire = Scripted::new(&Stepped::default(), 400, 5, Nanos::from_millis(100));
            let end = run(&shape, wire);
            let length = shape.measured;
            let backlog = end.backlog.unwrap().backlog(end.tally.counts.total(), length).unwrap();
            assert!((backlog.growth - growth).abs() < 0.5, "{rate}: {backlog:?}");
            assert!((backlog.offered - rate).abs() < 1e-6, "{backlog:?}");
            assert_eq!(backlog.grows(), growth > 0.0, "{backlog:?}");
        }
    }
}

#[test]
fn the_histogram_tells_the_same_within_a_thousandth() {
    let tally = stalled().tally;
    for q in [0.5, 0.9, 0.99, 0.999, 1.0] {
        let exact = exact(&stalled().exchanges, Exchange::response_time, q).0 as f64;
        let read = tally.response_time.quantile(q).unwrap().0 as f64;
        assert!((0.0..=0.001).contains(&(read / exact - 1.0)), "{read} for {exact}");
    }
}

#[test]
fn twice_the_threads_work_is_a_staircase() {
    // Five slots of 1 s, ten requests a second: 1000, 1500, 2000, … ms, in fives.
    let clock = Stepped::default();
    let wire = Scripted::new(&clock, 200, 5, Nanos::from_secs(1));
    let mut shape = shape(200, Pace::constant(Rate::new(10.0).unwrap()));
    shape.measured = Some(Nanos::from_secs(3));
    let end = run(&shape, wire);
    let times: Vec<u64> = end.exchanges.iter().map(|e| e.response_time().0 / 1_000_000).collect();
    let staircase: Vec<u64> = (0..30).map(|k| 1000 + k / 5 * 500).collect();
    assert_eq!(times, staircase);
}

/// A closed loop for 10 s after 2 s of warm-up, on an app of 100 ms that says when it began and ended.
fn dissected(connections: u32, slots: usize) -> LaneEnd {
    let mut wire = Scripted::new(&Stepped::default(), connections as usize, slots, Nanos::from_millis(100));
    wire.stamping = true;
    let mut shape = shape(connections, Pace::Closed);
    shape.reads_app_times = true;
    shape.warm_up = Nanos::from_secs(2);
    shape.measured = Some(Nanos::from_secs(10));
    run(&shape, wire)
}

#[test]
fn the_wait_is_found_where_it_was_put() {
    // Whoever has no slot waits in the server, before the app: 4 rounds less one, half of a round on average, none.
    for (connections, slots, wait) in [(40, 10, 300), (15, 10, 50), (10, 10, 0), (3, 1, 200)] {
        let end = dissected(connections, slots);
        let anatomy = end.dissection.unwrap().anatomy().unwrap();
        assert_eq!((anatomy.all.requests, anatomy.silent, anatomy.impossible), (end.tally.counts.good(), 0, 0));
        let mean = |sum| anatomy.all.mean(sum).unwrap();
        assert_eq!(mean(anatomy.all.before_app.unwrap()), Nanos::from_millis(wait), "{connections} on {slots}");
        assert_eq!(mean(anatomy.all.app), Nanos::from_millis(100));
        assert_eq!((anatomy.all.send_lag, anatomy.all.rest()), (Nanos::ZERO, Nanos::ZERO));
        assert_eq!(Some(mean(anatomy.all.response_time)), end.tally.response_time.mean());
    }
    // With half a round too many, those who wait a whole round are the slowest.
    let slowest = dissected(15, 10).dissection.unwrap().anatomy().unwrap().slowest.unwrap();
    assert_eq!(slowest.mean(slowest.before_app.unwrap()), Some(Nanos::from_millis(100)));
}

#[test]
fn a_trace_tells_port_and_place_on_its_connection() {
    let clock = Stepped::default();
    let mut wire = Scripted::new(&clock, 2, 2, Nanos::from_millis(10));
    wire.stamping = true;
    let mut shape = shape(2, Pace::Closed);
    shape.requests_per_connection = Some(7);
    // The third answer is the last of its connection.
    shape.reconnect_after = Some(3);
    (shape.reads_app_times, shape.traces) = (true, true);
    let (journal, records) = std::sync::mpsc::sync_channel(8);
    let end = Lane::new(&shape, shape.shares()[0], clock, wire, Nanos::ZERO, Some(journal))
        .run(&AtomicBool::new(false), &LaneProgress::default());
    assert_eq!((end.tally.counts.good(), end.tally.connections_opened), (14, 6));
    let records: Vec<_> = records.iter().flatten().collect();
    for port in [1000, 1001] {
        let traces = || records.iter().filter_map(|record| Some((record.trace?, record.exchange)));
        let own: Vec<_> = traces().filter(|(trace, _)| trace.port == port).collect();
        assert_eq!(own.iter().map(|(trace, _)| trace.number).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2, 0]);
        for (place, (trace, exchange)) in own.iter().enumerate() {
            assert_eq!(trace.opened, Nanos::from_millis(10) * (place as u64 / 3 * 3), "when its connection was opened");
            let (started, ended) = (exchange.sent, exchange.ended);
            assert_eq!(trace.app, Some(AppTime::Stamps { started, ended }));
        }
    }
    let untraced = records.iter().filter(|record| record.trace.is_none()).count();
    assert_eq!(untraced, 0);
}

#[test]
fn nobody_is_asked_who_was_not_to_be() {
    let clock = Stepped::default();
    let mut wire = Scripted::new(&clock, 2, 2, Nanos::from_millis(1));
    wire.stamping = true;
    let mut shape = shape(2, Pace::Closed);
    shape.requests_per_connection = Some(5);
    assert_eq!(run(&shape, wire).dissection, None);
}

#[test]
fn a_closed_loop_takes_its_turns() {
    // 12 connections on 5 slots of 200 ms: Little's law to the nanosecond, and each waits q or q + 1 services.
    let clock = Stepped::default();
    let wire = Scripted::new(&clock, 12, 5, Nanos::from_millis(200));
    let mut shape = shape(12, Pace::Closed);
    shape.warm_up = Nanos::from_secs(2);
    shape.measured = Some(Nanos::from_secs(12));
    let end = run(&shape, wire);
    assert_eq!(end.tally.completed_in_window, 300, "25 a second for 12 s");
    let times: Vec<u64> = end.exchanges.iter().skip(60).map(|e| e.response_time().0 / 1_000_000).collect();
    assert!(times.iter().all(|t| [400, 600].contains(t)), "{times:?}");
    assert_eq!(end.tally.send_lag.max(), Some(Nanos::ZERO));
    assert_eq!(end.tally.per_worker["7"].all, end.tally.all_requests());
}

#[test]
fn a_count_ends_the_run_and_each_connection_makes_its_own() {
    let clock = Stepped::default();
    let mut shape = shape(7, Pace::Closed);
    shape.requests_per_connection = Some(3);
    let end = run(&shape, Scripted::new(&clock, 7, 2, Nanos::from_millis(10)));
    assert_eq!(end.tally.counts.good(), 21);
    assert_eq!(end.tally.per_connection, vec![3; 7]);
    assert_eq!(end.tally.connections_opened, 7);
}

#[test]
fn a_request_without_an_answer_times_out_once_and_the_connection_goes_on() {
    let clock = Stepped::default();
    let mut wire = Scripted::new(&clock, 1, 1, Nanos::from_millis(100));
    wire.stall = Some((Nanos::from_millis(150), Nanos::from_secs(10)));
    let mut shape = shape(1, Pace::Closed);
    shape.measured = Some(Nanos::from_secs(2));
    shape.timeout = Nanos::from_secs(1);
    let end = run(&shape, wire);
    let outcomes: Vec<Outcome> = end.exchanges.iter().map(|e| e.outcome).collect();
    assert_eq!(outcomes, [Outcome::Answered(200), Outcome::TimedOut, Outcome::TimedOut]);
    assert_eq!(end.tally.counts.total(), 3);
}

#[test]
fn a_refused_connect_is_an_outcome_and_is_tried_again_after_a_pause() {
    let clock = Stepped::default();
    let mut wire = Scripted::new(&clock, 2, 2, Nanos::from_millis(100));
    wire.refused[1] = true;
    let mut shape = shape(2, Pace::Closed);
    shape.requests_per_connection = Some(2);
    let end = run(&shape, wire);
    assert_eq!(end.tally.counts.of(Outcome::Refused), 1);
    assert_eq!(end.tally.counts.good(), 3);
    let second = end.exchanges.iter().filter(|e| e.due == Nanos::from_millis(10)).count();
    assert_eq!(second, 1, "due again when the pause of 10 ms is over");
}

#[test]
fn an_open_loop_keeps_its_schedule_though_connects_are_refused() {
    // Two connections for a request each 5 ms: were one that was refused kept out of use for its pause of 10 ms, some would wait.
    let clock = Stepped::default();
    let mut wire = Scripted::new(&clock, 2, 2, Nanos::from_millis(1));
    wire.always_refuses = true;
    let mut shape = shape(2, Pace::constant(Rate::new(200.0).unwrap()));
    shape.requests_total = Some(400);
    let end = run(&shape, wire);
    assert_eq!(end.tally.counts.of(Outcome::Refused), 400);
    assert!(end.exchanges.iter().all(|e| e.ended == e.due), "each at its time");
    assert_eq!(end.tally.queued.count, 0, "no request waits for a connection: all are free");
}

#[test]
fn an_interruption_counts_what_is_in_flight() {
    let clock = Stepped::default();
    let wire = Scripted::new(&clock, 3, 1, Nanos::from_secs(1));
    let mut shape = shape(3, Pace::Closed);
    shape.measured = Some(Nanos::from_secs(100));
    let end = Lane::new(&shape, shape.shares()[0], clock, wire, Nanos::ZERO, None)
        .run(&AtomicBool::new(true), &LaneProgress::default());
    assert_eq!(end.tally.counts.of(Outcome::InFlight), 3);
    assert!(end.interrupted_at.is_some());
}

#[test]
fn a_count_ends_an_open_loop_exactly() {
    let clock = Stepped::default();
    let mut shape = shape(50, Pace::constant(Rate::new(100.0).unwrap()));
    shape.requests_total = Some(17);
    let end = run(&shape, Scripted::new(&clock, 50, 50, Nanos::from_millis(30)));
    assert_eq!(end.tally.counts.good(), 17);
    assert_eq!(end.exchanges.last().unwrap().due, Nanos::from_millis(160));
}

#[test]
fn what_finds_no_connection_waits_with_its_due_time() {
    // Two connections, 100 ms each, fifty requests a second: twenty a second get through.
    let clock = Stepped::default();
    let mut shape = shape(2, Pace::constant(Rate::new(50.0).unwrap()));
    shape.requests_total = Some(10);
    let end = run(&shape, Scripted::new(&clock, 2, 2, Nanos::from_millis(100)));
    let times: Vec<u64> = end.exchanges.iter().map(|e| e.response_time().0 / 1_000_000).collect();
    assert_eq!(times, [100, 100, 160, 160, 220, 220, 280, 280, 340, 340]);
    assert_eq!((end.tally.queued.count, end.tally.queued.max), (8, Nanos::from_millis(240)));
    assert_eq!(end.tally.service_time.max(), Some(Nanos::from_millis(100)), "the server is not to blame");
}

#[test]
fn what_finds_no_connection_can_be_skipped_and_is_counted() {
    let clock = Stepped::default();
    let mut shape = shape(2, Pace::constant(Rate::new(50.0).unwrap()));
    shape.requests_total = Some(10);
    shape.late = Late::Skip;
    let end = run(&shape, Scripted::new(&clock, 2, 2, Nanos::from_millis(100)));
    assert_eq!(end.tally.counts.of(Outcome::Skipped), 6);
    assert_eq!(end.tally.counts.total(), 10);
    assert_eq!(end.tally.send_lag.max(), Some(Nanos::ZERO));
}

/// Two connections, one slot of 100 ms, a window of 250: the second one's last answer ends the load at 400, while one of the first, which
/// kept the server busy for it, is still out.
#[test]
fn a_connection_that_is_not_needed_any_more_is_closed_at_once() {
    let clock = Stepped::default();
    let mut shape = shape(2, Pace::Closed);
    shape.measured = Some(Nanos::from_millis(250));
    let wire = Scripted::new(&clock, 2, 1, Nanos::from_millis(100));
    let closed = Rc::clone(&wire.closed);
    run(&shape, wire);
    assert_eq!(*closed.borrow(), [Some(Nanos::from_millis(500)), Some(Nanos::from_millis(400))]);
}

#[test]
fn a_user_who_thinks_is_due_when_he_has_thought() {
    let clock = Stepped::default();
    let mut shape = shape(1, Pace::Closed);
    shape.requests_total = Some(3);
    shape.think = Nanos::from_millis(50);
    let end = run(&shape, Scripted::new(&clock, 1, 1, Nanos::from_millis(100)));
    let due: Vec<u64> = end.exchanges.iter().map(|e| e.due.0 / 1_000_000).collect();
    assert_eq!(due, [0, 150, 300]);
    assert_eq!(end.tally.response_time.max(), Some(Nanos::from_millis(100)));
}

#[test]
fn a_lane_that_coalesces_is_late_by_less_than_a_millisecond() {
    let clock = Stepped::default();
    let mut shape = shape(100, Pace::constant(Rate::new(3000.0).unwrap()));
    shape.requests_total = Some(300);
    shape.timing = Timing::Coalesce;
    let end = run(&shape, Scripted::new(&clock, 100, 100, Nanos::from_millis(2)));
    let lag = end.tally.send_lag.max().unwrap();
    assert!(Nanos::ZERO < lag && lag < Nanos::from_millis(1), "{lag}");
}

#[test]
fn a_connection_is_opened_anew_after_its_number_of_requests() {
    let clock = Stepped::default();
    let mut shape = shape(1, Pace::Closed);
    shape.requests_total = Some(10);
    shape.reconnect_after = Some(4);
    let end = run(&shape, Scripted::new(&clock, 1, 1, Nanos::from_millis(1)));
    assert_eq!((end.tally.connections_opened, end.tally.closed_by_server), (3, 0));
}

#[test]
fn a_pipeline_sends_ahead_and_takes_the_answers_in_order() {
    // One connection with four requests out, four slots of 100 ms: as four connections, but for the sockets.
    let clock = Stepped::default();
    let mut shape = shape(1, Pace::Closed);
    shape.requests_total = Some(12);
    shape.pipeline = 4;
    let end = run(&shape, Scripted::new(&clock, 1, 4, Nanos::from_millis(100)));
    assert_eq!(end.tally.counts.good(), 12);
    assert_eq!(end.tally.connections_opened, 1);
    let ended: Vec<u64> = end.exchanges.iter().map(|e| e.ended.0 / 1_000_000).collect();
    assert_eq!(ended, [100, 100, 100, 100, 200, 200, 200, 200, 300, 300, 300, 300]);
}

#[test]
fn what_is_piped_behind_a_request_without_an_answer_is_given_up_with_it() {
    let clock = Stepped::default();
    let mut wire = Scripted::new(&clock, 1, 1, Nanos::from_millis(100));
    wire.stall = Some((Nanos::from_millis(50), Nanos::from_secs(60)));
    let mut shape = shape(1, Pace::Closed);
    shape.measured = Some(Nanos::from_millis(10));
    shape.pipeline = 3;
    shape.timeout = Nanos::from_secs(1);
    let end = run(&shape, wire);
    assert_eq!(end.tally.counts.of(Outcome::TimedOut), 3);
    assert_eq!(end.tally.counts.total(), 3);
}

#[test]
fn the_drain_of_an_open_loop_has_an_end() {
    // One connection, one slot of 500 ms, twenty requests in a second, a timeout of 2 s: five get through, a sixth is out
    // when the sending ends (950 ms + 2 s), and the rest is in flight at the end.
    let clock = Stepped::default();
    let mut shape = shape(1, Pace::constant(Rate::new(20.0).unwrap()));
    shape.requests_total = Some(20);
    shape.timeout = Nanos::from_secs(2);
    let end = run(&shape, Scripted::new(&clock, 1, 1, Nanos::from_millis(500)));
    assert_eq!((end.tally.counts.good(), end.tally.counts.of(Outcome::InFlight)), (6, 14));
    assert_eq!(clock.now(), Nanos::from_secs(3));
}

/// Four connections on four slots of 10 ms for a second, by a lane that wakes 3 ms late for every answer.
fn read_late(timestamps: Timestamps, set_wall: Option<i64>) -> LaneEnd {
    let clock = Stepped::default();
    let mut wire = Scripted::new(&clock, 4, 4, Nanos::from_millis(10));
    wire.late = Nanos::from_millis(3);
    if let Some(by) = set_wall {
        wire.set_wall_at = Some((Nanos::from_millis(500), by));
    }
    let mut shape = shape(4, Pace::Closed);
    shape.measured = Some(Nanos::from_secs(1));
    shape.timestamps = timestamps;
    run(&shape, wire)
}

#[test]
fn the_kernels_stamps_take_our_own_late_reading_out_of_the_times() {
    let (user, kernel) = (read_late(Timestamps::User, None), read_late(Timestamps::Kernel, None));
    let ms = |n| Some(Nanos::from_millis(n));
    let longest = |end: &LaneEnd| end.tally.service_time.max();
    assert_eq!((longest(&user), longest(&kernel)), (ms(13), ms(10)));
    assert_eq!((kernel.tally.service_time.min(), kernel.tally.read_lag.max()), (ms(10), ms(3)));
    // Where it was awake anyway it was not late.
    assert!(kernel.tally.read_lag.mean() > Some(Nanos::from_micros(2500)));
    assert_eq!(kernel.tally.read_lag.count(), kernel.tally.counts.answered());
    // Nobody can send before he has read: the load is the same.
    assert_eq!(kernel.tally.counts, user.tally.counts);
    assert_eq!((user.tally.read_lag.count(), user.clock_steps, kernel.clock_steps), (0, None, Some(0)));
    assert!(kernel.exchanges.iter().all(|e| e.due <= e.sent && e.sent <= e.ended));
}

#[test]
fn a_wall_clock_that_is_set_is_found_out_and_moves_no_request_out_of_its_time() {
    for by in [3_600_000_000_000, -3_600_000_000_000, -1_000_000] {
        let end = read_late(Timestamps::Kernel, Some(by));
        assert_eq!(end.clock_steps, Some(1), "set by {by} ns");
        assert_eq!(end.tally.counts, read_late(Timestamps::User, None).tally.counts);
        assert!(end.exchanges.iter().all(|e| e.due <= e.sent && e.sent <= e.ended));
        let longest = end.tally.service_time.max();
        assert!(longest <= Some(Nanos::from_millis(13)), "{longest:?}");
    }
}
