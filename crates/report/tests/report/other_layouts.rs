//! Layouts of hey, wrk and the HDR family, beside what those tools print.

use hdrhistogram::Histogram as Buckets;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use model::Nanos;
use report::{hdr_log, hey, wrk};
use testkit::load as study;

#[test]
fn hey_counts_every_good_answer_in_eleven_bins() {
    for study in study::every().iter().filter(|study| study.run.tally.counts.good() > 0) {
        let report = hey::whole(study);
        let bins: Vec<u64> = report
            .lines()
            .filter(|line| line.contains("]\t|"))
            .map(|line| line.split(['[', ']']).nth(1).unwrap().parse().unwrap())
            .collect();
        assert_eq!((bins.len(), bins.iter().sum::<u64>()), (11, study.run.tally.counts.good()), "{report}");
        assert!(bins[0] >= 1, "one is the fastest");
    }
}

/// hey's own output, as published; ours has its lines in its order.
const HEY: &str = "\
Summary:
  Total:\t20.0037 secs
  Slowest:\t0.2488 secs
  Fastest:\t0.0001 secs
  Average:\t0.0012 secs
  Requests/sec:\t41197.7139

  Total data:\t26371392 bytes
  Size/request:\t32 bytes

Response time histogram:
  0.000 [1]\t|
  0.025 [820206]\t|■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■
  0.050 [3339]\t|
  0.075 [404]\t|
  0.100 [107]\t|
  0.124 [24]\t|
  0.149 [12]\t|
  0.174 [7]\t|
  0.199 [2]\t|
  0.224 [1]\t|
  0.249 [3]\t|


Latency distribution:
  10% in 0.0002 secs
  25% in 0.0002 secs
  50% in 0.0004 secs
  75% in 0.0009 secs
  90% in 0.0020 secs
  95% in 0.0040 secs
  99% in 0.0172 secs

Details (average, fastest, slowest):
  DNS+dialup:\t0.0000 secs, 0.0001 secs, 0.2488 secs
  DNS-lookup:\t0.0000 secs, 0.0000 secs, 0.0039 secs
  req write:\t0.0000 secs, 0.0000 secs, 0.1400 secs
  resp wait:\t0.0010 secs, 0.0001 secs, 0.2355 secs
  resp read:\t0.0001 secs, 0.0000 secs, 0.2161 secs

Status code distribution:
  [200]\t824106 responses
";

/// wrk's own output, as published.
const WRK: &str = "\
Running 30s test @ http://localhost:9292
  2 threads and 4 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     2.31ms    4.32ms  57.82ms   89.99%
    Req/Sec     2.46k   808.24     4.52k    66.61%
  Latency Distribution
     50%  623.00us
     75%    2.32ms
     90%    6.64ms
     99%   21.46ms
  146736 requests in 30.07s, 10.64MB read
Requests/sec:   4880.11
Transfer/sec:    362.20KB
";

/// A line with every number as `9` and every bar as one square: what a script that reads it relies on.
fn shape(line: &str) -> String {
    let mut shape = String::new();
    for c in line.chars() {
        let c = if c.is_ascii_digit() { '9' } else { c };
        if !(shape.ends_with(c) && "9■".contains(c)) {
            shape.push(c);
        }
    }
    shape.trim_end_matches('■').to_owned()
}

#[test]
fn heys_layout_is_heys() {
    let report = hey::whole(&study::open_poisson());
    let ours: Vec<String> = report.trim().lines().map(shape).collect();
    assert_eq!(ours, HEY.lines().map(shape).collect::<Vec<_>>());
}

#[test]
fn wrks_layout_is_wrks() {
    let report = wrk::whole(&study::closed());
    assert_eq!(report.lines().count(), WRK.lines().count());
    // Units depend on the numbers; where a line's first number begins and its last ends does not.
    for (ours, theirs) in report.lines().zip(WRK.lines()).skip(2).take(3) {
        assert_eq!(ours.chars().count(), theirs.chars().count(), "\n{ours}\n{theirs}");
    }
    for (ours, theirs) in report.lines().zip(WRK.lines()).skip(11) {
        assert_eq!(ours.chars().count(), theirs.chars().count(), "\n{ours}\n{theirs}");
    }
}

#[test]
fn wrk_adds_no_samples() {
    // Little's law: in a closed loop the mean is connections / rate, up to the ends of the run.
    let study = study::closed();
    let mean = study.run.tally.response_time.mean().unwrap().as_secs_f64();
    let connections = mean * study.run.completed_rate();
    assert!((connections / 64.0 - 1.0).abs() < 0.01, "{connections}");
    assert!(wrk::whole(&study).contains(&format!("{:.2}ms", mean * 1e3)));
}

#[test]
fn an_hdr_log_is_read_back_as_it_was() {
    for study in study::every() {
        let log = hdr_log::log(&study);
        assert!(log.starts_with("#[Histogram log format version 1.3]\n"), "{log}");
        let intervals: Vec<_> = IntervalLogIterator::new(log.as_bytes())
            .filter_map(|entry| match entry.unwrap() {
                LogEntry::Interval(interval) => Some(interval),
                _ => None,
            })
            .collect();
        let tags: Vec<&str> = intervals.iter().map(|interval| interval.tag().unwrap().as_str()).collect();
        assert_eq!(tags, ["response", "service"]);
        for (interval, times) in intervals.iter().zip([&study.run.tally.response_time, &study.run.tally.service_time]) {
            let bytes =
                base64::Engine::decode(&base64::engine::general_purpose::STANDARD, interval.encoded_histogram());
            let read: Buckets<u64> = Deserializer::new().deserialize(&mut bytes.unwrap().as_slice()).unwrap();
            let read: Vec<(Nanos, u64)> =
                read.iter_recorded().map(|b| (Nanos(b.value_iterated_to()), b.count_since_last_iteration())).collect();
            assert_eq!(read, times.buckets().collect::<Vec<_>>());
            let off = interval.duration().as_secs_f64() - study.run.measured.as_secs_f64();
            assert!(off.abs() < 0.001, "the log has milliseconds");
        }
    }
}

#[test]
fn the_log_of_the_hdr_family_says_when_it_was() {
    let log = hdr_log::log(&study::tiny());
    assert!(log.contains("#[StartTime: 1784628000.000 (seconds since epoch)]\n"), "{log}");
    assert!(log.contains("\nTag=response,0.000,3.000,5.976,HISTFAAAA"), "{log}");
}
