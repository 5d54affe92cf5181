//! What holds of every report, whatever the study.

use model::{Diagnostic, Outcome, Study, SweepStudy};
use report::json::ReadError;
use report::{Columns, Width, json, markdown, text};
use testkit::study;

fn every_report() -> impl Iterator<Item = String> {
    study::every().into_iter().flat_map(|study| {
        [
            text::whole(&study, Columns::Longtail.into()),
            text::whole(&study, Columns::Puma.into()),
            markdown::whole(&study),
        ]
    })
}

fn width(line: &str) -> usize {
    line.trim_end_matches('\n').chars().count()
}

#[test]
fn the_rows_of_a_table_are_as_wide_as_its_head_and_fit_150_columns() {
    for study in study::every() {
        let head = text::table_head(&study, Columns::Longtail.into());
        let names = width(head.lines().last().unwrap());
        assert!(names <= 150, "{names}");
        for run in &study.runs {
            assert_eq!(width(&text::row(&study, run, Columns::Longtail.into())), names);
        }
        for columns in [Columns::Longtail, Columns::Puma] {
            let head = text::table_head(&study, columns.into());
            let names = width(head.lines().last().unwrap());
            assert!(
                study.runs.iter().all(|run| width(&text::row(&study, run, columns.into())) == names
                    || columns == Columns::Puma && names < 91)
            );
        }
    }
}

#[test]
fn large_numbers_keep_the_rows_as_wide() {
    let mut study = study::canonical();
    let run = &mut study.runs[4];
    run.connections = 16_000;
    run.forecast = None;
    run.tally.completed_in_window = 400_000_000;
    for _ in 0..2_000_000 {
        run.tally.counts.record(Outcome::Answered(503));
    }
    run.tally.response_time.record(model::Nanos::from_secs(3000));
    run.workers[0].requests = 0;
    let widths: Vec<usize> =
        study.runs.iter().map(|run| width(&text::row(&study, run, Columns::Longtail.into()))).collect();
    assert!(widths.iter().all(|w| *w == widths[0]), "{widths:?}");
}

#[test]
fn nothing_but_the_command_lines_and_sentences_is_wider_than_the_table() {
    for study in study::every() {
        let closing = text::closing(&study, Columns::Longtail.into());
        for line in closing.lines() {
            assert!(width(line) <= 150, "{line}");
        }
    }
}

#[test]
fn the_pieces_in_order_are_the_whole() {
    for study in study::every() {
        for columns in [Columns::Longtail, Columns::Puma] {
            let before_the_runs = SweepStudy { runs: Vec::new(), ..study.clone() };
            let mut pieces = text::opening(&study, Width::ANY) + &text::table_head(&before_the_runs, columns.into());
            study.runs.iter().for_each(|run| pieces.push_str(&text::row(&before_the_runs, run, columns.into())));
            assert_eq!(pieces + &text::closing(&study, columns.into()), text::whole(&study, columns.into()));
        }
    }
}

#[test]
fn the_first_line_is_the_command_that_repeats_the_study() {
    for study in study::every() {
        let opening = text::opening(&study, Width::ANY);
        assert_eq!(opening.lines().next(), Some(study.command_line.as_str()));
    }
}

#[test]
fn a_remedy_that_several_runs_share_stands_once() {
    let mut study = study::judged();
    // The generator's ceiling of the second run, and the stolen time of the third.
    study.runs[0].judgement = study.runs[2].judgement.clone();
    study.runs[3].judgement = study.runs[1].judgement.clone();
    let closing = text::closing(&study, Columns::Longtail.into());
    let expected = "
  1.00x, 2.00x: FAILS the hypervisor took 12.0 % of the CPU time
    → use a machine whose cores are its own
  1.50x, 3.00x: FAILS the generator reaches 104 requests/s without a server to wait for, 1.1 times this rate
    → this rate is near the generator's own limit: use more lanes (--lanes) on cores of their own, or a slower app
";
    assert!(closing.contains(expected), "{closing}");
}

#[test]
fn the_opening_needs_no_run_where_the_delay_is_given() {
    assert_eq!(text::opening(&study::empty(), Width::ANY), text::opening(&study::canonical(), Width::ANY));
}

#[test]
fn no_report_says_latency() {
    for report in every_report() {
        assert!(!report.to_lowercase().contains("latency"), "{report}");
    }
}

#[test]
fn no_line_ends_in_space() {
    for report in every_report() {
        assert!(report.lines().all(|line| line == line.trim_end()), "{report}");
        assert!(report.ends_with('\n') && !report.contains("\n\n\n"), "{report}");
    }
}

#[test]
fn the_same_doubt_of_two_runs_has_one_remedy_and_names_both() {
    let mut study = study::canonical();
    study.runs[1].warnings = vec![Diagnostic::WorkersChanged { new: 1 }, Diagnostic::WorkersChanged { new: 1 }];
    study.runs[2].warnings = vec![Diagnostic::WorkersChanged { new: 1 }];
    let closing = text::closing(&study, Columns::Longtail.into());
    let seen = format!("  1.50x, 2.00x: {}\n", Diagnostic::WorkersChanged { new: 1 });
    assert_eq!(closing.matches(&seen).count(), 1, "{closing}");
    assert_eq!(closing.matches(Diagnostic::WorkersChanged { new: 1 }.hint()).count(), 1);
}

#[test]
fn a_number_that_is_only_left_out_does_not_mark_its_row() {
    let mut study = study::canonical();
    study.runs[0].warnings = vec![Diagnostic::TooFewRequests { from: 0.999, answers: 500, worth: None }];
    assert!(text::row(&study, &study.runs[0], Columns::Longtail.into()).starts_with(' '));
    assert!(text::row(&study, &study.runs[4], Columns::Longtail.into()).starts_with('!'));
}

#[test]
fn a_worker_that_was_replaced_leaves_gaps_and_not_zeros() {
    let mut study = study::canonical();
    study.runs[1].workers[3].worker = "170001".to_owned();
    let closing = text::closing(&study, Columns::Longtail.into());
    let line = closing.lines().find(|line| line.contains("170001")).unwrap();
    assert_eq!(line.split_whitespace().filter(|cell| *cell == "-").count(), 12, "{line}");
}

#[test]
fn text_from_elsewhere_cannot_break_a_markdown_table() {
    let mut study = study::canonical();
    study.runs[0].workers[0].worker = "a|b<script>".to_owned();
    let markdown = markdown::whole(&study);
    assert!(markdown.contains("a\\|b&lt;script>") && !markdown.contains("<script>"));
}

#[test]
fn a_study_survives_its_file() {
    for study in study::every() {
        let study = Study::from(study);
        assert_eq!(json::read(&json::write(&study)).as_ref(), Ok(&study));
    }
}

#[test]
fn an_awkward_number_comes_back_to_the_last_bit() {
    let mut study = study::tiny();
    for awkward in [0.1 + 0.2, 1.0 / 3.0, 5e-324, 97.051_234_567_890_12, f64::MAX] {
        study.plan.multiples = vec![awkward];
        let Study::Sweep(back) = json::read(&json::write(&study.clone().into())).unwrap() else {
            panic!("another study")
        };
        assert_eq!(back.plan.multiples[0].to_bits(), awkward.to_bits());
    }
}

#[test]
fn a_study_of_a_newer_schema_is_refused_in_one_line() {
    let newer = json::write(&study::tiny().into()).replacen("\"schema\": 1", "\"schema\": 99", 1);
    let error = json::read(&newer).unwrap_err();
    assert!(matches!(error, ReadError::Newer { found: 99, .. }));
    assert!(error.to_string().contains("schema 99") && !error.to_string().contains('\n'));
}

#[test]
fn what_is_not_a_study_is_refused_in_one_line() {
    let damaged = json::write(&study::tiny().into()).replacen("\"runs\"", "\"ruins\"", 1);
    for text in ["", "{", "[1, 2]", "{\"schema\": \"1\"}", "{\"schema\": 1}", "wrk -t2 -c10", damaged.as_str()] {
        let error = json::read(text).unwrap_err().to_string();
        assert!(error.starts_with("not a longtail study: ") && !error.contains('\n'), "{error}");
    }
}

#[test]
fn why_a_run_is_held_against_no_order_of_service_is_said_also_where_no_run_is() {
    let mut study = study::theorized();
    for run in &mut study.runs {
        run.theory = Some(model::Theory::not_judged(model::theory::NotJudged::ShapeUnknown, 1.15));
    }
    for report in [text::whole(&study, Columns::Longtail.into()), markdown::whole(&study)] {
        assert!(report.contains("4.00x is held against no model: how many workers"), "{report}");
    }
}
