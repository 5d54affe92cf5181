//! What the documents print of commands that always print the same is what they print.

use std::fs;
use std::path::Path;

use crate::lab::{Lab, Running};
use crate::load::split;

/// The commands that measure nothing and depend on no machine.
const REPEATABLE: [&str; 2] = ["$ longtail audit ", "$ longtail predict "];

/// The page with what each repeatable command prints now, and how many there are.
fn printed_anew(page: &str, folder: &Path) -> (String, usize) {
    let mut commands = 0;
    let parts = page.split("```").map(|part| {
        let (first, block) = part.split_once('\n').unwrap_or((part, ""));
        let command = block.lines().next().unwrap_or_default();
        if first != "console" || !REPEATABLE.iter().any(|start| command.starts_with(start)) {
            return part.to_owned();
        }
        commands += 1;
        let words = command.trim_start_matches("$ longtail ").split("    ").next().unwrap();
        let mut program = Lab::new().longtail("");
        let ended = Running::start(program.args(split(words)).current_dir(folder).env("COLUMNS", "100")).end();
        format!("{first}\n{command}\n{}\n", ended.stdout.trim_end())
    });
    (parts.collect::<Vec<_>>().join("```"), commands)
}

#[test]
fn what_always_prints_the_same_is_printed_so() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut commands = 0;
    for name in ["docs/audit.md", "docs/app-tuning.md"] {
        let path = root.join(name);
        let (page, found) = printed_anew(&fs::read_to_string(&path).unwrap(), path.parent().unwrap());
        testkit::golden::expect(&path, &page);
        commands += found;
    }
    assert!(commands >= 2, "{commands}");
}
