//! What the documents print of commands that always print the same is what they print; and each command of theirs is run by a test.

use std::fs;
use std::path::Path;

use crate::lab::{Lab, Running};
use crate::load::split;

/// The commands that measure nothing and depend on no machine.
const REPEATABLE: [&str; 2] = ["$ longtail audit ", "$ longtail predict "];

fn is_repeatable(line: &str) -> bool {
    REPEATABLE.iter().any(|start| line.starts_with(start))
}

/// The page with what each repeatable command prints now, and how many there are.
fn printed_anew(page: &str, folder: &Path) -> (String, usize) {
    let mut commands = 0;
    let parts = page.split("```").map(|part| {
        let (first, block) = part.split_once('\n').unwrap_or((part, ""));
        let command = block.lines().next().unwrap_or_default();
        if first != "console" || !is_repeatable(command) {
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

/// What sets a documented command apart from those that `load/examples.rs` runs as they stand, and the file whose tests run such commands.
const RUN_ELSEWHERE: [(&str, &str); 17] = [
    ("doctor --self-test", "selftest.rs"),
    ("doctor --generators", "calibrate.rs"),
    ("doctor", "doctor.rs"),
    ("compare ", "compare.rs"),
    ("watch ", "watch.rs"),
    ("report ", "formats.rs"),
    ("sink ", "load/examples.rs"),
    ("--from", "far_generators.rs"),
    ("generate ", "far_generators.rs"),
    ("merge ", "far_generators.rs"),
    ("fleet ", "fleet.rs"),
    ("--bodies", "bodies.rs"),
    ("--try", "compare.rs"),
    ("--statsd-listen", "outlets/statsd_in.rs"),
    ("--inspect app", "kernel.rs"),
    ("--server-cpus", "placement.rs"),
    ("--generator", "with.rs"),
];

#[test]
fn each_command_is_run_by_a_test() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli");
    for (words, file) in RUN_ELSEWHERE {
        let source = fs::read_to_string(tests.join(file)).unwrap();
        assert!(source.contains(words.trim_end()), "{file} runs no `{words}`");
    }
    let is_elsewhere = |command: &str| {
        RUN_ELSEWHERE.iter().any(|(words, _)| {
            if words.starts_with("--") { command.contains(words) } else { command.starts_with(words.trim_end()) }
        })
    };
    let is_an_example = |command: &str| {
        command.starts_with("load ") && command.contains(" http://127.0.0.1:") || command.starts_with("sweep ")
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = fs::read_dir(root.join("docs")).unwrap().map(|page| page.unwrap().path());
    let mut found = 0;
    for page in pages.chain(["README.md", "bench/README.md", "servers/README.md"].map(|name| root.join(name))) {
        if page.extension().is_none_or(|ending| ending != "md") {
            continue;
        }
        let text = fs::read_to_string(&page).unwrap();
        let mut before = "";
        let mut is_marked = false;
        for line in text.lines() {
            if line.starts_with("```") {
                is_marked = before.starts_with("<!-- not run: ");
            } else if let Some(command) = line.strip_prefix("$ longtail ").filter(|_| !is_marked) {
                let is_run = is_elsewhere(command) || is_an_example(command) || is_repeatable(line);
                assert!(is_run, "{}: {command}", page.display());
                found += 1;
                if is_repeatable(line) {
                    let mut program = Lab::new().longtail("");
                    let words = split(command.split("   ").next().unwrap());
                    let code = Running::start(program.args(words).current_dir(page.parent().unwrap())).end().code();
                    assert!(code <= 1, "{}: {command}", page.display());
                }
            }
            before = line;
        }
    }
    assert!(found > 30, "{found}: are the commands found?");
}
