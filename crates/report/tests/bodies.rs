//! Reports of `longtail bodies`: what they look like, byte for byte (`UPDATE_GOLDEN=1 cargo test -p report` writes the
//! files anew), and what holds of every one.

use std::path::Path;

use model::{BodiesStudy, Body, BodyKind, Socket, Study};
use report::bodies::{csv, markdown, text};
use report::{Columns, Width, json};
use testkit::bodies::{canonical, empty, every, sockets, troubled};
use testkit::golden;

/// Compares with `tests/golden/bodies/<name>`, or writes it.
#[track_caller]
fn expect(name: &str, report: &str) {
    golden::expect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/bodies").join(name), report);
}

fn longtail(study: &BodiesStudy) -> String {
    text::whole(study, Columns::Longtail.into())
}

#[test]
fn four_types_of_three_sizes() {
    let study = canonical();
    expect("canonical.txt", &longtail(&study));
    expect("canonical_puma.txt", &text::whole(&study, Columns::Puma.into()));
    expect("canonical.md", &markdown::whole(&study));
    expect("canonical.csv", &csv::whole(&study));
}

#[test]
fn several_kinds_of_socket_have_a_summary_more() {
    expect("sockets.txt", &longtail(&sockets()));
    expect("sockets_puma.txt", &text::whole(&sockets(), Columns::Puma.into()));
    expect("sockets.md", &markdown::whole(&sockets()));
}

#[test]
fn what_is_wrong_is_said_and_hides_what_it_spoils() {
    expect("troubled.txt", &longtail(&troubled()));
    expect("troubled_puma.txt", &text::whole(&troubled(), Columns::Puma.into()));
    expect("troubled.csv", &csv::whole(&troubled()));
}

#[test]
fn a_study_without_a_run_still_says_what_was_asked() {
    expect("empty.txt", &longtail(&empty()));
    expect("empty.md", &markdown::whole(&empty()));
}

/// The heads, rules and widths of the table in Puma's own documentation.
#[test]
fn pumas_layout_is_that_of_its_script() {
    let printed = text::whole(&canonical(), Columns::Puma.into());
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[0], "Type   req/sec    50%     75%     90%     99%    100%  Resp Size");
    assert_eq!(lines[1], "─────────────────────────────────────────────────────────────────    1kB");
    assert_eq!(lines[11], "───────────────────────────────────────────────────────────────── 2048kB");
    // "array   13710    0.74    2.52    5.23    7.76   37.45      1024"
    for line in [2, 3, 4, 5].map(|n| lines[n]) {
        assert_eq!(line.chars().count(), 63, "{line}");
    }
    assert_eq!(lines[17], "Body    ────────── req/sec ──────────   ─────── req 50% times ───────");
    assert_eq!(lines[18], " KB     array   chunk  string      io   array   chunk  string      io");
    assert_eq!(lines[19].chars().count(), 69);
    assert_eq!(lines[22], "─".repeat(69));
}

#[test]
fn the_rows_of_a_table_are_as_wide_as_its_head_and_fit_150_columns() {
    for study in every() {
        let head = text::table_head(&study, Width::ANY);
        let names = head.lines().last().unwrap().chars().count();
        assert!(names <= 150, "{names}");
        for run in &study.runs {
            assert_eq!(text::row(&study, run, Width::ANY).trim_end_matches('\n').chars().count(), names);
        }
    }
}

#[test]
fn every_study_survives_its_file() {
    for study in every() {
        let study: Study = study.into();
        assert_eq!(json::read(&json::write(&study)).unwrap(), study);
    }
}

#[test]
fn no_line_ends_in_a_blank_but_those_of_tables() {
    for study in every() {
        for line in markdown::whole(&study).lines().chain(longtail(&study).lines()) {
            assert_eq!(line.trim_end(), line);
        }
    }
}

#[test]
fn the_order_of_the_rows_is_that_of_the_plan_and_not_that_of_the_runs() {
    let study = sockets();
    let order: Vec<(Socket, Body, u32)> =
        study.sorted().iter().map(|run| (run.socket, run.body, run.run.repeat)).collect();
    let body = |kind| Body { kilobytes: 10, kind };
    let (string, io) = (body(BodyKind::String), body(BodyKind::Io));
    let of = |socket| [(socket, string, 1), (socket, string, 2), (socket, io, 1), (socket, io, 2)];
    assert_eq!(order, [of(Socket::Tcp4), of(Socket::Ssl4), of(Socket::Aunix)].concat());
    assert!(!text::in_order(&study, Width::ANY).is_empty(), "they were done in another order");
}

#[test]
fn an_invalid_run_has_no_figure_anywhere_but_in_the_file() {
    let study = troubled();
    let invalid = &study.runs[1];
    let rate = report::number::rate(invalid.run.completed_rate());
    for report in [longtail(&study), text::whole(&study, Columns::Puma.into()), markdown::whole(&study)] {
        assert!(!report.contains(&rate), "{rate}: {report}");
    }
    let line = csv::whole(&study);
    assert!(line.lines().nth(2).unwrap().ends_with(",,,,,,,,,,,"), "{line}");
}
