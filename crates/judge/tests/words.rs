//! The sentences of checks, warnings and limits in a study file: the rows of `words.txt`.

use std::fmt::Debug;

use model::{Diagnostic, Limit};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads a value from JSON, and checks that it survives writing and reading again.
fn parsed<T: Serialize + DeserializeOwned + Debug + PartialEq>(json: &str) -> T {
    let read = |json: &str| {
        serde_json::from_str::<T>(json).unwrap_or_else(|error| panic!("{json}: {error}"))
    };
    assert_eq!(read(&serde_json::to_string(&read(json)).unwrap()), read(json));
    read(json)
}

/// The words for a row's JSON; the group of rows says which words.
fn words(group: &str, json: &str) -> String {
    match group {
        "grade of a diagnostic" => format!("{:?}", judge::grade(&parsed::<Diagnostic>(json))),
        "diagnostic" => judge::assess(&parsed::<Diagnostic>(json)).sentence,
        "limit" => judge::limits::evidence(&parsed::<Limit>(json)),
        _ => panic!("there is no group '{group}'"),
    }
}

#[test]
fn every_row_has_the_expected_words() {
    let mut group = "";
    let mut rows = 0;
    for line in include_str!("words.txt").lines().filter(|line| !line.starts_with('#')) {
        match line.split_once(" => ") {
            Some((json, expected)) => assert_eq!(words(group, json), expected, "{line}"),
            None => group = line.strip_suffix(':').unwrap_or_else(|| panic!("{line}")),
        }
        rows += 1;
    }
    assert!(rows > 60, "{rows}");
}
