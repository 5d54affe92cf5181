//! What STABILITY.md promises, held against frozen copies of the last version's schemas and flags,
//! and against studies that it wrote (`frozen/`). They are replaced when a version is released, and
//! only then. Old studies stay for as long as their format is read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::lab::Lab;

fn frozen() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/frozen")
}

fn docs(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)).unwrap()
}

/// The types that a schema allows; empty if it names none.
fn types(schema: &Value) -> BTreeSet<&str> {
    match schema {
        Value::String(one) => BTreeSet::from([one.as_str()]),
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => BTreeSet::new(),
    }
}

/// Keys of a schema whose value may change: texts for people, lists of words that may grow, and
/// limits of numbers.
const MAY_CHANGE: [&str; 15] = [
    "$id",
    "$schema",
    "$comment",
    "title",
    "description",
    "examples",
    "enum",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minLength",
    "pattern",
    "additionalProperties",
    "unevaluatedProperties",
];

/// The values of an array that another one does not have.
fn absent<'v>(old: &'v Value, new: Option<&Value>) -> Vec<&'v Value> {
    let is_there =
        |one: &&Value| new.and_then(Value::as_array).is_some_and(|all| all.contains(one));
    old.as_array().into_iter().flatten().filter(|one| !is_there(one)).collect()
}

/// The schemas of an array such as `oneOf` of which the new array has no compatible version.
fn changed_choices<'v>(old: &'v Value, new: Option<&Value>, place: &str) -> Vec<&'v Value> {
    let now = new.and_then(Value::as_array).cloned().unwrap_or_default();
    let is_kept = |one: &&Value| {
        now.iter().any(|other| {
            let mut differences = vec![];
            broken(one, other, place, &mut differences);
            differences.is_empty()
        })
    };
    old.as_array().into_iter().flatten().filter(|one| !is_kept(one)).collect()
}

/// How an output that fits `new` may surprise a reader who knows `old`: something may be there that
/// was not allowed, or something may be missing. Says where in the schema, and what.
fn broken(old: &Value, new: &Value, at: &str, found: &mut Vec<String>) {
    let (Some(before), Some(now)) = (old.as_object(), new.as_object()) else {
        if old != new {
            found.push(format!("{at}: it was {old}, and is {new}"));
        }
        return;
    };
    for (key, old) in before {
        let place = format!("{at}/{key}");
        let new = now.get(key);
        match key.as_str() {
            key if MAY_CHANGE.contains(&key) && !old.is_object() => {}
            // A type that was not allowed would surprise a reader.
            "type" if !at.ends_with("/properties") => {
                let allowed = new.map(types).unwrap_or_default();
                if allowed.is_empty() || !allowed.is_subset(&types(old)) {
                    found.push(format!("{place}: it was {old}, and is {new:?}"));
                }
            }
            "required" if old.is_array() => {
                let left = absent(old, new);
                if !left.is_empty() {
                    found.push(format!("{place}: {left:?} may be absent now"));
                }
            }
            "oneOf" | "anyOf" | "allOf" if old.is_array() => {
                for one in changed_choices(old, new, &place) {
                    found.push(format!("{place}: gone or changed: {one:.200}"));
                }
            }
            _ => match new {
                Some(new) => broken(old, new, &place, found),
                None => found.push(format!("{place} is gone")),
            },
        }
    }
}

#[test]
fn json_keeps_what_the_last_version_had() {
    let names = ["summary", "audit", "calibrate", "doctor", "selftest", "study"];
    for name in names.map(|name| format!("{name}.schema.json")) {
        let old = fs::read_to_string(frozen().join(&name)).unwrap();
        let old: Value = serde_json::from_str(&old).unwrap();
        let new: Value = serde_json::from_str(&docs(&name)).unwrap();
        let mut found = vec![];
        broken(&old, &new, "", &mut found);
        assert!(
            found.is_empty(),
            "{name} breaks what STABILITY.md promises:\n{}",
            found.join("\n")
        );
    }
}

type SchemaChange = fn(&mut Value);

#[test]
fn a_promise_that_is_broken_is_found() {
    let old: Value = serde_json::from_str(&docs("summary.schema.json")).unwrap();
    let changes: [(&str, SchemaChange); 4] = [
        ("a key is gone", |schema| {
            schema["properties"].as_object_mut().unwrap().remove("sentence");
        }),
        ("a type is another", |schema| schema["properties"]["sentence"]["type"] = "number".into()),
        ("it may be null", |schema| {
            schema["properties"]["sentence"]["type"] = serde_json::json!(["string", "null"]);
        }),
        ("it may be absent", |schema| {
            schema["required"].as_array_mut().unwrap().retain(|key| key != "sentence");
        }),
    ];
    for (what, change) in changes {
        let mut new = old.clone();
        change(&mut new);
        let mut found = vec![];
        broken(&old, &new, "", &mut found);
        assert!(!found.is_empty(), "{what}, and that was not found");
    }
    let mut more = old.clone();
    more["properties"]["one_more"] = serde_json::json!({ "type": "string" });
    let mut found = vec![];
    broken(&old, &more, "", &mut found);
    assert_eq!(found, [""; 0], "a new key breaks nobody");
}

/// Each command with each of its flags, as `docs/commands.md` has them: `sweep --workers`.
fn flags(page: &str) -> BTreeSet<String> {
    let mut command = "";
    let mut found = BTreeSet::new();
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            command = heading.trim_matches('`').trim_start_matches("longtail ");
        }
        let start = line.trim_start();
        let is_option = line.starts_with(' ') && start.starts_with('-');
        let words = start.split_ascii_whitespace().take(2);
        for word in words.filter(|word| is_option && word.starts_with('-')) {
            let name = word.split(['=', '[', ',']).next().unwrap();
            found.insert(format!("{command} {name}"));
        }
    }
    found
}

#[test]
fn flags_of_the_last_version_are_still_there() {
    let path = frozen().join("flags.txt");
    let now = flags(&docs("commands.md"));
    assert!(now.contains("load --rate") && now.contains("sweep -w"), "{now:?}");
    if std::env::var_os("FREEZE_FLAGS").is_some() {
        let lines: Vec<&str> = now.iter().map(String::as_str).collect();
        fs::write(&path, lines.join("\n") + "\n").unwrap();
    }
    let old = fs::read_to_string(&path).unwrap();
    let gone: Vec<&str> = old.lines().filter(|line| !now.contains(*line)).collect();
    assert!(
        gone.is_empty(),
        "STABILITY.md promises them; let the old name go on working, hidden, and say so in the CHANGELOG: {gone:?}"
    );
}

/// Studies of the last version, with the answer's headline and the figures that it printed then.
/// Its sentences may be worded anew, but not its figures.
const STUDIES: [FrozenStudy; 3] = [
    FrozenStudy {
        file: "load.study.json",
        has: &["50 req/s, 40 requests", "p50 < 5s: it is 5.19 ms", "/a", "/b"],
    },
    FrozenStudy {
        file: "sweep.study.json",
        has: &["built-in server", "2 threads", "the app sleeps 20 ms"],
    },
    FrozenStudy {
        file: "compare.study.json", has: &["20.0 → 10.1 ms (-49 %)", "-t2:2", "-t1:1"]
    },
];

struct FrozenStudy {
    file: &'static str,
    /// What the answer says.
    has: &'static [&'static str],
}

#[test]
fn studies_of_the_last_version_are_still_read() {
    for FrozenStudy { file, has } in STUDIES {
        let lab = Lab::new();
        let text = fs::read_to_string(frozen().join(file)).unwrap();
        lab.write(file, &text);
        let answer = lab.answer(&format!("report {file}")).with_code(0);
        for part in has {
            assert!(answer.stdout.contains(part), "{file}: '{part}' is not in\n{}", answer.stdout);
        }
        let full = lab.answer(&format!("report {file} --full")).with_code(0);
        assert_ne!(full.stdout, answer.stdout, "{file}");
        lab.answer(&format!("report {file} --json")).with_code(0);
        lab.answer(&format!("report {file} --html page.html")).with_code(0);
        assert!(lab.path("page.html").exists(), "{file}");
    }
}
