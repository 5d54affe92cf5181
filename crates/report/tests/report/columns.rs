//! A column of runs says the same in every format.

use model::{Nanos, ProcessCpu, ServerCpu, Study};
use report::summary::Summary;
use report::{Width, csv, full};
use testkit::study;

#[test]
fn the_servers_cpu_time_a_request_is_the_same_in_json_csv_and_the_full_report() {
    let mut study = study::canonical();
    for run in &mut study.runs {
        let busy = ProcessCpu { cpu: Nanos::from_millis(500), ..ProcessCpu::default() };
        run.generator.server =
            Some(ServerCpu { processes: vec![busy], requests: 400, ..ServerCpu::default() });
    }
    let study = Study::from(study);
    let json = Summary::of(&study, None).json();
    assert!(json.contains("\"cpu_ms_per_request\": 1.25"), "{json}");
    let csv = csv(&study);
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let at = names.iter().position(|name| *name == "cpu_ms_per_request").unwrap();
    assert!(lines.all(|fields| fields[at] == "1.25"), "{csv}");
    let full = full(&study, None, Width::ANY);
    assert!(full.contains("CPU ms") && full.contains("  1.25  "), "{full}");
}

#[test]
fn a_figure_that_no_run_has_is_no_column() {
    let csv = csv(&study::canonical().into());
    assert!(!csv.contains("cpu_ms_per_request"), "{csv}");
}
