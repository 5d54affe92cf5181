//! The published schemas of JSON other than studies
//! (`docs/{audit,calibrate,doctor,selftest,summary}.schema.json`) must cover exactly what these
//! commands print. The tests of each command validate its output.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// Maps with arbitrary keys.
const FREE: [&str; 2] = ["/figures", "/statuses"];

fn schema_text(command: &str) -> Value {
    let path = format!("{}/../../docs/{command}.schema.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn schema(command: &str) -> jsonschema::Validator {
    let schema = schema_text(command);
    assert!(jsonschema::meta::is_valid(&schema), "it is not a JSON Schema");
    jsonschema::draft202012::new(&schema).unwrap()
}

#[track_caller]
fn assert_valid(schema: &jsonschema::Validator, printed: &Value) {
    let errors: Vec<String> = schema
        .iter_errors(printed)
        .map(|error| format!("{}: {error:.300}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

/// JSON pointers to all objects in the value, except those with arbitrary keys ([`FREE`]).
fn objects(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Array(all) => {
            all.iter().enumerate().for_each(|(n, one)| objects(one, &format!("{at}/{n}"), found));
        }
        Value::Object(all) if !FREE.iter().any(|free| at.ends_with(free)) => {
            found.push(at.to_owned());
            all.iter().for_each(|(key, one)| objects(one, &format!("{at}/{key}"), found));
        }
        _ => {}
    }
}

/// Checks that a command's output fits its schema, and that the schema names and requires each of
/// its keys.
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
            assert!(
                !schema.is_valid(&changed(&|object| _ = object.remove(key))),
                "no {key} in '{at}'"
            );
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The golden summaries of the crate `report` fit their schema.
#[test]
fn summaries_fit_their_schema() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/golden");
    let is_summary = |file: &PathBuf| file.to_string_lossy().ends_with(".summary.json");
    let summaries: Vec<PathBuf> = files(&folder).into_iter().filter(is_summary).collect();
    assert!(summaries.len() >= 2, "{summaries:?}");
    let schema = schema("summary");
    for summary in summaries {
        assert_valid(
            &schema,
            &serde_json::from_str(&fs::read_to_string(&summary).unwrap()).unwrap(),
        );
    }
}

/// Audits of all fixtures, and of a text that contradicts itself, fit the schema, which names every
/// check.
#[test]
fn audits_fit_their_schema() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../audit/tests/fixtures");
    let mut texts: Vec<String> =
        files(&folder).into_iter().filter_map(|file| fs::read_to_string(file).ok()).collect();
    assert!(texts.len() > 20, "only {} fixtures", texts.len());
    let oha = fs::read_to_string(folder.join("real/oha.txt")).unwrap();
    texts.push(oha.replace("99.99% in 4.4916 ms", "99.99% in 9.4916 ms"));
    let validator = schema("audit");
    // For each check, a claim with a single finding.
    let mut of_each_check = BTreeMap::new();
    for claim in texts.iter().flat_map(|text| audit::audit(text).unwrap()) {
        let claim = serde_json::to_value(claim).unwrap();
        assert_valid(&validator, &json!([claim]));
        for finding in claim["findings"].as_array().unwrap() {
            let mut only = claim.clone();
            only["findings"] = json!([finding]);
            of_each_check.entry(finding["check"].to_string()).or_insert_with(|| json!([only]));
        }
    }
    for audit in of_each_check.values() {
        assert_keeps("audit", audit);
    }
    let schema = schema_text("audit");
    let checks: Vec<_> =
        audit::CHECKS.iter().map(|(check, ..)| serde_json::to_value(check).unwrap()).collect();
    assert_eq!(schema["$defs"]["check"]["enum"], Value::from(checks.clone()));
    assert_eq!(
        of_each_check.into_keys().collect::<BTreeSet<_>>(),
        checks.iter().map(Value::to_string).collect()
    );
}
