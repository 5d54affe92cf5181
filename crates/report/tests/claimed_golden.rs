//! What the reports of other generators' runs look like, byte for byte, and that each figure is marked as theirs.
//! `UPDATE_GOLDEN=1 cargo test -p report` writes the files anew.

use std::path::Path;

use model::Study;
use report::{Columns, Width, claimed, json, markdown, text};
use testkit::claimed as study;
use testkit::golden;

#[track_caller]
fn expect(name: &str, report: &str) {
    golden::expect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/claimed").join(name), report);
}

#[test]
fn a_load_that_wrk_made() {
    expect("wrk_load.txt", &claimed::text(&study::wrk_load(), Width::ANY));
    expect("wrk_load.md", &claimed::markdown(&study::wrk_load()));
}

#[test]
fn a_sweep_that_hey_drove() {
    expect("hey_sweep.txt", &text::whole(&study::hey_sweep(), Columns::Longtail.into()));
    expect("hey_sweep.puma.txt", &text::whole(&study::hey_sweep(), Columns::Puma.into()));
    expect("hey_sweep.md", &markdown::whole(&study::hey_sweep()));
}

#[test]
fn a_percentile_that_was_not_printed_is_not_there() {
    let report = claimed::text(&study::wrk_load(), Width::ANY);
    let times = report.split("times, by wrk 4.1.0").nth(1).unwrap().split("what wrk").next().unwrap();
    assert!(times.contains("p99") && !times.contains("p95") && !times.contains("shortest"), "{times}");
    // p10, p25, p95 and p99.9 of wrk's row, and what is made of them.
    let mut sweep = study::hey_sweep();
    sweep.claimed_runs[0].run = study::wrk_run();
    let row = claimed::row(&sweep, &sweep.claimed_runs[0], Columns::Longtail.into());
    assert_eq!(row.split_whitespace().filter(|cell| *cell == "-").count(), 5, "{row}");
    assert!(row.trim_end().ends_with("wrk 4.1.0"), "{row}");
}

#[test]
fn a_claimed_study_survives_its_file() {
    for study in [Study::from(study::wrk_load()), Study::from(study::hey_sweep())] {
        assert_eq!(json::read(&json::write(&study)).unwrap(), study);
    }
}
