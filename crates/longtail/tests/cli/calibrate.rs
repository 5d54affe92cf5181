//! `longtail calibrate`: what the generators claim against what the sink received. No rate and no time is looked at.

use rustix::process::Signal;
use serde_json::Value;

use crate::lab::{Ended, Lab, end, has};
use crate::schemas::assert_keeps;

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
    crate::clock::eventually(
        crate::lab::PATIENCE,
        || format!("{:?}", lab.living()),
        || (lab.living().len() >= 4).then_some(()),
    );
    running.send(Signal::INT);
    let ended = running.end().with_code(130);
    let all: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(all["interrupted"], true);
    assert_keeps("calibrate", &all);
    assert_nothing_stays(&lab);
}
