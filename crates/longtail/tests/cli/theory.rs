//! Theory beside measurement, with real servers: which order of service a sweep or a probe recognises, and the slots that an
//! overload tells. What is asserted is told apart by factors, and not by what a noisy machine adds.

use std::fmt::Write as _;
use std::io::Write as _;

use model::theory::{Resemblance, inferred};
use model::{Diagnostic, Discipline, Grade, Nanos, Run, SweepStudy};
use queueing::OfferedLoad;
use queueing::mdc::ConstantServiceQueue;
use queueing::open_loop::SteadyQueue as _;
use sink::{DelayLaw, Sink, SinkSettings, SlotQueue};

use crate::clock::SteadyClock;
use crate::lab::{LONGTAIL, Lab, Running, can, free_port, has};
use crate::load::{loaded, url};

/// A sweep of four slots that hold a request for 100 ms, well beyond them.
fn swept(words: &str) -> SweepStudy {
    swept_with(words, "")
}

/// The same of another server's command.
fn swept_with(words: &str, command: &str) -> SweepStudy {
    let lab = Lab::new();
    let command = if command.is_empty() { String::new() } else { format!("-- {command}") };
    let words = format!("sweep {words} -d0.1 --for 9s --warm-up 2s --multiples 4 --no-calibrate {command}");
    let ended = Running::start(lab.longtail(&words).env("PUMA_TEST_PORT", free_port().to_string())).end().with_code(0);
    let study = lab.study();
    assert!(study.runs.iter().all(|run| run.theory.is_some()));
    if inferred(&study.runs, study.server.slots()).is_some() {
        assert!(ended.stdout.contains("\ntheory beside measurement"), "{}", ended.stdout);
        assert!(ended.stdout.contains("  inferred discipline: "), "{}", ended.stdout);
    }
    study
}

/// Its runs look like `this` and like no other, if not in the first sweep then in one of two more. What a noisy machine adds makes another
/// model fit, or none: where others took processors from us, or no run was judged, that is said. However much is added: in turns of ten
/// most of the time is waited by few, and in a shared queue all wait alike.
fn assert_looks_like(first: SweepStudy, again: impl Fn() -> SweepStudy, this: Discipline) {
    let mut seen = Vec::new();
    let mut was_disturbed = false;
    for study in std::iter::once(first).chain(std::iter::repeat_with(again).take(2)) {
        for run in &study.runs {
            let times = &run.tally.response_time;
            let (median, mean) = (times.quantile(0.5).unwrap(), times.mean().unwrap());
            assert_eq!(median * 2 < mean, this == Discipline::Turns, "median {median}, mean {mean}: {:?}", run.theory);
        }
        let inferred = inferred(&study.runs, study.server.slots());
        let recognised = inferred.map_or(Vec::new(), |inferred| inferred.disciplines);
        if recognised == [this] {
            return;
        }
        was_disturbed |= recognised.is_empty() || study.runs.iter().any(shared_its_processors);
        seen.push(recognised);
    }
    let is_quiet = can(!was_disturbed, "the machine was too noisy for any order of service to be told");
    assert!(!is_quiet, "on a quiet machine it looks like {seen:?}");
}

/// Whether a lane waited for a processor, or the hypervisor took some, for longer than is passed over.
pub(crate) fn shared_its_processors(run: &Run) -> bool {
    let checks = run.judgement.iter().flat_map(|judgement| &judgement.checks);
    checks
        .filter(|check| matches!(check, Diagnostic::LaneRunQueue { .. } | Diagnostic::Steal { .. }))
        .any(|check| check.grade() > Grade::Passed)
}

fn major(study: &SweepStudy) -> u32 {
    study.server.version.as_ref().and_then(|version| version.split('.').next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn a_puma_up_to_6_with_keep_alive_has_turns_of_ten() {
    if !has("puma") {
        return;
    }
    let study = swept("-w2 -t2:2");
    if !can((1..=6).contains(&major(&study)), "this Puma is of another age") {
        return;
    }
    assert!(study.runs.iter().all(|run| run.theory.as_ref().unwrap().expected == Some(Discipline::Turns)));
    assert_looks_like(study, || swept("-w2 -t2:2"), Discipline::Turns);
}

#[test]
fn a_puma_up_to_6_with_a_connection_for_each_request_shares_one_queue() {
    if !has("puma") {
        return;
    }
    let study = swept("-w2 -t2:2 -k");
    if !can((1..=6).contains(&major(&study)), "this Puma is of another age") {
        return;
    }
    assert!(study.runs.iter().all(|run| run.theory.as_ref().unwrap().expected == Some(Discipline::Shared)));
    assert_looks_like(study, || swept("-w2 -t2:2 -k"), Discipline::Shared);
}

#[test]
fn a_probe_tells_keep_alive_from_a_connection_for_each_request() {
    if !has("puma") {
        return;
    }
    let lab = Lab::new();
    let words = "sweep -w1 -t2:2 -d0.05 -R3 --multiples 1 --no-calibrate --probe-discipline";
    let ended = Running::start(lab.longtail(words).env("PUMA_TEST_PORT", free_port().to_string())).end().with_code(0);
    let study = lab.study();
    assert_eq!(ended.stdout.lines().filter(|line| line.starts_with("probe ")).count(), 1, "{}", ended.stdout);
    assert_eq!(study.probes.iter().map(|probe| probe.keep_alive).collect::<Vec<_>>(), [true, false]);
    let looks_like = |at: usize| match study.probes[at].theory.as_ref().unwrap().resemblance() {
        Resemblance::These(these) | Resemblance::ShapeOf(these) => these,
        _ => Vec::new(),
    };
    assert!(!looks_like(1).contains(&Discipline::Turns), "{:?}", study.probes[1]);
    if can((1..=6).contains(&major(&study)), "this Puma is of another age") {
        assert!(!looks_like(0).contains(&Discipline::Shared), "{:?}", study.probes[0]);
    }
    // What was probed is in both ledgers, and in no run.
    assert_eq!(crate::lab::ledger_doubts(&study), Vec::<&model::Diagnostic>::new());
    assert_eq!(study.runs[0].tally.counts.total(), 6);
}

#[test]
fn the_sinks_orders_of_service_are_recognised() {
    for (queue, discipline) in [("shared", Discipline::Shared), ("inline10", Discipline::Turns)] {
        let swept = || {
            let port = free_port();
            let command = format!("{LONGTAIL} sink --listen 127.0.0.1:{port} --threads 4 --queue {queue}");
            swept_with(&format!("--slots 4 --url http://127.0.0.1:{port}/"), &command)
        };
        let study = swept();
        assert!(study.runs.iter().all(|run| run.theory.as_ref().unwrap().expected.is_none()), "nothing is known of it");
        assert_looks_like(study, swept, discipline);
    }
}

/// Four slots in one line, each held for so long.
fn four_slots(held: Nanos) -> Sink {
    let settings = SinkSettings {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        queue: SlotQueue::Shared,
        workers: 2,
        threads: 2,
        delay: DelayLaw::from(held),
        ..SinkSettings::default()
    };
    Sink::start(settings, SteadyClock).unwrap()
}

#[test]
fn an_overload_tells_the_slots() {
    let sink = four_slots(Nanos::from_millis(100));
    let study = loaded(&format!("--rate 60/s --for 6s -c 300 --service 100ms {}", url(&sink)));
    // Half as much again as four slots can do: whatever the machine adds, the response times grow.
    let Some(overload) = study.run.overload else {
        assert!(study.run.statistics.is_some());
        can(false, "the machine was too noisy: no line was seen in the response times");
        return;
    };
    if can(overload.doubt.is_none(), "the growth and the count disagree on this machine just now") {
        let slots = overload.slots.unwrap().value;
        assert!((2.5..4.3).contains(&slots), "{overload:?}");
    }
}

#[test]
fn poisson_arrivals_beside_the_exact_formula() {
    let sink = four_slots(Nanos::from_millis(20));
    // Four fifths of what the slots can do. Printed and not asserted: these are times of a real machine.
    let study = loaded(&format!("--rate 160/s --arrivals poisson --for 8s {}", url(&sink)));
    let theory = ConstantServiceQueue::new(OfferedLoad::new(4, 160.0, 0.02).unwrap()).unwrap();
    let mut table =
        "M/D/c, 80 % of four slots of 20 ms: response times, ms\n        theory  measured  95 % interval\n".to_owned();
    let mut row = |name: &str, says: f64, seen: Option<Nanos>, interval: String| {
        let seen = seen.map_or_else(|| "-".to_owned(), |seen| format!("{:.2}", seen.as_secs_f64() * 1e3));
        let _ = writeln!(table, "{name:<5} {:>8.2} {seen:>9}  {interval}", says * 1e3);
    };
    row("mean", theory.mean_response(), study.run.tally.response_time.mean(), String::new());
    for (name, share) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
        let known = study.run.statistics.as_ref().and_then(|statistics| statistics.interval(share));
        let ms =
            |end: Option<Nanos>| end.map_or_else(|| "-".to_owned(), |end| format!("{:.2}", end.as_secs_f64() * 1e3));
        let interval = known.map(|known| format!("{} to {}", ms(known.low), ms(known.high))).unwrap_or_default();
        row(name, theory.response_quantile(share).unwrap(), study.run.response_time(share).time(), interval);
    }
    let _ = std::io::stderr().write_all(table.as_bytes());
    assert_eq!(study.run.tally.counts.failed(), 0);
}
