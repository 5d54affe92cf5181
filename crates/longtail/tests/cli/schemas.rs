//! The published schemas of what is no study (`docs/{audit,calibrate,doctor,selftest}.schema.json`): they take what these commands really
//! print, whole, and nothing else. The tests of each command hold what it printed against its schema.

use std::fs;
use std::path::{Path, PathBuf};

use audit::evidence::{InFlight, PhantomSamples, Staircase};
use audit::{
    AuditFinding, AuditedClaim, CHECKS, CheckOutcome, Claim, ClaimCheck, ClaimVerdict, Evidence, FigureRange, LoadTool,
};
use serde_json::{Value, json};

/// Maps of which any key may be there.
const FREE: [&str; 2] = ["/figures", "/statuses"];

fn schema(command: &str) -> jsonschema::Validator {
    let path = format!("{}/../../docs/{command}.schema.json", env!("CARGO_MANIFEST_DIR"));
    let schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert!(jsonschema::meta::is_valid(&schema), "it is no JSON Schema");
    jsonschema::draft202012::new(&schema).unwrap()
}

#[track_caller]
fn assert_valid(schema: &jsonschema::Validator, printed: &Value) {
    let errors: Vec<String> =
        schema.iter_errors(printed).map(|error| format!("{}: {error:.300}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

/// Every object in the value that has its keys by a schema, as a JSON pointer.
fn objects(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Array(all) => all.iter().enumerate().for_each(|(n, one)| objects(one, &format!("{at}/{n}"), found)),
        Value::Object(all) if !FREE.iter().any(|free| at.ends_with(free)) => {
            found.push(at.to_owned());
            all.iter().for_each(|(key, one)| objects(one, &format!("{at}/{key}"), found));
        }
        _ => {}
    }
}

/// What a command printed is as its schema says, each key of it is in the schema, and each is needed.
#[track_caller]
pub(crate) fn assert_keeps(command: &str, printed: &Value) {
    let schema = schema(command);
    assert_valid(&schema, printed);
    let mut all = Vec::new();
    objects(printed, "", &mut all);
    assert!(!all.is_empty());
    for at in all {
        let changed = |change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
            let mut other = printed.clone();
            change(other.pointer_mut(&at).unwrap().as_object_mut().unwrap());
            other
        };
        assert!(
            !schema.is_valid(&changed(&|object| _ = object.insert("extra".to_owned(), json!(1)))),
            "extra in '{at}'"
        );
        for key in printed.pointer(&at).unwrap().as_object().unwrap().keys() {
            assert!(!schema.is_valid(&changed(&|object| _ = object.remove(key))), "no {key} in '{at}'");
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// As `longtail audit --format json` prints it.
fn printed(audited: &[AuditedClaim]) -> Value {
    serde_json::to_value(audited).unwrap()
}

#[test]
fn what_is_found_in_other_peoples_output_keeps_its_schema() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../audit/tests/fixtures");
    let texts = files(&folder).into_iter().map(|file| fs::read_to_string(file).unwrap());
    let found: Vec<Value> =
        texts.map(|text| audit::audit(&text)).filter(|all| !all.is_empty()).map(|all| printed(&all)).collect();
    assert!(found.len() > 20, "only {} fixtures", found.len());
    let schema = schema("audit");
    for all in &found {
        assert_valid(&schema, all);
    }
    let smallest = found.iter().min_by_key(|all| all.to_string().len()).unwrap();
    assert_keeps("audit", smallest);
}

/// One of each. The match makes the compiler ask for a new one here, and so for its place in the schema.
fn every_evidence() -> Vec<Evidence> {
    let range = FigureRange { low: 0.5, high: f64::MAX };
    let all = vec![
        Evidence::InFlight(InFlight {
            rate_per_s: 1.0,
            mean_s: 1.0,
            at_once: 1,
            in_flight: 1.0,
            ratio: 1.0,
            ratio_allowed: range,
            cycle_s: 1.0,
            fixed_count: true,
        }),
        Evidence::ForcedMean { least_s: 1.0, most_s: None, mean_s: 1.0 },
        Evidence::Order { lower: "p50".to_owned(), lower_s: 1.0, upper: "p99".to_owned(), upper_s: 2.0 },
        Evidence::InOrder { figures: 1 },
        Evidence::Spread { stdev_s: 1.0, most_s: 1.0 },
        Evidence::Equal { printed: 1.0, expected: 1.0, allowed: range },
        Evidence::Floor { shortest_s: 1.0, delay_s: 1.0 },
        Evidence::Ideal { rate_per_s: 1.0, maximum_per_s: 1.0, cycle_s: 1.0, ideal_s: 1.0 },
        Evidence::Fairness { cycle_s: 1.0, median_s: 1.0, p90_s: 1.0, connections: 1, slots: 1 },
        Evidence::Phantoms(PhantomSamples {
            interval_s: 1.0,
            share: range,
            share_estimate: 0.5,
            mean_without_s: 1.0,
            mean_allowed_s: range,
            predicted_ratio: None,
            printed_ratio: Some(1.0),
        }),
        Evidence::Truncated { asked: 20, among: 3, used: 18 },
        Evidence::SamplesLost { requests: 2, kept: 1, mean_ratio: None },
        Evidence::Delivery { offered_per_s: 1.0, achieved_per_s: 1.0, missing: 0.0, in_flight: None },
        Evidence::Staircase(Staircase {
            slots: 5,
            steps: 2,
            step_s: 1.0,
            step_expected_s: None,
            first_excess_s: 0.0,
            hold_s: 1.0,
            hold_told: false,
            hold_measured_s: 1.0,
            spacing_least_s: 0.1,
            sent_at_most_per_s: 1.0,
            sent_estimate_per_s: 1.0,
            offered_per_s: None,
            missing_least: None,
        }),
        Evidence::FullestWorker { largest_share: 0.5, predicted_per_s: 1.0, printed_per_s: 1.0, even_per_s: 1.0 },
        Evidence::SharesDeviation { printed_points: 1.0, population_points: 1.0, sample_points: 1.0 },
        Evidence::InOrder { figures: 1 },
        Evidence::Failures { failed: 1, requests: 2, good_per_s: None, timeouts: 0, as_status_zero: false },
    ];
    for evidence in &all {
        match evidence {
            Evidence::InFlight(_)
            | Evidence::ForcedMean { .. }
            | Evidence::Order { .. }
            | Evidence::InOrder { .. }
            | Evidence::Spread { .. }
            | Evidence::Equal { .. }
            | Evidence::Floor { .. }
            | Evidence::Ideal { .. }
            | Evidence::Fairness { .. }
            | Evidence::Phantoms(_)
            | Evidence::Truncated { .. }
            | Evidence::SamplesLost { .. }
            | Evidence::Delivery { .. }
            | Evidence::Staircase(_)
            | Evidence::FullestWorker { .. }
            | Evidence::SharesDeviation { .. }
            | Evidence::Failures { .. } => {}
        }
    }
    all
}

#[test]
fn everything_that_an_audit_can_find_is_in_its_schema() {
    let schema = schema("audit");
    let printed = |check: ClaimCheck, outcome: CheckOutcome| {
        let findings = vec![AuditFinding { check, outcome }];
        let verdict = ClaimVerdict::from_findings(&findings);
        printed(&[AuditedClaim { claim: Claim::new(LoadTool::Wrk, 1), verdict, findings }])
    };
    for evidence in every_evidence() {
        for outcome in [
            CheckOutcome::Holds { evidence: evidence.clone() },
            CheckOutcome::Explains { evidence: evidence.clone() },
            CheckOutcome::Doubtful { evidence: evidence.clone() },
            CheckOutcome::Fails { evidence: evidence.clone() },
        ] {
            assert_valid(&schema, &printed(ClaimCheck::Order, outcome));
        }
        assert_keeps("audit", &printed(ClaimCheck::Order, CheckOutcome::Fails { evidence }));
    }
    for (check, ..) in CHECKS {
        assert_valid(&schema, &printed(check, CheckOutcome::Unchecked { why: "there is no mean".to_owned() }));
        assert_valid(&schema, &printed(check, CheckOutcome::Fails { evidence: Evidence::InOrder { figures: 1 } }));
    }
}
