//! What each kind of report looks like, byte for byte. `UPDATE_GOLDEN=1 cargo test -p report` writes the files anew:
//! then look at the difference as someone who has to act on the report.

use std::path::Path;

use model::SweepStudy;
use report::{Columns, json, markdown, text};
use testkit::golden;
use testkit::study;

/// Compares with `tests/golden/<name>`, or writes it.
#[track_caller]
fn expect(name: &str, report: &str) {
    golden::expect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name), report);
}

fn longtail(study: &SweepStudy) -> String {
    text::whole(study, Columns::Longtail.into())
}

fn puma(study: &SweepStudy) -> String {
    text::whole(study, Columns::Puma.into())
}

#[test]
fn the_canonical_study_as_text() {
    expect("canonical.txt", &longtail(&study::canonical()));
}

#[test]
fn runs_that_the_generator_or_the_machine_spoiled() {
    expect("judged.txt", &longtail(&study::judged()));
}

#[test]
fn runs_that_were_watched_tell_where_the_queue_was() {
    expect("watched.txt", &longtail(&study::watched()));
    expect("watched.md", &markdown::whole(&study::watched()));
}

#[test]
fn theory_stands_beside_the_runs() {
    expect("theorized.txt", &longtail(&study::theorized()));
    expect("theorized.md", &markdown::whole(&study::theorized()));
}

#[test]
fn the_canonical_study_in_pumas_columns() {
    expect("canonical_puma.txt", &puma(&study::canonical()));
}

#[test]
fn the_canonical_study_for_a_pull_request() {
    expect("canonical.md", &markdown::whole(&study::canonical()));
}

#[test]
fn repeats_have_a_column_and_are_summed_up() {
    expect("repeated.txt", &longtail(&study::repeated()));
    expect("repeated.md", &markdown::whole(&study::repeated()));
}

#[test]
fn errors_are_told_by_kind_and_hide_what_they_could_change() {
    expect("failing.txt", &longtail(&study::failing()));
    expect("failing_puma.txt", &puma(&study::failing()));
    expect("failing.md", &markdown::whole(&study::failing()));
}

#[test]
fn what_is_not_known_is_a_dash_and_never_zero() {
    expect("unknown_server.txt", &longtail(&study::unknown_server()));
    expect("unknown_server_puma.txt", &puma(&study::unknown_server()));
}

#[test]
fn a_short_run_has_no_high_percentiles() {
    expect("short.txt", &longtail(&study::short()));
}

#[test]
fn an_interrupted_study_reports_what_there_is() {
    expect("interrupted.txt", &longtail(&study::interrupted()));
}

#[test]
fn a_study_without_a_run_still_says_what_was_asked() {
    expect("empty.txt", &longtail(&study::empty()));
    expect("empty.md", &markdown::whole(&study::empty()));
}

#[test]
fn single_mode_has_no_columns_for_workers_in_pumas_table() {
    expect("single_mode.txt", &longtail(&study::single_mode()));
    expect("single_mode_puma.txt", &puma(&study::single_mode()));
}

#[test]
fn eight_workers_fit_pumas_table() {
    expect("eight_workers_puma.txt", &puma(&study::with_workers(8)));
}

#[test]
fn the_file_of_a_study_can_be_read_by_people_too() {
    expect("tiny.json", &json::write(&study::tiny().into()));
}
