//! Objectives and checks of the answers: what they find, and the exit code.

use model::ThresholdResult;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use sink::SinkBody;
use testkit::http::Receiver;

use super::{load, sink, study, url};
use crate::lab::Lab;

/// What came of each threshold of the study.
fn results(study: &model::LoadStudy) -> Vec<ThresholdResult> {
    let held = |threshold| study.run.held_against(threshold).expect("the run has requests");
    study.plan.thresholds.iter().map(held).collect()
}

#[test]
fn a_threshold_that_is_missed_is_named_and_is_exit_1() {
    let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
    let words = format!("-n 50 -c 2 --fail-if 'failed > 0' --expect 'max < 0s' {}", url(&sink));
    let ended = load(&lab, &words).with_code(1);
    let results = results(&study(&lab));
    assert_eq!(results.iter().map(|result| result.is_met).collect::<Vec<_>>(), [false, true]);
    // Where the machine kept the generator from its work nobody can tell.
    let (word, printed) = if results[0].doubt.is_none() { ("FAIL", "PASS") } else { ("CANNOT TELL", "CANNOT TELL") };
    assert!(ended.stdout.contains(&format!("{word} max < 0s: it is ")), "{}", ended.stdout);
    assert!(ended.stdout.contains(&format!("{printed} fail if failed > 0: it is 0")), "{}", ended.stdout);
    assert_eq!(lab.run("report").with_code(0).stdout, ended.stdout, "a report is no judgement");
    let summary: Value = serde_json::from_str(&lab.answer("report --json").with_code(0).stdout).unwrap();
    assert_eq!(summary["expectations"][0]["expected"], "expect max < 0s");
    assert!(summary["expectations"][0]["runs"][0]["value"].as_f64().unwrap() > 0.0, "{summary}");
}

#[test]
fn a_threshold_that_is_met_is_exit_0() {
    let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
    let words = format!("-n 50 -c 2 --fail-if 'errors > 0.1%' --expect 'p50 < 60s' {}", url(&sink));
    let ended = load(&lab, &words);
    let study = study(&lab);
    let bound = study.run.judgement.as_ref().is_some_and(|it| it.verdict == model::Verdict::GeneratorBound);
    ended.with_code(i32::from(bound));
    assert!(results(&study).iter().all(|result| result.is_met));
}

#[test]
fn a_threshold_is_kept_by_each_run_of_a_sweep() {
    let lab = Lab::new();
    let sweep = "sweep --server builtin -t1:1 -d0.02 -R20 --multiples 1,4 --no-calibrate --json";
    let ended = lab.run(&format!("{sweep} --expect 'p50 < 50ms' --expect 'p50 < 60s'")).with_code(1);
    let summary: Value = serde_json::from_str(&ended.stdout).unwrap();
    let runs = summary["expectations"][0]["runs"].as_array().unwrap();
    assert!(!runs.iter().all(|run| run["result"] == "met"), "{summary}");
    assert!(ended.stderr.contains("expect p50 < 50ms: it is "), "{}", ended.stderr);
    let again = lab.study().command_line;
    assert!(again.contains("'--expect=p50 < 50ms' '--expect=p50 < 60s"), "{again}");
}

#[test]
fn a_condition_ends_a_load_early() {
    let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
    let ended = load(&lab, &format!("--for 600s -c 2 --stop-if 'completed > 0/s' {}", url(&sink))).with_code(0);
    assert!(ended.stderr.contains("ended early: throughput > 0/s"), "{}", ended.stderr);
    let study = study(&lab);
    assert!(study.interrupted && study.run.tally.counts.good() > 0);
}

/// Each check on right answers and on wrong ones: the exit code, which of them failed, and what one of their lines has in it.
#[test]
fn a_check_holds_on_right_answers_and_fails_on_wrong_ones() {
    let (ok, counter) = (sink(SinkBody::Ok), sink(SinkBody::Counter));
    let missing = Receiver::answering("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    let [ok, counter, missing] = [url(&ok), url(&counter), missing.url()];
    let hash = Sha256::digest(b"ok\n").iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    let (right, wrong) = (format!("sha256={hash}"), format!("sha256={}", "0".repeat(64)));
    let counted = "20 answers, 0 duplicates, 0 gaps, 0 without";
    for (url, checks, code, failed, part) in [
        (&ok, &["status=200", "length=3", &right, "same-body"][..], 0, &[false; 4][..], "20"),
        (&counter, &["cbor-counter"], 0, &[false], counted),
        (&counter, &["status=201"], 1, &[true], ""),
        (&counter, &["length=3"], 1, &[true], ""),
        (&counter, &[&wrong], 1, &[true], ""),
        (&counter, &["same-body"], 1, &[true], ""),
        (&ok, &["cbor-counter"], 1, &[true], "20 without"),
        (&ok, &["status=200", "length=4", "same-body"], 1, &[false, true, false], ""),
        // Nothing came back good.
        (&missing, &["length=5"], 3, &[true], ""),
    ] {
        let lab = Lab::new();
        let ended = load(&lab, &format!("-n 20 -c 2 --check {} {url}", checks.join(" --check "))).with_code(code);
        let lines = study(&lab).checks;
        assert_eq!(lines.iter().map(|line| line.starts_with("FAILED ")).collect::<Vec<_>>(), failed, "{lines:?}");
        assert!(lines.iter().all(|line| ended.stdout.contains(line.as_str())), "{lines:?}: {}", ended.stdout);
        assert!(lines[0].contains(part), "{lines:?}");
    }
}
