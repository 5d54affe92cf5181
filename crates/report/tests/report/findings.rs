//! Each sentence of an answer, against studies of which it is true, of which it is not, and which do not decide it.

use model::generator::ServerCpu;
use model::{
    BacklogSamples, Batches, Counts, CpuUsage, Diagnostic, Exchange, Finding, Judgement, Limit, LoadStudy, Nanos,
    Outcome, Run, Statistics, Study, SweepStudy, Tally, Verdict, Window, findings,
};
use report::summary::Summary;
use testkit::{load, study};

const SECONDS: u64 = 10;
const WINDOW: Window = Window { from: Nanos::ZERO, until: Nanos::from_secs(SECONDS) };

/// A run over `connections` whose answers take `millis`, in turn, at `rate` requests a second.
fn run(connections: u32, rate: u64, millis: &dyn Fn(u64) -> f64) -> Run {
    let mut tally = Tally::new(WINDOW, connections as usize);
    let mut batches = Batches::new(WINDOW);
    for n in 0..rate * SECONDS {
        let due = Nanos(n * 1_000_000_000 / rate);
        let took = Nanos((millis(n) * 1e6) as u64);
        // Within the window, so that the rate is what it says.
        let ended = (due + took).min(Nanos(WINDOW.until.0 - 1)).max(due);
        let exchange = Exchange { due, sent: due, ended, received_bytes: 1, outcome: Outcome::Answered(200) };
        tally.record(&exchange, 0);
        batches.record(due, took, Nanos::ZERO);
    }
    tally.response_time = model::Histogram::default();
    (0..rate * SECONDS).for_each(|n| tally.response_time.record(Nanos((millis(n) * 1e6) as u64)));
    let statistics = Some(Statistics::of(&tally, &batches, &model::run::PERCENTILES));
    let mut run = Run::recorded(connections, tally, WINDOW.until, WINDOW.until);
    run.multiple = Some(f64::from(connections) / 10.0);
    run.statistics = statistics;
    run.judgement = Some(judgement(Verdict::ServerBound, Some(threads(connections))));
    run
}

fn threads(connections: u32) -> Limit {
    Limit::Threads { slots: 10, connections, of_maximum: 0.99 }
}

fn judgement(verdict: Verdict, limit: Option<Limit>) -> Judgement {
    Judgement { verdict, checks: vec![Diagnostic::LaneCpu { share: 0.95 }], limit, forced: false }
}

/// A sweep of Puma 5.6.5, 2 workers x 5 threads, with these runs.
fn sweep(runs: Vec<Run>) -> SweepStudy {
    let mut study = study::canonical();
    study.server.version = Some("5.6.5".to_owned());
    (study.server.workers, study.server.threads) = (2, 5);
    study.runs = runs;
    study
}

fn conclusion(study: impl Into<Study>) -> String {
    Summary::of(&study.into(), None).sentence
}

fn reasons(study: impl Into<Study>) -> String {
    Summary::of(&study.into(), None).reasons().collect::<Vec<_>>().join(" ")
}

/// Puma 5 at 4x: nine of ten in 101 ms, the tenth in 3.2 s.
fn turns(n: u64) -> f64 {
    if n % 10 == 9 { 3100.0 + (n % 70) as f64 * 3.0 } else { 101.0 + (n % 7) as f64 * 0.1 }
}

fn steady(n: u64) -> f64 {
    101.0 + (n % 7) as f64 * 0.1
}

#[test]
fn nine_of_ten_at_once_and_the_tenth_far_later_is_unfair() {
    let mut last = run(40, 100, &turns);
    last.warnings = vec![Diagnostic::ServedInTurns { answers_a_turn: 10.6, waiting: 30 }];
    let study = sweep(vec![run(10, 99, &steady), last]);
    let said = conclusion(study.clone());
    assert!(
        said.starts_with("From 10 connections on, the lowest load tried, the server is saturated at 100 requests/s. "),
        "{said}"
    );
    assert!(
        said.contains("It is unfair: at 4x, 90 % of the requests take 101 ms and 10 % take 3.22 s, on average."),
        "{said}"
    );
    // First come, first served is connections / throughput by Little's law, and no product of a service time and the load.
    assert!(said.ends_with("Served first come, first served, each would take about 400 ms."), "{said}");
    let why = reasons(study.clone());
    assert!(why.contains("Puma before 7 serves one keep-alive connection several times before it takes the next (10.6 responses in a row)"), "{why}");
    let newer = SweepStudy {
        server: model::ServerFacts { version: Some("7.2.1".to_owned()), ..study.server.clone() },
        ..study
    };
    assert!(reasons(newer).contains("The server serves one"), "not the Puma that does this");
}

#[test]
fn an_app_in_which_a_tenth_takes_long_is_not_the_servers_unfairness() {
    let said = conclusion(sweep(vec![run(10, 99, &turns), run(40, 100, &turns)]));
    assert!(
        said.contains("The app itself varies: also at 10 connections, where no request waits for another, 90 % of"),
        "{said}"
    );
    assert!(!said.contains("unfair"), "{said}");
}

#[test]
fn without_a_run_in_which_nobody_waits_it_is_not_known_who_makes_some_slow() {
    let said = conclusion(sweep(vec![run(40, 100, &turns)]));
    assert!(said.contains("Whether the server's order or the app makes some slow, one load does not tell."), "{said}");
    assert!(said.starts_with("At 40 connections the server is saturated") && !said.contains("unfair"), "{said}");
}

#[test]
fn requests_that_all_wait_alike_are_in_order() {
    let study = sweep(vec![run(10, 99, &steady), run(40, 100, &|n| 400.0 + (n % 9) as f64)]);
    let said = conclusion(study);
    assert!(
        said.contains("It is fair: at 4x half of the requests take 404 ms or less and 95 % at most 408 ms"),
        "{said}"
    );
    // Processor sharing: spread, and neither in order nor of two kinds.
    let spread = conclusion(sweep(vec![run(10, 99, &steady), run(40, 100, &|n| 20.0 + (n % 100) as f64 * 12.0)]));
    assert!(spread.contains("At 4x half of the requests take") && !spread.contains("fair"), "{spread}");
}

#[test]
fn throughput_that_rises_to_the_end_is_no_saturation() {
    let free = |connections, rate| Run {
        judgement: Some(judgement(Verdict::Unloaded, None)),
        ..run(connections, rate, &steady)
    };
    let said = conclusion(sweep(vec![free(2, 20), free(4, 40), free(8, 79)]));
    assert!(
        said.starts_with(
            "Throughput still rises at 8 connections, the highest load tried: the server does at least 79 requests/s."
        ),
        "{said}"
    );
    let one = conclusion(sweep(vec![free(20, 74)]));
    assert!(
        one.starts_with(
            "74 requests/s at 20 connections; whether the server is saturated there, one load does not tell."
        ),
        "{one}"
    );
    let falls = conclusion(sweep(vec![run(10, 99, &steady), run(20, 100, &steady), run(40, 60, &steady)]));
    assert!(falls.starts_with("Throughput falls under load: 100 requests/s at 20 connections, 60 at 40."), "{falls}");
    let mut disturbed = sweep(vec![run(10, 99, &steady), run(40, 60, &steady)]);
    let busy = |busy| ServerCpu { busy: Some(busy), of: 2.0, is_shared: true, ..ServerCpu::default() };
    disturbed.runs[0].generator.server = Some(busy(0.1));
    disturbed.runs[1].generator.server = Some(busy(1.1));
    let said = conclusion(disturbed.clone());
    assert!(said.contains("But other processes used 1.0 more CPUs at 40, so this does not show that"), "{said}");
    disturbed.runs[0].generator.server = Some(busy(1.0));
    let said = conclusion(disturbed);
    assert!(said.starts_with("Throughput falls under load: 99 requests/s"), "{said}");
    let from_the_middle = conclusion(sweep(vec![run(2, 20, &steady), run(10, 99, &steady), run(40, 100, &turns)]));
    assert!(
        from_the_middle.starts_with("From 10 connections on the server is saturated at 100 requests/s."),
        "{from_the_middle}"
    );
}

#[test]
fn a_run_that_failed_its_checks_is_no_evidence() {
    let mut bad = run(40, 60, &turns);
    for (verdict, word) in [(Verdict::GeneratorBound, "GENERATOR-BOUND at 4x"), (Verdict::Invalid, "INVALID at 4x")] {
        bad.judgement = Some(judgement(verdict, None));
        let study = sweep(vec![run(10, 99, &steady), bad.clone()]);
        let said = conclusion(study.clone());
        assert!(said.starts_with(word) && !said.contains("fair") && !said.contains("falls"), "{said}");
        let all = sweep(vec![bad.clone()]);
        let codes: Vec<Finding> = findings(&all.into());
        assert!(matches!(codes.as_slice(), [Finding::NotMeasured { .. }]), "{codes:?}");
        assert!(!Summary::of(&study.into(), None).trusted);
    }
}

#[test]
fn the_limit_is_named_for_what_it_is() {
    let cpu = CpuUsage { server: 1.02, generator: 0.05, others: Some(0.0), of: 2.0 };
    let limited = |limit: Limit, verdict| {
        let mut last = run(40, 180, &|n| 53.0 + (n % 5) as f64);
        last.judgement = Some(judgement(verdict, Some(limit)));
        sweep(vec![last])
    };
    // 10 ms of Ruby in 2 workers x 5 threads: slots / service time would be 969/s, and it does 189.
    let lock = limited(Limit::RubyLock { processes: 2, each: 0.98, cpu }, Verdict::ServerBound);
    let why = reasons(lock.clone());
    assert!(
        why.contains("Ruby's lock is the limit: it runs one thread of a process at a time, and 2 processes did"),
        "{why}"
    );
    assert!(why.contains("More threads a worker add waiting, not throughput."), "{why}");
    assert!(!conclusion(lock).contains("969"));
    let shared = limited(Limit::SharedCpus(cpu), Verdict::SharedCpus);
    let said = conclusion(shared.clone());
    assert!(said.contains("requests/s, on CPUs that it shares; on CPUs of its own it would do more."), "{said}");
    assert!(
        report::answer::whole(&shared.into(), None, report::Width::ANY).contains("180~"),
        "the rate is marked where it stands"
    );
    let not_known = limited(Limit::NotKnown { cpu: None }, Verdict::ServerBound);
    assert_eq!(reasons(not_known), "", "of nothing nothing is said");
}

#[test]
fn failures_stand_in_the_conclusion_with_their_kinds() {
    let mut failing = run(40, 100, &steady);
    for _ in 0..11 {
        let exchange = Exchange {
            due: Nanos::from_secs(1),
            sent: Nanos::from_secs(1),
            ended: Nanos::from_secs(2),
            received_bytes: 0,
            outcome: Outcome::TimedOut,
        };
        failing.tally.record(&exchange, 0);
    }
    let said = conclusion(sweep(vec![failing.clone()]));
    assert!(said.contains("1.1 % of the requests failed (11 of 1011): 11 timeouts after 20 s."), "{said}");
    let summary = Summary::of(&sweep(vec![failing]).into(), None);
    assert_eq!(summary.runs[0].response_ms.p99, None, "more failures than p99 leaves room for");
    assert_eq!(summary.runs[0].missing["p99"], "failures");
    assert!(
        summary.trust.iter().any(|line| line.sentence.starts_with("p99 is not a number: a failure counts as slower")),
        "{:?}",
        summary.trust
    );
    assert!(summary.runs[0].slow.is_none(), "of a run with timeouts the slow ones are not known");
    assert_eq!(Counts::default().failed(), 0);
}

/// 60/s offered over 10 s, of which each third request waits ever longer: Puma 5.6.5, keep-alive, 5 threads of 100 ms.
fn overloaded_in_turns() -> LoadStudy {
    let mut study = load::steep();
    let mut tally = Tally::new(WINDOW, 100);
    let (mut batches, mut samples) = (Batches::new(WINDOW), BacklogSamples::new(WINDOW));
    let mut ends: Vec<Nanos> = Vec::new();
    for n in 0..60 * SECONDS {
        let due = Nanos(n * 1_000_000_000 / 60);
        let took = if n % 3 == 0 { Nanos(due.0 / 2) + Nanos::from_millis(300) } else { Nanos::from_millis(101) };
        let exchange =
            Exchange { due, sent: due, ended: due + took, received_bytes: 1, outcome: Outcome::Answered(200) };
        tally.record(&exchange, 0);
        batches.record(due, took, Nanos::ZERO);
        ends.push(due + took);
        while samples.next() <= due {
            let now = samples.next();
            samples.take(now, n + 1 - ends.iter().filter(|end| **end <= now).count() as u64);
        }
    }
    samples.end(Nanos(WINDOW.until.0 - 1));
    let backlog = samples.backlog(60 * SECONDS, Some(WINDOW.until));
    study.run.statistics = Some(Statistics::of(&tally, &batches, &model::run::PERCENTILES).with_backlog(backlog));
    study.run.tally = tally;
    study.run.overload = None;
    study.run.measured = WINDOW.until;
    study
}

#[test]
fn an_overload_is_seen_by_its_backlog_though_the_median_stays() {
    let study = overloaded_in_turns();
    assert_eq!(study.run.tally.response_time.quantile(0.5).map(|time| time.0 / 1_000_000), Some(101));
    let said = conclusion(study);
    assert!(said.starts_with("OVERLOADED: of 60 requests/s the server completes about "), "{said}");
    assert!(
        said.contains("68 % of the requests take 108 ms and 32 % take 2.90 s, on average, and these ever longer"),
        "{said}"
    );
    let in_order = conclusion(load::steep());
    assert!(in_order.starts_with("OVERLOADED: of 150 requests/s the server completes about 99."), "{in_order}");
    assert!(in_order.ends_with("A percentile would only say how long the test was."), "{in_order}");
    let keeps_up = conclusion(load::open_poisson());
    assert!(
        keeps_up.starts_with("The server keeps up with 501 requests/s; 99 of 100 are answered within"),
        "{keeps_up}"
    );
}

#[test]
fn every_answer_fits_a_screen_in_plain_words() {
    let sweeps = study::every().into_iter().map(Study::from);
    for study in sweeps.chain(load::every().into_iter().map(Study::from)) {
        let text = report::answer::whole(&study, None, report::Width::ANY);
        let rows = if let Study::Sweep(study) = &study { study.runs.len().saturating_sub(8) } else { 0 };
        assert!(text.lines().count() <= 30 + rows, "{} lines:\n{text}", text.lines().count());
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        for word in ["times shorter", "fair queue", "fair-queue", "0 ms each", "NaN", "inf", " ns"] {
            assert!(!text.contains(word), "{word}:\n{text}");
        }
        let summary = Summary::of(&study, None);
        let json = summary.json();
        assert!(
            json.len() <= 3000 + 1000 * summary.runs.len().max(1),
            "{} bytes of {} runs",
            json.len(),
            summary.runs.len()
        );
        for finding in &summary.findings {
            assert!(json.contains(&serde_json::to_string(&finding.sentence).unwrap()), "{}", finding.sentence);
        }
    }
}
