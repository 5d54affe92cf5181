//! Layouts of hey, wrk and the HDR family, beside what those tools print.

use hdrhistogram::Histogram as Buckets;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use model::{Counts, Nanos, Outcome, Verdict};
use report::{hey, request_logs, wrk};
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
        assert_eq!(
            (bins.len(), bins.iter().sum::<u64>()),
            (11, study.run.tally.counts.good()),
            "{report}"
        );
        assert!(bins[0] >= 1, "one is the fastest");
    }
}

/// What hey and wrk printed themselves, after the command line.
const HEY: &str = include_str!("../../../audit/tests/fixtures/real/hey.txt");
const WRK: &str = include_str!("../../../audit/tests/fixtures/real/wrk_slow.txt");

/// A line with every number as `9` and every bar as one square: what a script that reads it relies
/// on.
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
    let (theirs, ours) = report.split_once(hey::BY_LONGTAIL).unwrap();
    assert_eq!(ours.lines().count(), 1);
    let ours: Vec<String> = theirs.trim().lines().map(shape).collect();
    assert_eq!(
        ours,
        HEY.trim_end().lines().skip(2).map(|line| shape(line.trim_end())).collect::<Vec<_>>()
    );
}

#[test]
fn the_first_line_says_that_figures_are_not_the_servers() {
    let mut study = study::open_poisson();
    for layout in [hey::LAYOUT, wrk::LAYOUT] {
        assert_eq!(report::with_verdict_first(&study, layout), (layout.whole)(&study));
    }
    study.run.judgement.as_mut().unwrap().verdict = Verdict::GeneratorBound;
    for layout in [hey::LAYOUT, wrk::LAYOUT] {
        let text = report::with_verdict_first(&study, layout);
        let (first, rest) = text.split_once('\n').unwrap();
        assert!(first.starts_with("GENERATOR-BOUND: longtail was "), "{first}");
        assert_eq!(rest, (layout.whole)(&study));
    }
}

#[test]
fn of_an_invalid_run_only_counts_are_laid_out() {
    let mut study = study::open_poisson();
    study.run.tally.counts = Counts::default();
    for outcome in [Outcome::Answered(500), Outcome::Answered(500), Outcome::TimedOut] {
        study.run.tally.counts.record(outcome);
    }
    study.run.judgement.as_mut().unwrap().verdict = Verdict::Invalid;
    let text = report::with_verdict_first(&study, hey::LAYOUT);
    let (first, rest) = text.split_once('\n').unwrap();
    assert!(first.ends_with("Times and rates are not shown (--force shows them)."), "{first}");
    let counted = "Status code distribution:\n  [500]\t2 responses\n\nError distribution:\n  [1]\ttimed out\n\n";
    assert_eq!(rest, counted);
    let text = report::with_verdict_first(&study, wrk::LAYOUT);
    let (_, rest) = text.split_once('\n').unwrap();
    let counted = "  0 good responses of 3 requests\n  Socket errors: connect 0, read 0, write 0, timeout 1\n  Non-2xx or 3xx responses: 2\n";
    assert_eq!(rest, counted);
}

#[test]
fn hey_counts_bodies_and_wrk_all_bytes() {
    let mut study = study::open_poisson();
    let responses = study.run.tally.all_responses();
    let line = |text: &str, name: &str| {
        text.lines().find(|line| line.contains(name)).map(|line| line.trim().to_owned())
    };
    assert_eq!(line(&hey::whole(&study), "Size/request").unwrap(), "Size/request:\t12 bytes");
    study.run.tally.received_bytes = responses << 20;
    assert_eq!(line(&hey::whole(&study), "Size/request").unwrap(), "Size/request:\t12 bytes");
    assert!(line(&wrk::whole(&study), " requests in ").unwrap().ends_with("GB read"));
    study.run.tally.body_bytes = 0;
    assert_eq!(line(&hey::whole(&study), "Total data"), None, "hey leaves it out");
}

#[test]
fn wrks_layout_is_wrks() {
    let report = wrk::whole(&study::closed());
    let theirs: Vec<&str> = WRK.lines().skip(1).collect();
    let (report, ours) = report.split_once(wrk::BY_LONGTAIL).unwrap();
    assert_eq!(ours.lines().count(), 1);
    assert_eq!(report.lines().count(), theirs.len());
    // Units depend on the numbers; where a line's first number begins and its last ends does not.
    for (at, (ours, theirs)) in
        report.lines().zip(theirs).enumerate().filter(|(at, _)| (2..5).contains(at) || *at > 10)
    {
        assert_eq!(ours.chars().count(), theirs.chars().count(), "line {at}\n{ours}\n{theirs}");
    }
}

#[test]
fn our_wrk_layout_counts_the_requests_of_its_rate_and_has_the_rate_of_each_thread() {
    for mut study in study::every().into_iter().filter(|study| study.run.measured > Nanos::ZERO) {
        study.plan.load.lanes = 4;
        let report = wrk::whole(&study);
        let line = |part: &str| report.lines().find(|line| line.contains(part)).unwrap();
        let word = |part: &str, at| line(part).split_whitespace().nth(at).unwrap();
        let requests: f64 = word(" requests in ", 0).parse().unwrap();
        let rate: f64 = word("Requests/sec", 1).parse().unwrap();
        assert!((requests / study.run.measured.as_secs_f64() - rate).abs() < 0.01, "{report}");
        if let Ok(each) = word("Req/Sec", 1).parse::<f64>() {
            assert!(each <= rate / 4.0 * 1.2 + 1.0, "{report}");
        }
    }
}

#[test]
fn our_wrk_layout_adds_no_samples() {
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
        let log = request_logs::hdr(&study);
        assert!(log.starts_with("#[Histogram log format version 1.3]\n"), "{log}");
        let intervals: Vec<_> = IntervalLogIterator::new(log.as_bytes())
            .filter_map(|entry| match entry.unwrap() {
                LogEntry::Interval(interval) => Some(interval),
                _ => None,
            })
            .collect();
        let tags: Vec<&str> =
            intervals.iter().map(|interval| interval.tag().unwrap().as_str()).collect();
        assert_eq!(tags, ["response", "service"]);
        for (interval, times) in
            intervals.iter().zip([&study.run.tally.response_time, &study.run.tally.service_time])
        {
            let bytes = base64::Engine::decode(
                &base64::engine::general_purpose::STANDARD,
                interval.encoded_histogram(),
            );
            let read: Buckets<u64> =
                Deserializer::new().deserialize(&mut bytes.unwrap().as_slice()).unwrap();
            let read: Vec<(Nanos, u64)> = read
                .iter_recorded()
                .map(|b| (Nanos(b.value_iterated_to()), b.count_since_last_iteration()))
                .collect();
            assert_eq!(read, times.buckets().collect::<Vec<_>>());
            let off = interval.duration().as_secs_f64() - study.run.measured.as_secs_f64();
            assert!(off.abs() < 0.001, "the log has milliseconds");
        }
    }
    let log = request_logs::hdr(&study::tiny());
    assert!(log.contains("#[StartTime: 1784628000.000 (seconds since epoch)]\n"), "{log}");
    assert!(log.contains("\nTag=response,0.000,3.000,5.976,HISTFAAAA"), "{log}");
}
