//! `longtail calibrate`: what the generators claim against what the sink received. No rate and no time is looked at.

use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;
use serde_json::Value;

use crate::lab::{Ended, Lab, Running, has};
use crate::schemas::{assert_fits, assert_keeps};

/// Runs it as JSON, with these words; where a starved machine let no request of longtail's own become due in a second, with more time.
fn calibrated(lab: &Lab, words: &str, path: Option<&str>) -> Value {
    let for_a_time = |time: &str| {
        let mut command =
            lab.longtail(&format!("calibrate --only generators --rounds 1 -c 8 --for {time} --format json {words}"));
        if let Some(path) = path {
            command.env("PATH", lab.path(path));
        }
        Running::start(&mut command).end()
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

fn holds_for(tool: &str) {
    if has(tool) {
        let lab = Lab::new();
        let all = calibrated(&lab, &format!("--tools {tool}"), None);
        assert_eq!(all["tools"].as_array().unwrap().len(), 2);
        claims_what_was_received(&all, "longtail");
        claims_what_was_received(&all, tool);
    }
}

#[test]
fn wrk_is_understood() {
    holds_for("wrk");
}

#[test]
fn hey_is_understood() {
    holds_for("hey");
}

#[test]
fn h2load_is_understood() {
    holds_for("h2load");
}

#[test]
fn ab_is_understood() {
    if has("ab") {
        let lab = Lab::new();
        let all = calibrated(&lab, "--tools ab", None);
        // What it has received when its time is up it may still count or not.
        let run = run(&all, "ab");
        assert!(run["received"].as_u64().unwrap() > 0 && run["said"]["claimed"].as_u64().unwrap() > 0, "{run:#}");
    }
}

#[test]
fn a_generator_that_fails_is_named_and_the_others_go_on() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("bin")).unwrap();
    for (name, script) in
        [("wrk", "#!/bin/sh\necho no such thing >&2\nexit 3\n"), ("hey", "#!/bin/sh\n/bin/sleep 1.2\n")]
    {
        let file = lab.write(&format!("bin/{name}"), script);
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
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

/// What is remembered of this machine: one that keeps `kept_per_s`.
fn remember(lab: &Lab, kept_per_s: u32) {
    let ours = launch::affinity::ours().expect("Linux tells");
    let model::Environment { longtail_version, cpu, memory_bytes, kernel, .. } =
        probe::machine::environment(env!("CARGO_PKG_VERSION"));
    let machine = format!("{longtail_version} {cpu} cpus={ours} memory={memory_bytes} {kernel}");
    let all = serde_json::json!({machine: {"measured_on": "2026-11-22", "kept_per_s": kept_per_s}});
    std::fs::create_dir_all(lab.path("data/longtail")).unwrap();
    lab.write("data/longtail/lanes.json", &all.to_string());
}

#[test]
fn what_was_measured_of_lanes_is_the_default_and_is_said() {
    let lab = Lab::new();
    let (sink, said) = (crate::load::sink(sink::SinkBody::Counter), "1 lane (a lane kept 1000 req/s on 2026-11-22)");
    let load = format!("load --rate 900/s -n 9 --no-calibrate {}", crate::load::url(&sink));
    let before = lab.run(&load).with_code(0);
    assert!(before.stdout.contains("1 lane (20000 req/s a lane, not measured here)"), "{}", before.stdout);
    remember(&lab, 1000);
    let after = lab.run(&load).with_code(0);
    assert!(after.stdout.contains(said), "{}", after.stdout);
    let sweep = "sweep --server builtin -t1:1 -d0.001 -R5 --multiples 1 --no-calibrate -o sweep.json";
    let swept = lab.run(sweep).with_code(0);
    assert!(swept.stdout.contains(said) && swept.stdout.contains("--lanes=1 "), "{}", swept.stdout);
    let by = Some(model::LanesBy::Rate { of_a_lane_per_s: 1000, measured_on: Some("2026-11-22".to_owned()) });
    assert_eq!(crate::lab::read(&lab.path("sweep.json")).lanes_by, by);
}

/// Which rates a machine keeps is its own affair; that something is kept only where it was found, in three tries at most, is ours.
#[test]
fn what_is_found_of_lanes_is_kept_or_not_and_that_is_said() {
    let lab = Lab::new();
    let ended = lab.run("calibrate --only lanes --format json").with_code(0);
    assert_nothing_stays(&lab);
    let all: Value = serde_json::from_str(&ended.stdout).unwrap();
    // Not with each key needed: with three processors there is one more.
    assert_fits("calibrate", &all);
    let lanes = &all["lanes"];
    let rungs = lanes["rungs"].as_array().unwrap();
    assert!(all["tools"].as_array().unwrap().is_empty() && rungs[0]["rate_per_s"] == 2_000, "{all:#}");
    for rung in rungs {
        assert!((2..=3).contains(&rung["tries"].as_array().unwrap().len()), "{rung:#}");
    }
    let file = std::fs::read_to_string(lab.path("data/longtail/lanes.json")).ok();
    let kept: Option<Value> = file.map(|text| serde_json::from_str(&text).unwrap());
    let kept = kept.and_then(|all| all.as_object().unwrap().values().next().cloned()).unwrap_or(Value::Null);
    assert_eq!(kept, lanes["limits"], "{all:#}");
    let refused = lab.run("calibrate --only lanes --tools wrk").with_code(2);
    assert!(refused.stderr.contains("leave out --tools"), "{}", refused.stderr);
}

#[test]
fn a_time_that_not_every_generator_knows_is_refused() {
    let lab = Lab::new();
    for time in ["1500ms", "0s"] {
        let ended = lab.run(&format!("calibrate --for {time}")).with_code(2);
        assert_eq!((ended.stderr.lines().count(), ended.stdout.as_str()), (1, ""), "{}", ended.stderr);
        assert!(ended.stderr.contains("whole seconds"), "{}", ended.stderr);
    }
}

#[test]
fn ctrl_c_prints_what_there_is_and_leaves_nothing() {
    let lab = Lab::new();
    let running = Running::start(&mut lab.longtail("calibrate --for 60s --tools oha --format json"));
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
