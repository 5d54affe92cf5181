//! `longtail doctor`, as a user starts it. What it finds depends on the machine; how it says so does not.

use std::collections::BTreeSet;

use rustix::process::Signal;
use serde_json::Value;
use testkit::clock::eventually;

use crate::lab::{Ended, LONGTAIL, Lab, PATIENCE, end, has};
use crate::schemas::assert_keeps;

/// 0 or 1, and the one that goes with what was printed.
fn examined(lab: &Lab, words: &str) -> Ended {
    let ended = lab.run(words);
    let unfit = ended.stdout.starts_with("This machine is not fit: ") || ended.stdout.contains("\"fit\": false");
    ended.with_code(i32::from(unfit))
}

#[test]
fn the_text_is_grouped_marked_and_narrow() {
    let lab = Lab::new();
    let ended = examined(&lab, "doctor --full");
    assert_eq!(ended.stderr, "");
    let text = ended.stdout;
    for heading in ["processors", "right now", "timers", "network", "kernel", "programs"] {
        assert_eq!(text.lines().filter(|line| *line == heading).count(), 1, "{heading}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let with = |mark: &str| text.lines().filter(|line| line.trim_start().starts_with(mark)).count();
    assert_eq!(with("! ") + with("✗ "), text.matches("    → ").count(), "each doubt has its hint: {text}");
    let verdict = text.lines().next().unwrap();
    assert_eq!(verdict.starts_with("This machine is not fit: "), with("✗ ") > 0, "{verdict}");
    assert!(verdict.starts_with("This machine is "), "{verdict}");
    let brief = examined(&lab, "doctor").stdout;
    assert!(brief.lines().count() <= 30 && !brief.contains("✓ "), "{brief}");
    assert!(brief.contains(" passed: longtail doctor --full lists what they saw.\n"), "{brief}");
    assert!(lab.studies().is_empty() && lab.living().is_empty());
}

#[test]
fn the_json_has_every_check_with_its_grade() {
    let lab = Lab::new();
    let file: Value = serde_json::from_str(&examined(&lab, "doctor --format json").stdout).unwrap();
    assert_keeps("doctor", &file);
    let checks = file["checks"].as_array().unwrap();
    let names: BTreeSet<&str> = checks.iter().map(|check| check["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), checks.len());
    for name in ["processors", "stolen time", "late waits", "file descriptors", "BPF", "Puma"] {
        assert!(names.contains(name), "{name}: {names:?}");
    }
    let graded = |grade: &str| checks.iter().filter(|check| check["grade"] == grade).count();
    assert_eq!(file["fitness"]["warnings"], graded("warn"));
    assert_eq!(file["fitness"]["unknown"], graded("unknown"));
    assert_eq!(file["fitness"]["fit"], graded("bad") == 0);
}

#[test]
fn one_processor_and_few_descriptors_make_a_machine_unfit() {
    let lab = Lab::new();
    let script = format!("ulimit -n 100 && exec taskset -c 0 {LONGTAIL} doctor");
    if !has("taskset") {
        return;
    }
    let ended = end(lab.program("sh").args(["-c", &script])).with_code(1);
    let verdict = ended.stdout.lines().next().unwrap();
    for name in ["processors", "file descriptors"] {
        assert!(verdict.starts_with("This machine is not fit: ") && verdict.contains(name), "{verdict}");
    }
}

/// Runs it as JSON, with these words; where a starved machine let no request of longtail's own become due in a second, with more time.
fn calibrated(lab: &Lab, words: &str, path: Option<&str>) -> Value {
    let for_a_time = |time: &str| {
        let mut command = lab.longtail(&format!("doctor --generators --rounds 1 -c 8 --for {time} --json {words}"));
        if let Some(path) = path {
            command.env("PATH", lab.path(path));
        }
        end(&mut command)
    };
    let is_empty = |ended: &Ended| ended.code() == 2 && ended.stdout.contains("the sink got no request of it");
    let ended = ["1s", "5s"].into_iter().map(for_a_time).find(|ended| !is_empty(ended));
    let ended = ended.unwrap_or_else(|| for_a_time("30s")).with_code(0);
    assert_nothing_stays(lab);
    let all = serde_json::from_str(&ended.stdout).unwrap();
    assert_keeps("calibrate", &all);
    all
}

/// No process, no file, and no study that the user has not made.
fn assert_nothing_stays(lab: &Lab) {
    assert!(lab.living().is_empty(), "{:?}", lab.living());
    assert_eq!(std::fs::read_dir(lab.path("tmp")).unwrap().count(), 0);
    assert!(lab.studies().is_empty());
}

fn run<'a>(all: &'a Value, tool: &str) -> &'a Value {
    let tools = all["tools"].as_array().unwrap();
    let it = tools.iter().find(|one| one["tool"] == tool).unwrap_or_else(|| panic!("{all:#}"));
    assert!(it["failures"].as_array().unwrap().is_empty(), "{it:#}");
    &it["runs"][0]
}

/// What it says it did is what the sink has seen, but for what was under way at the end on each of its connections.
fn claims_what_was_received(all: &Value, tool: &str) {
    let run = run(all, tool);
    let (received, claimed) = (run["received"].as_u64().unwrap(), run["said"]["claimed"].as_u64().unwrap());
    assert!(claimed > 0 && claimed <= received && received - claimed <= 8, "{tool}: {claimed} of {received}");
}

#[test]
fn longtail_claims_exactly_what_the_sink_received() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("bin")).unwrap();
    let all = calibrated(&lab, "", Some("bin"));
    let own = run(&all, "longtail");
    assert_eq!(own["said"]["claimed"], own["received"]);
    assert_eq!(own["connections"], 8);
    let missing = ["wrk", "hey", "oha", "ab", "h2load", "bombardier", "wrk2", "vegeta"];
    assert_eq!(all["missing"], Value::from(missing.to_vec()));
}

#[test]
fn other_generators_are_understood() {
    let tools: Vec<&str> = ["wrk", "hey", "h2load", "ab"].into_iter().filter(|tool| has(tool)).collect();
    if tools.is_empty() {
        return;
    }
    let all = calibrated(&Lab::new(), &format!("--tools {}", tools.join(",")), None);
    assert_eq!(all["tools"].as_array().unwrap().len(), 1 + tools.len());
    for tool in std::iter::once("longtail").chain(tools) {
        if tool == "ab" {
            // What it has received when its time is up it may still count or not.
            let run = run(&all, "ab");
            assert!(run["received"].as_u64().unwrap() > 0 && run["said"]["claimed"].as_u64().unwrap() > 0, "{run:#}");
        } else {
            claims_what_was_received(&all, tool);
        }
    }
}

#[test]
fn a_generator_that_fails_is_named_and_the_others_go_on() {
    let lab = Lab::new();
    lab.executable("bin/wrk", "#!/bin/sh\necho no such thing >&2\nexit 3\n");
    lab.executable("bin/hey", "#!/bin/sh\n/bin/sleep 1.2\n");
    let all = calibrated(&lab, "--tools wrk,hey,oha", Some("bin"));
    claims_what_was_received(&all, "longtail");
    let failures = |tool: &str| {
        let tools = all["tools"].as_array().unwrap();
        tools.iter().find(|one| one["tool"] == tool).unwrap()["failures"][0].as_str().unwrap().to_owned()
    };
    assert!(failures("wrk").ends_with("no such thing"), "{}", failures("wrk"));
    assert_eq!(failures("hey"), "the sink got no request of it");
    assert_eq!(all["missing"], Value::from(vec!["oha"]));
}

#[test]
fn ctrl_c_prints_what_there_is_and_leaves_nothing() {
    let lab = Lab::new();
    let running = lab.start("calibrate --for 60s --tools oha --format json");
    // longtail, the guard, the sink, and the generator.
    eventually(PATIENCE, || format!("{:?}", lab.living()), || (lab.living().len() >= 4).then_some(()));
    running.send(Signal::INT);
    let ended = running.end().with_code(130);
    let all: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(all["interrupted"], true);
    assert_keeps("calibrate", &all);
    assert_nothing_stays(&lab);
}

#[test]
fn every_request_byte_and_connection_is_in_both_ledgers() {
    let lab = Lab::new();
    let ended = lab.run("doctor --self-test --quick --json").with_code(0);
    assert_eq!(ended.stderr, "");
    let all: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_keeps("selftest", &all);
    assert_eq!(all["conserved"], true);
    let cases = all["cases"].as_array().unwrap();
    // The seeds are fixed, so that the number of random arrivals is a fact too.
    let planned: Vec<_> = cases.iter().map(|case| (case["case"].as_str().unwrap(), &case["planned"])).collect();
    let expected = [
        ("constant 1ms", 300),
        ("exp:5ms", 300),
        ("bimodal:1ms:50ms:0.02", 300),
        ("stalls 1s:100ms", 1200),
        ("D/D/5 at twice", 30),
        ("M/D/5 at 0.8", 286),
        ("rate 1000/s", 500),
    ];
    assert_eq!(planned.len(), expected.len());
    for ((case, planned), (name, number)) in planned.into_iter().zip(expected) {
        assert_eq!((case, planned.as_u64()), (name, Some(number)));
    }
    for case in cases {
        let balances = case["balances"].as_array().unwrap();
        assert!(balances.len() >= 10);
        for balance in balances {
            assert_eq!(balance["expected"], balance["found"], "{}: {}", case["case"], balance["what"]);
        }
    }
    assert!(lab.studies().is_empty());
}
