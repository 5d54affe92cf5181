//! The published schema (`docs/study.schema.json`) takes every study that we write, and not just anything.

use jsonschema::Validator;
use model::{Diagnostic, EndedBy, LaneCountReason, LoadStudy, Nanos, Study};
use report::json;
use serde_json::{Value, json};
use strum::IntoEnumIterator as _;
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
fn every_study_is_valid() {
    let schema = schema();
    let studies = study::every().into_iter().map(value).chain(load::every().into_iter().map(value));
    for study in studies.chain(bodies::every().into_iter().map(value)) {
        assert_valid(&schema, &study);
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
        ("/run/claim/audit", json!("fine")),
        ("/run/claim/mean_ns", json!("5ms")),
        ("/run/claim/percentiles/0", json!({"quantile": 2, "time_ns": 1})),
        ("/run/warnings/0/is", json!("holds")),
    ];
    for (at, wrong) in changes {
        let mut study = load.clone();
        *study.pointer_mut(at).unwrap() = wrong;
        assert!(!schema.is_valid(&study), "{at}");
    }
    for at in ["", "/run", "/run/claim", "/run/warnings/0"] {
        let mut study = load.clone();
        study.pointer_mut(at).unwrap().as_object_mut().unwrap().insert("extra".to_owned(), json!(1));
        assert!(!schema.is_valid(&study), "a key more in '{at}'");
    }
}

#[test]
fn every_diagnostic_is_valid() {
    let of_no_cpu = |diagnostic: &Diagnostic| matches!(diagnostic, Diagnostic::SharedCpus { .. });
    let mut all: Vec<Diagnostic> = Diagnostic::iter().filter(|diagnostic| !of_no_cpu(diagnostic)).collect();
    all.extend([
        Diagnostic::Conservation { worker: Some(1), client: 1, server: 2 },
        Diagnostic::Steadiness { settled_after: Some(Nanos(5)), shift: 0.0, shift_in_errors: 0.0, is_claimed: true },
        Diagnostic::QuantilesHidden { from: 0.99, unanswered: 3, outcomes: vec!["503".to_owned()] },
        Diagnostic::TooFewRequests { from: 0.999, answers: 5, worth: Some(2) },
        Diagnostic::Growing { growth: Some(0.25), growth_per_s: 15.0, at_end: 75 },
        Diagnostic::SharedCpus { cpus: "0-1".parse().unwrap(), taken: 0.25 },
        Diagnostic::Interrupted { by: EndedBy::Server },
    ]);
    let mut study = load::tiny();
    study.run.judgement.as_mut().unwrap().checks.clone_from(&all);
    study.run.warnings = all;
    assert_valid(&schema(), &value(study));
}

#[test]
fn every_reason_for_lanes_is_valid() {
    let schema = schema();
    for by in [
        LaneCountReason::Asked,
        LaneCountReason::Rate,
        LaneCountReason::Half,
        LaneCountReason::Left,
        LaneCountReason::Connections,
    ] {
        // The match makes the compiler ask for a new one here.
        match by {
            LaneCountReason::Asked
            | LaneCountReason::Rate
            | LaneCountReason::Half
            | LaneCountReason::Left
            | LaneCountReason::Connections => {}
        }
        assert_valid(&schema, &value(LoadStudy { lanes_by: by, ..load::tiny() }));
    }
}

#[test]
fn every_objective_is_valid() {
    let schema = schema();
    let mut study = load::tiny();
    let typed = ["p99 > 200ms", "p99.9>0.2s", "service p50 > 1s", "errors > 0.1%", "errors > 5", "sent < 99%"];
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
