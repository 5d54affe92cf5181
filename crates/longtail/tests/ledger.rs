//! Client's ledger = server's ledger: the engine drives a sink in this process, over real sockets, and both must have
//! counted the same, to the byte. No duration and no rate is looked at.

#[path = "cli/clock.rs"]
mod clock;
#[path = "ledger/every_way.rs"]
mod every_way;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{DriveResult, LoadSpec, RunProgress, Transport, drive, render};
use model::{Counts, Nanos, Outcome};
use sink::{Listen, Sink, SinkBody, SinkLedger, SinkSettings, SlotQueue};

use crate::clock::{SteadyClock, eventually};

const CONNECTIONS: [u32; 3] = [1, 7, 64];
const LANES: [u32; 2] = [1, 3];
/// Only a test that fails waits so long, and no request times out before.
const PATIENCE: Nanos = Nanos::from_secs(300);
/// Lengths of a window, one after the other until one was long enough: a busy machine may let nothing of a closed loop become due in
/// a short one. Each run's ledgers agree.
const WINDOWS: [Nanos; 4] =
    [Nanos::from_millis(40), Nanos::from_millis(400), Nanos::from_secs(4), Nanos::from_secs(40)];

fn sink() -> Sink {
    sink_at(SocketAddr::from(([127, 0, 0, 1], 0)).into())
}

fn sink_at(place: Listen) -> Sink {
    let settings = SinkSettings {
        listen: vec![place],
        queue: SlotQueue::Shared,
        workers: 2,
        threads: 3,
        delay: Nanos::from_micros(500).into(),
        body: SinkBody::Ok,
        worker_header: Some("x-worker".to_owned()),
        ..SinkSettings::default()
    };
    Sink::start(settings, SteadyClock).unwrap()
}

fn shape(sink: &Sink, connections: u32, lanes: u32, keep_alive: bool) -> LoadSpec {
    shape_over(Transport::tcp(sink.address()), connections, lanes, keep_alive)
}

fn shape_over(transport: Transport, connections: u32, lanes: u32, keep_alive: bool) -> LoadSpec {
    let request = render("GET", "localhost", "/", keep_alive);
    LoadSpec {
        lanes,
        keep_alive,
        timeout: PATIENCE,
        worker_header: "x-worker".to_owned(),
        keep_exchanges: true,
        ..LoadSpec::closed(transport, request, connections)
    }
}

fn driven(shape: &LoadSpec) -> DriveResult {
    drive(shape, &SteadyClock, &AtomicBool::new(false), &RunProgress::new(shape.lanes), None).unwrap()
}

/// Each exchange is a sound one, and counting them gives the tally.
fn assert_sound(shape: &LoadSpec, done: &DriveResult) {
    let tally = &done.tally;
    let (mut measured, mut warm_up) = (Counts::default(), Counts::default());
    for exchange in &done.exchanges {
        assert!(exchange.due <= exchange.sent && exchange.sent <= exchange.ended, "{exchange:?}");
        if tally.measures(exchange.due) { &mut measured } else { &mut warm_up }.record(exchange.outcome);
    }
    assert_eq!((&measured, &warm_up), (&tally.counts, &tally.unmeasured));
    assert_eq!(tally.all_requests(), done.exchanges.len() as u64);
    let bytes: u64 = done.exchanges.iter().map(|exchange| u64::from(exchange.received_bytes)).sum();
    assert_eq!(tally.received_bytes, bytes);
    assert_eq!(tally.per_connection.len(), shape.connections as usize);
    assert_eq!(tally.per_connection.iter().sum::<u64>(), tally.counts.good());
}

/// Nothing was lost or given up, and the sink has counted what we have.
fn assert_same(shape: &LoadSpec, done: &DriveResult, ledger: &SinkLedger) {
    let tally = &done.tally;
    let requests = tally.all_requests();
    assert_eq!(tally.counts.good() + tally.unmeasured.good(), requests, "{:?}", tally.counts);
    assert_eq!((ledger.requests, ledger.answers), (requests, requests));
    assert_eq!((ledger.abandoned, ledger.bad_requests, ledger.waiting, ledger.busy), (0, 0, 0, 0));
    assert_eq!(ledger.received_bytes, tally.sent_bytes);
    assert_eq!(ledger.sent_bytes, tally.received_bytes);
    assert_eq!(ledger.connections, tally.connections_opened);
    assert_eq!(ledger.connections, if shape.keep_alive { u64::from(shape.connections) } else { requests });
    assert_eq!(tally.closed_by_server, 0);
    let by_worker = |worker: usize| tally.per_worker.get(&worker.to_string()).map_or(0, |count| count.all);
    assert_eq!(ledger.per_worker, [by_worker(0), by_worker(1)]);
    assert_eq!(tally.per_worker.values().map(|count| count.measured).sum::<u64>(), tally.counts.answered());
}

fn by_count(keep_alive: bool) {
    const EACH: u64 = 9;
    for (connections, lanes) in CONNECTIONS.into_iter().flat_map(|c| LANES.map(|lanes| (c, lanes))) {
        let sink = sink();
        let shape = LoadSpec { requests_per_connection: Some(EACH), ..shape(&sink, connections, lanes, keep_alive) };
        let done = driven(&shape);
        assert_sound(&shape, &done);
        assert_same(&shape, &done, &sink.ledger());
        assert_eq!(done.tally.counts.total(), u64::from(connections) * EACH);
        assert!(done.tally.per_connection.iter().all(|good| *good == EACH));
        assert_same(&shape, &done, &sink.stop());
    }
}

fn by_time(keep_alive: bool) {
    for (connections, lanes) in CONNECTIONS.into_iter().flat_map(|c| LANES.map(|lanes| (c, lanes))) {
        let agree = |window: Nanos| {
            let sink = sink();
            let (warm_up, measured) = (window / 4, Some(window));
            let shape = LoadSpec { warm_up, measured, ..shape(&sink, connections, lanes, keep_alive) };
            let done = driven(&shape);
            assert_sound(&shape, &done);
            assert_same(&shape, &done, &sink.ledger());
            assert_same(&shape, &done, &sink.stop());
            done.tally.counts.total() > 0
        };
        assert!(WINDOWS.into_iter().any(agree), "nothing was measured");
    }
}

#[test]
fn both_ledgers_agree_when_a_count_ends_a_run_with_keep_alive() {
    by_count(true);
}

#[test]
fn both_ledgers_agree_when_a_count_ends_a_run_with_a_connection_a_request() {
    by_count(false);
}

#[test]
fn both_ledgers_agree_when_time_ends_a_run_with_keep_alive() {
    by_time(true);
}

#[test]
fn both_ledgers_agree_when_time_ends_a_run_with_a_connection_a_request() {
    by_time(false);
}

#[test]
fn no_connection_outlives_its_run() {
    let sink = sink();
    let shape = LoadSpec { requests_per_connection: Some(3), ..shape(&sink, 7, 3, true) };
    driven(&shape);
    eventually(PATIENCE, || format!("{:?}", sink.ledger()), || (sink.ledger().open_connections == 0).then_some(()));
}

/// A load that is interrupted once more than `after` requests have ended.
fn interrupted(shape: &LoadSpec, after: u64) -> DriveResult {
    let (interrupt, progress) = (AtomicBool::new(false), RunProgress::new(shape.lanes));
    let done = std::thread::scope(|scope| {
        scope.spawn(|| {
            let seen = || format!("{} ended", progress.ended());
            eventually(PATIENCE, seen, || (progress.ended() > after).then_some(()));
            interrupt.store(true, Ordering::Relaxed);
        });
        drive(shape, &SteadyClock, &interrupt, &progress, None).unwrap()
    });
    assert!(done.interrupted);
    done
}

/// What ended well is in both ledgers, and what was in flight is in the sink's as far as it came.
fn assert_same_but_for_the_end(shape: &LoadSpec, done: &DriveResult, ledger: &SinkLedger) {
    assert_sound(shape, done);
    let counts = &done.tally.counts;
    let (in_flight, skipped) = (counts.of(Outcome::InFlight), counts.of(Outcome::Skipped));
    assert_eq!(counts.total(), counts.good() + in_flight + skipped, "{counts:?}");
    if !shape.pace.is_open() {
        assert!(in_flight <= u64::from(shape.connections));
    }
    assert!((counts.good()..=counts.total()).contains(&ledger.requests), "{counts:?} {ledger:?}");
    assert!(ledger.answers >= counts.good() && ledger.bad_requests == 0, "{counts:?} {ledger:?}");
    assert!(ledger.received_bytes <= done.tally.sent_bytes && ledger.sent_bytes >= done.tally.received_bytes);
}

#[test]
fn a_run_that_is_interrupted_loses_no_request() {
    for (connections, lanes) in CONNECTIONS.into_iter().flat_map(|c| LANES.map(|lanes| (c, lanes))) {
        let sink = sink();
        let shape = LoadSpec { measured: Some(Nanos::from_secs(600)), ..shape(&sink, connections, lanes, true) };
        let done = interrupted(&shape, 100);
        assert_same_but_for_the_end(&shape, &done, &sink.stop());
    }
}
