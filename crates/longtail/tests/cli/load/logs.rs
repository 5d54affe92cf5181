//! The log, a line a request, and the layouts of the report.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use sink::SinkBody;
use testkit::http::Receiver;

use super::{load, loaded, sink, study, url};
use crate::lab::{Lab, Running};

struct Line {
    number: u64,
    times: [f64; 3],
    outcome: String,
    bytes: u64,
}

fn lines(csv: &str) -> Vec<Line> {
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some(report::logs::csv_header().trim_end()));
    let line = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields.len(), 10, "{line}");
        assert_eq!(fields[9].is_empty(), fields[7] != "bad_response", "a reason of what is bad alone: {line}");
        // A request that was not sent has no such time, and one that was skipped no end.
        let time = |n: usize| if fields[n].is_empty() { fields[1].parse() } else { fields[n].parse() }.unwrap();
        Line {
            number: fields[0].parse().unwrap(),
            times: [time(1), time(2), time(3)],
            outcome: fields[7].to_owned(),
            bytes: fields[8].parse().unwrap(),
        }
    };
    lines.map(line).collect()
}

/// The outcomes of a log, counted, are those of the study; each request is there once, in order of completion.
fn assert_log_is_the_study(csv: &str, lab: &Lab) -> Vec<Line> {
    let (lines, study) = (lines(csv), study(lab));
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
    assert!(numbers.into_iter().eq(0..lines.len() as u64), "each request once");
    assert!(lines.iter().map(|line| line.bytes).sum::<u64>() <= tally.received_bytes);
    assert!(lines.windows(2).all(|pair| pair[0].times[2] <= pair[1].times[2]), "in order of completion");
    lines
}

#[test]
fn a_log_has_a_line_a_request_in_order_of_completion() {
    let failing = Receiver::answering("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
    for (words, failing) in
        [("-n 3000 -c 7", None), ("-n 30000 -c 8 --threads 3", None), ("-n 10 -c 2", Some(&failing))]
    {
        let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
        let to = failing.map_or_else(|| url(&sink), Receiver::url);
        load(&lab, &format!("{words} --log log.csv {to}")).with_code(if failing.is_some() { 3 } else { 0 });
        let lines = assert_log_is_the_study(&fs::read_to_string(lab.path("log.csv")).unwrap(), &lab);
        assert!(words.starts_with(&format!("-n {} ", lines.len())));
        let outcome = if failing.is_some() { "500" } else { "200" };
        assert!(lines.iter().all(|line| line.outcome == outcome), "{words}");
    }
}

#[test]
fn a_log_that_is_no_table_has_attacks_lines_and_may_be_all_that_is_printed() {
    let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
    load(&lab, &format!("-n 20 -c 1 --log log.txt {}", url(&sink))).with_code(0);
    let log = fs::read_to_string(lab.path("log.txt")).unwrap();
    for (number, line) in log.lines().enumerate() {
        assert!(line.starts_with(&format!("request {} status=200 latency=", number + 1)), "{line}");
    }
    assert_eq!(log.lines().count(), 20);
    let lab = Lab::new();
    let ended = load(&lab, &format!("-n 30 -c 3 --log=-.csv {}", url(&sink))).with_code(0);
    assert_eq!(assert_log_is_the_study(&ended.stdout, &lab).len(), 30);
}

#[test]
fn a_reader_of_the_log_that_leaves_and_a_full_disk_end_no_load() {
    let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
    let (reader, writer) = std::io::pipe().unwrap();
    let mut reader = BufReader::new(reader);
    let mut command = lab.longtail(&format!("load --no-calibrate -n 20000 -c 3 --log - {}", url(&sink)));
    let running = Running::start_as_is(command.stdout(writer).stderr(Stdio::piped()));
    drop(command);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert!(line.starts_with("request "), "{line}");
    drop(reader);
    let ended = running.end().with_code(0);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    assert_eq!(study(&lab).run.tally.counts.good(), 20_000, "the load goes on, and is kept");
    let lab = Lab::new();
    let ended = load(&lab, &format!("-n 20 -c 3 --log /dev/full {}", url(&sink)));
    assert!(ended.stderr.contains("/dev/full"), "{}", ended.stderr);
    assert_eq!(study(&lab).run.tally.counts.good(), 20);
}

#[test]
fn a_stream_arrives_whole_and_over_one_connection_in_order() {
    let expected: Vec<String> = (0..300).map(|n| format!("/{n}")).collect();
    for words in ["-c 1", "-c 20 --threads 3"] {
        let (lab, receiver) = (Lab::new(), Receiver::start());
        lab.write("numbers", &expected.join("\n"));
        load(&lab, &format!("--rate 600/s --for 500ms {words} --requests numbers {}", receiver.url())).with_code(0);
        let mut targets = receiver.targets();
        if words != "-c 1" {
            targets.sort_by_key(|target| target[1..].parse::<usize>().unwrap());
        }
        assert_eq!(targets, expected, "none twice, none missing");
        assert_eq!(study(&lab).run.tally.counts.good(), 300);
    }
}

#[test]
fn what_is_skipped_is_counted_and_does_not_arrive() {
    let receiver = Receiver::start();
    let study = loaded(&format!("--rate 400/s --burst 40 --for 500ms -c 1 --late skip {}", receiver.url()));
    let counts = &study.run.tally.counts;
    let skipped = counts.of(model::Outcome::Skipped);
    assert_eq!((counts.total(), counts.good() + skipped), (200, 200));
    assert!(skipped > 0);
    assert_eq!(receiver.requests().len() as u64, counts.good());
}
