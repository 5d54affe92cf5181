//! Client's ledger = server's ledger: the engine drives a sink in this process over real sockets,
//! and both must count the same, to the byte, with every stop rule and every pace over every
//! transport. Durations and rates don't matter.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::sync_channel;

use engine::{
    Endpoint, LaneOutcome, LoadSpec, RunProgress, TlsOptions, TlsSettings, Transport, drive, render,
};
use model::{
    Arrivals, ClassTally, Counts, LatePolicy, Nanos, Outcome, Pace, Profile, Rate, Request,
    RequestGroup, RequestMix,
};
use sink::{Listen, Sink, SinkBody, SinkLedger, SinkSettings, SlotQueue};

use testkit::clock::{REAL_CLOCK, eventually};

use crate::lab;

/// Only a failing test waits this long, and no request times out before.
const TIME_LIMIT: Nanos = Nanos::from_secs(300);
/// Lengths of a window, tried in turn until one is long enough: on a busy machine no request of a
/// closed loop may become due in a short one. The ledgers must agree in every try.
const WINDOWS: [Nanos; 4] =
    [Nanos::from_millis(40), Nanos::from_millis(400), Nanos::from_secs(4), Nanos::from_secs(40)];
/// Stop after this number of requests, or after this number on each connection.
const NUMBER: u64 = 61;
const EACH: u64 = 9;

fn sink(place: Listen) -> Sink {
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
    Sink::start(settings, REAL_CLOCK).unwrap()
}

fn spec(transport: Transport, connections: u32, lanes: u32, keep_alive: bool) -> LoadSpec {
    let request = render("GET", "localhost", "/", &[], keep_alive);
    let worker_header = "x-worker".to_owned();
    LoadSpec {
        worker_header,
        ..LoadSpec::closed(transport, request, connections).with(|load| {
            load.lanes = lanes;
            load.keep_alive = keep_alive;
            load.timeout = TIME_LIMIT;
        })
    }
}

/// Runs the load to its end, or until more than `at_most` requests have ended. Checks that each
/// exchange in its journal is valid and that they add up to the tally.
fn driven(spec: &LoadSpec, at_most: Option<u64>) -> LaneOutcome {
    let interrupt = AtomicBool::new(false);
    let progress = RunProgress::new(spec.load.lanes);
    let (journal, records) = sync_channel(10_000);
    let done = std::thread::scope(|scope| {
        let interrupt = &interrupt;
        let progress = &progress;
        if let Some(at_most) = at_most {
            scope.spawn(move || {
                let seen = || format!("{} ended", progress.ended());
                eventually(TIME_LIMIT, seen, || (progress.ended() > at_most).then_some(()));
                interrupt.store(true, Ordering::Relaxed);
            });
        }
        drive(spec, &REAL_CLOCK, interrupt, progress, Some(&journal)).unwrap().outcome
    });
    drop(journal);
    assert_eq!((done.interrupted_at.is_some(), done.dropped_records), (at_most.is_some(), 0));
    let tally = &done.tally;
    let mut measured = Counts::default();
    let mut warm_up = Counts::default();
    let mut bytes = 0;
    for exchange in records.iter().flatten().map(|record| record.exchange) {
        assert!(exchange.due <= exchange.sent && exchange.sent <= exchange.ended, "{exchange:?}");
        if tally.measures(exchange.due) { &mut measured } else { &mut warm_up }
            .record(exchange.outcome);
        bytes += u64::from(exchange.received_bytes);
    }
    // The journal includes requests without a response.
    let mut counted = tally.clone();
    counted.fail_unfinished();
    assert_eq!((&measured, &warm_up), (&counted.counts, &tally.unmeasured));
    assert_eq!(tally.received_bytes, bytes);
    assert_eq!(tally.per_connection.len(), spec.load.connections as usize);
    assert_eq!(tally.per_connection.iter().sum::<u64>(), tally.counts.good());
    done
}

/// Checks that no request was lost or given up, and that the sink counted the same.
fn assert_same(spec: &LoadSpec, done: &LaneOutcome, ledger: &SinkLedger) {
    let tally = &done.tally;
    assert!(tally.unfinished.is_empty());
    let skipped = tally.counts.of(Outcome::Skipped) + tally.unmeasured.of(Outcome::Skipped);
    assert!(skipped == 0 || spec.load.late == LatePolicy::Skip);
    let sent = tally.all_requests() - skipped;
    assert_eq!(tally.counts.good() + tally.unmeasured.good(), sent, "{:?}", tally.counts);
    assert_eq!(
        [tally.connections_opened, sent, sent, tally.sent_bytes, tally.received_bytes],
        [
            ledger.connections,
            ledger.requests,
            ledger.answers,
            ledger.received_bytes,
            ledger.sent_bytes
        ],
        "connections, requests, responses, bytes sent, bytes received"
    );
    assert_eq!((ledger.abandoned, ledger.bad_requests, ledger.failed_handshakes), (0, 0, 0));
    assert_eq!((ledger.waiting, ledger.busy, tally.closed_by_server), (0, 0, 0));
    let by_worker =
        |worker: usize| tally.per_worker.get(&worker.to_string()).map_or(0, |count| count.all);
    assert_eq!(ledger.per_worker, [by_worker(0), by_worker(1)]);
    assert_eq!(
        tally.per_worker.values().map(|count| count.measured).sum::<u64>(),
        tally.counts.answered()
    );
}

/// Checks that good requests are in both ledgers, and requests in flight in the sink's as far as
/// they arrived.
fn assert_same_but_for_the_end(spec: &LoadSpec, done: &LaneOutcome, ledger: &SinkLedger) {
    let tally = &done.tally;
    let counts = &done.tally.counts;
    let unfinished = &tally.unfinished;
    let skipped = counts.of(Outcome::Skipped);
    assert_eq!(counts.total(), counts.good() + skipped, "{counts:?}");
    assert!(unfinished.in_flight <= u64::from(spec.load.connections), "{unfinished:?}");
    assert!(spec.load.pace.is_open() || unfinished.not_sent == 0, "{unfinished:?}");
    let at_most = counts.good() + unfinished.in_flight;
    assert!((counts.good()..=at_most).contains(&ledger.requests), "{counts:?} {ledger:?}");
    assert!(ledger.answers >= counts.good() && ledger.bad_requests == 0, "{counts:?} {ledger:?}");
    assert!(ledger.received_bytes <= tally.sent_bytes && ledger.sent_bytes >= tally.received_bytes);
    assert!(ledger.connections <= tally.connections_opened);
}

/// The stop rules of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stop {
    Number,
    Time,
    Both,
    EachConnection,
    Interruption,
}

const STOPS: [Stop; 5] =
    [Stop::Number, Stop::Time, Stop::Both, Stop::EachConnection, Stop::Interruption];

impl Stop {
    /// The load with this stop rule; if it ends by time, after this window.
    fn of(self, spec: LoadSpec, window: Nanos) -> LoadSpec {
        let time = Some(window);
        match self {
            Stop::Number => spec.with(|load| load.requests_total = Some(NUMBER)),
            Stop::Time => LoadSpec {
                measured: time,
                ..spec.with(|load| load.warm_up = Nanos::from_millis(10))
            },
            Stop::Both => {
                LoadSpec { measured: time, ..spec.with(|load| load.requests_total = Some(NUMBER)) }
            }
            Stop::EachConnection => LoadSpec { requests_per_connection: Some(EACH), ..spec },
            Stop::Interruption => LoadSpec { measured: Some(Nanos::from_secs(600)), ..spec },
        }
    }
}

fn paces() -> [(Pace, LatePolicy); 5] {
    let profile = Profile::Flat { rate: Rate::new(3000.0).unwrap() };
    let open = |arrivals, burst| Pace::Open { profile: profile.clone(), arrivals, seed: 7, burst };
    [
        (Pace::Closed, LatePolicy::Queue),
        (open(Arrivals::Constant, 1), LatePolicy::Queue),
        (open(Arrivals::Poisson, 1), LatePolicy::Queue),
        (open(Arrivals::Constant, 20), LatePolicy::Queue),
        (open(Arrivals::Constant, 20), LatePolicy::Skip),
    ]
}

/// Tries every pace and stop rule, each with a sink of its own that `transport` leads to. Numbers
/// of connections and lanes, keep-alive, no keep-alive and reconnects take turns; `first` makes
/// each transport start at another combination.
fn agree(
    first: usize,
    place: impl Fn() -> Listen,
    transport: impl Fn(&Sink, &Listen) -> Transport,
) {
    let mut sizes = [(7, 3), (1, 1), (64, 3), (7, 1), (1, 3)].into_iter().cycle().skip(first);
    let mut reuses = [(true, None), (false, None), (true, Some(3))].into_iter().cycle().skip(first);
    for (pace, late) in paces() {
        // Only a closed loop can stop after a number of requests on each connection.
        for stop in
            STOPS.into_iter().filter(|stop| *stop != Stop::EachConnection || !pace.is_open())
        {
            let (connections, lanes) = sizes.next().unwrap();
            let (keep_alive, reconnect_after) = reuses.next().unwrap();
            let agree_for = |window| {
                let place = place();
                let sink = sink(place.clone());
                let spec = spec(transport(&sink, &place), connections, lanes, keep_alive);
                let spec = spec.with(|load| {
                    load.pace = pace.clone();
                    load.late = late;
                    load.reconnect_after = reconnect_after;
                });
                checked_load(stop, &stop.of(spec, window), sink) > 0
            };
            assert!(WINDOWS.into_iter().any(agree_for), "{pace:?} {stop:?}: nothing was measured");
        }
    }
}

/// Runs one load and returns how many requests were measured. Checks that both ledgers agree,
/// before and after the sink stops, and that no connection is left.
fn checked_load(stop: Stop, spec: &LoadSpec, sink: Sink) -> u64 {
    let done = driven(spec, (stop == Stop::Interruption).then_some(NUMBER));
    let total = done.tally.counts.total();
    let tally = &done.tally;
    match stop {
        Stop::Number => assert_eq!(total, NUMBER),
        Stop::EachConnection => assert!(tally.per_connection.iter().all(|good| *good == EACH)),
        Stop::Interruption => {
            assert_same_but_for_the_end(spec, &done, &sink.stop());
            return total;
        }
        // A schedule decides how many requests are due in the window, however busy the machine is.
        Stop::Time | Stop::Both => {
            let until = spec.load.warm_up + spec.measured.unwrap();
            let due =
                spec.load.pace.schedule().map(|schedule| schedule.take_while(|due| *due < until));
            let due = due.map(|due| due.filter(|due| *due >= spec.load.warm_up).count() as u64);
            let most = spec.load.requests_total.unwrap_or(u64::MAX);
            assert!(
                total <= most && due.is_none_or(|due| total == due.min(most)),
                "{:?} {stop:?}",
                spec.load.pace
            );
        }
    }
    assert_same(spec, &done, &sink.ledger());
    let is_closed = || sink.ledger().open_connections == 0;
    eventually(TIME_LIMIT, || format!("{:?}", sink.ledger()), || is_closed().then_some(()));
    let ledger = sink.stop();
    assert_same(spec, &done, &ledger);
    let is_whole =
        matches!(stop, Stop::Time | Stop::EachConnection) && spec.load.reconnect_after.is_none();
    if is_whole && !spec.load.pace.is_open() {
        let expected = if spec.load.keep_alive {
            u64::from(spec.load.connections)
        } else {
            tally.all_requests()
        };
        assert_eq!(ledger.connections, expected);
    }
    total
}

fn to_tcp(sink: &Sink, _: &Listen) -> Transport {
    Transport::tcp(sink.address())
}

fn to_unix(_: &Sink, place: &Listen) -> Transport {
    let place = place.to_string();
    Transport::plain(vec![
        Endpoint::unix(OsStr::new(place.strip_prefix("unix://").unwrap())).unwrap(),
    ])
}

fn to_tls(sink: &Sink, _: &Listen) -> Transport {
    let options = TlsOptions { insecure: true, server_name: "localhost", ..TlsOptions::default() };
    Transport { tls: Some(TlsSettings::new(&options).unwrap()), ..Transport::tcp(sink.address()) }
}

/// A name that no other test on this machine uses.
fn name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("longtail-ledger-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

#[test]
fn both_ledgers_agree_over_ipv4_for_every_pace_and_stop_rule() {
    agree(0, || SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into(), to_tcp);
}

#[test]
#[expect(clippy::print_stderr, reason = "a skip gives its reason")]
fn both_ledgers_agree_over_ipv6_for_every_pace_and_stop_rule() {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        return eprintln!("SKIPPED: no IPv6 on this machine");
    }
    agree(1, || SocketAddr::from((Ipv6Addr::LOCALHOST, 0)).into(), to_tcp);
}

#[test]
fn both_ledgers_agree_over_a_unix_socket_for_every_pace_and_stop_rule() {
    let folder = launch::Scratch::new(&std::env::temp_dir()).unwrap();
    agree(
        2,
        || format!("unix://{}/{}.sock", folder.path().display(), name()).parse().unwrap(),
        to_unix,
    );
}

#[test]
fn both_ledgers_agree_over_an_abstract_socket_for_every_pace_and_stop_rule() {
    agree(3, || format!("unix://@{}", name()).parse().unwrap(), to_unix);
}

#[test]
fn both_ledgers_agree_over_tls_for_every_pace_and_stop_rule() {
    agree(4, || "tls://127.0.0.1:0".parse().unwrap(), to_tls);
}

/// Fifty classes, each of a request with a length of its own, the longer ones more often.
fn fifty_classes() -> RequestMix {
    let request = |class: u8| {
        let path = format!("/{}", "x".repeat(usize::from(class)));
        Request { class, ..render("GET", "localhost", &path, &[], true) }
    };
    let group = |first| RequestGroup { first, count: 1, weight: 1.0 + f64::from(first) };
    let groups: Vec<RequestGroup> = (0..50).map(group).collect();
    RequestMix::by_weight((0..50).map(request).collect(), &groups, 7)
        .with_classes((0..50).map(|class| class.to_string()).collect())
}

/// Requests take the fast path, and with reconnects the slow one. If a request were counted in the
/// wrong class, the bytes would not add up.
#[test]
fn fifty_classes_add_up_to_the_sinks_requests_and_bytes() {
    let requests = if lab::soaks() { 1_000_000 } else { 5_000 };
    for reconnect_after in [None, Some(10)] {
        let settings = SinkSettings {
            listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()],
            body: SinkBody::Ok,
            ..SinkSettings::default()
        };
        let sink = Sink::start(settings, REAL_CLOCK).unwrap();
        let mix = fifty_classes();
        let lengths: Vec<u64> =
            mix.requests().iter().map(|request| request.bytes.len() as u64).collect();
        let spec = spec(Transport::tcp(sink.address()), 16, 2, true).with(|load| {
            load.requests_total = Some(requests);
            load.reconnect_after = reconnect_after;
        });
        let spec = LoadSpec { requests: mix.into(), ..spec };
        let progress = RunProgress::new(spec.load.lanes);
        let interrupt = AtomicBool::new(false);
        let done = drive(&spec, &REAL_CLOCK, &interrupt, &progress, None).unwrap().outcome;
        let ledger = sink.stop();
        let of_each: Vec<u64> = done.tally.classes.iter().map(ClassTally::all_requests).collect();
        assert!(of_each.len() == 50 && of_each.iter().all(|requests| *requests > 0), "{of_each:?}");
        assert_eq!(of_each.iter().sum::<u64>(), ledger.requests);
        let bytes = of_each.iter().zip(&lengths).map(|(requests, length)| requests * length);
        assert_eq!(bytes.sum::<u64>(), ledger.received_bytes);
        let good = |class: &ClassTally| class.counts.good() + class.unmeasured.good();
        assert_eq!(done.tally.classes.iter().map(good).sum::<u64>(), ledger.answers);
    }
}
