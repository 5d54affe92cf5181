//! What a check, a warning or a limit of a study file says: the rows of `words.txt`.

use std::fmt::Debug;

use model::{Diagnostic, Limit};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads it from a file, and once more what it writes to one.
fn filed<T: Serialize + DeserializeOwned + Debug + PartialEq>(json: &str) -> T {
    let read = |json: &str| {
        serde_json::from_str::<T>(json).unwrap_or_else(|error| panic!("{json}: {error}"))
    };
    assert_eq!(read(&serde_json::to_string(&read(json)).unwrap()), read(json));
    read(json)
}

/// What the rows below `name` say of such JSON.
fn said(name: &str, json: &str) -> String {
    match name {
        "grade of a diagnostic" => format!("{:?}", judge::grade(&filed::<Diagnostic>(json))),
        "diagnostic" => judge::assess(&filed::<Diagnostic>(json)).sentence,
        "limit" => judge::limits::evidence(&filed::<Limit>(json)),
        _ => panic!("no row is about '{name}'"),
    }
}

#[test]
fn every_row_says_what_stands_behind_it() {
    let (mut name, mut rows) = ("", 0);
    for line in include_str!("words.txt").lines().filter(|line| !line.starts_with('#')) {
        match line.split_once(" => ") {
            Some((json, expected)) => assert_eq!(said(name, json), expected, "{line}"),
            None => name = line.strip_suffix(':').unwrap_or_else(|| panic!("{line}")),
        }
        rows += 1;
    }
    assert!(rows > 60, "{rows}");
}
