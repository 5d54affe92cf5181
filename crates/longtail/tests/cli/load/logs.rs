//! The log, a line a request, and the layouts of the report.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use sink::SinkBody;
use testkit::http::Receiver;

use super::{load, sink, split, study, url};
use crate::lab::{Lab, Running};

struct Line {
    number: u64,
    times: [f64; 3],
    outcome: String,
    bytes: u64,
}

fn lines(csv: &str) -> Vec<Line> {
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some(report::request_log::csv_header().trim_end()));
    let line = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields.len(), 10, "{line}");
        assert_eq!(
            fields[9].is_empty(),
            fields[7] != "bad_response",
            "a reason of what is bad, and of nothing else: {line}"
        );
        // A request that was not sent has no such time, and one that was skipped no end.
        let time = |n: usize| match fields[n] {
            "" => fields[1].parse().unwrap(),
            text => text.parse().unwrap(),
        };
        Line {
            number: fields[0].parse().unwrap(),
            times: [time(1), time(2), time(3)],
            outcome: fields[7].to_owned(),
            bytes: fields[8].parse().unwrap(),
        }
    };
    lines.map(line).collect()
}

/// The outcomes of a log, counted, are those of the study; each request is there once.
fn assert_log_is_the_study(csv: &str, lab: &Lab) -> Vec<Line> {
    let lines = lines(csv);
    let study = study(lab);
    let mut counted = BTreeMap::<String, u64>::new();
    for line in &lines {
        *counted.entry(line.outcome.clone()).or_default() += 1;
        assert!(line.times[0] <= line.times[1] && line.times[1] <= line.times[2], "request {}", line.number);
    }
    let tally = &study.run.tally;
    let mut expected = BTreeMap::from(tally.counts.clone());
    for (name, n) in BTreeMap::from(tally.unmeasured.clone()) {
        *expected.entry(name).or_default() += n;
    }
    assert_eq!(counted, expected);
    let mut numbers: Vec<u64> = lines.iter().map(|line| line.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), lines.len(), "a request is there twice");
    assert!(lines.iter().map(|line| line.bytes).sum::<u64>() <= tally.received_bytes);
    lines
}

#[test]
fn a_log_has_a_line_a_request_in_order_of_completion() {
    let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
    load(&lab, &format!("-n 3000 -c 7 --log log.csv {}", url(&sink))).with_code(0);
    let lines = assert_log_is_the_study(&fs::read_to_string(lab.path("log.csv")).unwrap(), &lab);
    assert_eq!(lines.len(), 3000);
    assert!(lines.windows(2).all(|pair| pair[0].times[2] <= pair[1].times[2]), "in order of completion");
    assert_eq!(lines.iter().map(|line| line.number).max(), Some(2999));
}

#[test]
fn a_log_of_several_lanes_has_every_request_too() {
    let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
    load(&lab, &format!("-n 3000 -c 7 --threads 3 --log log.csv {}", url(&sink))).with_code(0);
    let lines = assert_log_is_the_study(&fs::read_to_string(lab.path("log.csv")).unwrap(), &lab);
    assert_eq!(lines.len(), 3000);
}

#[test]
fn a_log_of_several_lanes_is_in_order_of_completion() {
    let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
    load(&lab, &format!("-n 30000 -c 8 --threads 3 --log log.csv {}", url(&sink))).with_code(0);
    let lines = lines(&fs::read_to_string(lab.path("log.csv")).unwrap());
    assert!(lines.windows(2).all(|pair| pair[0].times[2] <= pair[1].times[2]));
}

#[test]
fn the_log_counts_from_the_start_of_the_schedule() {
    let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
    load(&lab, &format!("--rate 1000/s -n 5 --log log.csv {}", url(&sink))).with_code(0);
    let csv = fs::read_to_string(lab.path("log.csv")).unwrap();
    let mut due: Vec<&str> = csv.lines().skip(1).map(|line| line.split(',').nth(1).unwrap()).collect();
    due.sort_unstable();
    assert_eq!(due, ["0.000000000", "0.001000000", "0.002000000", "0.003000000", "0.004000000"]);
}

#[test]
fn failures_are_in_the_log_too() {
    let (lab, receiver) = (Lab::new(), Receiver::answering("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"));
    load(&lab, &format!("-n 10 -c 2 --log log.csv {}", receiver.url())).with_code(3);
    let lines = assert_log_is_the_study(&fs::read_to_string(lab.path("log.csv")).unwrap(), &lab);
    assert!(lines.iter().all(|line| line.outcome == "500"));
}

#[test]
fn a_log_that_is_no_table_has_attacks_lines() {
    let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
    load(&lab, &format!("-n 20 -c 1 --log log.txt {}", url(&sink))).with_code(0);
    let log = fs::read_to_string(lab.path("log.txt")).unwrap();
    for (number, line) in log.lines().enumerate() {
        assert!(line.starts_with(&format!("request {} status=200 latency=", number + 1)), "{line}");
    }
    assert_eq!(log.lines().count(), 20);
}

#[test]
fn single_requests_can_be_all_that_is_printed() {
    let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
    let ended = load(&lab, &format!("-n 30 -c 3 --log=-.csv {}", url(&sink))).with_code(0);
    assert_eq!(assert_log_is_the_study(&ended.stdout, &lab).len(), 30);
}

#[test]
fn a_reader_of_the_log_that_leaves_is_no_trouble() {
    let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
    let (reader, writer) = std::io::pipe().unwrap();
    let mut reader = BufReader::new(reader);
    let mut command = lab.longtail("load --no-calibrate");
    command.args(split(&format!("-n 20000 -c 3 --log - {}", url(&sink))));
    let running = Running::start_as_is(command.stdout(writer).stderr(Stdio::piped()));
    drop(command);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert!(line.starts_with("request "), "{line}");
    drop(reader);
    let ended = running.end().with_code(0);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    assert_eq!(study(&lab).run.tally.counts.good(), 20_000, "the load goes on, and is kept");
}

#[test]
fn a_log_on_a_full_disk_is_said_and_the_load_goes_on() {
    let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
    let ended = load(&lab, &format!("-n 20 -c 3 --log /dev/full {}", url(&sink)));
    assert!(ended.stderr.contains("/dev/full"), "{}", ended.stderr);
    assert_eq!(study(&lab).run.tally.counts.good(), 20);
}

#[test]
fn whatever_layout_a_load_prints_report_prints_too() {
    let layouts = [
        ("", "rates over the measured"),
        ("--format markdown", "|"),
        ("--format study", "\"schema\""),
        ("--format hdr", "#[Histogram log format version 1.3]"),
        ("--style hey", "Response time histogram:"),
        ("--style wrk", "Thread Stats"),
    ];
    let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
    load(&lab, &format!("-n 200 -c 3 -o kept.study.json {}", url(&sink))).with_code(0);
    for (layout, part) in layouts {
        let lab = Lab::new();
        let ended = load(&lab, &format!("-n 200 -c 3 {layout} {}", url(&sink))).with_code(0);
        assert!(ended.stdout.contains(part), "{layout}: {}", ended.stdout);
        assert_eq!(lab.run(&format!("report {layout}")).with_code(0).stdout, ended.stdout, "{layout}");
    }
    assert!(!lab.run("report kept.study.json").with_code(0).stdout.is_empty());
    assert_eq!(super::read(&lab.path("kept.study.json")), study(&lab));
}
