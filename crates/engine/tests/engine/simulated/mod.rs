//! The request loop in exact simulated time: a stepped clock, a scripted server, figures compared
//! with `==`.
//!
//! The server here has a pool of slots and one first-come-first-served line, and may be frozen once
//! (a garbage collection, a stop of the virtual machine). Connecting and sending take no time at
//! all.

mod fast_path;
mod wire;

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use engine::{LaneOutcome, LoadSpec, RequestRecord, Transport, render};
use judge::{checks, verdict};
use model::{
    AppTime, BadResponse, Clock, Exchange, GeneratorFacts, Judgement, LatePolicy, LoadSettings,
    Nanos, Outcome, Pace, Rate, Statistics, Tally, Timestamps, Timing, Verdict,
};
use rustix::io::Errno;
use testkit::clock::Stepped;

use wire::{News, Server, SimulatedWire};

/// A server: slots of `service` time each, frozen for `stall.1` from `stall.0` on.
#[derive(Default)]
struct Slots {
    service: Nanos,
    stall: Option<(Nanos, Nanos)>,
    free_at: BinaryHeap<Reverse<Nanos>>,
    /// The connection whose first connect is refused.
    refuses: Option<usize>,
    /// Whether every connect is refused.
    always_refuses: bool,
    /// How long connecting takes to a server that sends a response as soon as it is connected, and
    /// no other.
    greets_after: Option<Nanos>,
    connected_at: Nanos,
    /// Whether the app says when it began and ended, as it is asked to.
    stamping: bool,
    /// How late the lane is woken for news.
    late: Nanos,
    /// How late it runs first.
    begins: Nanos,
    /// When the wall clock is set, and by how much.
    set_wall_at: Option<(Nanos, i64)>,
    /// Which connection was closed, and when.
    closed: Rc<RefCell<Vec<(usize, Nanos)>>>,
    /// How often the lane has waited for news.
    waits: Rc<Cell<u64>>,
}

impl Server for Slots {
    fn open(wire: &mut SimulatedWire<Slots>, slot: usize) -> Result<(), Errno> {
        if let Some(after) = wire.server.greets_after {
            wire.server.connected_at = wire.clock.now() + after;
            wire.comes(after, slot, answer(""));
        }
        let is_refused = wire.server.always_refuses
            || wire.server.refuses.take_if(|refused| *refused == slot).is_some();
        if is_refused { Err(Errno::CONNREFUSED) } else { Ok(()) }
    }

    fn send(wire: &mut SimulatedWire<Slots>, slot: usize, bytes: &[u8]) -> Result<usize, Errno> {
        let now = wire.clock.now();
        let server = &mut wire.server;
        if now < server.connected_at {
            return Err(Errno::AGAIN);
        }
        if server.greets_after.is_some() {
            return Ok(bytes.len());
        }
        let Reverse(free) = server.free_at.pop().expect("a server has slots");
        let mut start = free.max(now);
        let mut end = start + server.service;
        if let Some((from, length)) = server.stall {
            if (from..from + length).contains(&start) {
                start = from + length;
                end = start + server.service;
            } else if start < from && end > from {
                end += length;
            }
        }
        server.free_at.push(Reverse(end));
        let stamps = format!("x-app-stamps: {} {}\r\n", (end - server.service).0, end.0);
        let news = answer(if server.stamping { &stamps } else { "" });
        wire.comes(end - now, slot, news);
        Ok(bytes.len())
    }

    fn close(&mut self, slot: usize, now: Nanos) {
        self.closed.borrow_mut().push((slot, now));
    }

    fn wakes_late(&self, _order: u64) -> Nanos {
        self.late
    }

    fn begins(&self) -> Nanos {
        self.begins
    }

    fn woken(&mut self, clock: &Stepped) {
        self.waits.set(self.waits.get() + 1);
        if let Some((_, by)) = self.set_wall_at.take_if(|(at, _)| *at <= clock.now()) {
            clock.set_wall(by);
        }
    }
}

fn answer(fields: &str) -> News {
    News::Bytes(
        format!("HTTP/1.1 200 OK\r\nx-worker-pid: 7\r\n{fields}content-length: 2\r\n\r\nok")
            .into_bytes(),
    )
}

fn ms(n: u64) -> Nanos {
    Nanos::from_millis(n)
}

fn slots(n: usize, service: Nanos) -> Slots {
    Slots { service, free_at: (0..n).map(|_| Reverse(Nanos::ZERO)).collect(), ..Slots::default() }
}

fn paced(per_s: f64) -> Pace {
    Pace::constant(Rate::new(per_s).unwrap())
}

fn spec(connections: u32, pace: Pace) -> LoadSpec {
    let transport = Transport::tcp(([127, 0, 0, 1], 1).into());
    LoadSpec {
        worker_header: "x-worker-pid".to_owned(),
        ..LoadSpec::closed(transport, render("GET", "simulated", "/", &[], true), connections).with(
            |load| {
                load.pace = pace;
                load.timeout = Nanos::from_secs(3600);
            },
        )
    }
}

/// What a lane left behind, and each exchange in order of completion.
struct Simulated {
    end: LaneOutcome,
    tally: Tally,
    records: Vec<RequestRecord>,
    exchanges: Vec<Exchange>,
}

fn run(spec: &LoadSpec, server: Slots) -> Simulated {
    run_until(spec, server, false)
}

fn run_until(spec: &LoadSpec, server: Slots, interrupt: bool) -> Simulated {
    let (end, records) = wire::run(spec, server, true, interrupt);
    let exchanges = records.iter().map(|record| record.exchange).collect();
    Simulated { tally: end.tally.clone(), end, records, exchanges }
}

impl Simulated {
    /// A time of each exchange, in whole milliseconds.
    fn millis(&self, time: impl Fn(&Exchange) -> Nanos) -> Vec<u64> {
        self.exchanges.iter().map(|exchange| time(exchange).0 / 1_000_000).collect()
    }

    /// The exact percentile of a time, by nearest rank.
    fn exact(&self, time: impl Fn(&Exchange) -> Nanos, q: f64) -> Nanos {
        let mut times: Vec<Nanos> = self.exchanges.iter().map(time).collect();
        times.sort_unstable();
        times[(q * times.len() as f64 - 1e-9).ceil() as usize - 1]
    }
}

#[test]
fn a_stall_is_seen_by_everyone_who_was_due_in_it_and_a_late_sender_hides_nothing() {
    // One connection, a request due every 10 ms for 30 s; the server takes 1 ms and is frozen for
    // 1.4 s from 10 s on.
    let server = Slots { stall: Some((Nanos::from_secs(10), ms(1400))), ..slots(1, ms(1)) };
    let done =
        run(&LoadSpec { measured: Some(Nanos::from_secs(30)), ..spec(1, paced(100.0)) }, server);
    assert_eq!(done.exchanges.len(), 3000);
    let response =
        [0.5, 0.9, 0.99, 0.999, 1.0].map(|q| (q, done.exact(Exchange::response_time, q)));
    assert_eq!(response.map(|(_, time)| time), [1, 1, 1131, 1374, 1401].map(ms));
    assert_eq!(done.tally.response_time.mean(), Some(Nanos(37_530_000)));
    // The histogram tells the same within a thousandth.
    for (q, exact) in response {
        let read = done.tally.response_time.quantile(q).unwrap().0 as f64;
        assert!((0.0..=0.001).contains(&(read / exact.0 as f64 - 1.0)), "{read} for {exact}");
    }
    // From the send alone the same run looks fine: one request in 3000 was slow. That is what
    // coordinated omission hides.
    let service =
        [0.5, 0.99, 0.999, 1.0].map(|q| done.exact(Exchange::service_time, q).0 / 1_000_000);
    assert_eq!(service, [1, 1, 1, 1401]);
    assert_eq!(done.tally.service_time.mean(), Some(Nanos(1_466_666)));
    assert!(done.exchanges.iter().all(|e| e.response_time() == e.send_lag() + e.service_time()));
}

/// Two seconds of load on a server with a slot for each connection, 20 ms of service time and one
/// stall of 400 ms; and the verdict.
fn judged(connections: u32, pace: Pace) -> (Tally, Judgement) {
    let server = Slots { stall: Some((ms(500), ms(400))), ..slots(connections as usize, ms(20)) };
    let end =
        run(&LoadSpec { measured: Some(ms(2000)), ..spec(connections, pace.clone()) }, server).end;
    let mut study = testkit::load::closed();
    let times = &checks::LOAD_PERCENTILES;
    study.plan.load = LoadSettings { pace, ..LoadSettings::closed(connections) };
    study.plan.length = Some(ms(2000));
    study.run.statistics = Some(Statistics::of(&end.tally, &end.batches, times));
    study.run.generator = GeneratorFacts::default();
    (study.run.measured, study.run.tally) = (ms(2000), end.tally);
    let judgement = verdict::of_load(&study.run, &study.plan);
    (study.run.tally, judgement)
}

#[test]
fn a_server_that_stalls_is_the_limit_and_never_the_generator() {
    for pace in [Pace::Closed, paced(400.0)] {
        let (tally, judgement) = judged(8, pace);
        assert_eq!(
            tally.generator_lag.max(),
            Some(Nanos::ZERO),
            "whatever was late, the generator was not"
        );
        assert_eq!(judgement.verdict, Verdict::ServerBound, "{judgement:?}");
    }
}

#[test]
fn a_response_that_is_there_before_its_request_is_sent_is_a_bad_response() {
    let server = Slots { greets_after: Some(ms(2)), ..slots(1, ms(1)) };
    let tally =
        run(&spec(1, Pace::Closed).with(|load| load.requests_total = Some(3)), server).tally;
    assert_eq!(tally.bad_responses.iter().collect::<Vec<_>>(), [(BadResponse::BeforeRequest, 3)]);
    assert_eq!((tally.counts.total(), tally.connections_opened), (3, 3));
}

#[test]
fn the_backlog_is_what_is_due_and_not_answered() {
    // Five slots of 100 ms are 50 a second: of 60 ten more wait each second, of 50 none, whether
    // time ends the run or a count.
    for (rate, growth) in [(60.0, 10.0), (50.0, 0.0), (20.0, 0.0)] {
        for (requests_total, measured) in [(Some(10 * rate as u64), None), (None, Some(ms(10_000)))]
        {
            let spec = LoadSpec {
                measured,
                ..spec(400, paced(rate)).with(|load| load.requests_total = requests_total)
            };
            let done = run(&spec, slots(5, ms(100)));
            let backlog =
                done.end.backlog.unwrap().backlog(done.tally.counts.total(), measured).unwrap();
            assert!((backlog.growth - growth).abs() < 0.5, "{rate}: {backlog:?}");
            assert!((backlog.offered - rate).abs() < 1e-6, "{backlog:?}");
            assert_eq!(backlog.grows(), growth > 0.0, "{backlog:?}");
        }
    }
}

#[test]
fn twice_the_threads_work_is_a_staircase() {
    // Five slots of 1 s, ten requests a second: 1000, 1500, 2000, … ms, in fives.
    let done =
        run(&LoadSpec { measured: Some(ms(3000)), ..spec(200, paced(10.0)) }, slots(5, ms(1000)));
    let staircase: Vec<u64> = (0..30).map(|k| 1000 + k / 5 * 500).collect();
    assert_eq!(done.millis(Exchange::response_time), staircase);
}

/// A closed loop for 10 s after 2 s of warm-up, on an app of 100 ms that says when it began and
/// ended.
fn with_app_times(connections: u32, n: usize) -> LaneOutcome {
    let warm_up = ms(2000);
    let measured = Some(ms(10_000));
    let spec = LoadSpec {
        reads_app_times: true,
        measured,
        ..spec(connections, Pace::Closed).with(|load| load.warm_up = warm_up)
    };
    run(&spec, Slots { stamping: true, ..slots(n, ms(100)) }).end
}

#[test]
fn the_wait_before_the_app_is_measured_from_its_stamps() {
    // A request that finds no free slot waits in the server, before the app. On average that is 3
    // service times with 4 times as many connections as slots, and half of one with 1.5 times.
    for (connections, slots, wait) in [(40, 10, 300), (15, 10, 50), (10, 10, 0), (3, 1, 200)] {
        let end = with_app_times(connections, slots);
        let app_times = end.app_times.unwrap().app_times().unwrap();
        assert_eq!(
            (app_times.all.requests, app_times.silent, app_times.impossible),
            (end.tally.counts.good(), 0, 0)
        );
        let mean = |sum| app_times.all.mean(sum).unwrap();
        assert_eq!(mean(app_times.all.before_app.unwrap()), ms(wait), "{connections} on {slots}");
        assert_eq!(mean(app_times.all.app), ms(100));
        assert_eq!((app_times.all.send_lag, app_times.all.rest()), (Nanos::ZERO, Nanos::ZERO));
        assert_eq!(Some(mean(app_times.all.response_time)), end.tally.response_time.mean());
    }
    // With 15 connections on 10 slots, the slowest requests wait one whole service time.
    let slowest = with_app_times(15, 10).app_times.unwrap().app_times().unwrap().slowest.unwrap();
    assert_eq!(slowest.mean(slowest.before_app.unwrap()), Some(ms(100)));
    // The app's stamps are read only if the load asks for them.
    let unasked = LoadSpec { requests_per_connection: Some(5), ..spec(2, Pace::Closed) };
    assert_eq!(run(&unasked, Slots { stamping: true, ..slots(2, ms(1)) }).end.app_times, None);
}

#[test]
fn a_trace_tells_port_and_place_on_its_connection() {
    // The third response is the last of its connection.
    let requests_per_connection = Some(7);
    let reconnect_after = Some(3);
    let spec = LoadSpec {
        requests_per_connection,
        reads_app_times: true,
        ..spec(2, Pace::Closed).with(|load| load.reconnect_after = reconnect_after)
    };
    let done = run(
        &LoadSpec { traces_requests: true, ..spec },
        Slots { stamping: true, ..slots(2, ms(10)) },
    );
    assert_eq!((done.tally.counts.good(), done.tally.connections_opened), (14, 6));
    for port in [1000, 1001] {
        let traces = done
            .records
            .iter()
            .map(|record| (record.trace.expect("each has one"), record.exchange));
        let own: Vec<_> = traces.filter(|(trace, _)| trace.port == port).collect();
        assert_eq!(
            own.iter().map(|(trace, _)| trace.number).collect::<Vec<_>>(),
            [0, 1, 2, 0, 1, 2, 0]
        );
        for (place, (trace, exchange)) in own.iter().enumerate() {
            assert_eq!(
                trace.opened,
                ms(10) * (place as u64 / 3 * 3),
                "when its connection was opened"
            );
            let started = exchange.sent;
            let ended = exchange.ended;
            assert_eq!(trace.app, Some(AppTime::Stamps { started, ended }));
        }
    }
}

#[test]
fn a_closed_loop_takes_its_turns() {
    // 12 connections on 5 slots of 200 ms: Little's law to the nanosecond, and each waits q or q +
    // 1 services.
    let warm_up = ms(2000);
    let measured = Some(ms(12_000));
    let done = run(
        &LoadSpec { measured, ..spec(12, Pace::Closed).with(|load| load.warm_up = warm_up) },
        slots(5, ms(200)),
    );
    assert_eq!(done.tally.completed_in_window, 300, "25 a second for 12 s");
    let times = done.millis(Exchange::response_time);
    assert!(times.iter().skip(60).all(|t| [400, 600].contains(t)), "{times:?}");
    assert_eq!(done.tally.send_lag.max(), Some(Nanos::ZERO));
    assert_eq!(done.tally.per_worker["7"].all, done.tally.all_requests());
}

#[test]
fn a_lane_that_wakes_up_after_its_window_sends_what_was_due_at_the_start() {
    let server = Slots { begins: ms(700), ..slots(3, ms(10)) };
    let done = run(&LoadSpec { measured: Some(ms(500)), ..spec(3, Pace::Closed) }, server);
    assert_eq!((done.tally.counts.good(), done.tally.all_requests()), (3, 3));
    assert_eq!(done.millis(|exchange| exchange.due), [0; 3]);
    assert_eq!(done.millis(Exchange::response_time), [710; 3], "the delay counts");
}

#[test]
fn a_count_ends_the_run_and_each_connection_makes_its_own() {
    let spec = LoadSpec { requests_per_connection: Some(3), ..spec(7, Pace::Closed) };
    let tally = run(&spec, slots(2, ms(10))).tally;
    assert_eq!(
        (tally.counts.good(), tally.per_connection, tally.connections_opened),
        (21, vec![3; 7], 7)
    );
}

#[test]
fn a_request_without_a_response_times_out_once_and_the_connection_goes_on() {
    let server = Slots { stall: Some((ms(150), ms(10_000))), ..slots(1, ms(100)) };
    let done = run(
        &LoadSpec {
            measured: Some(ms(2000)),
            ..spec(1, Pace::Closed).with(|load| load.timeout = ms(1000))
        },
        server,
    );
    let outcomes: Vec<Outcome> = done.exchanges.iter().map(|e| e.outcome).collect();
    assert_eq!(outcomes, [Outcome::Answered(200), Outcome::TimedOut, Outcome::TimedOut]);
    assert_eq!(done.tally.counts.total(), 3);
}

#[test]
fn a_response_after_the_timeout_is_none_though_no_scan_came_before_it() {
    // A timeout of a second is looked for every 50 ms. `service`: how long the server takes for each.
    let done = |service: Nanos, pace: Pace| {
        let load = spec(1, pace).with(|load| load.timeout = ms(1000));
        run(&LoadSpec { measured: Some(ms(1500)), ..load }, slots(1, service))
    };
    for pace in [Pace::Closed, paced(1.0)] {
        let exchanges = |service| done(service, pace.clone()).exchanges;
        assert!(exchanges(ms(999)).iter().all(|it| it.outcome == Outcome::Answered(200)));
        for late in [ms(1000), Nanos::from_micros(1_000_001), ms(1020), ms(1049)] {
            let late_ones = exchanges(late);
            assert_eq!(late_ones.len(), 2, "{late_ones:?}");
            assert_eq!(late_ones[0].outcome, Outcome::TimedOut, "after {late:?}");
            assert!(late_ones[0].ended <= late, "{late_ones:?}");
        }
    }
    let late = done(ms(1020), Pace::Closed).tally;
    assert_eq!((late.counts.of(Outcome::TimedOut), late.counts.good()), (2, 0));
    assert_eq!(late.connections_opened, 2, "as after any timeout");
}

#[test]
fn a_refused_connect_is_an_outcome_and_is_tried_again_after_a_pause() {
    let server = Slots { refuses: Some(1), ..slots(2, ms(100)) };
    let done = run(&LoadSpec { requests_per_connection: Some(2), ..spec(2, Pace::Closed) }, server);
    assert_eq!((done.tally.counts.of(Outcome::Refused), done.tally.counts.good()), (1, 3));
    let second = done.exchanges.iter().filter(|e| e.due == ms(10)).count();
    assert_eq!(second, 1, "due again when the pause of 10 ms is over");
}

#[test]
fn an_open_loop_keeps_its_schedule_though_connects_are_refused() {
    // Two connections for a request every 5 ms: if a refused connection were left out for its pause
    // of 10 ms, some requests would have to wait for one.
    let server = Slots { always_refuses: true, ..slots(2, ms(1)) };
    let done = run(&spec(2, paced(200.0)).with(|load| load.requests_total = Some(400)), server);
    assert_eq!(done.tally.counts.of(Outcome::Refused), 400);
    assert!(done.exchanges.iter().all(|e| e.ended == e.due), "each at its time");
    assert_eq!(done.tally.queued.count, 0, "no request waits for a connection: all are free");
}

#[test]
fn a_failed_request_is_sent_again_and_recorded_once_with_its_due_time() {
    let retry = Some("2:100ms".parse().unwrap());
    let spec = |load: &mut LoadSettings| {
        load.requests_total = Some(10);
        load.retry = retry;
    };
    let server = Slots { always_refuses: true, ..slots(2, ms(1)) };
    let done = run(&self::spec(4, paced(10.0)).with(spec), server);
    assert_eq!((done.tally.counts.of(Outcome::Refused), done.tally.counts.total()), (10, 10));
    assert!(done.exchanges.iter().all(|e| e.ended == e.due + ms(200)), "after two pauses");
    assert_eq!(done.tally.retries.iter().sum::<u64>(), 20);
    assert_eq!(done.tally.generator_lag.max(), Some(Nanos::ZERO), "a pause is no lag of ours");
    // Only the first connect is refused.
    let server = Slots { refuses: Some(0), ..slots(2, ms(1)) };
    let done = run(&self::spec(4, paced(10.0)).with(spec), server);
    assert_eq!((done.tally.counts.good(), done.tally.counts.total()), (10, 10));
    assert_eq!(done.tally.response_time.max(), Some(ms(101)), "from when it was first due");
    assert_eq!(done.tally.retries.iter().sum::<u64>(), 1);
}

#[test]
fn a_client_that_gives_up_and_retries_is_one_request_that_is_served_twice() {
    // The server is frozen for half a second, and a client waits for 200 ms.
    let server = Slots { stall: Some((ms(390), ms(500))), ..slots(1, ms(10)) };
    let spec = spec(20, paced(5.0)).with(|load| {
        load.requests_total = Some(20);
        load.timeout = ms(200);
        load.retry = Some("5".parse().unwrap());
    });
    let done = run(&spec, server);
    assert_eq!((done.tally.counts.good(), done.tally.counts.total()), (20, 20));
    let mut numbers: Vec<u64> = done.records.iter().map(|record| record.number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..20).collect::<Vec<_>>());
    assert!(done.tally.response_time.max() > Some(ms(500)), "{:?}", done.tally.response_time.max());
    assert!((3..=6).contains(&done.tally.retries.iter().sum::<u64>()), "{:?}", done.tally.retries);
    let never = run(&spec.with(|load| load.retry = None), slots(1, ms(10)));
    assert!(never.tally.retries.is_empty());
}

#[test]
fn an_interruption_counts_requests_in_flight_apart_from_failures() {
    let spec = LoadSpec { measured: Some(Nanos::from_secs(100)), ..spec(3, Pace::Closed) };
    let end = run_until(&spec, slots(1, ms(1000)), true).end;
    assert_eq!((end.tally.unfinished.in_flight, end.tally.counts.total()), (3, 0));
    assert_eq!((end.tally.due(), end.tally.all_requests()), (3, 3));
    assert!(end.interrupted_at.is_some());
    // Five are due at once in an open loop, and three connections take one each.
    let burst = match paced(100.0) {
        Pace::Open { profile, arrivals, seed, .. } => {
            Pace::Open { profile, arrivals, seed, burst: 5 }
        }
        Pace::Closed => unreachable!(),
    };
    let spec = LoadSpec { measured: Some(Nanos::from_secs(100)), ..self::spec(3, burst) };
    let unfinished = run_until(&spec, slots(1, ms(1000)), true).end.tally.unfinished;
    assert_eq!((unfinished.in_flight, unfinished.not_sent), (3, 2));
}

#[test]
fn a_count_ends_an_open_loop_exactly() {
    let done =
        run(&spec(50, paced(100.0)).with(|load| load.requests_total = Some(17)), slots(50, ms(30)));
    assert_eq!((done.tally.counts.good(), done.exchanges.last().unwrap().due), (17, ms(160)));
}

#[test]
fn a_request_without_a_free_connection_waits_with_its_due_time_or_is_skipped() {
    // Two connections, 100 ms each, fifty requests a second: twenty a second get through.
    let spec = spec(2, paced(50.0)).with(|load| load.requests_total = Some(10));
    let done = run(&spec, slots(2, ms(100)));
    assert_eq!(
        done.millis(Exchange::response_time),
        [100, 100, 160, 160, 220, 220, 280, 280, 340, 340]
    );
    assert_eq!((done.tally.queued.count, done.tally.queued.max), (8, ms(240)));
    assert_eq!(done.tally.service_time.max(), Some(ms(100)), "the server is not to blame");
    let tally = run(&spec.with(|load| load.late = LatePolicy::Skip), slots(2, ms(100))).tally;
    assert_eq!((tally.counts.of(Outcome::Skipped), tally.counts.total()), (6, 10));
    assert_eq!(tally.send_lag.max(), Some(Nanos::ZERO));
}

/// Two connections, one slot of 100 ms, a window of 250: the second one's last response ends the
/// load at 400, while one of the first, which kept the server busy for it, is still out.
#[test]
fn a_connection_without_further_requests_is_closed_at_once() {
    let server = slots(1, ms(100));
    let closed = Rc::clone(&server.closed);
    run(&LoadSpec { measured: Some(ms(250)), ..spec(2, Pace::Closed) }, server);
    let first = |slot| closed.borrow().iter().find(|(other, _)| *other == slot).map(|(_, at)| *at);
    assert_eq!([first(0), first(1)], [Some(ms(500)), Some(ms(400))]);
}

#[test]
fn with_think_time_the_next_request_is_due_after_the_pause() {
    let done = run(
        &spec(1, Pace::Closed).with(|load| {
            load.requests_total = Some(3);
            load.think = ms(50);
        }),
        slots(1, ms(100)),
    );
    assert_eq!(done.millis(|exchange| exchange.due), [0, 150, 300]);
    assert_eq!(done.tally.response_time.max(), Some(ms(100)));
}

#[test]
fn a_lane_that_coalesces_is_late_by_less_than_a_millisecond() {
    let spec = spec(100, paced(3000.0)).with(|load| {
        load.requests_total = Some(300);
        load.timing = Timing::Coalesce;
    });
    let lag = run(&spec, slots(100, ms(2))).tally.send_lag.max().unwrap();
    assert!(Nanos::ZERO < lag && lag < ms(1), "{lag}");
}

#[test]
fn a_connection_is_opened_anew_after_its_number_of_requests() {
    let spec = spec(1, Pace::Closed).with(|load| {
        load.requests_total = Some(10);
        load.reconnect_after = Some(4);
    });
    let tally = run(&spec, slots(1, ms(1))).tally;
    assert_eq!((tally.connections_opened, tally.closed_by_server), (3, 0));
}

#[test]
fn the_drain_of_an_open_loop_has_an_end() {
    // One connection, one slot of 500 ms, twenty requests in a second. The last is due at 950 ms,
    // and the run ends a timeout (2 s) and a tenth of it later, at 3150 ms: six have been answered
    // by then, a seventh is in flight, and the rest was never sent.
    let spec = spec(1, paced(20.0)).with(|load| {
        load.requests_total = Some(20);
        load.timeout = ms(2000);
    });
    let done = run(&spec, slots(1, ms(500)));
    let counts = &done.tally.counts;
    assert_eq!((counts.good(), counts.of(Outcome::InFlight)), (6, 1));
    assert_eq!((counts.of(Outcome::NotSent), counts.attempted()), (13, 7));
    assert_eq!(done.exchanges.iter().map(|exchange| exchange.ended).max(), Some(ms(3150)));
}

#[test]
fn a_queue_too_long_to_be_sent_in_time_is_given_up() {
    // Two connections of 500 ms each answer four requests per second, and a thousand are due in one
    // second: a timeout of 2 s would be enough for 8 more, not for the queue. So the run ends with
    // the responses to what is in flight.
    let measured = Some(Nanos::from_secs(1));
    let spec = LoadSpec { measured, ..spec(2, paced(1000.0)).with(|load| load.timeout = ms(2000)) };
    let done = run(&spec, slots(2, ms(500)));
    let counts = &done.tally.counts;
    assert_eq!(counts.total(), 1000);
    assert_eq!(
        (counts.of(Outcome::InFlight), counts.total()),
        (0, counts.good() + counts.of(Outcome::NotSent))
    );
    let ended = done.exchanges.iter().map(|exchange| exchange.ended).max().unwrap();
    assert!((ms(1000)..=ms(1500)).contains(&ended), "{ended}");
}

/// Four connections on four slots of 10 ms for a second, by a lane that wakes 3 ms late for every
/// answer.
fn read_late(timestamps: Timestamps, set_wall_at: Option<(Nanos, i64)>) -> Simulated {
    let server = Slots { late: ms(3), set_wall_at, ..slots(4, ms(10)) };
    let done = run(
        &LoadSpec {
            measured: Some(ms(1000)),
            ..spec(4, Pace::Closed).with(|load| load.timestamps = timestamps)
        },
        server,
    );
    assert!(done.exchanges.iter().all(|e| e.due <= e.sent && e.sent <= e.ended));
    done
}

#[test]
fn kernel_stamps_keep_our_late_reads_out_of_the_times() {
    let user = read_late(Timestamps::User, None);
    let kernel = read_late(Timestamps::Kernel, None);
    let of_user = &user.tally;
    let of_kernel = &kernel.tally;
    assert_eq!(
        (of_user.service_time.max(), of_kernel.service_time.max()),
        (Some(ms(13)), Some(ms(10)))
    );
    assert_eq!(
        (of_kernel.service_time.min(), of_kernel.read_lag.max()),
        (Some(ms(10)), Some(ms(3)))
    );
    // Not quite 3 ms on average: what comes while the lane is awake anyway is read at once.
    assert!(of_kernel.read_lag.mean() > Some(Nanos::from_micros(2500)));
    assert_eq!(of_kernel.read_lag.count(), of_kernel.counts.answered());
    // A closed loop sends only after it has read, so the load is the same.
    assert_eq!(of_kernel.counts, of_user.counts);
    assert_eq!(
        (of_user.read_lag.count(), user.end.clock_steps, kernel.end.clock_steps),
        (0, None, Some(0))
    );
}

#[test]
fn setting_the_wall_clock_is_noticed_and_changes_no_time() {
    for by in [3_600_000_000_000, -3_600_000_000_000, -1_000_000] {
        let done = read_late(Timestamps::Kernel, Some((ms(500), by)));
        assert_eq!(done.end.clock_steps, Some(1), "set by {by} ns");
        assert_eq!(done.tally.counts, read_late(Timestamps::User, None).tally.counts);
        let longest = done.tally.service_time.max();
        assert!(longest <= Some(ms(13)), "{longest:?}");
    }
}

/// Two thousand requests, one every half millisecond, each answered after 300 µs; and how often the
/// lane waited for events.
fn read_when_due(timestamps: Timestamps, timing: Timing) -> (Simulated, u64) {
    let server = slots(8, Nanos::from_micros(300));
    let waits = Rc::clone(&server.waits);
    let spec = spec(8, paced(2000.0)).with(|load| {
        load.requests_total = Some(2000);
        load.timestamps = timestamps;
        load.timing = timing;
    });
    (run(&spec, server), waits.get())
}

#[test]
fn responses_that_the_kernel_stamps_wait_for_the_next_due_time_and_no_figure_shows_it() {
    let (at_once, waits_at_once) = read_when_due(Timestamps::User, Timing::Precise);
    let (when_due, waits_when_due) = read_when_due(Timestamps::Kernel, Timing::Precise);
    assert_eq!(when_due.exchanges, at_once.exchanges);
    let tally = &when_due.tally;
    assert_eq!(
        (tally.read_lag.count(), tally.read_lag.max()),
        (2000, Some(Nanos::ZERO)),
        "a deliberate wait is no lag"
    );
    // Two waits for each request if every response is read at once; one if reads are put off, which
    // begins after the first responses have shown how long they take.
    assert!(waits_at_once >= 4000 && waits_when_due < 2400, "{waits_at_once}, {waits_when_due}");
    let (coalesced, _) = read_when_due(Timestamps::Kernel, Timing::Coalesce);
    assert_eq!(
        coalesced.tally.service_time.max(),
        Some(Nanos::from_micros(300)),
        "whenever it is read"
    );
}
