//! Studies for tests: one that looks like Puma's published long-tail table, and the awkward ones.
//!
//! Each is made by playing a small queue (slots that serve whoever came first, with a seeded jitter) and recording
//! its exchanges into real tallies, so that every derived figure comes from the code that will derive it for users.
//! No clock and no chance is in it: the same study on every machine, for ever.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use model::anatomy::{AppSource, Parts};
use model::forecast::{ServiceTime, ServiceTimeSource};
use model::kernel::{WayParts, Ways};
use model::pace::uniform;
use model::run::{PERCENTILES, ShareSource};
use model::study::SCHEMA;
use model::theory::Fit;
use model::waits::bucket_of;
use model::watch::{Curve, Track};
use model::{
    Anatomy, Batches, Caveat, Ceiling, Discipline, Environment, Exchange, Forecast, GeneratorFacts, Heard,
    HeardFigures, HeardSeries, KernelView, LaneFacts, MetricKind, Nanos, Outcome, Placement, Plan, Probe, ProbeUsed,
    ProcessWaits, Reading, Run, ServerFacts, ServerKind, ServerPlan, Socket, Statistics, Stop, StreamPlan, SweepStudy,
    Tally, Threads, Timestamps, Waits, Watch, Window, WorkerShare, verdict,
};

const WARM_UP: Nanos = Nanos::from_secs(1);
const TIMEOUT: Nanos = Nanos::from_secs(20);

/// Every study of a sweep that is made here.
pub fn every() -> [SweepStudy; 13] {
    [
        canonical(),
        with_workers(8),
        single_mode(),
        repeated(),
        failing(),
        unknown_server(),
        short(),
        interrupted(),
        empty(),
        tiny(),
        judged(),
        watched(),
        theorized(),
    ]
}

/// Five multiples of 20 slots (4 workers x 5 threads) that each hold a request for 0.2 s, 100 requests a connection.
pub fn canonical() -> SweepStudy {
    let mut study = played(&Setup::default());
    study.runs[4].caveats = vec![Caveat::ConnectionsClosed { closed: 80 }];
    study
}

/// Two multiples that were watched: all that cannot be served waits in the accept queue.
pub fn watched() -> SweepStudy {
    let stop = Stop::After(Nanos::from_secs(10));
    let mut study =
        played(&Setup { workers: 2, multiples: vec![1.0, 4.0], keep_alive: false, stop, ..Setup::default() });
    study.plan.stream.anatomy = true;
    let slots = study.server.slots();
    study.probed = Some(ProbeUsed { probe: Probe::Bpf, why_no_bpf: None });
    // One run without: it is shown as before.
    study.runs[1].kernel = Some(told_by_kernel(&study.runs[1]));
    for run in &mut study.runs {
        run.watch = Some(seen(u64::from(run.connections), u64::from(slots)));
        run.anatomy = Some(stamped(run));
    }
    study.plan.statsd_listen = "127.0.0.1:8125".parse().ok();
    study.runs[0].heard = Some(Heard { before: 3, dropped_by_kernel: Some(0), ..Heard::default() });
    study.runs[1].heard = Some(heard());
    study
}

/// What puma-plugin-statsd and an app with one timer would have said, and a line that is none.
pub fn heard() -> Heard {
    let series = |metric: &str, tags: &[&str], kind, values: &[f64], rate: f64| {
        let sum = values.iter().sum::<f64>();
        let least = |least: f64, value: &f64| least.min(*value);
        let most = |most: f64, value: &f64| most.max(*value);
        HeardSeries {
            metric: metric.to_owned(),
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            kind,
            values: values.len() as u64,
            stands_for: values.len() as f64 / rate,
            figures: Some(HeardFigures {
                sum: sum / rate,
                mean: sum / values.len() as f64,
                last: values.last().copied().unwrap_or(0.0),
                min: values.iter().fold(f64::MAX, least),
                max: values.iter().fold(0.0, most),
            }),
            at: (0..values.len() as u64).map(|n| Nanos::from_millis(1500 + 2000 * n)).collect(),
            points: values.to_vec(),
        }
    };
    let mut heard = Heard {
        series: vec![
            series("app.jobs", &[], MetricKind::Counter, &[3.0, 2.0], 0.5),
            series("app.rack", &["route:/|a"], MetricKind::Timer, &[201.5, 0.0004, 1e12], 1.0),
            series("puma.backlog", &["grouping:web"], MetricKind::Histogram, &[0.0, 0.0, 1.0, 0.0], 1.0),
            series("puma.workers", &["grouping:web"], MetricKind::Gauge, &[2.0; 4], 1.0),
        ],
        packets: 14,
        lines: 14,
        malformed: 1,
        first_malformed: Some("puma.backlog".to_owned()),
        no_metrics: 0,
        before: 3,
        left_out: 5,
        dropped_by_kernel: Some(2),
        cpu: Nanos::from_millis(1200),
    };
    let names = HeardSeries { figures: None, ..series("app.users", &[], MetricKind::Set, &[], 1.0) };
    heard.series.insert(2, HeardSeries { values: 1, stands_for: 1.0, ..names });
    heard
}

/// What an app of 200 ms would have said, that sends its answer half a millisecond later; one answer has no stamps.
fn stamped(run: &Run) -> Anatomy {
    let parts = |requests: u64, response_time: Nanos| {
        let [app, rest, send_lag] = [200_000, 500, 20].map(|us| Nanos::from_micros(us) * requests);
        let before_app = Some(response_time - app - rest - send_lag);
        Parts { requests, response_time, send_lag, before_app, app }
    };
    let times = &run.tally.response_time;
    let (count, mean, most) = (times.count() - 1, times.mean().expect("there are some"), times.max());
    let slowest = count.div_ceil(100);
    Anatomy {
        source: AppSource::Stamps,
        all: parts(count, mean * count),
        slowest: most.map(|most| parts(slowest, most * slowest)),
        silent: 1,
        impossible: 0,
    }
}

/// What the kernel would have told: all that is beyond 200 ms of the app waits in the accept queue.
fn told_by_kernel(run: &Run) -> KernelView {
    let waits = |count: u64, each: Nanos| Waits::of_buckets(each * count, [(bucket_of(each), count)]);
    let [app, queue, left] = [200_000, 300, 700].map(Nanos::from_micros);
    let times = &run.tally.response_time;
    let worker = |pid| {
        let answers = times.count() / 2;
        ProcessWaits {
            pid,
            answers,
            accept_queue: waits(answers, Nanos::from_millis(598)),
            receive_queue: waits(answers, Nanos::from_micros(150)),
            in_server: waits(answers, app + queue + left),
            run_queue: waits(answers * 3, Nanos::from_micros(70)),
        }
    };
    let parts = |requests: u64, response_time: Nanos| {
        let [send_lag, sending, receive_queue, reading] = [20, 3, 150, 200].map(|us| Nanos::from_micros(us) * requests);
        let in_server = (app + queue + left) * requests;
        WayParts {
            requests,
            response_time,
            send_lag,
            sending,
            accept_queue: response_time - send_lag - sending - receive_queue - in_server - reading,
            receive_queue,
            in_server,
            server_queue: Some(queue * requests),
            app: Some(app * requests),
            reading,
        }
    };
    let (count, mean, most) = (times.count() - 1, times.mean().expect("there are some"), times.max());
    let slowest = count.div_ceil(100);
    KernelView {
        processes: vec![worker(4001), worker(4002)],
        unfollowed: 0,
        lost: 0,
        ways: Some(Ways {
            app: Some(AppSource::Stamps),
            all: parts(count, mean * count),
            slowest: most.map(|most| parts(slowest, most * slowest)),
            silent: 0,
            impossible: 0,
            unmatched: 1,
        }),
    }
}

/// What would have been seen: each worker's threads busy, and all others in line. One look was not answered.
fn seen(connections: u64, slots: u64) -> Watch {
    let curve = |of: &str, name: &str, unit: &str, values: Vec<Option<u64>>| Curve {
        of: of.to_owned(),
        name: name.to_owned(),
        unit: unit.to_owned(),
        values,
        staleness: Vec::new(),
    };
    let looks = 200;
    let but_one = |value: u64| (0..=looks).map(|n| (n != 7).then_some(value)).collect::<Vec<_>>();
    let mut queue = but_one(connections - slots);
    queue[100] = Some(connections - slots + 2);
    let sockets = Track {
        source: "sock_diag".to_owned(),
        at: (0..=looks).map(|n| Nanos::from_millis(50) * n).collect(),
        curves: vec![
            curve("", "accept_queue", "connections", queue),
            curve("", "open_connections", "connections", but_one(connections)),
            curve("", "accept_queue_limit", "connections", but_one(1024)),
        ],
    };
    let workers = ["4001", "4002"];
    let used = |step: u64| (0..=40).map(|n| Some(n * step)).collect::<Vec<_>>();
    let processes = Track {
        source: "/proc/PID/task/TID/schedstat".to_owned(),
        at: (0..=40).map(|n| Nanos::from_millis(250) * n).collect(),
        curves: workers
            .iter()
            .flat_map(|of| [curve(of, "cpu", "ns", used(5_000_000)), curve(of, "run_queue_wait", "ns", used(400_000))])
            .collect(),
    };
    let age = |n: u64| Some(Nanos::from_millis(800 + 1000 * ((n + 3) % 5)));
    let stats = Track {
        source: "puma stats".to_owned(),
        at: (0..=10).map(Nanos::from_secs).collect(),
        curves: workers
            .iter()
            .flat_map(|of| {
                let values = |value| vec![Some(value); 11];
                [curve(of, "backlog", "requests", values(0)), curve(of, "busy_threads", "threads", values(slots / 2))]
            })
            .map(|curve| Curve { staleness: (0..=10).map(age).collect(), ..curve })
            .collect(),
    };
    Watch {
        tracks: vec![sockets, processes, stats],
        cpu: Nanos::from_millis(93),
        missing: vec!["the sockets, at some looks: Interrupted system call (os error 4)".to_owned()],
    }
}

/// As [`canonical`], on `workers` workers.
pub fn with_workers(workers: u32) -> SweepStudy {
    played(&Setup { workers, ..Setup::default() })
}

/// A Puma without worker processes: nothing is known by worker.
pub fn single_mode() -> SweepStudy {
    played(&Setup { workers: 0, multiples: vec![1.0, 2.0], ..Setup::default() })
}

/// Two multiples, each three times on a fresh server; in the last run one request was not answered.
pub fn repeated() -> SweepStudy {
    let mut study = played(&Setup { multiples: vec![1.0, 2.0], repeat: 3, ..Setup::default() });
    let last = study.runs.len() - 1;
    let plan = study.plan.clone();
    study.runs[last] = play(&plan, &study.server, 3, 2.0, |n| (n == 1234).then_some(Outcome::TimedOut));
    study.runs[last].caveats = vec![Caveat::Failures { failed: 1, planned: 4000 }];
    study
}

/// Timeouts, refused connections and answers of 503: few at the slots, many beyond.
pub fn failing() -> SweepStudy {
    let mut study = played(&Setup { multiples: vec![1.0, 4.0], keep_alive: false, ..Setup::default() });
    let plan = study.plan.clone();
    study.runs[0] = play(&plan, &study.server, 1, 1.0, |n| (n % 400 == 399).then_some(Outcome::Answered(503)));
    study.runs[1] = play(&plan, &study.server, 1, 4.0, |n| match n % 100 {
        7 | 61 => Some(Outcome::TimedOut),
        23 => Some(Outcome::Refused),
        41 | 83 => Some(Outcome::Answered(503)),
        _ => None,
    });
    for run in &mut study.runs {
        let from = PERCENTILES.into_iter().find(|q| run.response_time(*q).time().is_none()).unwrap_or(1.0);
        let counts = &run.tally.counts;
        let (failed, planned) = (counts.failed(), counts.total());
        let answered: u64 = run.workers.iter().map(|share| share.requests).sum();
        run.caveats = vec![
            Caveat::LedgersDiffer { worker: None, client: answered, server: answered + failed / 2 },
            Caveat::Failures { failed, planned },
            Caveat::QuantilesHidden { from, unanswered: failed },
        ];
    }
    study
}

/// No delay was given and none measured, and the server says nothing about its workers.
pub fn unknown_server() -> SweepStudy {
    let argv = vec!["ruby".to_owned(), "app.rb".to_owned(), "--port=9292".to_owned()];
    let mut study = played(&Setup { multiples: vec![1.0, 2.0], ..Setup::default() });
    study.plan.stream.delay = None;
    study.service_time = None;
    study.plan.server.workers = None;
    study.plan.server.threads = None;
    study.plan.server.kind =
        ServerKind::Command { argv: argv.clone(), slots: 20, url: "http://127.0.0.1:9292".to_owned() };
    study.server = ServerFacts {
        name: "ruby".to_owned(),
        command_line: argv.join(" "),
        url: "http://127.0.0.1:9292".to_owned(),
        workers: 1,
        threads: 20,
        ..ServerFacts::default()
    };
    study.command_line = study.plan.command_line();
    for run in &mut study.runs {
        run.forecast = None;
        run.workers.clear();
        run.readings.clear();
        run.tally.per_worker.clear();
        run.caveats = vec![Caveat::LedgerUnknown { reason: "it has no control server".to_owned() }];
    }
    study
}

/// Runs of one second: too few answers for the high percentiles.
pub fn short() -> SweepStudy {
    let stop = Stop::After(Nanos::from_secs(1));
    let mut study = played(&Setup { workers: 2, multiples: vec![0.5, 2.0], stop, ..Setup::default() });
    for run in &mut study.runs {
        let answers = run.tally.counts.good();
        run.caveats = vec![Caveat::TooFewRequests { from: 0.99, answers, worth: None }];
    }
    study.caveats = vec![Caveat::StillBusy { waited: Nanos::from_secs(10), what: "3 busy threads".to_owned() }];
    study
}

/// Ended by the user in the middle of its second run.
pub fn interrupted() -> SweepStudy {
    let mut study = canonical();
    study.runs.truncate(2);
    study.runs[1].caveats = vec![Caveat::Interrupted];
    study.total_time = Nanos::from_secs(63);
    study.interrupted = true;
    study
}

/// Nothing was run yet: what a table's opening is printed from.
pub fn empty() -> SweepStudy {
    SweepStudy { runs: Vec::new(), total_time: Nanos::ZERO, ..canonical() }
}

/// One run of a handful of requests: a study small enough to be read as a file.
pub fn tiny() -> SweepStudy {
    let stop = Stop::RequestsPerConnection(3);
    let mut study = played(&Setup { workers: 1, threads: 2, multiples: vec![1.5], stop, ..Setup::default() });
    study.runs[0].caveats = vec![Caveat::TooFewRequests { from: 0.9, answers: 9, worth: None }];
    study
}

/// What differs between the studies.
struct Setup {
    workers: u32,
    threads: u32,
    multiples: Vec<f64>,
    repeat: u32,
    keep_alive: bool,
    stop: Stop,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            workers: 4,
            threads: 5,
            multiples: vec![1.0, 1.5, 2.0, 3.0, 4.0],
            repeat: 1,
            keep_alive: true,
            stop: Stop::RequestsPerConnection(100),
        }
    }
}

fn played(setup: &Setup) -> SweepStudy {
    let plan = plan(setup);
    let server = server(setup);
    let mut runs = Vec::new();
    for repeat in 1..=setup.repeat {
        for multiple in &setup.multiples {
            runs.push(play(&plan, &server, repeat, *multiple, |_| None));
        }
    }
    let cool_downs = Nanos::from_millis(700) * runs.len() as u64;
    SweepStudy {
        schema: SCHEMA,
        started_at: "2026-07-21T10:00:00Z".to_owned(),
        command_line: plan.command_line(),
        service_time: plan.stream.delay.map(|time| ServiceTime { time, source: ServiceTimeSource::Given }),
        plan,
        environment: environment(),
        server,
        total_time: runs.iter().map(|run| run.elapsed).sum::<Nanos>() + cool_downs,
        probed: None,
        probes: Vec::new(),
        claimed_runs: Vec::new(),
        runs,
        caveats: Vec::new(),
        interrupted: false,
    }
}

fn plan(setup: &Setup) -> Plan {
    Plan {
        server: ServerPlan {
            kind: ServerKind::Puma { command: None },
            workers: Some(setup.workers),
            threads: Some(Threads { min: setup.threads, max: setup.threads }),
            rackup: None,
            app: model::App::Sleep,
            config: None,
            yjit: false,
            socket: Socket::Tcp4,
            cpus: None,
        },
        stream: StreamPlan {
            delay: Some(Nanos::from_millis(200)),
            path: None,
            body: None,
            keep_alive: setup.keep_alive,
            stop: setup.stop,
            warm_up: WARM_UP,
            timeout: TIMEOUT,
            lanes: 1,
            timestamps: Timestamps::Kernel,
            worker_header: "x-worker-pid".to_owned(),
            anatomy: false,
        },
        multiples: setup.multiples.clone(),
        connections: Vec::new(),
        repeat: setup.repeat,
        cool_down: true,
        calibrate: true,
        probe_discipline: false,
        with: None,
        probe: model::Probe::Auto,
        statsd_listen: None,
    }
}

fn server(setup: &Setup) -> ServerFacts {
    let workers = if setup.workers == 0 { String::new() } else { format!("-w{} ", setup.workers) };
    ServerFacts {
        placement: Some(Placement { server: "0-1".parse().expect("a list"), lanes: "0-1".parse().expect("a list") }),
        name: "Puma".to_owned(),
        version: Some("6.5.0".to_owned()),
        runtime: Some("ruby 3.4.0dev (2024-11-26T17:58:43Z master c1dcd1d496) +PRISM [x86_64-linux]".to_owned()),
        git: Some("00-long-tail-hey 43b8bba1".to_owned()),
        command_line: format!("puma -q -b tcp://127.0.0.1:40001 {workers}-t{0}:{0} sleep.ru", setup.threads),
        url: "http://127.0.0.1:40001".to_owned(),
        workers: setup.workers.max(1),
        threads: setup.threads,
        cluster: setup.workers > 0,
    }
}

pub(crate) fn environment() -> Environment {
    Environment {
        longtail_version: "0.1.0".to_owned(),
        os: "Debian GNU/Linux 12 (bookworm)".to_owned(),
        kernel: "6.1.0-18-amd64".to_owned(),
        cpu: "AMD EPYC 7B13".to_owned(),
        cores: 2,
        memory_bytes: 4 << 30,
    }
}

/// Plays one run: connections that send again as soon as they have an answer, and slots that serve in the order of
/// arrival. `fault` says how the `n`-th request of the run ends instead of well.
fn play(plan: &Plan, server: &ServerFacts, repeat: u32, multiple: f64, fault: impl Fn(u64) -> Option<Outcome>) -> Run {
    let delay = plan.stream.delay.expect("the played studies have a delay");
    let connections = (multiple * f64::from(server.slots())).round() as u32;
    let (until, per_connection) = match plan.stream.stop {
        Stop::After(time) => (WARM_UP + time, u64::MAX),
        Stop::RequestsPerConnection(n) => (Nanos::MAX, n),
    };
    let window = Window { from: WARM_UP, until };
    let mut tally = Tally::new(window, connections as usize);
    let mut batches = Batches::new(window);
    let mut made = vec![0; connections as usize];
    let mut slot_free = vec![Nanos::ZERO; server.slots() as usize];
    // (when its next request is due, connection), the earliest first
    let mut due_next: BinaryHeap<_> =
        (0..connections).map(|c| Reverse((Nanos::from_micros(50) * u64::from(c), c))).collect();
    let mut ended_last = Nanos::ZERO;
    let mut number = 0;
    while let Some(Reverse((due, connection))) = due_next.pop() {
        let measured = due >= window.from;
        if due >= until || measured && made[connection as usize] == per_connection {
            continue;
        }
        made[connection as usize] += u64::from(measured);
        let sent = due + Nanos::from_secs_f64(5e-6 + 20e-6 * uniform(SENDER, number));
        let slot = (0..slot_free.len()).min_by_key(|slot| (slot_free[*slot], spread(*slot, number))).unwrap_or(0);
        let worker = slot as u32 / server.threads;
        let starts = sent.max(slot_free[slot]);
        let outcome = fault(number).unwrap_or(Outcome::Answered(200));
        let ended = match outcome {
            Outcome::TimedOut => sent + plan.stream.timeout,
            Outcome::Answered(200) => starts + held(delay, worker, repeat, number),
            _ => sent + Nanos::from_millis(1),
        };
        if outcome == Outcome::Answered(200) {
            slot_free[slot] = ended;
            let count = tally.per_worker.entry(pid(repeat, worker)).or_default();
            count.all += 1;
            count.measured += u64::from(measured);
        }
        let received_bytes = if matches!(outcome, Outcome::Answered(_)) { 120 } else { 0 };
        let exchange = Exchange { due, sent, ended, received_bytes, outcome };
        tally.record(&exchange, connection as usize);
        note_lags(&mut tally, &mut batches, &exchange, sent - due, plan.stream.timestamps);
        tally.received_bytes += u64::from(received_bytes);
        tally.sent_bytes += 64;
        ended_last = ended_last.max(ended);
        due_next.push(Reverse((ended, connection)));
        number += 1;
    }
    tally.connections_opened = if plan.stream.keep_alive { u64::from(connections) } else { number };
    let measured = if until == Nanos::MAX { tally.last_ended - window.from } else { until - window.from };
    run(plan, server, (repeat, multiple), (tally, batches), (measured, ended_last))
}

/// What a lane notes of its own part beside an exchange that was sent.
pub(crate) fn note_lags(
    tally: &mut Tally,
    batches: &mut Batches,
    exchange: &Exchange,
    lag: Nanos,
    timestamps: Timestamps,
) {
    if !tally.measures(exchange.due) {
        return;
    }
    tally.generator_lag.record(lag);
    if timestamps == Timestamps::Kernel && matches!(exchange.outcome, Outcome::Answered(_)) {
        tally.read_lag.record(Nanos(3_000 + exchange.ended.0 % 20_000));
    }
    if exchange.outcome.is_good() {
        batches.record(exchange.due, exchange.response_time(), lag);
    }
}

fn run(
    plan: &Plan,
    server: &ServerFacts,
    (repeat, multiple): (u32, f64),
    (tally, batches): (Tally, Batches),
    (measured, elapsed): (Nanos, Nanos),
) -> Run {
    let service_time = plan.stream.delay.expect("the played studies have a delay");
    let shares = tally.per_worker.iter().map(|(worker, count)| WorkerShare {
        worker: worker.clone(),
        requests: count.measured,
        source: ShareSource::Header,
    });
    let workers = if server.cluster { shares.collect() } else { Vec::new() };
    let readings = tally.per_worker.iter().map(|(worker, count)| Reading {
        source: "puma stats".to_owned(),
        of: worker.clone(),
        name: "requests_count".to_owned(),
        unit: "requests".to_owned(),
        at: measured,
        value: count.all as f64,
        staleness: Nanos::from_secs(1),
    });
    let connections = tally.per_connection.len() as u32;
    let mut run = Run {
        repeat,
        workers,
        readings: readings.collect(),
        forecast: Some(Forecast {
            model: "one line, first come first served".to_owned(),
            service_time,
            service_time_source: ServiceTimeSource::Given,
            maximum_rate: f64::from(server.slots()) / service_time.as_secs_f64(),
            ideal_response_time: Nanos::from_secs_f64(service_time.as_secs_f64() * multiple.max(1.0)),
        }),
        statistics: Some(Statistics::of(&tally, &batches, &PERCENTILES)),
        generator: at_ease(elapsed),
        ..Run::recorded(connections, multiple, tally, measured, elapsed)
    };
    run.judgement = Some(verdict::of_run(&run, server.slots()));
    run
}

/// A generator with room to spare, on a machine of its own.
pub(crate) fn at_ease(elapsed: Nanos) -> GeneratorFacts {
    let lane = LaneFacts { cpu: elapsed / 50, run_queue: elapsed / 1000, elapsed, spun: Nanos::ZERO };
    let ceiling = Ceiling {
        rate_per_s: 41_000.0,
        floor_p50: Nanos::from_micros(24),
        floor_p99: Nanos::from_micros(61),
        cpu_per_request: Nanos(7_300),
    };
    GeneratorFacts {
        lanes: vec![lane],
        clock_steps: Some(0),
        ceiling: Some(ceiling),
        steal: Some(0.001),
        listen_overflows: Some(0),
        syn_retransmits: Some(0),
    }
}

/// As [`canonical`], but the generator was too slow for one run, and one run's figures contradict each other.
pub fn judged() -> SweepStudy {
    let mut study = canonical();
    let slots = study.server.slots();
    let slow = &mut study.runs[1];
    slow.generator.ceiling = slow.generator.ceiling.map(|ceiling| Ceiling { rate_per_s: 104.0, ..ceiling });
    slow.judgement = Some(verdict::of_run(slow, slots));
    let wrong = &mut study.runs[2];
    wrong.generator.steal = Some(0.12);
    wrong.judgement = Some(verdict::of_run(wrong, slots));
    study
}

/// As [`canonical`], with theory beside each run: all served in one line, where turns of ten were expected. The third is said to have a
/// shorter service time, the fourth is too short; before them a probe that saw turns of ten, and one that nothing fits.
pub fn theorized() -> SweepStudy {
    let mut study = canonical();
    let server = queueing::beside::Server {
        workers: study.server.workers,
        threads: study.server.threads,
        service_time: Nanos::from_millis(200),
        scatter: queueing::discipline::Scatter::Constant,
        connections_are: queueing::discipline::Connections::Kept,
        expected: Some(Discipline::Turns),
    };
    for (at, run) in study.runs.iter_mut().enumerate() {
        let service_time = if at == 2 { Nanos::from_millis(150) } else { server.service_time };
        let elapsed = run.elapsed;
        if at == 3 {
            run.elapsed = Nanos::from_secs(2);
        }
        run.theory = queueing::beside::theory(run, &queueing::beside::Server { service_time, ..server });
        run.elapsed = elapsed;
    }
    let mut theory = study.runs[4].theory.clone();
    let probe = |keep_alive, theory| model::theory::Probe {
        keep_alive,
        connections: 60,
        measured: Nanos::from_secs(4),
        answers: 400,
        theory,
    };
    let far = Fit { held: Nanos::from_millis(200), worst: 4.5, worst_at: Some(0.99) };
    for forecast in theory.iter_mut().flat_map(|theory| &mut theory.forecasts) {
        let worst = if forecast.discipline == Discipline::Turns { 1.0 } else { 4.5 };
        (forecast.fit, forecast.shape) = (Some(Fit { worst, ..far }), Some(far));
    }
    let mut nothing = theory.clone();
    for forecast in nothing.iter_mut().flat_map(|theory| &mut theory.forecasts) {
        (forecast.fit, forecast.shape) = (Some(far), None);
    }
    study.plan.probe_discipline = true;
    study.command_line = study.plan.command_line();
    study.probes = vec![probe(true, theory), probe(false, nothing)];
    study
}

// The streams of chance.
const SENDER: u64 = 1;
const JITTER: u64 = 2;
const STALLS: u64 = 3;
const CHOICE: u64 = 4;

/// How long a slot is held: the delay, a little jitter that differs by worker, and a stall now and then.
fn held(delay: Nanos, worker: u32, repeat: u32, number: u64) -> Nanos {
    // Products only: a logarithm may differ in its last bit from one machine to another.
    let chance = uniform(JITTER + 10 * u64::from(repeat), number);
    let jitter = 0.000_5 + 0.001 * f64::from(worker) + 0.012 * (chance * chance) * (chance * chance);
    let stall = if uniform(STALLS + 10 * u64::from(repeat), number) < 0.004 { delay.as_secs_f64() * 0.6 } else { 0.0 };
    delay + Nanos::from_secs_f64(jitter + stall)
}

/// Which of the slots that became free together takes the request.
fn spread(slot: usize, number: u64) -> u64 {
    (uniform(CHOICE + slot as u64, number) * 1e9) as u64
}

/// A fresh server has fresh worker processes.
fn pid(repeat: u32, worker: u32) -> String {
    (162_795 + 100 * repeat + 4 * worker).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_canonical_study_is_the_same_each_time() {
        assert_eq!(canonical(), canonical());
    }

    #[test]
    fn the_canonical_study_has_the_published_numbers_of_requests() {
        let planned: Vec<u64> = canonical().runs.iter().map(|run| run.tally.counts.total()).collect();
        assert_eq!(planned, [2000, 3000, 4000, 6000, 8000]);
    }

    #[test]
    fn a_line_at_the_slots_keeps_them_busy_and_no_more() {
        for run in canonical().runs {
            let share = run.of_maximum().unwrap();
            assert!((0.90..1.0).contains(&share), "{}x: {share}", run.multiple);
            assert!((1.0..1.1).contains(&run.of_ideal(0.5).unwrap()), "{}x", run.multiple);
        }
    }

    #[test]
    fn the_failing_study_hides_what_failures_could_change() {
        let run = &failing().runs[1];
        assert!(run.response_time(0.90).time().is_some() && run.response_time(0.99).time().is_none());
        assert!(run.max_response_time().time().is_none());
    }
}
