//! The published schemas (`docs/*.schema.json`) accept every study and summary that we write, and
//! refuse damaged ones.

use jsonschema::Validator;
use model::{Diagnostic, EndedBy, LaneCountReason, Nanos, Study};
use report::json;
use report::summary::Summary;
use serde_json::{Value, json};
use strum::IntoEnumIterator as _;
use testkit::{claimed, load};

fn published(name: &str) -> Value {
    let path = format!("{}/../../docs/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn schema(name: &str) -> Validator {
    let schema = published(name);
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
    let mut kind = published("study");
    kind.as_object_mut().unwrap().remove("oneOf");
    kind["$ref"] = format!("#/$defs/{}_study", study["command"].as_str().unwrap()).into();
    panic!("{}", errors(&jsonschema::draft202012::new(&kind).unwrap(), study));
}

fn errors(schema: &Validator, value: &Value) -> String {
    let error = |error: jsonschema::ValidationError<'_>| {
        format!("{}: {error:.300}\n", error.instance_path())
    };
    schema.iter_errors(value).map(error).collect()
}

#[test]
fn every_study_is_valid() {
    let schema = schema("study");
    for study in testkit::every_study() {
        assert_valid(&schema, &value(study));
    }
}

#[test]
fn a_load_study_with_fields_of_an_older_version_is_read() {
    let mut study = value(load::closed_counted());
    let plan = study["plan"].as_object_mut().unwrap();
    let reconnect_after = plan.remove("reconnect_after").unwrap();
    plan.insert("requests_per_connection".to_owned(), reconnect_after);
    plan.insert("pipeline".to_owned(), 4.into());
    let read: Study = serde_json::from_value(study).unwrap();
    assert_eq!(read, load::closed_counted().into());
}

#[test]
fn every_summary_is_valid() {
    let schema = schema("summary");
    for study in testkit::every_study() {
        let summary: Value = serde_json::from_str(&Summary::of(&study, None).json()).unwrap();
        assert_eq!(errors(&schema, &summary), "", "{}", summary["command_line"]);
    }
}

#[test]
fn every_diagnostic_is_valid() {
    let of_no_cpu = |diagnostic: &Diagnostic| matches!(diagnostic, Diagnostic::SharedCpus { .. });
    let mut all: Vec<Diagnostic> =
        Diagnostic::iter().filter(|diagnostic| !of_no_cpu(diagnostic)).collect();
    all.extend([
        Diagnostic::Conservation { worker: Some(1), client: 1, server: 2 },
        Diagnostic::Steadiness {
            settled_after: Some(Nanos(5)),
            shift: 0.0,
            shift_in_errors: 0.0,
            is_claimed: true,
        },
        Diagnostic::QuantilesHidden { from: 0.99, unanswered: 3, outcomes: vec!["503".to_owned()] },
        Diagnostic::TooFewRequests { from: 0.999, answers: 5, worth: Some(2) },
        Diagnostic::Growing { growth: Some(0.25), growth_per_s: 15.0, at_end: 75 },
        Diagnostic::SharedCpus { cpus: "0-1".parse().unwrap(), taken: 0.25 },
        Diagnostic::Interrupted { by: EndedBy::Server },
    ]);
    let mut study = load::tiny();
    study.run.judgement.as_mut().unwrap().checks.clone_from(&all);
    study.run.warnings = all;
    assert_valid(&schema("study"), &value(study));
}

#[test]
fn every_reason_for_lanes_and_every_objective_is_valid() {
    use LaneCountReason::{Asked, Connections, Half, Left, Rate};
    let schema = schema("study");
    let mut study = load::tiny();
    let typed = [
        "p99 > 200ms",
        "p99.9>0.2s",
        "service p50 > 1s",
        "errors > 0.1%",
        "errors > 5",
        "sent < 99%",
    ];
    let more = ["completed < 100/s", "mean > 50us", "max > 1.5s"];
    study.plan.stop_if = typed.iter().chain(&more).map(|text| text.parse().unwrap()).collect();
    for by in [Asked, Rate, Half, Left, Connections] {
        // The match makes the compiler ask for a new one here.
        study.lanes_by = match by {
            Asked | Rate | Half | Left | Connections => by,
        };
        assert_valid(&schema, &value(study.clone()));
    }
}

#[test]
fn what_does_not_belong_is_refused() {
    let schema = schema("study");
    let load = value(load::tiny());
    let claimed = value(claimed::wrk_load());
    for row in include_str!("wrong_values.txt").lines() {
        let [good, at, wrong]: [&str; 3] =
            row.splitn(3, ' ').collect::<Vec<_>>().try_into().expect(row);
        let mut study = if good == "load" { load.clone() } else { claimed.clone() };
        *study.pointer_mut(at).unwrap() = serde_json::from_str(wrong).unwrap();
        assert!(!schema.is_valid(&study), "{row}");
    }
    for (good, places) in [
        (
            &load,
            &[
                "",
                "/plan",
                "/plan/pace",
                "/environment",
                "/run",
                "/run/tally",
                "/run/tally/phases/read",
            ][..],
        ),
        (&claimed, &["", "/run", "/run/claim", "/run/warnings/0"]),
    ] {
        for at in places {
            let changed = |change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
                let mut study = good.clone();
                change(study.pointer_mut(at).unwrap().as_object_mut().unwrap());
                study
            };
            let with_more = changed(&|object| _ = object.insert("extra".to_owned(), json!(1)));
            assert!(!schema.is_valid(&with_more), "a key more in '{at}'");
            let with_less = changed(&|object| {
                let first = object.keys().next().cloned().unwrap();
                object.remove(&first);
            });
            assert!(good == &claimed || !schema.is_valid(&with_less), "a key less in '{at}'");
        }
    }
}
