//! What each kind of report looks like, byte for byte. `UPDATE_GOLDEN=1 cargo test -p report`
//! writes the files anew: then look at the difference as someone who has to act on the report.

use std::path::Path;

use model::comparison::Metric;
use model::{ComparisonStudy, Diagnostic, LoadStudy, Study, Tally};
use report::{StudyFile, Width, csv, hey, json, side_by_side, wrk};
use testkit::{bodies, capacity, claimed, comparison, golden, load, study};

/// Compares with `tests/golden/<name>.<ending>`, or writes it.
#[track_caller]
fn expect(name: &str, ending: &str, printed: &str) {
    let file = format!("tests/golden/{name}.{ending}");
    golden::expect(&Path::new(env!("CARGO_MANIFEST_DIR")).join(file), printed);
}

/// A study as each of these endings says, separated by spaces; a number is the width of a terminal.
#[track_caller]
fn golden_of(name: &str, study: impl Into<Study>, endings: &str) {
    let study: Study = study.into();
    for ending in endings.split(' ') {
        let width = match ending.strip_suffix(".txt").map(str::parse) {
            Some(Ok(columns)) => Width::of(columns),
            _ => Width::ANY,
        };
        let printed = match (ending, &study) {
            ("csv", _) => csv(&study),
            ("json", _) => json::write(&study),
            ("answer.md", _) => report::answer::markdown(&study, None),
            ("answer.txt", _) => report::answer::whole(&study, Some("x.study.json"), width),
            ("summary.json", _) => report::summary::Summary::of(&study, None).json(),
            ("hey.txt", Study::Load(study)) => hey::whole(study),
            ("wrk.txt", Study::Load(study)) => wrk::whole(study),
            ("puma.txt", _) => report::puma(&study, None, width),
            _ => report::full(&study, None, width),
        };
        expect(name, ending, &printed);
    }
}

#[test]
fn sweeps() {
    golden_of("canonical", study::canonical(), "answer.md txt puma.txt csv answer.txt");
    golden_of("judged", study::judged(), "txt 80.txt answer.txt");
    golden_of("watched", study::watched(), "txt 80.txt answer.txt");
    golden_of("theorized", study::theorized(), "txt 80.txt answer.txt");
    golden_of("repeated", study::repeated(), "txt 100.txt answer.md answer.txt");
    golden_of("failing", study::failing(), "txt puma.txt answer.md answer.txt");
    golden_of("unknown_server", study::unknown_server(), "txt puma.txt");
    golden_of("interrupted", study::interrupted(), "txt answer.txt");
    golden_of("empty", study::empty(), "txt answer.txt");
    golden_of("single_mode", study::single_mode(), "puma.txt");
    golden_of("eight_workers", study::with_workers(8), "puma.txt");
    golden_of("tiny", study::tiny(), "json summary.json");
}

#[test]
fn loads() {
    let of = |name: &str, study: LoadStudy, endings: &str| {
        golden_of(&format!("load/{name}"), study, endings);
    };
    of("open_poisson", load::open_poisson(), "txt answer.md hey.txt wrk.txt answer.txt");
    of("closed", load::closed(), "txt hey.txt wrk.txt 80.txt answer.txt");
    of("closed_counted", load::closed_counted(), "txt answer.txt");
    of("overloaded", load::overloaded(), "txt answer.txt summary.json");
    of("steep", load::steep(), "txt answer.txt");
    of("failing", load::failing(), "txt answer.md hey.txt wrk.txt answer.txt");
    of("refused", load::refused(), "txt hey.txt wrk.txt answer.txt");
    of("skipped", load::skipped(), "txt answer.txt");
    of("tls_unix", load::tls_unix(), "txt csv");
    of("empty", load::empty(), "txt answer.md hey.txt wrk.txt answer.txt");
    of("tiny", load::tiny(), "json summary.json");
    of("mixed", load::mixed(), "txt 80.txt answer.txt answer.md csv summary.json");
    of("restarted", load::restarted(), "txt answer.md answer.txt");
    of("slow_clients", load::beside_slow_clients(), "answer.txt");
}

#[test]
fn bodies_over_sockets() {
    golden_of("capacity/found", capacity::found(), "answer.txt txt answer.md summary.json");
    golden_of("capacity/sizes", capacity::sizes(), "answer.txt summary.json");
    golden_of("capacity/stopped", capacity::stopped(), "answer.txt");
    golden_of("bodies/canonical", bodies::canonical(), "answer.txt txt puma.txt answer.md csv");
    golden_of("bodies/sockets", bodies::sockets(), "txt puma.txt");
    golden_of("bodies/troubled", bodies::troubled(), "txt puma.txt csv 80.txt");
    golden_of("bodies/empty", bodies::empty(), "txt");
}

#[test]
fn comparisons() {
    let of = |name: &str, study: ComparisonStudy, endings: &str| {
        golden_of(&format!("comparison/{name}"), study, endings);
    };
    of("keep_alive", comparison::keep_alive(), "answer.txt answer.md txt");
    of("slower", comparison::slower(), "answer.txt csv");
    of("unclear", comparison::unclear(), "answer.txt");
    of("few", comparison::few(), "answer.txt");
    of("failing", comparison::failing(), "answer.txt");
    of("repeated", comparison::repeated(), "answer.txt");
    of("three", comparison::three(), "answer.txt answer.md");
    of("pairs", comparison::pairs(), "answer.txt answer.md");
    of("combinations", comparison::combinations(), "answer.txt answer.md");
    of("restarts", comparison::restarts(), "answer.txt answer.md");
    of("best", comparison::best(), "answer.txt");
    of("undecided", comparison::undecided(), "answer.txt");
    of("enough_threads", comparison::enough_threads(), "answer.txt");
    of("searched_threads", comparison::searched_threads(), "answer.txt answer.md");
    of("largest", comparison::largest_is_best(false), "answer.txt");
    of("largest_holds_the_lock", comparison::largest_holds_the_lock(), "answer.txt");
    of("largest_uses_all_cpus", comparison::largest_is_best(true), "answer.txt");
    // Without a control p50 is not tested: `better` by p99 names it all the same.
    let mut one_sided = comparison::keep_alive();
    (one_sided.plan.control, one_sided.plan.gates) = (false, vec![Metric::P99]);
    one_sided.runs.retain(|run| run.arm < 2);
    of("one_sided", one_sided, "answer.txt");
    of("no_block", ComparisonStudy { runs: Vec::new(), ..comparison::few() }, "answer.txt");
}

#[test]
fn two_studies_side_by_side() {
    let sweep = || study::canonical().into();
    for (name, base, other) in [
        ("two_sweeps", sweep(), study::with_workers(8).into()),
        ("two_loads", load::closed().into(), load::closed().into()),
        ("refused/no_load_in_common", load::closed().into(), sweep()),
        ("refused/a_comparison", comparison::few().into(), sweep()),
        ("refused/another_generator", claimed::wrk_load().into(), sweep()),
    ] {
        let [base, other]: [&Study; 2] = [&base, &other];
        let [base, other] =
            [("a.json", base), ("b.json", other)].map(|(name, study)| StudyFile { name, study });
        let printed = side_by_side(base, other, Width::of(100));
        assert_eq!(printed.is_err(), name.starts_with("refused/"), "{printed:?}");
        expect(&format!("comparison/{name}"), "txt", &printed.unwrap_or_else(|line| line + "\n"));
    }
}

/// A run of it may have too few independent answers for p99, and its blocks enough: the table shows
/// it, and no warning says otherwise.
#[test]
fn a_comparison_does_not_call_a_percentile_unprinted_that_it_prints() {
    let mut study = comparison::few();
    for row in &mut study.runs {
        row.run.warnings.push(Diagnostic::TooFewRequests {
            from: 0.99,
            answers: 2000,
            worth: Some(90),
        });
    }
    let said = |study: &ComparisonStudy| report::full(&study.clone().into(), None, Width::ANY);
    assert!(!said(&study).contains("have no number"), "{}", said(&study));
    study.runs[0].run.tally = Tally::default();
    assert!(said(&study).contains("p99 and above have no number"), "{}", said(&study));
}

#[test]
fn runs_of_other_generators() {
    golden_of("claimed/wrk_load", claimed::wrk_load(), "answer.txt txt answer.md");
    golden_of("claimed/hey_sweep", claimed::hey_sweep(), "answer.txt txt puma.txt 80.txt");
}
