//! The published schema (`docs/study.schema.json`) takes every study that we write, and not just anything.

use jsonschema::Validator;
use model::{Diagnostic, EndedBy, LanesBy, LoadStudy, Nanos, Study};
use report::json;
use serde_json::{Value, json};
use testkit::{bodies, claimed, load, study};

fn published() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/study.schema.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn schema() -> Validator {
    let schema = published();
    assert!(jsonschema::meta::is_valid(&schema), "it is no JSON Schema");
    jsonschema::draft202012::new(&schema).unwrap()
}

fn value(study: impl Into<Study>) -> Value {
    serde_json::from_str(&json::write(&study.into())).unwrap()
}

#[track_caller]
fn assert_valid(schema: &Validator, study: &Value) {
    if schema.is_valid(study) {
        return;
    }
    // The root says only that neither kind of study fits: ask the kind that it says it is.
    let mut kind = published();
    kind.as_object_mut().unwrap().remove("oneOf");
    kind["$ref"] = format!("#/$defs/{}_study", study["command"].as_str().unwrap()).into();
    let kind = jsonschema::draft202012::new(&kind).unwrap();
    let errors: Vec<String> =
        kind.iter_errors(study).map(|error| format!("{}: {error:.300}", error.instance_path())).collect();
    panic!("{}", errors.join("\n"));
}

#[test]
fn every_study_of_a_sweep_is_valid() {
    let schema = schema();
    for study in study::every() {
        assert_valid(&schema, &value(study));
    }
}

#[test]
fn every_study_of_a_load_is_valid() {
    let schema = schema();
    for study in load::every() {
        assert_valid(&schema, &value(study));
    }
}

#[test]
fn every_study_of_another_generator_is_valid_and_not_just_any() {
    let schema = schema();
    let (load, sweep) = (value(claimed::wrk_load()), value(claimed::hey_sweep()));
    for good in [&load, &sweep] {
        assert_valid(&schema, good);
    }
    let changes: [(&str, Value); 4] = [
        ("/run/audit", json!("fine")),
        ("/run/claim/mean_ns", json!("5ms")),
        ("/run/claim/percentiles/0", json!({"quantile": 2, "time_ns": 1})),
        ("/run/findings/0/is", json!("holds")),
    ];
    for (at, wrong) in changes {
        let mut study = load.clone();
        *study.pointer_mut(at).unwrap() = wrong;
        assert!(!schema.is_valid(&study), "{at}");
    }
    for at in ["", "/run", "/run/claim", "/run/findings/0"] {
        let mut study = load.clone();
        study.pointer_mut(at).unwrap().as_object_mut().unwrap().insert("extra".to_owned(), json!(1));
        assert!(!schema.is_valid(&study), "a key more in '{at}'");
    }
}

#[test]
fn every_study_of_bodies_is_valid() {
    let schema = schema();
    for study in bodies::every() {
        assert_valid(&schema, &value(study));
    }
}

/// One of each. The match makes the compiler ask for a new one here, and so for its place in the schema.
fn every_warning() -> Vec<Diagnostic> {
    let all = vec![
        Diagnostic::LedgersDiffer { worker: None, client: 1, server: 2 },
        Diagnostic::BytesDiffer { client: 1, app: 2 },
        Diagnostic::LedgerUnknown { reason: "it has none".to_owned() },
        Diagnostic::Failures { failed: 1, planned: 2 },
        Diagnostic::QuantilesHidden { from: 0.99, unanswered: 3, outcomes: Vec::new() },
        Diagnostic::QuantilesHidden {
            from: 0.99,
            unanswered: 3,
            outcomes: vec!["503".to_owned(), "timed_out".to_owned()],
        },
        Diagnostic::TooFewRequests { from: 0.999, answers: 5, worth: Some(2) },
        Diagnostic::Growing { growth: Some(0.25), growth_per_s: 15.0, at_end: 75 },
        Diagnostic::Growing { growth: None, growth_per_s: 15.0, at_end: 75 },
        Diagnostic::BacklogUnexplained { growth_per_s: 15.0, at_end: 75 },
        Diagnostic::Unstamped { answers: 1, of: 5 },
        Diagnostic::ImpossibleStamps { answers: 1, of: 5 },
        Diagnostic::SilentApp { answers: 1, of: 5 },
        Diagnostic::QueueExceedsWait { accept_queue: Nanos(5), wait: Nanos(4) },
        Diagnostic::KernelUnjoined { unmatched: 1, impossible: 2, of: 5 },
        Diagnostic::KernelIncomplete { unfollowed: 1, lost: 2 },
        Diagnostic::KernelCountDiffers { kernel: 6, client: 5 },
        Diagnostic::ConnectionsClosed { closed: 1 },
        Diagnostic::UnaskedBytes { closed: 1 },
        Diagnostic::DelayedAck { waited: Nanos::from_millis(42) },
        Diagnostic::ServedInTurns { answers_a_turn: 10.2, waiting: 6 },
        Diagnostic::Unfair { jain: 0.5, fewest: 1, most: 9 },
        Diagnostic::AboveMaximum { ratio: 1.1 },
        Diagnostic::StillBusy { waited: Nanos::from_secs(1), what: "3 busy threads".to_owned() },
        Diagnostic::WorkersChanged { new: 1 },
        Diagnostic::FellBehind { due: 5, sent_in_time: 4 },
        Diagnostic::SharedCpus { cpus: "0-1".parse().unwrap(), taken: 0.25 },
        Diagnostic::QueuedInGenerator { requests: 5, longest: Nanos::from_millis(3) },
        Diagnostic::LogIncomplete { dropped: 7 },
        Diagnostic::StoppedEarly { condition: "p99 > 1ms: it is 2ms".to_owned() },
        Diagnostic::ClaimDiffers { by: "wrk".to_owned(), claimed: 1, server: 2, under_way: 0 },
        Diagnostic::Interrupted { by: None },
        Diagnostic::Interrupted { by: Some(EndedBy::User) },
        Diagnostic::Interrupted { by: Some(EndedBy::Server) },
    ];
    for warning in &all {
        match warning {
            Diagnostic::LedgersDiffer { .. }
            | Diagnostic::BytesDiffer { .. }
            | Diagnostic::LedgerUnknown { .. }
            | Diagnostic::Failures { .. }
            | Diagnostic::QuantilesHidden { .. }
            | Diagnostic::TooFewRequests { .. }
            | Diagnostic::Growing { .. }
            | Diagnostic::BacklogUnexplained { .. }
            | Diagnostic::Unstamped { .. }
            | Diagnostic::ImpossibleStamps { .. }
            | Diagnostic::SilentApp { .. }
            | Diagnostic::QueueExceedsWait { .. }
            | Diagnostic::KernelUnjoined { .. }
            | Diagnostic::KernelIncomplete { .. }
            | Diagnostic::KernelCountDiffers { .. }
            | Diagnostic::ConnectionsClosed { .. }
            | Diagnostic::UnaskedBytes { .. }
            | Diagnostic::DelayedAck { .. }
            | Diagnostic::ServedInTurns { .. }
            | Diagnostic::Unfair { .. }
            | Diagnostic::AboveMaximum { .. }
            | Diagnostic::StillBusy { .. }
            | Diagnostic::WorkersChanged { .. }
            | Diagnostic::FellBehind { .. }
            | Diagnostic::SharedCpus { .. }
            | Diagnostic::QueuedInGenerator { .. }
            | Diagnostic::LogIncomplete { .. }
            | Diagnostic::StoppedEarly { .. }
            | Diagnostic::ClaimDiffers { .. }
            | Diagnostic::Interrupted { .. } => {}
        }
    }
    all
}

#[test]
fn every_warning_is_valid() {
    let schema = schema();
    let mut study = load::tiny();
    study.run.warnings = every_warning();
    assert_valid(&schema, &value(study));
}

#[test]
fn every_reason_for_lanes_is_valid() {
    let schema = schema();
    for by in [LanesBy::Asked, LanesBy::Rate, LanesBy::Half, LanesBy::Left, LanesBy::Connections, LanesBy::One] {
        // The match makes the compiler ask for a new one here.
        match by {
            LanesBy::Asked | LanesBy::Rate | LanesBy::Half | LanesBy::Left | LanesBy::Connections | LanesBy::One => {}
        }
        assert_valid(&schema, &value(LoadStudy { lanes_by: by, ..load::tiny() }));
    }
}

#[test]
fn every_objective_is_valid() {
    let schema = schema();
    let mut study = load::tiny();
    let typed = ["p99 > 200ms", "p99.9>0.2", "service p50 > 1s", "errors > 0.1%", "errors > 5", "sent < 99%"];
    let more = ["completed < 100/s", "mean > 50us", "max > 1.5s"];
    study.plan.stop_if = typed.iter().chain(&more).map(|text| text.parse().unwrap()).collect();
    assert_valid(&schema, &value(study));
}

#[test]
fn what_does_not_belong_is_refused() {
    let schema = schema();
    let good = value(load::tiny());
    let changes: [(&str, Value); 11] = [
        ("/command", json!("sweep")),
        ("/schema", json!(2)),
        ("/plan/connections", json!(-1)),
        ("/plan/pace/kind", json!("sometimes")),
        ("/plan/timeout_ns", json!("20s")),
        ("/run/tally/counts", json!({"timeout": 1})),
        ("/run/tally/bad_responses", json!({"strange": 1})),
        ("/run/tally/wrong_lengths", json!({"wanted_bytes": 1})),
        ("/run/tally/response_time/buckets", json!([[1, 2, 3]])),
        ("/run/warnings", json!([{"code": "bad_weather"}])),
        ("/interrupted", json!(null)),
    ];
    for (at, wrong) in changes {
        let mut study = good.clone();
        *study.pointer_mut(at).unwrap() = wrong;
        assert!(!schema.is_valid(&study), "{at}");
    }
    for at in ["", "/plan", "/plan/pace", "/environment", "/run", "/run/tally", "/run/tally/phases/read"] {
        let mut study = good.clone();
        study.pointer_mut(at).unwrap().as_object_mut().unwrap().insert("extra".to_owned(), json!(1));
        assert!(!schema.is_valid(&study), "a key more in '{at}'");
        let mut study = good.clone();
        let object = study.pointer_mut(at).unwrap().as_object_mut().unwrap();
        let first = object.keys().next().unwrap().clone();
        object.remove(&first);
        assert!(!schema.is_valid(&study), "no {first} in '{at}'");
    }
}
