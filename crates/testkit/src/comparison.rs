//! Comparisons for tests. Each run is made by recording a seeded stream of exchanges into a real
//! tally.

use judge::{ServerSeen, verdict};
use model::comparison::{
    ArmPlan, ComparisonBlocks, ComparisonLoad, ComparisonQuestion, RateLook, SizeLook,
};
use model::pace::{Arrivals, uniform};
use model::run::PERCENTILES;
use model::study::SCHEMA;
use model::{
    ComparisonPlan, ComparisonRun, ComparisonStudy, CpuUsage, Limit, Metric, Nanos, Outcome,
    Private, Probe, ProcessCpu, Run, ServerCpu, ServerFacts, ServerSize, ServerUse, Stop,
    StreamPlan, Timestamps, Verdict, Window, WorkerShare, run,
};

use crate::events;
use crate::machine::{answered_at_once, environment, puma, puma_facts, stream};

const WARM_UP: Nanos = Nanos::from_millis(500);
const LENGTH: Nanos = Nanos::from_secs(4);
const CONNECTIONS: u32 = 20;
const SLOTS: u32 = 10;

/// How an arm responds.
#[derive(Clone, Copy)]
struct ArmLaw {
    /// Response time of most requests, in ms.
    usual: f64,
    /// Response time of the others, in ms.
    slow: f64,
    /// One in this many requests is slow.
    one_in: u64,
    /// Variation from run to run, as a share of the response time.
    noise: f64,
    /// CPU time per request, in ms.
    cpu: f64,
    /// One in this many requests fails; 0 means none.
    fails_one_in: u64,
}

const PLAIN: ArmLaw =
    ArmLaw { usual: 40.0, slow: 44.0, one_in: 10, noise: 0.01, cpu: 1.9, fails_one_in: 0 };

/// All of these comparisons.
pub fn every() -> [ComparisonStudy; 14] {
    [
        keep_alive(),
        slower(),
        unclear(),
        few(),
        failing(),
        repeated(),
        three(),
        pairs(),
        combinations(),
        best(),
        enough_threads(),
        searched_threads(),
        undecided(),
        restarts(),
    ]
}

/// Without keep-alive the tail is shorter, but mean and median are longer, with more CPU.
pub fn keep_alive() -> ComparisonStudy {
    let kept = ArmLaw { usual: 10.0, slow: 292.0, one_in: 10, ..PLAIN };
    let mut study =
        played(&[("keep-alive", &[], kept), ("-k", &["-k"], ArmLaw { cpu: 2.4, ..PLAIN })], 8);
    study.plan.arms[1].stream.keep_alive = false;
    study
}

/// A branch that takes a fifth longer and uses more memory.
pub fn slower() -> ComparisonStudy {
    let branch = ArmLaw { usual: 48.0, slow: 53.0, ..PLAIN };
    played(&[("main", &["main"], PLAIN), ("my-branch", &["my-branch"], branch)], 8)
}

/// Runs that differ more from each other than the arms could.
pub fn unclear() -> ComparisonStudy {
    let noisy = ArmLaw { noise: 0.15, ..PLAIN };
    played(
        &[("-t5:5", &["-t5:5"], noisy), ("-t3:3 -C other.rb", &["-t3:3", "-C other.rb"], noisy)],
        8,
    )
}

/// Interrupted after three blocks.
pub fn few() -> ComparisonStudy {
    let mut study = slower();
    study.runs.retain(|run| run.block <= 3);
    study.interrupted = true;
    study
}

/// Interrupted in its fourth block, in which one arm ran.
pub fn broken_off() -> ComparisonStudy {
    let mut study = slower();
    let last = study.plan.order(4)[0];
    study.runs.retain(|run| run.block <= 3 || run.block == 4 && run.arm == last);
    study.interrupted = true;
    study
}

/// The other arm fails every second request.
pub fn failing() -> ComparisonStudy {
    let broken = ArmLaw { fails_one_in: 2, ..PLAIN };
    played(&[("main", &["main"], PLAIN), ("my-branch", &["my-branch"], broken)], 8)
}

/// A run of the base that failed its checks and was repeated.
pub fn repeated() -> ComparisonStudy {
    let mut study = slower();
    let at = study.runs.iter().position(|run| run.arm == 0).unwrap_or(0);
    let sound = study.runs[at].clone();
    if let Some(judgement) = &mut study.runs[at].run.judgement {
        judgement.verdict = Verdict::GeneratorBound;
    }
    study.runs.insert(at + 1, ComparisonRun { attempt: 2, ..sound });
    study
}

/// The base without an event, and a restart in full, in six blocks.
pub fn restarts() -> ComparisonStudy {
    let slower = ArmLaw { usual: 60.0, slow: 66.0, ..PLAIN };
    let mut study =
        played(&[("no event", &[], PLAIN), ("restart@1s", &["--during restart@1s"], slower)], 6);
    study.plan.arms[1].during = "restart@1s".parse().ok();
    study.plan.control = false;
    study.runs.retain(|run| run.arm < 2);
    for run in study.runs.iter_mut().filter(|run| run.arm == 1) {
        run.run.event = Some(Box::new(events::full_restart(800 + 40 * u64::from(run.block))));
    }
    study
}

/// Three arms.
pub fn three() -> ComparisonStudy {
    let faster = ArmLaw { usual: 30.0, slow: 33.0, ..PLAIN };
    played(&[("main", &["main"], PLAIN), ("one", &["one"], faster), ("two", &["two"], PLAIN)], 12)
}

/// The same three, each compared with each other.
pub fn pairs() -> ComparisonStudy {
    let mut study = three();
    study.plan.question = ComparisonQuestion::Pairs;
    study
}

/// Two versions, each with keep-alive and without, by two metrics.
pub fn combinations() -> ComparisonStudy {
    let without = ArmLaw { usual: 44.0, slow: 48.0, ..PLAIN };
    let newer = ArmLaw { usual: 36.0, slow: 50.0, ..PLAIN };
    let mut study = played(
        &[
            ("6.6.1", &["--puma 6.6.1"], PLAIN),
            ("6.6.1 -k", &["--puma 6.6.1", "-k"], without),
            ("8.0.2", &["--puma 8.0.2"], newer),
            ("8.0.2 -k", &["--puma 8.0.2", "-k"], without),
        ],
        9,
    );
    study.plan.question = ComparisonQuestion::Pairs;
    study.plan.gates = vec![Metric::Mean, Metric::P99];
    study
}

/// A search for the best of four.
pub fn best() -> ComparisonStudy {
    best_of([80.0, 60.0, 42.0, 41.0], PLAIN.noise)
}

/// The largest of four is best. If the CPUs are `used` up, they are the limit.
pub fn largest_is_best(used: bool) -> ComparisonStudy {
    let mut study = best_of([80.0, 60.0, 42.0, 30.0], PLAIN.noise);
    let cpu =
        CpuUsage { server: 1.9, generator: 0.05, others: Some(0.02), of: 2.0, by_quota: false };
    for run in study.runs.iter_mut().filter(|_| used) {
        run.run.judgement.iter_mut().for_each(|judgement| judgement.limit = Some(Limit::Cpu(cpu)));
    }
    study
}

/// The largest of four is best, and each of its four processes computes for 80 % of the time.
pub fn largest_holds_the_lock() -> ComparisonStudy {
    let mut study = best_of([80.0, 60.0, 42.0, 30.0], PLAIN.noise);
    for run in &mut study.runs {
        run.run.generator.server = Some(ruby_cpus(&run.run, 4, 0.8, 8.0));
    }
    study
}

/// Of four sizes with two workers each, the third is as good as the largest: each of its two
/// processes computes nearly all the time, as Ruby's lock and the two CPUs allow.
pub fn enough_threads() -> ComparisonStudy {
    let mut study = best_of([450.0, 225.0, 155.0, 154.0], PLAIN.noise);
    let sizes = [(2, 1), (2, 2), (2, 3), (2, 5)];
    for ((facts, arm), (workers, threads)) in
        study.servers.iter_mut().flatten().zip(&mut study.plan.arms).zip(sizes)
    {
        (facts.workers, facts.threads) = (workers, threads);
        arm.name = format!("{workers} x {threads}").into();
    }
    let cpu =
        CpuUsage { server: 1.9, generator: 0.05, others: Some(0.02), of: 2.0, by_quota: false };
    for run in &mut study.runs {
        // 14.9 ms of Ruby a request.
        let used = run.run.completed_rate() * 14.9e-3 / 2.0;
        run.run.generator.server = Some(ruby_cpus(&run.run, 2, used, 2.0));
        if used > 0.8
            && let Some(judgement) = &mut run.run.judgement
        {
            judgement.limit = Some(Limit::SharedCpus(cpu));
        }
    }
    study.command_line = "longtail sweep --try 2x1,2x2,2x3,2x5 --seed=7".into();
    study
}

/// After a search for threads, in which 2 x 3 seemed enough for 75/s: it and its neighbours in an open
/// loop at that rate.
pub fn searched_threads() -> ComparisonStudy {
    let of = |usual: f64| ArmLaw { usual, slow: usual * 1.9, noise: 0.01, ..PLAIN };
    let arms = [
        ("2 x 2", &["-w2 -t2:2"][..], of(130.0)),
        ("2 x 3", &["-w2 -t3:3"], of(52.0)),
        ("2 x 5", &["-w2 -t5:5"], of(51.5)),
    ];
    let mut study = played(&arms, 8);
    study.runs.retain(|run| run.arm < arms.len());
    for (facts, threads) in study.servers.iter_mut().flatten().zip([2, 3, 5]) {
        (facts.workers, facts.threads) = (2, threads);
    }
    let rows = [
        (1, 44.0, 0.68, None),
        (2, 88.0, 0.66, Some((115, 830))),
        (3, 120.0, 0.91, Some((52, 91))),
        (5, 125.0, 0.95, Some((51, 93))),
    ];
    let look =
        |(threads, rate_per_s, computes, times): (u32, f64, f64, Option<(u64, u64)>)| SizeLook {
            is_near_limit: threads > 2,
            cpus_used_up: (threads > 3).then_some(2.0),
            computes: Some(computes),
            at_rate: times.map(|(p50, p95)| RateLook {
                per_s: 75.0,
                p50: Some(Nanos::from_millis(p50)),
                p95: Some(Nanos::from_millis(p95)),
                missing: None,
                others: None,
            }),
            ..size_look(threads, rate_per_s)
        };
    study.plan = ComparisonPlan {
        question: ComparisonQuestion::Best,
        control: false,
        load: ComparisonLoad::Rate { per_s: 75.0 },
        arrivals: Arrivals::Poisson,
        looked_at: rows.map(look).into(),
        ..study.plan
    };
    study.command_line = "longtail sweep -w2 --try auto --seed=7".into();
    study
}

/// A run of two workers with so many threads each, in a closed loop on a machine that does nothing
/// else, and of which no more is known than its requests per second.
pub fn size_look(threads: u32, rate_per_s: f64) -> SizeLook {
    SizeLook {
        size: ServerSize { workers: 2, threads, keep_alive: true },
        rate_per_s,
        is_near_limit: false,
        cpus_used_up: None,
        computes: None,
        others: None,
        at_rate: None,
    }
}

/// Processes of Ruby, each of which computes for this share of a run, on so many CPUs.
fn ruby_cpus(run: &Run, processes: u32, used: f64, of: f64) -> ServerCpu {
    let elapsed = run.elapsed;
    let cpu = Nanos::from_secs_f64(elapsed.as_secs_f64() * used);
    let process = |pid| ProcessCpu { pid, cpu, run_queue: Nanos::ZERO };
    ServerCpu {
        children: Nanos::ZERO,
        processes: (1..=processes).map(process).collect(),
        elapsed,
        requests: 0,
        of,
        by_quota: false,
        is_shared: false,
        busy: None,
        idle: None,
        is_ruby: true,
        threads: None,
    }
}

/// Four similar arms whose runs differ more than the arms could.
pub fn undecided() -> ComparisonStudy {
    best_of([41.0; 4], 0.4)
}

fn best_of(usual: [f64; 4], noise: f64) -> ComparisonStudy {
    let of = |at: usize| ArmLaw { usual: usual[at], slow: usual[at] * 1.1, noise, ..PLAIN };
    let arms = [
        ("2 x 3", &["-w2 -t3:3"][..], of(0)),
        ("2 x 5", &["-w2 -t5:5"], of(1)),
        ("4 x 3", &["-w4 -t3:3"], of(2)),
        ("4 x 5", &["-w4 -t5:5"], of(3)),
    ];
    let mut study = played(&arms, 12);
    study.runs.retain(|run| run.arm < arms.len());
    for (facts, (workers, threads)) in
        study.servers.iter_mut().flatten().zip([(2, 3), (2, 5), (4, 3), (4, 5)])
    {
        (facts.workers, facts.threads) = (workers, threads);
    }
    study.plan =
        ComparisonPlan { question: ComparisonQuestion::Best, control: false, ..study.plan };
    study.command_line = "longtail sweep --try 2x3,2x5,4x3,4x5 --seed=7".into();
    study
}

fn played(arms: &[(&str, &[&str], ArmLaw)], blocks: u32) -> ComparisonStudy {
    let arm = |(name, settings, _): &(&str, &[&str], ArmLaw)| ArmPlan {
        name: (*name).into(),
        settings: settings.iter().map(|&setting| setting.into()).collect(),
        server: puma(2, 5),
        stream: StreamPlan {
            delay: Some(Nanos::from_millis(20)),
            timestamps: Timestamps::User,
            ..stream(Stop::After(LENGTH), WARM_UP)
        },
        env: Private::default(),
        dir: None,
        probe: Probe::Proc,
        during: None,
    };
    let plan = ComparisonPlan {
        question: ComparisonQuestion::Change,
        arms: arms.iter().map(arm).collect(),
        base: 0,
        control: true,
        load: ComparisonLoad::Closed { connections: None },
        arrivals: Arrivals::Constant,
        blocks: ComparisonBlocks::Fixed(blocks),
        gates: Vec::new(),
        gates_chosen_later: false,
        gates_before_runs: Vec::new(),
        margin: 0.05,
        seed: 7,
        cool_down: true,
        calibrate: true,
        thresholds: Vec::new(),
        looked_at: Vec::new(),
        wanted_per_s: None,
    };
    let mut runs = Vec::new();
    for block in 1..=blocks {
        for arm in plan.order(block) {
            let (.., law) = arms.get(arm).unwrap_or(&arms[0]);
            runs.push(run_of(block, arm, law));
        }
    }
    let words: Vec<String> = arms.iter().map(|(name, ..)| format!("--arm {name}")).collect();
    ComparisonStudy {
        schema: SCHEMA,
        started_at: "2026-07-21T10:00:00Z".to_owned(),
        command_line: format!("longtail compare -w2 -t5:5 -d20ms {} --seed=7", words.join(" "))
            .into(),
        servers: plan.arms.iter().map(|_| Some(server())).collect(),
        plan,
        environment: environment(),
        maxima_per_s: Vec::new(),
        total_time: Nanos::from_secs(6) * runs.len() as u64,
        runs,
        lost: Vec::new(),
        warnings: Vec::new(),
        interrupted: false,
    }
}

fn server() -> ServerFacts {
    ServerFacts {
        runtime: Some("ruby 3.4.1 (2024-12-25 revision 48d4efcb85) [x86_64-linux]".to_owned()),
        git: Some("main 43b8bba1".to_owned()),
        command_line: "puma -q -b tcp://127.0.0.1:40001 -w2 -t5:5 sleep.ru".into(),
        ..puma_facts(2, 5)
    }
}

fn run_of(block: u32, arm: usize, law: &ArmLaw) -> ComparisonRun {
    let window = Window { from: WARM_UP, until: WARM_UP + LENGTH };
    let seed = u64::from(block) << 8 | arm as u64;
    // Each block is slower than the one before, and an arm varies from run to run.
    let drift = 1.0 + 0.01 * f64::from(block);
    let own = drift * (1.0 + law.noise * 3f64.sqrt() * (2.0 * uniform(seed, u64::MAX) - 1.0));
    let recorder =
        answered_at_once(CONNECTIONS, window, Timestamps::User, |_, number, exchange| {
            let number = number + 1;
            let time = if number % law.one_in == 0 { law.slow } else { law.usual };
            exchange.ended +=
                Nanos::from_secs_f64(time * own * (0.98 + 0.04 * uniform(seed, number)) / 1e3);
            exchange.received_bytes = 250;
            if law.fails_one_in > 0 && number % law.fails_one_in == 0 {
                exchange.outcome = Outcome::Answered(503);
            }
        });
    let elapsed = WARM_UP + LENGTH + Nanos::from_millis(40);
    let answers = recorder.tally.all_responses();
    let workers = ["4711", "4712"].map(|worker| WorkerShare {
        worker: worker.to_owned(),
        requests: answers / 2,
        source: run::ShareSource::Stats,
    });
    let mut run = Run {
        repeat: block,
        workers: workers.to_vec(),
        ..recorder.run(&PERCENTILES, LENGTH, elapsed)
    };
    run.judgement = Some(verdict::of_run(&run, &ServerSeen::stated(SLOTS, 1, None)));
    let cpu = law.cpu * own / drift * (1.0 + 0.01 * (uniform(seed, u64::MAX - 1) - 0.5));
    let server = ServerUse {
        cpu: Some(Nanos::from_secs_f64(cpu * answers as f64 / 1e3)),
        memory_bytes: Some(88_000_000 + (uniform(seed, u64::MAX - 2) * 2e6) as u64),
    };
    ComparisonRun {
        server,
        generator_cpu: Some(Nanos::from_millis(90)),
        ..ComparisonRun::of(block, arm, run)
    }
}
