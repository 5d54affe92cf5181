//! docs/THEORY.md names a function and a test for each formula: they must be there.

use std::fs;
use std::path::Path;

fn sources(folder: &Path, all: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|end| end == "rs") {
            all.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
}

/// What stands in backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_function_and_test_that_the_table_names_is_there() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    sources(&here.join("src"), &mut all);
    sources(&here.join("tests"), &mut all);
    let text = fs::read_to_string(here.join("../../docs/THEORY.md")).unwrap();
    let table = text.split("| formula | function").nth(1).unwrap().split("\n\n").next().unwrap();
    let mut functions = 0;
    let mut tests = 0;
    for row in table.lines().skip(2) {
        let cells: Vec<&str> = row.split('|').collect();
        let [_, _, function, test, _, _] = cells.as_slice() else {
            panic!("not four cells: {row}")
        };
        for path in quoted(function) {
            let (module, names) = path.split_once("::").unwrap_or((path, ""));
            let places: Vec<_> =
                all.iter().filter(|(file, _)| file.contains(&format!("src/{module}"))).collect();
            assert!(!places.is_empty(), "no module {module}");
            for name in names.trim_matches(['{', '}']).split(", ").filter(|name| !name.is_empty()) {
                let is_there = |(_, code): &&(String, String)| {
                    ["fn", "struct"].iter().any(|kind| code.contains(&format!("pub {kind} {name}")))
                };
                assert!(
                    places.iter().copied().any(|place| is_there(&place)),
                    "no {module}::{name}"
                );
                functions += 1;
            }
        }
        for name in quoted(test) {
            assert!(
                all.iter().any(|(_, code)| code.contains(&format!("fn {name}("))),
                "no test {name}"
            );
            tests += 1;
        }
    }
    assert!(functions > 20 && tests > 25, "{functions} functions, {tests} tests");
}
