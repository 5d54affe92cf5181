//! Simulates a sweep: connections that send again as soon as they have a response, and slots that
//! serve first come, first served, with seeded jitter. The exchanges are recorded into real
//! tallies.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use judge::{ServerSeen, verdict};
use model::pace::uniform;
use model::run::{PERCENTILES, ShareSource};
use model::study::SCHEMA;
use model::theory::ServiceTime;
use model::{
    Exchange, Forecast, Nanos, Outcome, Placement, Plan, Probe, Run, ServerFacts, Stop, StreamPlan,
    SweepStudy, Window, WorkerShare,
};

use crate::machine::{Recorder, environment, puma, puma_facts, stream};
use crate::{Made, once};

const WARM_UP: Nanos = Nanos::from_secs(1);
const DELAY: Nanos = Nanos::from_millis(200);

/// The plan for a sweep of a Puma with these workers (0: single mode) and threads, at these
/// multiples of its slots, with 100 requests per connection.
pub(super) fn plan(workers: u32, threads: u32, multiples: &[f64]) -> Plan {
    Plan {
        server: puma(workers, threads),
        stream: StreamPlan {
            delay: Some(DELAY),
            timeout: Nanos::from_secs(20),
            ..stream(Stop::RequestsPerConnection(100), WARM_UP)
        },
        multiples: multiples.to_vec(),
        connections: Vec::new(),
        repeat: 1,
        cool_down: true,
        calibrate: true,
        probe_discipline: false,
        with: None,
        probe: Probe::Auto,
        statsd_listen: None,
        thresholds: Vec::new(),
    }
}

/// The study with these arguments, which must be unique: all multiples and repeats, without
/// failures.
pub(super) fn played(words: &str, plan: Plan) -> SweepStudy {
    static MADE: Made<SweepStudy> = Made::new(BTreeMap::new());
    once(&MADE, words, || played_anew(words, plan))
}

fn played_anew(words: &str, plan: Plan) -> SweepStudy {
    let server = server(&plan);
    let mut runs = Vec::new();
    for repeat in 1..=plan.repeat {
        for multiple in &plan.multiples {
            runs.push(play(&plan, &server, repeat, *multiple, |_| None));
        }
    }
    let cool_downs = Nanos::from_millis(700) * runs.len() as u64;
    let mut study = SweepStudy {
        schema: SCHEMA,
        started_at: "2026-07-21T10:00:00Z".to_owned(),
        command_line: format!("longtail sweep {words}").into(),
        service_time: Some(ServiceTime::given(DELAY)),
        classes_alone: Vec::new(),
        plan,
        environment: environment(),
        server,
        total_time: runs.iter().map(|run| run.elapsed).sum::<Nanos>() + cool_downs,
        probed: None,
        probes: Vec::new(),
        runs,
        first_load_again: None,
        warnings: Vec::new(),
        interrupted: false,
    };
    verdict::refine_sweep(&mut study);
    study
}

fn server(plan: &Plan) -> ServerFacts {
    let workers = plan.server.workers.unwrap_or(0);
    let threads = plan.server.threads.map_or(1, |threads| threads.max);
    let words = if workers == 0 { String::new() } else { format!("-w{workers} ") };
    ServerFacts {
        placement: Some(Placement {
            server: "0-1".parse().expect("a list"),
            lanes: "0-1".parse().expect("a list"),
        }),
        runtime: Some(
            "ruby 3.4.0dev (2024-11-26T17:58:43Z master c1dcd1d496) +PRISM [x86_64-linux]"
                .to_owned(),
        ),
        git: Some("00-long-tail-hey 43b8bba1".to_owned()),
        command_line: format!(
            "puma -q -b tcp://127.0.0.1:40001 {words}-t{threads}:{threads} sleep.ru"
        )
        .into(),
        cluster: workers > 0,
        ..puma_facts(workers.max(1), threads)
    }
}

/// Simulates one run. `fault` says how the `n`-th request fails, if it does.
pub(super) fn play(
    plan: &Plan,
    server: &ServerFacts,
    repeat: u32,
    multiple: f64,
    fault: impl Fn(u64) -> Option<Outcome>,
) -> Run {
    let connections = (multiple * f64::from(server.slots())).round() as u32;
    let (until, per_connection) = match plan.stream.stop {
        Stop::After(time) => (WARM_UP + time, u64::MAX),
        Stop::RequestsPerConnection(n) => (Nanos::MAX, n),
    };
    let mut recorder =
        Recorder::new(Window { from: WARM_UP, until }, connections, plan.stream.timestamps);
    let mut made = vec![0; connections as usize];
    let mut slot_free = vec![Nanos::ZERO; server.slots() as usize];
    // (when its next request is due, connection), the earliest first
    let mut due_next: BinaryHeap<_> =
        (0..connections).map(|c| Reverse((Nanos::from_micros(50) * u64::from(c), c))).collect();
    let mut elapsed = Nanos::ZERO;
    let mut number = 0;
    while let Some(Reverse((due, connection))) = due_next.pop() {
        let measured = due >= WARM_UP;
        if due >= until || measured && made[connection as usize] == per_connection {
            continue;
        }
        made[connection as usize] += u64::from(measured);
        let sent = due + Nanos::from_secs_f64(5e-6 + 20e-6 * uniform(SENDER, number));
        let slot = (0..slot_free.len())
            .min_by_key(|slot| (slot_free[*slot], spread(*slot, number)))
            .unwrap_or(0);
        let worker = slot as u32 / server.threads;
        let outcome = fault(number).unwrap_or(Outcome::Answered(200));
        let ended = match outcome {
            Outcome::TimedOut => sent + plan.stream.timeout,
            Outcome::Answered(200) => sent.max(slot_free[slot]) + held(worker, repeat, number),
            _ => sent + Nanos::from_millis(1),
        };
        if outcome == Outcome::Answered(200) {
            slot_free[slot] = ended;
            let count = recorder.tally.per_worker.entry(pid(repeat, worker)).or_default();
            count.all += 1;
            count.measured += u64::from(measured);
        }
        let received_bytes = if matches!(outcome, Outcome::Answered(_)) { 120 } else { 0 };
        let exchange = Exchange { due, sent, ended, received_bytes, outcome };
        recorder.record(&exchange, connection, sent - due);
        recorder.note_reason(&exchange, number / 100);
        recorder.tally.received_bytes += u64::from(received_bytes);
        recorder.tally.sent_bytes += 64;
        elapsed = elapsed.max(ended);
        due_next.push(Reverse((ended, connection)));
        number += 1;
    }
    recorder.tally.connections_opened =
        if plan.stream.keep_alive { u64::from(connections) } else { number };
    let last = if until == Nanos::MAX { recorder.tally.last_ended } else { until };
    judged(recorder, server, repeat, multiple, last - WARM_UP, elapsed)
}

/// The run of this recorder, with its forecast and judgement.
fn judged(
    recorder: Recorder,
    server: &ServerFacts,
    repeat: u32,
    multiple: f64,
    measured: Nanos,
    elapsed: Nanos,
) -> Run {
    let shares = recorder.tally.per_worker.iter().map(|(worker, count)| WorkerShare {
        worker: worker.clone(),
        requests: count.measured,
        source: ShareSource::Header,
    });
    let mut run = Run {
        repeat,
        workers: if server.cluster { shares.collect() } else { Vec::new() },
        forecast: Some(Forecast {
            service_time: DELAY,
            maximum_rate: f64::from(server.slots()) / DELAY.as_secs_f64(),
            ideal_response_time: Nanos::from_secs_f64(DELAY.as_secs_f64() * multiple.max(1.0)),
        }),
        multiple: Some(multiple),
        ..recorder.run(&PERCENTILES, measured, elapsed)
    };
    let alone = Some(ServiceTime::given(DELAY));
    let seen = ServerSeen::stated(server.slots(), server.workers, alone);
    run.judgement = Some(verdict::of_run(&run, &seen));
    run
}

// The random streams.
const SENDER: u64 = 1;
const JITTER: u64 = 2;
const STALLS: u64 = 3;
const CHOICE: u64 = 4;

/// How long a slot is held: the delay, a little jitter that differs by worker, and a stall now and
/// then.
fn held(worker: u32, repeat: u32, number: u64) -> Nanos {
    // Products only: a logarithm may differ in its last bit from one machine to another.
    let chance = uniform(JITTER + 10 * u64::from(repeat), number);
    let jitter =
        0.000_5 + 0.001 * f64::from(worker) + 0.012 * (chance * chance) * (chance * chance);
    let stall = if uniform(STALLS + 10 * u64::from(repeat), number) < 0.004 {
        DELAY.as_secs_f64() * 0.6
    } else {
        0.0
    };
    DELAY + Nanos::from_secs_f64(jitter + stall)
}

/// Which of the slots that became free together takes the request.
fn spread(slot: usize, number: u64) -> u64 {
    (uniform(CHOICE + slot as u64, number) * 1e9) as u64
}

/// The pid of a worker: a fresh server has new processes.
fn pid(repeat: u32, worker: u32) -> String {
    (162_795 + 100 * repeat + 4 * worker).to_string()
}
