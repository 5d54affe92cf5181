//! Studies of `longtail load` for tests, made like those of [`crate::study`]: a small queue is
//! simulated and its exchanges are recorded into a real tally.

mod play;

use std::collections::BTreeMap;
use std::path::PathBuf;

use judge::checks::RunSetting;
use judge::{checks, verdict};
use model::study::SCHEMA;
use model::theory::{Estimate, Overload};
use model::{
    Arrivals, Backlog, BacklogSamples, Batches, Counts, Diagnostic, EndedBy, Exchange,
    LaneCountReason, LatePolicy, LoadPlan, LoadSettings, LoadStudy, Nanos, Outcome, Pace,
    Placement, Profile, Rate, Run, ServerLocation, SlowClientCounts, SlowClients, Statistics,
    Tally, Threshold, Timestamps, Timing, Window,
};

use self::play::{PUMA, Server, SimulatedClass, play};
use crate::machine::{base, environment, statsd};
use crate::{Made, events, once};

/// How requests are sent if a study sets nothing else.
fn usual() -> LoadSettings {
    let plan: LoadPlan = base("load");
    plan.load
}

/// 64 connections that send again as soon as they have a response, and 20 slots of 5 ms, after a
/// second of warm-up.
pub fn closed() -> LoadStudy {
    let plan = LoadPlan {
        load: LoadSettings {
            pace: Pace::Closed,
            connections: 64,
            warm_up: Nanos::from_secs(1),
            ..usual()
        },
        length: Some(Nanos::from_secs(10)),
        statsd_listen: "127.0.0.1:8125".parse().ok(),
        ..base("load")
    };
    let line = "-c64 --for=10s --warm-up=1s --statsd-listen=127.0.0.1:8125 http://127.0.0.1:9292/";
    let mut study = played(line, plan, &PUMA, |_| None);
    study.run.statsd = Some(statsd());
    study.run.tally.closed_by_server = 3;
    study.run.tally.closed_for_unasked = 1;
    study.run.tally.connections_opened += 4;
    judged(study)
}

/// A closed loop whose connections pause, and are opened anew after 100 requests; a count ends it.
pub fn closed_counted() -> LoadStudy {
    let plan = LoadPlan {
        load: LoadSettings {
            pace: Pace::Closed,
            connections: 4,
            requests_total: Some(201),
            think: Nanos::from_millis(10),
            reconnect_after: Some(100),
            lanes: 2,
            ..usual()
        },
        length: None,
        ..base("load")
    };
    let line = "-c4 -n201 --think=10ms --reconnect-after=100 --threads=2 http://127.0.0.1:9292/";
    played(line, plan, &PUMA, |_| None)
}

/// 500 requests per second as from independent users, over 30 s, on a server that can do 571.
pub fn open_poisson() -> LoadStudy {
    let pace = open(Profile::Flat { rate: rate(500.0) }, Arrivals::Poisson, 1);
    let plan = LoadPlan {
        url: "http://puma.example:9292/sleep0.035".into(),
        endpoints: vec!["192.0.2.7:9292".to_owned(), "[2001:db8::7]:9292".to_owned()],
        load: LoadSettings { pace, ..usual() },
        thresholds: vec![threshold("p99 > 200ms"), threshold("failed > 0.1%")],
        ..base("load")
    };
    let line = "--rate=500/s --arrivals=poisson --seed=1 -c64 --for=30s --fail-if 'p99 > 200ms' \
         --fail-if 'failed > 0.1%' http://puma.example:9292/sleep0.035";
    let mut study = played(line, plan, &Server { delay: Nanos::from_millis(35), ..PUMA }, |_| None);
    study.name_resolution = Some(Nanos::from_micros(1_830));
    study.checks =
        vec![format!("all {} bodies are equal (2 bytes)", study.run.tally.counts.good())];
    judged(study)
}

/// Steps from half of what the server can do to twice that: first the server falls behind, then the
/// generator has too few connections.
pub fn overloaded() -> LoadStudy {
    let rates = [50.0, 100.0, 150.0, 200.0].map(rate).to_vec();
    let pace = open(Profile::Steps { rates, each: Nanos::from_secs(5) }, Arrivals::Constant, 0);
    let plan = LoadPlan {
        url: "http://127.0.0.1:9292/sleep0.2".into(),
        load: LoadSettings { pace, ..usual() },
        length: Some(Nanos::from_secs(20)),
        thresholds: vec![threshold("p99 > 200ms")],
        ..base("load")
    };
    let line = "--steps=50/s,100/s,150/s,200/s --step=5s -c64 --fail-if 'p99 > 200ms' \
         http://127.0.0.1:9292/sleep0.2";
    played(line, plan, &Server { delay: Nanos::from_millis(200), ..PUMA }, |_| None)
}

/// A constant rate of 1.5 times what the server can do, and a service time from which its slots
/// follow.
///
/// # Panics
/// If response times do not grow.
pub fn steep() -> LoadStudy {
    let service = Nanos::from_millis(200);
    let plan = LoadPlan {
        url: "http://127.0.0.1:9292/sleep0.2".into(),
        load: LoadSettings {
            pace: open(Profile::Flat { rate: rate(150.0) }, Arrivals::Constant, 0),
            connections: 1000,
            ..usual()
        },
        length: Some(Nanos::from_secs(20)),
        service_time: Some(service),
        ..base("load")
    };
    let line = "--rate=150/s -c1000 --for=20s --service=200ms http://127.0.0.1:9292/sleep0.2";
    let mut study = played(line, plan, &Server { delay: service, ..PUMA }, |_| None);
    let statistics = study.run.statistics.clone().expect("it was sampled");
    let (growth, backlog) =
        statistics.growth().zip(statistics.backlog).expect("response times grow");
    let capacity =
        queueing::open_loop::capacity(150.0, growth, growth / 1000.0).expect("response times grow");
    let by = |time: f64| Estimate {
        value: capacity.value * time,
        half_width: capacity.half_width * time,
    };
    study.run.overload = Some(Overload {
        offered: 150.0,
        growth: Some(growth),
        backlog_growth: backlog.growth,
        backlog_at_end: backlog.at_end,
        capacity,
        answered: study.run.completed_rate(),
        service_time: Some(service),
        slots: Some(by(service.as_secs_f64())),
        doubt: None,
    });
    study
}

/// 503 responses, bad responses, refused connections, resets and timeouts: few of each, but enough
/// to hide the high percentiles.
pub fn failing() -> LoadStudy {
    let plan = LoadPlan {
        load: LoadSettings {
            pace: open(Profile::Flat { rate: rate(200.0) }, Arrivals::Constant, 0),
            timeout: Nanos::from_secs(2),
            ..usual()
        },
        ..base("load")
    };
    let fault = |n: u64| match n % 200 {
        13 | 113 => Some(Outcome::Answered(503)),
        41 => Some(Outcome::Answered(404)),
        77 => Some(Outcome::Refused),
        99 => Some(Outcome::TimedOut),
        131 => Some(Outcome::Reset),
        171 => Some(Outcome::BadResponse),
        199 => Some(Outcome::Closed),
        _ => None,
    };
    let line =
        "--rate=200/s -c64 --for=30s --timeout=2s --fail-if 'failed > 0.1%' http://127.0.0.1:9292/";
    played(line, LoadPlan { thresholds: vec![threshold("failed > 0.1%")], ..plan }, &PUMA, fault)
}

/// No connection could be opened at all.
pub fn refused() -> LoadStudy {
    let plan = LoadPlan {
        load: LoadSettings { pace: Pace::constant(rate(10.0)), ..usual() },
        length: Some(Nanos::from_secs(3)),
        ..base("load")
    };
    played("--rate=10/s --for=3s http://127.0.0.1:9292/", plan, &PUMA, |_| Some(Outcome::Refused))
}

/// Uniform gaps in bursts over a ramp, too few connections, and late requests skipped.
pub fn skipped() -> LoadStudy {
    let profile = Profile::Ramp { from: rate(20.0), to: rate(200.0), over: Nanos::from_secs(10) };
    let pace = Pace::Open { profile, arrivals: Arrivals::Uniform, seed: 7, burst: 5 };
    let plan = LoadPlan {
        load: LoadSettings {
            pace,
            late: LatePolicy::Skip,
            connections: 8,
            timing: Timing::Coalesce,
            ..usual()
        },
        length: Some(Nanos::from_secs(12)),
        log: Some(PathBuf::from("requests.csv")),
        ..base("load")
    };
    let line = "--ramp=20/s..200/s --over=10s --arrivals=uniform --seed=7 --burst=5 --late=skip \
         -c8 --for=12s --timing=coalesce --log=requests.csv http://127.0.0.1:9292/";
    let mut study = played(line, plan, &Server { delay: Nanos::from_millis(60), ..PUMA }, |_| None);
    study.log_dropped = 12;
    judged(study)
}

/// TLS over a Unix socket, a new connection for each request, a lane that spins, and an early end.
pub fn tls_unix() -> LoadStudy {
    let plan = LoadPlan {
        url: "https://puma.example/upload?kind=report".into(),
        endpoints: vec!["unix /run/puma.sock".to_owned()],
        tls: true,
        requests: "POST with 120 bytes".to_owned(),
        load: LoadSettings {
            timestamps: Timestamps::User,
            pace: Pace::constant(rate(100.0)),
            keep_alive: false,
            timing: Timing::Spin,
            ..usual()
        },
        length: Some(Nanos::from_secs(60)),
        ..base("load")
    };
    let line = "--rate=100/s -c64 --for=1m --disable-keepalive --timing=spin --unix \
         /run/puma.sock -d @report https://puma.example/upload?kind=report";
    let cut = LoadPlan { length: Some(Nanos::from_secs(3)), ..plan.clone() };
    let mut study = played(line, cut, &Server { workers: 0, ..PUMA }, |_| None);
    study.plan = plan;
    study.interrupted = true;
    judged(study)
}

/// A load that ended before a request became due.
pub fn empty() -> LoadStudy {
    let plan = LoadPlan {
        load: LoadSettings { pace: Pace::constant(rate(10.0)), ..usual() },
        length: Some(Nanos::ZERO),
        ..base("load")
    };
    let mut study = played("--rate=10/s --for=30s http://127.0.0.1:9292/", plan, &PUMA, |_| None);
    study.plan.length = Some(Nanos::from_secs(30));
    study.interrupted = true;
    judged(study)
}

/// A handful of requests: a study small enough to read as a file.
pub fn tiny() -> LoadStudy {
    let plan = LoadPlan {
        load: LoadSettings { pace: Pace::constant(rate(2.0)), connections: 4, ..usual() },
        length: Some(Nanos::from_secs(3)),
        ..base("load")
    };
    played("--rate=2/s -c4 --for=3s http://127.0.0.1:9292/", plan, &PUMA, |n| {
        (n == 4).then_some(Outcome::TimedOut)
    })
}

const CLASSES: &[SimulatedClass] = &[
    SimulatedClass { name: "/posts", delay: Nanos::from_millis(8), of_twenty: 16 },
    SimulatedClass { name: "/search", delay: Nanos::from_millis(110), of_twenty: 3 },
    SimulatedClass { name: "POST /comments", delay: Nanos::from_millis(25), of_twenty: 1 },
];

/// Three classes of requests on two slots, of which `/search` takes long.
///
/// # Panics
/// Never: its conditions are valid.
pub fn mixed() -> LoadStudy {
    let pace = open(Profile::Flat { rate: rate(50.0) }, Arrivals::Poisson, 1);
    let plan = LoadPlan {
        requests: "5002 requests of mix.txt, by weight, 402 KiB of memory".to_owned(),
        load: LoadSettings { pace, ..usual() },
        length: Some(Nanos::from_secs(60)),
        thresholds: [
            Threshold::on("/search p99 < 400ms", true),
            Threshold::on("POST /comments failed > 0.1%", false),
        ]
        .map(|threshold| threshold.expect("a condition"))
        .to_vec(),
        ..base("load")
    };
    let line = "--rate=50/s --arrivals=poisson --seed=1 -c64 --for=1m --mix mix.txt --expect \
         '/search p99 < 400ms' --fail-if 'POST /comments failed > 0.1%' http://127.0.0.1:9292/";
    let server = Server { workers: 0, slots: 2, classes: CLASSES, ..PUMA };
    played(line, plan, &server, |_| None)
}

/// Twenty slow clients beside a load.
pub fn beside_slow_clients() -> LoadStudy {
    let slow = SlowClients { clients: 20, upload: 1_000, read: 10_000, body: Some(20_000) };
    let plan = LoadPlan {
        load: LoadSettings { pace: Pace::constant(rate(100.0)), ..usual() },
        slow_clients: Some(slow),
        ..base("load")
    };
    let line = "--rate=100/s --for=30s --slow-clients=20:body=20kB http://127.0.0.1:9292/";
    let mut study = played(line, plan, &PUMA, |_| None);
    let mut responses = Counts::default();
    for n in 0..21 {
        responses.record(Outcome::Answered(if n < 20 { 200 } else { 408 }));
    }
    study.slow_clients = Some(SlowClientCounts {
        opened: 41,
        responses,
        unfinished: 20,
        sent_bytes: 614_300,
        received_bytes: 2_940,
        ..SlowClientCounts::default()
    });
    study
}

/// A phased restart in the middle of a load, which lost three requests.
pub fn restarted() -> LoadStudy {
    const LOST: [u64; 3] = [1120, 1121, 1400];
    let plan = LoadPlan {
        load: LoadSettings { pace: Pace::constant(rate(100.0)), ..usual() },
        during: "phased-restart@10s".parse().ok(),
        ..base("load")
    };
    let line = "--rate=100/s --for=30s --during=phased-restart@10s http://127.0.0.1:9292/";
    let mut study = played(line, plan, &PUMA, |n| LOST.contains(&n).then_some(Outcome::Closed));
    study.run.event = Some(Box::new(events::phased_restart(&LOST)));
    study
}

/// All of these studies.
pub fn every() -> Vec<LoadStudy> {
    vec![
        beside_slow_clients(),
        restarted(),
        closed(),
        closed_counted(),
        open_poisson(),
        overloaded(),
        steep(),
        failing(),
        refused(),
        skipped(),
        tls_unix(),
        empty(),
        tiny(),
        mixed(),
    ]
}

/// The study, judged, with its warnings.
fn judged(mut study: LoadStudy) -> LoadStudy {
    let plan = &study.plan;
    let run = &study.run;
    let setting = RunSetting {
        keep_alive: plan.load.keep_alive,
        placement: study.placement.as_ref(),
        ended_by: study.interrupted.then_some(EndedBy::User),
    };
    let warnings = checks::warnings_of_load(run, &plan.load.pace, setting);
    let judgement = verdict::of_load(run, plan);
    study.run.judgement = Some(judgement);
    study.run.warnings = warnings;
    let dropped = study.log_dropped;
    study.run.warnings.extend((dropped > 0).then_some(Diagnostic::LogIncomplete { dropped }));
    study
}

fn threshold(condition: &str) -> Threshold {
    Threshold::on(condition, false).expect("the conditions here are valid")
}

fn rate(per_second: f64) -> Rate {
    Rate::new(per_second).expect("the rates here are above zero")
}

fn open(profile: Profile, arrivals: Arrivals, seed: u64) -> Pace {
    Pace::Open { profile, arrivals, seed, burst: 1 }
}

/// A run with `rate` requests per second at an even pace for the length of the window. `play` says
/// when and how the `n`-th request ends, given when it was due. Recorded as a lane does it, with
/// the backlog.
pub fn paced(
    window: Window,
    rate: u64,
    percentiles: &[f64],
    mut play: impl FnMut(u64, Nanos) -> (Nanos, Outcome),
) -> Run {
    let mut tally = Tally::new(window, 1);
    let mut batches = Batches::new(window);
    let mut times = Vec::new();
    for n in 0..rate * window.until.0 / 1_000_000_000 {
        let due = Nanos(n * 1_000_000_000 / rate);
        let (ended, outcome) = play(n, due);
        let exchange = Exchange { due, sent: due, ended, received_bytes: 1, outcome };
        tally.record(&exchange, 0);
        batches.record(due, exchange.response_time(), Nanos::ZERO);
        times.push((due, ended));
    }
    let statistics =
        Statistics::of(&tally, &batches, percentiles).with_backlog(backlog(window, &times));
    Run { statistics: Some(statistics), ..Run::recorded(1, tally, window.until, window.until) }
}

/// The backlog of an open loop whose requests were due and ended at these times, in order of due
/// time.
fn backlog(window: Window, times: &[(Nanos, Nanos)]) -> Option<Backlog> {
    let last_due = times.last()?.0;
    let mut samples = BacklogSamples::new(window);
    while samples.next() <= last_due {
        let now = samples.next();
        samples.take(
            now,
            times.iter().filter(|(due, ended)| *due <= now && now < *ended).count() as u64,
        );
    }
    samples.end(last_due);
    let measured = times.iter().filter(|(due, _)| window.contains(*due)).count() as u64;
    samples.backlog(measured, (window.until < Nanos::MAX).then(|| window.until - window.from))
}

/// The study with these arguments, which must be unique.
fn played(
    arguments: &str,
    plan: LoadPlan,
    server: &Server,
    fault: impl Fn(u64) -> Option<Outcome>,
) -> LoadStudy {
    static MADE: Made<LoadStudy> = Made::new(BTreeMap::new());
    once(&MADE, arguments, || played_anew(arguments, plan, server, fault))
}

fn played_anew(
    arguments: &str,
    plan: LoadPlan,
    server: &Server,
    fault: impl Fn(u64) -> Option<Outcome>,
) -> LoadStudy {
    let (recorder, times) = play(&plan, server, fault);
    let tally = &recorder.tally;
    let backlog = if plan.load.pace.is_open() { backlog(tally.window, &times) } else { None };
    let timestamps = plan.load.timestamps;
    let elapsed = tally.last_ended;
    let measured = plan.measured().unwrap_or(elapsed - tally.window.from);
    let mut run = recorder.run(&checks::LOAD_PERCENTILES, measured, elapsed);
    run.statistics = run.statistics.map(|statistics| statistics.with_backlog(backlog));
    run.generator.clock_steps = (timestamps == Timestamps::Kernel).then_some(0);
    let lanes_by = match plan.load.pace {
        Pace::Open { .. } => LaneCountReason::Rate,
        Pace::Closed if plan.load.lanes > 1 => LaneCountReason::Asked,
        Pace::Closed => LaneCountReason::Left,
    };
    judged(LoadStudy {
        server: ServerLocation::Here,
        placement: Some(Placement {
            server: "0".parse().expect("a list"),
            lanes: "1".parse().expect("a list"),
        }),
        schema: SCHEMA,
        started_at: "2026-07-21T10:00:00Z".to_owned(),
        command_line: format!("longtail load {arguments}").into(),
        plan,
        environment: environment(),
        lanes_by,
        name_resolution: None,
        run,
        checks: Vec::new(),
        classes_alone: Vec::new(),
        slow_clients: None,
        log_dropped: 0,
        interrupted: false,
    })
}
