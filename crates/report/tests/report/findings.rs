//! Each sentence of an answer, against studies of which it is true, of which it is not, and which
//! do not decide it.

use std::fmt::Write as _;
use std::path::Path;

use model::generator::ServerCpu;
use model::{
    AtOnce, CpuUsage, Diagnostic, Exchange, Judgement, Limit, LoadStudy, Nanos, Outcome, Run,
    Strength, Study, SweepStudy, Verdict, Window,
};
use report::summary::Summary;
use testkit::{load, study};

const SECONDS: u64 = 10;
const WINDOW: Window = Window { from: Nanos::ZERO, until: Nanos::from_secs(SECONDS) };

/// A run over `connections` whose responses take `millis`, in turn, at `rate` requests a second.
fn run(connections: u32, rate: u64, millis: &dyn Fn(u64) -> f64) -> Run {
    let play = |n, due| (due + Nanos((millis(n) * 1e6) as u64), Outcome::Answered(200));
    let mut run = load::paced(WINDOW, rate, &model::run::PERCENTILES, play);
    // All of them in the window, so that the rate is what it says.
    run.tally.completed_in_window = rate * SECONDS;
    run.connections = connections;
    run.multiple = Some(f64::from(connections) / 10.0);
    run.judgement = Some(judgement(Verdict::ServerBound, Some(threads(connections))));
    run
}

fn threads(connections: u32) -> Limit {
    Limit::Threads {
        slots: 10,
        connections,
        at_once: Some(AtOnce { mean: 9.9, low: 9.4, high: Some(10.4) }),
        busy: Some(10.0),
        unhindered: None,
        strength: Strength::Is,
        computes: None,
    }
}

fn judgement(verdict: Verdict, limit: Option<Limit>) -> Judgement {
    let checks = vec![Diagnostic::LaneCpu { share: 0.95 }];
    Judgement { verdict, decided_by: None, checks, limit, forced: false }
}

/// A sweep of Puma 5.6.5, 2 workers x 5 threads, with these runs.
fn sweep(runs: Vec<Run>) -> SweepStudy {
    let mut study = study::canonical();
    study.server.version = Some("5.6.5".to_owned());
    study.server.workers = 2;
    study.server.threads = 5;
    study.runs = runs;
    study
}

/// Puma 5 at 4x: nine of ten in 101 ms, the tenth in 3.2 s.
fn turns(n: u64) -> f64 {
    if n % 10 == 9 { 3100.0 + (n % 70) as f64 * 3.0 } else { 101.0 + (n % 7) as f64 * 0.1 }
}

fn steady(n: u64) -> f64 {
    101.0 + (n % 7) as f64 * 0.1
}

/// 60/s offered over 10 s, of which each third request waits ever longer: Puma 5.6.5, keep-alive, 5
/// threads of 100 ms.
fn overloaded_in_turns() -> LoadStudy {
    open_loop(|n, due| {
        if n % 3 == 0 {
            Nanos(due.0 / 2) + Nanos::from_millis(300)
        } else {
            Nanos::from_millis(101)
        }
    })
}

/// 60/s over 10 s, of which each tenth request waits for its turn: Puma 6.6.1, keep-alive, 2 threads
/// of 20 ms.
fn nearly_full_in_turns() -> LoadStudy {
    open_loop(|n, _| Nanos::from_millis(if n % 10 == 9 { 840 + n % 7 } else { 21 }))
}

/// 60/s offered over 10 s. `takes` says how long the `n`-th request takes, given when it was due.
fn open_loop(takes: impl Fn(u64, Nanos) -> Nanos) -> LoadStudy {
    let mut study = load::steep();
    let play = |n, due: Nanos| (due + takes(n, due), Outcome::Answered(200));
    let paced = load::paced(WINDOW, 60, &model::run::PERCENTILES, play);
    study.run.tally = paced.tally;
    study.run.statistics = paced.statistics;
    study.run.overload = None;
    study.run.measured = WINDOW.until;
    study
}

fn steadily(loads: &[(u32, u64)]) -> Vec<Run> {
    loads.iter().map(|(connections, rate)| run(*connections, *rate, &steady)).collect()
}

/// The run at 4x.
fn fourfold(rate: u64, millis: &dyn Fn(u64) -> f64, verdict: Verdict, limit: Option<Limit>) -> Run {
    Run { judgement: Some(judgement(verdict, limit)), ..run(40, rate, millis) }
}

/// Throughput falls, and other programs used this many CPUs at the lower and at the higher load.
fn disturbed(busy: [f64; 2]) -> SweepStudy {
    let mut study = sweep(steadily(&[(10, 99), (40, 60)]));
    for (run, busy) in study.runs.iter_mut().zip(busy) {
        run.generator.server =
            Some(ServerCpu { busy: Some(busy), of: 2.0, is_shared: true, ..ServerCpu::default() });
    }
    study
}

fn failing() -> SweepStudy {
    let mut failing = run(40, 100, &steady);
    let [due, ended] = [1, 2].map(Nanos::from_secs);
    for _ in 0..11 {
        let exchange =
            Exchange { due, sent: due, ended, received_bytes: 0, outcome: Outcome::TimedOut };
        failing.tally.record(&exchange, 0);
    }
    sweep(vec![failing])
}

/// This run, after one in which nobody waits.
fn beside_idle(last: Run) -> SweepStudy {
    sweep(vec![run(10, 99, &steady), last])
}

/// Every situation, by what is true of it.
fn situations() -> Vec<(&'static str, Study)> {
    let sweeps = [sweeps_by_order(), sweeps_by_throughput(), sweeps_by_limit()].concat();
    let loads = [
        ("an overload of which the median shows nothing", overloaded_in_turns()),
        ("an overload in order", load::steep()),
        ("an open loop in which a tenth waits", nearly_full_in_turns()),
        ("a server that keeps up", load::open_poisson()),
    ];
    let loads = loads.into_iter().map(|(what, study)| (what, study.into()));
    sweeps.into_iter().map(|(what, study)| (what, study.into())).chain(loads).collect()
}

/// In which order requests are served.
fn sweeps_by_order() -> Vec<(&'static str, SweepStudy)> {
    let in_turns = Run {
        warnings: vec![Diagnostic::ServedInTurns {
            answers_a_turn: 10.0,
            varies: false,
            waiting: 30,
        }],
        ..run(40, 100, &turns)
    };
    let unfair = sweep(vec![run(10, 99, &steady), in_turns]);
    let mut newer = unfair.clone();
    newer.server.version = Some("7.2.1".to_owned());
    vec![
        // First come, first served is connections / throughput by Little's law, and no product of a
        // service time and the load.
        ("nine of ten at once and the tenth far later", unfair),
        ("the same of a Puma that does not do this", newer),
        (
            "an app in which a tenth takes long",
            sweep(vec![run(10, 99, &turns), run(40, 100, &turns)]),
        ),
        (
            "without an idle run, what makes some requests slow is not known",
            sweep(vec![run(40, 100, &turns)]),
        ),
        ("all wait alike", beside_idle(run(40, 100, &|n| 400.0 + (n % 9) as f64))),
        ("processor sharing", beside_idle(run(40, 100, &|n| 20.0 + (n % 100) as f64 * 12.0))),
    ]
}

/// How throughput depends on the load.
fn sweeps_by_throughput() -> Vec<(&'static str, SweepStudy)> {
    let free = |connections, rate| Run {
        judgement: Some(judgement(Verdict::Unloaded, None)),
        ..run(connections, rate, &steady)
    };
    vec![
        ("throughput rises to the end", sweep(vec![free(2, 20), free(4, 40), free(8, 79)])),
        ("one load that is no saturation", sweep(vec![free(20, 74)])),
        ("throughput falls", sweep(steadily(&[(10, 99), (20, 100), (40, 60)]))),
        ("throughput falls, and others used CPUs only then", disturbed([0.1, 1.1])),
        ("throughput falls, and others used as many CPUs before", disturbed([1.0, 1.1])),
        (
            "saturated from the middle",
            sweep([steadily(&[(2, 20), (10, 99)]), vec![run(40, 100, &turns)]].concat()),
        ),
    ]
}

/// What limited the throughput, or why that is not known.
fn sweeps_by_limit() -> Vec<(&'static str, SweepStudy)> {
    let cpu =
        CpuUsage { server: 1.02, generator: 0.05, others: Some(0.0), of: 2.0, by_quota: false };
    let lock = Limit::RubyLock { processes: 2, each: 0.98, cpu, strength: Strength::Is };
    let computes = |n: u64| 53.0 + (n % 5) as f64;
    vec![
        (
            "the generator was the limit",
            beside_idle(fourfold(60, &turns, Verdict::GeneratorBound, None)),
        ),
        ("a run is invalid", beside_idle(fourfold(60, &turns, Verdict::Invalid, None))),
        ("the only run is invalid", sweep(vec![fourfold(60, &turns, Verdict::Invalid, None)])),
        // 10 ms of Ruby in 2 workers x 5 threads: slots / service time would be 969/s, and it does
        // 189.
        ("Ruby's lock", sweep(vec![fourfold(180, &computes, Verdict::ServerBound, Some(lock))])),
        (
            "shared CPUs",
            sweep(vec![fourfold(
                180,
                &computes,
                Verdict::SharedCpus,
                Some(Limit::SharedCpus(cpu)),
            )]),
        ),
        (
            "a limit that is not known",
            sweep(vec![fourfold(
                180,
                &computes,
                Verdict::ServerBound,
                Some(Limit::NotKnown { cpu: None, at_once: None, busy: None }),
            )]),
        ),
        ("more failures than p99 leaves room for", failing()),
    ]
}

#[test]
fn every_sentence_follows_from_the_figures() {
    let mut all = String::new();
    for (what, study) in situations() {
        let summary = Summary::of(&study, None);
        let _ = writeln!(all, "{what}{}", if summary.trusted { "" } else { " (not trusted)" });
        let sentences =
            [summary.sentence.clone()].into_iter().chain(summary.reasons().map(str::to_owned));
        for sentence in sentences.chain(summary.trust.iter().map(|line| line.sentence.clone())) {
            let _ = writeln!(all, "  {sentence}");
        }
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/conclusions.txt");
    testkit::golden::expect(&file, &all);
    let shared = situations().into_iter().find(|(what, _)| *what == "shared CPUs").unwrap().1;
    let answer = report::answer::whole(&shared, None, report::Width::ANY);
    assert!(answer.contains("180~"), "the rate is marked where it stands");
    let hidden = overloaded_in_turns();
    assert_eq!(
        hidden.run.tally.response_time.quantile(0.5).map(|time| time.0 / 1_000_000),
        Some(101)
    );
    let failing = failing().into();
    let failing = Summary::of(&failing, None);
    assert_eq!(failing.runs[0].percentile(0.99), None, "a timeout may have taken any time");
    assert!(failing.json().contains("\"slow\": null"), "a timeout may have been a slow request");
}

#[test]
fn every_answer_fits_a_screen_in_plain_words() {
    let comparisons = testkit::comparison::every().map(Study::from);
    for study in testkit::every_study().into_iter().chain(comparisons) {
        let text = report::answer::whole(&study, Some("study.json"), report::Width::ANY);
        let rows = match &study {
            Study::Sweep(study) => study.runs.len().saturating_sub(8),
            Study::Compare(study) => study.plan.pairs().len().saturating_sub(2),
            _ => 0,
        };
        assert!(text.lines().count() <= 30 + rows, "{} lines:\n{text}", text.lines().count());
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        for word in ["times shorter", "fair queue", "fair-queue", "0 ms each", "NaN", "inf", " ns"]
        {
            assert!(!text.contains(word), "{word}:\n{text}");
        }
        let summary = Summary::of(&study, None);
        let json = summary.json();
        let steps: usize = study.runs().iter().map(|run| run.steps.len()).sum();
        let classes: usize = study.runs().iter().map(|run| run.tally.classes.len()).sum();
        let most = 1024 * (3 + steps + summary.runs.len().max(1)) + 512 * classes;
        assert!(
            summary.comparison.is_some() || json.len() <= most,
            "{} bytes of {} runs",
            json.len(),
            summary.runs.len()
        );
        for finding in &summary.findings {
            assert!(
                json.contains(&serde_json::to_string(&finding.sentence).unwrap()),
                "{}",
                finding.sentence
            );
        }
    }
}
