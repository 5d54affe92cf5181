//! Objectives and checks of the answers: what they find, and the exit code.

use model::ThresholdResult;
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
    let json = lab.answer("report --json").with_code(0).stdout;
    let summary: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(summary["expectations"][0]["expected"], "expect max < 0s");
    assert!(summary["expectations"][0]["runs"][0]["value"].as_f64().unwrap() > 0.0, "{json}");
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
    let sweep = "sweep --server builtin -t1:1 -d0.02 -R20 --multiples 1,4 --no-calibrate";
    let mut command = lab.longtail(&format!("{sweep} --json"));
    let ended = crate::lab::Running::start(command.args(["--expect", "p50 < 50ms", "--expect", "p50 < 60s"])).end();
    let summary: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let expected = &summary["expectations"];
    let met = |of: usize| expected[of]["runs"].as_array().unwrap().iter().all(|run| run["result"] == "met");
    assert!(ended.code() == 1 && !met(0), "{expected}");
    assert!(ended.stderr.contains("expect p50 < 50ms: it is "), "{}", ended.stderr);
    let again = lab.study().command_line;
    assert!(again.contains("'--expect=p50 < 50ms' '--expect=p50 < 60s"), "{again}");
}

#[test]
fn failures_are_counted_against_a_threshold() {
    for answer in ["HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 "] {
        let (lab, receiver) = (Lab::new(), Receiver::answering(answer));
        let words = format!("-n 6 -c 2 --timeout 300ms --fail-if 'errors > 99%' {}", receiver.url());
        // It is missed; and no figure is the server's.
        load(&lab, &words).with_code(3);
        assert!(!results(&study(&lab))[0].is_met);
    }
}

#[test]
fn a_condition_ends_a_load_early() {
    let (lab, sink) = (Lab::new(), sink(SinkBody::Ok));
    let ended = load(&lab, &format!("--for 600s -c 2 --stop-if 'completed > 0/s' {}", url(&sink))).with_code(0);
    assert!(ended.stderr.contains("ended early: throughput > 0/s"), "{}", ended.stderr);
    let study = study(&lab);
    assert!(study.interrupted);
    assert!(study.run.tally.counts.good() > 0);
}

/// The load's exit code with these checks, and their lines.
fn checked(checks: &str, url: &str) -> (i32, Vec<String>) {
    let lab = Lab::new();
    let ended = load(&lab, &format!("-n 20 -c 2 {checks} {url}"));
    let study = study(&lab);
    for line in &study.checks {
        assert!(ended.stdout.contains(line.as_str()), "{line}: {}", ended.stdout);
    }
    (ended.code(), study.checks)
}

#[test]
fn each_check_holds_on_right_answers() {
    let server = sink(SinkBody::Ok);
    let hash = Sha256::digest(b"ok\n").iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    let checks = format!("--check status=200 --check length=3 --check sha256={hash} --check same-body");
    let (code, lines) = checked(&checks, &url(&server));
    assert_eq!((code, lines.len()), (0, 4), "{lines:?}");
    assert!(lines.iter().all(|line| !line.contains("FAILED") && line.contains("20")), "{lines:?}");
    let server = sink(SinkBody::Counter);
    let (code, lines) = checked("--check cbor-counter", &url(&server));
    assert_eq!(code, 0, "{lines:?}");
    assert!(lines[0].contains("20 answers, 0 duplicates, 0 gaps, 0 without"), "{lines:?}");
}

#[test]
fn each_check_fails_on_wrong_answers_and_names_one() {
    let server = sink(SinkBody::Counter);
    let wrong = "0".repeat(64);
    for check in ["status=201", "length=3", &format!("sha256={wrong}"), "same-body"] {
        let (code, lines) = checked(&format!("--check {check}"), &url(&server));
        assert_eq!(code, 1, "{check}: {lines:?}");
        assert!(lines[0].starts_with("FAILED "), "{check}: {lines:?}");
    }
    let server = sink(SinkBody::Ok);
    let (code, lines) = checked("--check cbor-counter", &url(&server));
    assert_eq!(code, 1, "{lines:?}");
    assert!(lines[0].contains("20 without"), "{lines:?}");
}

#[test]
fn one_check_that_fails_among_many_is_exit_1() {
    let server = sink(SinkBody::Ok);
    let (code, lines) = checked("--check status=200 --check length=4 --check same-body", &url(&server));
    assert_eq!(code, 1);
    let failed: Vec<bool> = lines.iter().map(|line| line.starts_with("FAILED")).collect();
    assert_eq!(failed, [false, true, false], "{lines:?}");
}

#[test]
fn a_check_without_an_answer_does_not_hold() {
    let receiver = Receiver::answering("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    let (code, lines) = checked("--check length=5", &receiver.url());
    assert_eq!(code, 3, "nothing came back good: {lines:?}");
}
