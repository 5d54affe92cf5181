//! What holds of every report, whatever the study.

use model::{BodiesStudy, Body, BodyKind, Diagnostic, LoadStudy, Outcome, Socket, Study, Verdict};
use report::json::ReadError;
use report::{Width, csv, hey, json, number, wrk};
use testkit::{bodies as body_study, claimed as claimed_study, load as load_study, study};

use crate::pieces;

/// The full report, Puma's layout and Markdown of every study; hey's and wrk's words are their own.
fn every_report() -> impl Iterator<Item = String> {
    testkit::every_study().into_iter().flat_map(|study| {
        let [full, puma] =
            [report::full, report::puma].map(|layout| layout(&study, None, Width::ANY));
        [full, puma, report::answer::markdown(&study, None)]
    })
}

fn full(study: impl Into<Study>) -> String {
    report::full(&study.into(), None, Width::ANY)
}

fn width(line: &str) -> usize {
    line.chars().count()
}

#[test]
fn the_rows_of_a_table_are_as_wide_as_its_head() {
    let mut large = study::canonical();
    let run = &mut large.runs[4];
    run.connections = 16_000;
    run.forecast = None;
    run.tally.completed_in_window = 400_000_000;
    (0..2_000_000).for_each(|_| run.tally.counts.record(Outcome::Answered(503)));
    run.tally.response_time.record(model::Nanos::from_secs(3000));
    run.workers[0].requests = 0;
    let of_sweeps = study::every()
        .into_iter()
        .chain([large])
        .map(|study| (pieces::table(&study, report::full), study.runs.len()));
    let of_bodies = body_study::every().into_iter().map(|study| {
        let text = full(study.clone());
        let runs = study.runs.len();
        let table = text
            .split("\n\n")
            .find(|piece| piece.contains("bytes per response"))
            .unwrap_or_default();
        (table.lines().map(str::to_owned).collect(), runs)
    });
    for (table, runs) in of_sweeps.chain(of_bodies).filter(|(_, runs)| *runs > 0) {
        let head = width(&table[1]);
        assert!(
            table[2..].len() == runs && table[2..].iter().all(|row| width(row) == head),
            "{table:?}"
        );
    }
}

#[test]
fn no_report_says_latency_and_no_line_ends_in_space() {
    let theirs =
        load_study::every().into_iter().flat_map(|study| [hey::whole(&study), wrk::whole(&study)]);
    for report in theirs {
        assert!(
            report.lines().all(|line| line == line.trim_end()) && report.ends_with('\n'),
            "{report}"
        );
    }
    for report in every_report() {
        let ours = report.split("hat wrk 4.1.0 printed").next().unwrap();
        assert!(!ours.replace("--latency", "").to_lowercase().contains("latency"), "{report}");
        assert!(report.lines().all(|line| line == line.trim_end()), "{report}");
        assert!(report.ends_with('\n') && !report.contains("\n\n\n"), "{report}");
    }
}

#[test]
fn a_hint_that_several_runs_share_stands_once() {
    let mut study = study::judged();
    // The generator's ceiling of the second run, and the stolen time of the third.
    study.runs[0].judgement = study.runs[2].judgement.clone();
    study.runs[3].judgement = study.runs[1].judgement.clone();
    let text = pieces::closing(&study);
    for shared in
        ["1x, 2x: FAILS the hypervisor", "1.5x, 3x: FAILS ", "→ use a machine with dedicated cores"]
    {
        assert_eq!(text.matches(shared).count(), 1, "{text}");
    }
    study.runs[1].warnings =
        vec![Diagnostic::WorkersChanged { new: 1 }, Diagnostic::WorkersChanged { new: 1 }];
    study.runs[2].warnings = vec![Diagnostic::WorkersChanged { new: 1 }];
    let text = pieces::closing(&study);
    let changed = judge::assess(&Diagnostic::WorkersChanged { new: 1 });
    let seen = format!("  1.5x, 2x: {}\n", changed.sentence);
    assert_eq!(text.matches(&seen).count(), 1, "{text}");
    assert_eq!(text.matches(changed.hint).count(), 1);
}

#[test]
fn a_number_that_is_only_left_out_does_not_mark_its_row() {
    let mut study = study::canonical();
    study.runs[0].warnings =
        vec![Diagnostic::TooFewRequests { from: 0.999, answers: 500, worth: None }];
    assert!(pieces::row(&study, &study.runs[0], report::full).starts_with(' '));
    assert!(pieces::row(&study, &study.runs[4], report::full).starts_with('!'));
}

#[test]
fn a_worker_that_was_replaced_stands_in_its_run_alone() {
    let mut study = study::canonical();
    study.runs[1].workers[3].worker = "a|b<script>".to_owned();
    let text = pieces::closing(&study);
    assert_eq!(text.matches("a|b<script>").count(), 1, "{text}");
}

#[test]
fn a_line_break_in_a_study_makes_no_line_of_its_report() {
    let sweep = study::every().into_iter().next().unwrap();
    let cpu = sweep.environment.cpu.clone();
    for (line_break, shown) in [("\\n", "\\n"), ("\\u000a", "\\n"), ("\\r", "\\r")] {
        let forged = json::write(&sweep.clone().into())
            .replace(&cpu, &format!("{cpu}{line_break}9999 req/s"));
        let report = full(json::read(&forged).unwrap());
        assert!(report.contains(&format!("{cpu}{shown}9999 req/s")), "{report}");
    }
}

#[test]
fn a_report_says_why_no_run_is_held_against_a_model() {
    let mut study = study::theorized();
    for run in &mut study.runs {
        run.theory = Some(model::Theory::not_judged(model::theory::NotJudged::ShapeUnknown, 1.15));
    }
    let text = pieces::closing(&study);
    assert!(text.contains("4x is held against no model: the number of workers"), "{text}");
}

#[test]
fn every_planned_request_is_in_the_line_of_rates() {
    // An invalid run shows no rates.
    let has_rates = |study: &LoadStudy| {
        study.run.judgement.as_ref().is_none_or(|it| it.verdict != Verdict::Invalid)
    };
    for study in load_study::every().into_iter().filter(has_rates) {
        let text = full(study.clone());
        let line = text.lines().find(|line| line.starts_with("  requested: ")).unwrap();
        let after = |word: &str| -> u64 {
            let rest = &line[line.find(word).unwrap() + word.len()..];
            rest.split(' ').next().unwrap().parse().unwrap()
        };
        let counts = &study.run.tally.counts;
        assert_eq!(
            after("submit failures: ") + after("wait failures: ") + counts.good(),
            counts.total(),
            "{line}"
        );
    }
}

#[test]
fn requests_that_ended_after_the_load_have_a_slice_where_the_figures_need_it() {
    let later = "later: 1030 requests, due before the end";
    let study = load_study::steep();
    let text = full(study.clone());
    assert!(text.contains("  20   later\n") && text.contains(later), "{text}");
    // A seventh of them all, and slower than all others.
    let answer = report::answer::whole(&study.clone().into(), None, Width::of(100));
    assert!(answer.contains("  20   later\n") && answer.contains(later), "{answer}");
    let mut few = study;
    let last = few.run.tally.series.seconds.len() - 1;
    let inside = few.run.tally.series.seconds[10];
    few.run.tally.series.seconds.truncate(21);
    few.run.tally.series.seconds[last.min(20)] = model::tally::Second { completed: 1, ..inside };
    assert!(self::full(few.clone()).contains("later: 1 request, due"));
    let answer = report::answer::whole(&few.into(), None, Width::of(100));
    assert!(answer.contains("until second") && !answer.contains("later"), "{answer}");
}

#[test]
fn the_rows_of_bodies_are_in_the_order_of_the_plan_and_not_of_the_runs() {
    let study = body_study::sockets();
    let order: Vec<(Socket, Body, u32)> =
        study.sorted().iter().map(|run| (run.socket, run.body, run.run.repeat)).collect();
    let body = |kind| Body { kilobytes: 10, kind };
    let string = body(BodyKind::String);
    let io = body(BodyKind::Io);
    let of = |socket| [(socket, string, 1), (socket, string, 2), (socket, io, 1), (socket, io, 2)];
    assert_eq!(order, [of(Socket::Tcp4), of(Socket::Ssl4), of(Socket::Aunix)].concat());
    assert!(study.runs.iter().ne(study.sorted()), "they were done in another order");
}

#[test]
fn an_invalid_run_has_no_figure_anywhere_but_in_the_file() {
    let study: BodiesStudy = body_study::troubled();
    let rate = number::rate(study.runs[1].run.completed_rate());
    let study = Study::from(study);
    let texts = [report::full, report::puma].map(|layout| layout(&study, None, Width::ANY));
    for printed in texts.into_iter().chain([report::answer::markdown(&study, None), csv(&study)]) {
        assert!(!printed.contains(&rate), "{rate}: {printed}");
    }
}

#[test]
fn a_percentile_that_another_generator_did_not_print_is_not_there() {
    let load = claimed_study::wrk_load().into();
    let summary = report::summary::Summary::of(&load, None);
    let run = &summary.runs[0];
    assert!(run.percentile(0.99).is_some() && run.percentile(0.95).is_none(), "{run:?}");
    // p10, p25, p95 and p99.9 of wrk's row, and what is made of them.
    let mut sweep = claimed_study::hey_sweep();
    sweep.runs[0].claim = Some(claimed_study::wrk_claim().into());
    let row = pieces::row(&sweep, &sweep.runs[0], report::full);
    assert_eq!(row.split_whitespace().filter(|cell| *cell == "-").count(), 5, "{row}");
    assert!(row.trim_end().ends_with("wrk 4.1.0"), "{row}");
}

#[test]
fn a_study_survives_its_file_to_the_last_bit() {
    for study in testkit::every_study() {
        assert_eq!(json::read(&json::write(&study)).as_ref(), Ok(&study));
    }
    let mut study = study::tiny();
    for awkward in [0.1 + 0.2, 1.0 / 3.0, 5e-324, 97.051_234_567_890_12, 1e24] {
        study.plan.multiples = vec![awkward];
        let Study::Sweep(back) = json::read(&json::write(&study.clone().into())).unwrap() else {
            panic!("another study")
        };
        assert_eq!(back.plan.multiples[0].to_bits(), awkward.to_bits());
    }
}

#[test]
fn what_is_not_a_study_is_refused_in_one_line() {
    let newer = json::write(&study::tiny().into()).replacen("\"schema\": 1", "\"schema\": 99", 1);
    let error = json::read(&newer).unwrap_err();
    assert!(matches!(error, ReadError::Newer { found: 99, .. }));
    assert!(error.to_string().contains("schema 99") && !error.to_string().contains('\n'));
    let damaged = json::write(&study::tiny().into()).replacen("\"runs\"", "\"ruins\"", 1);
    for text in [
        "",
        "{",
        "[1, 2]",
        "{\"schema\": \"1\"}",
        "{\"schema\": 1}",
        "wrk -t2 -c10",
        damaged.as_str(),
    ] {
        let error = json::read(text).unwrap_err().to_string();
        assert!(error.starts_with("not a longtail study: ") && !error.contains('\n'), "{error}");
    }
}
