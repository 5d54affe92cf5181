//! Studies of bodies for tests, made by recording a seeded stream of exchanges into real tallies.

use std::collections::BTreeMap;

use judge::{ServerSeen, verdict};
use model::pace::uniform;
use model::run::PERCENTILES;
use model::study::SCHEMA;
use model::{
    App, Bodies, BodiesPlan, BodiesStudy, Body, BodyKind, BodyRun, Ceiling, Diagnostic,
    GeneratorFacts, LaneFacts, Nanos, Outcome, Run, ServerFacts, ServerPlan, ServerUse, Socket,
    SocketServer, Stop, StreamPlan, Timestamps, Verdict, Window,
};

use crate::machine::{answered_at_once, at_ease, environment, puma, puma_facts, stream};
use crate::{Made, once};

const WARM_UP: Nanos = Nanos::from_millis(500);
const LENGTH: Nanos = Nanos::from_secs(2);
const HEAD_BYTES: u64 = 1475;

/// All of these studies.
pub fn every() -> [BodiesStudy; 4] {
    [canonical(), sockets(), troubled(), empty()]
}

/// Four types of three sizes over IPv6, as Puma's script shows them.
pub fn canonical() -> BodiesStudy {
    played(&plan("acsi1,100,2048", &[Socket::Tcp6], 1))
}

/// Two bodies over three kinds of socket, twice.
pub fn sockets() -> BodiesStudy {
    played(&plan("si10", &[Socket::Tcp4, Socket::Ssl4, Socket::Aunix], 2))
}

/// Responses that are too short, an invalid run, a missing run, and an app whose counts differ.
pub fn troubled() -> BodiesStudy {
    let mut study = played(&plan("as10", &[Socket::Tcp4, Socket::Unix], 1));
    study.warnings = vec![Diagnostic::BytesDiffer { client: 10_240, app: 20_480 }];
    let [first, second, ..] = &mut study.runs[..] else { unreachable!("four runs") };
    first.run = run(first.body, first.socket, 1, |n| (n % 10 == 0).then_some(Outcome::WrongLength));
    let counts = &first.run.tally.counts;
    first.run.warnings =
        vec![Diagnostic::Failures { failed: counts.failed(), planned: counts.total() }];
    first.server = ServerUse::default();
    if let Some(judgement) = &mut second.run.judgement {
        judgement.verdict = Verdict::Invalid;
    }
    study.runs.pop();
    study.interrupted = true;
    study
}

/// Ended before the first run.
pub fn empty() -> BodiesStudy {
    let plan = plan("s10", &[Socket::Tcp4], 1);
    BodiesStudy { runs: Vec::new(), servers: Vec::new(), interrupted: true, ..played(&plan) }
}

fn plan(bodies: &str, sockets: &[Socket], repeat: u32) -> BodiesPlan {
    BodiesPlan {
        server: ServerPlan { app: App::Bodies, yjit: true, socket: sockets[0], ..puma(2, 5) },
        stream: StreamPlan {
            timestamps: timestamps(sockets),
            ..stream(Stop::After(LENGTH), WARM_UP)
        },
        sockets: sockets.to_vec(),
        bodies: bodies.parse::<Bodies>().expect("bodies of this file"),
        connections_per_stream: 2,
        streams: None,
        repeat,
        seed: 7,
        cool_down: true,
        calibrate: true,
        probe: model::Probe::Proc,
        thresholds: Vec::new(),
    }
}

/// The kernel's timestamps if no socket is a Unix socket.
fn timestamps(sockets: &[Socket]) -> Timestamps {
    if sockets.iter().any(|socket| socket.is_unix()) {
        Timestamps::User
    } else {
        Timestamps::Kernel
    }
}

fn played(plan: &BodiesPlan) -> BodiesStudy {
    static MADE: Made<BodiesStudy> = Made::new(BTreeMap::new());
    once(&MADE, &format!("{plan:?}"), || played_anew(plan))
}

fn played_anew(plan: &BodiesPlan) -> BodiesStudy {
    let mut runs = Vec::new();
    for repeat in 1..=plan.repeat {
        for (socket, bodies) in plan.pass(repeat) {
            runs.extend(bodies.into_iter().map(|body| BodyRun {
                socket,
                body,
                server: ServerUse {
                    cpu: Some(Nanos::from_millis(1800 + u64::from(body.kilobytes))),
                    memory_bytes: Some(60_000_000 + body.bytes()),
                },
                run: run(body, socket, repeat, |_| None),
            }));
        }
    }
    let sockets: Vec<String> = plan.sockets.iter().map(Socket::to_string).collect();
    BodiesStudy {
        schema: SCHEMA,
        started_at: "2026-07-21T10:00:00Z".to_owned(),
        command_line: format!(
            "longtail sweep -w2 -t5:5 -s {} --bodies {} --for 2s",
            sockets.join(","),
            plan.bodies
        )
        .into(),
        plan: plan.clone(),
        environment: environment(),
        servers: plan.sockets.iter().map(|socket| server(*socket)).collect(),
        runs,
        warnings: Vec::new(),
        total_time: Nanos::from_secs(315),
        interrupted: false,
    }
}

fn server(socket: Socket) -> SocketServer {
    let (bind, url) = match socket {
        Socket::Tcp4 => ("tcp://127.0.0.1:40001", "http://127.0.0.1:40001"),
        Socket::Tcp6 => ("tcp://[::1]:40001", "http://[::1]:40001"),
        Socket::Ssl4 => {
            ("ssl://127.0.0.1:40001?key=key.pem&cert=cert.pem", "https://127.0.0.1:40001")
        }
        Socket::Ssl6 => ("ssl://[::1]:40001?key=key.pem&cert=cert.pem", "https://[::1]:40001"),
        Socket::Unix => ("unix://server.sock", "unix server.sock"),
        Socket::Aunix => ("unix://@longtail", "unix @longtail"),
    };
    let server = ServerFacts {
        version: Some("5.6.5".to_owned()),
        runtime: Some(
            "ruby 3.2.0dev (2022-06-14T01:21:55Z master 048f14221c) +YJIT [x86_64-linux]"
                .to_owned(),
        ),
        git: Some("00-response-refactor 43b8bba1".to_owned()),
        command_line: format!("puma -q -b '{bind}' -w2 -t5:5 bodies.ru").into(),
        url: url.into(),
        ..puma_facts(2, 5)
    };
    SocketServer { socket, server }
}

/// Sixteen connections that send again as soon as they have a response; each request takes a
/// different time.
fn run(body: Body, socket: Socket, repeat: u32, fault: impl Fn(u64) -> Option<Outcome>) -> Run {
    let window = Window { from: WARM_UP, until: WARM_UP + LENGTH };
    let timestamps = timestamps(&[socket]);
    let slow = match body.kind {
        BodyKind::Array => 1.0,
        BodyKind::Chunked => 1.3,
        BodyKind::String => 0.95,
        BodyKind::Io => 1.6,
    } * if matches!(socket, Socket::Ssl4 | Socket::Ssl6) { 1.5 } else { 1.0 };
    let mean = (4e-3 + 1.2e-5 * f64::from(body.kilobytes)) * slow;
    let seed =
        body.bytes() ^ (u64::from(repeat) << 40) ^ u64::from(body.kind.letter().as_bytes()[0]);
    let recorder = answered_at_once(16, window, timestamps, |tally, number, exchange| {
        exchange.ended += Nanos::from_secs_f64(mean * (0.2 - 0.8 * uniform(seed, number).ln()));
        exchange.outcome = fault(number).unwrap_or(exchange.outcome);
        let is_wrong = exchange.outcome == Outcome::WrongLength;
        let content = if is_wrong { body.bytes() / 2 } else { body.bytes() };
        let received = HEAD_BYTES + content;
        exchange.received_bytes = received as u32;
        if is_wrong && tally.measures(exchange.due) {
            tally.record_wrong_length(body.bytes(), content);
        }
        tally.received_bytes += received;
        tally.body_bytes += content;
    });
    let elapsed = WARM_UP + LENGTH + Nanos::from_millis(40);
    let rate = recorder.tally.completed_in_window as f64 / LENGTH.as_secs_f64();
    let mut run = Run {
        repeat,
        generator: GeneratorFacts {
            lanes: vec![LaneFacts {
                cpu: elapsed / 4,
                run_queue: Nanos::from_millis(3),
                elapsed,
                ..LaneFacts::default()
            }],
            ceiling: Some(Ceiling {
                rate_per_s: if body.kilobytes > 1000 { rate * 2.0 } else { 41_000.0 },
            }),
            steal: Some(0.0),
            clock_steps: (timestamps == Timestamps::Kernel).then_some(0),
            ..at_ease(elapsed)
        },
        multiple: Some(1.6),
        ..recorder.run(&PERCENTILES, LENGTH, elapsed)
    };
    run.judgement = Some(verdict::of_run(&run, &ServerSeen::stated(10, 2, None)));
    run
}
