//! Situations as a watch may see them, and what is concluded of each.

use std::fmt::Write as _;
use std::path::Path;

use judge::limits;
use judge::watch::{Diagnosis, WatchEvidence};
use serde_json::{Map, Value};

/// Overwrites in `to` what `from` names. If `from` has one object where `to` has an array (the
/// workers), it applies to each element.
fn change(to: &mut Value, from: &Value) {
    match (to, from) {
        (Value::Object(to), Value::Object(from)) => {
            from.iter()
                .for_each(|(name, value)| change(to.entry(name).or_insert(Value::Null), value));
        }
        (Value::Array(to), Value::Array(from)) => {
            to.truncate(from.len());
            to.iter_mut().zip(from).for_each(|(to, from)| change(to, from));
        }
        (Value::Array(to), from) => to.iter_mut().for_each(|to| change(to, from)),
        (to, from) => to.clone_from(from),
    }
}

/// What is seen in each situation of `tests/situations.json`. Each is written down there as its
/// differences from an earlier one: the one that `like` names, else the first.
pub(crate) fn situations() -> Vec<(String, WatchEvidence)> {
    let text = include_str!("../tests/situations.json");
    let differences: Vec<Map<String, Value>> = serde_json::from_str(text).unwrap();
    let mut all: Vec<(String, Value)> = Vec::new();
    for mut differs in differences {
        let [name, like] = ["name", "like"]
            .map(|key| differs.remove(key).and_then(|name| Some(name.as_str()?.to_owned())));
        let like = like.map_or(0, |like| all.iter().position(|(name, _)| *name == like).unwrap());
        let mut seen =
            all.get(like).map_or_else(|| Value::Object(Map::new()), |(_, seen)| seen.clone());
        change(&mut seen, &Value::Object(differs));
        all.push((name.unwrap(), seen));
    }
    all.into_iter().map(|(name, seen)| (name, serde_json::from_value(seen).unwrap())).collect()
}

/// In `tests/golden/conclusions.txt` each sentence stands where it is true, where it is
/// not, and where it is not decidable.
#[test]
fn each_situation_has_its_conclusion() {
    let mut text = String::new();
    for (name, seen) in situations() {
        let Diagnosis { limit, guess, conclusion, answer, since, why, tries, .. } =
            Diagnosis::of(&seen);
        let limit = match (&limit, &guess) {
            (Some(limit), _) => limits::name(limit).to_owned(),
            (None, Some(guess)) => format!("may be {}", limits::name(guess)),
            (None, None) => "-".to_owned(),
        };
        let _ = writeln!(text, "{name}: {limit}");
        let answer = conclusion.into_iter().chain(answer).collect();
        let all = [
            ("", answer),
            ("Since: ", since.into_iter().collect()),
            ("Why: ", why.into_iter().collect()),
            ("Try: ", tries),
        ];
        for (label, line) in
            all.iter().flat_map(|(label, lines)| lines.iter().map(move |line| (label, line)))
        {
            let _ = writeln!(text, "  {label}{line}");
        }
        text.push('\n');
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/conclusions.txt");
    testkit::golden::expect(&path, &text);
}
