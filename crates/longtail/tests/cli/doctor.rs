//! `longtail doctor`, as a user starts it. What it finds depends on the machine; how it says so does not.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::lab::{Ended, Lab, end};
use crate::schemas::assert_keeps;

/// 0 or 1, and the one that goes with what was printed.
fn examined(lab: &Lab, words: &str) -> Ended {
    let ended = lab.run(words);
    let unfit = ended.stdout.starts_with("This machine is not fit: ") || ended.stdout.contains("\"fit\": false");
    ended.with_code(i32::from(unfit))
}

#[test]
fn the_text_is_grouped_marked_and_narrow() {
    let lab = Lab::new();
    let ended = examined(&lab, "doctor --full");
    assert_eq!(ended.stderr, "");
    let text = ended.stdout;
    for heading in ["processors", "right now", "timers", "network", "kernel", "programs"] {
        assert_eq!(text.lines().filter(|line| *line == heading).count(), 1, "{heading}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let with = |mark: &str| text.lines().filter(|line| line.trim_start().starts_with(mark)).count();
    assert_eq!(with("! ") + with("✗ "), text.matches("    → ").count(), "each doubt has its hint: {text}");
    let verdict = text.lines().next().unwrap();
    assert_eq!(verdict.starts_with("This machine is not fit: "), with("✗ ") > 0, "{verdict}");
    assert!(verdict.starts_with("This machine is "), "{verdict}");
    let brief = examined(&lab, "doctor").stdout;
    assert!(brief.lines().count() <= 30 && !brief.contains("✓ "), "{brief}");
    assert!(brief.contains(" passed: longtail doctor --full lists what they saw.\n"), "{brief}");
    assert!(lab.studies().is_empty() && lab.living().is_empty());
}

#[test]
fn the_json_has_every_check_with_its_grade() {
    let lab = Lab::new();
    let file: Value = serde_json::from_str(&examined(&lab, "doctor --format json").stdout).unwrap();
    assert_keeps("doctor", &file);
    let checks = file["checks"].as_array().unwrap();
    let names: BTreeSet<&str> = checks.iter().map(|check| check["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), checks.len());
    for name in ["processors", "stolen time", "late waits", "file descriptors", "BPF", "Puma"] {
        assert!(names.contains(name), "{name}: {names:?}");
    }
    let graded = |grade: &str| checks.iter().filter(|check| check["grade"] == grade).count();
    assert_eq!(file["fitness"]["warnings"], graded("warn"));
    assert_eq!(file["fitness"]["unknown"], graded("unknown"));
    assert_eq!(file["fitness"]["fit"], graded("bad") == 0);
}

#[test]
fn a_machine_without_ruby_is_told_what_to_install() {
    let lab = Lab::new();
    let ended = end(lab.longtail("doctor").env("PATH", lab.path("nothing")));
    let said = ended.stdout;
    assert!(said.contains("! Puma") && said.contains("→ sudo apt-get install ruby, then gem install puma"), "{said}");
}

#[test]
fn one_processor_and_few_descriptors_make_a_machine_unfit() {
    let lab = Lab::new();
    let script = format!("ulimit -n 100 && exec taskset -c 0 {} doctor", crate::lab::LONGTAIL);
    if !crate::lab::has("taskset") {
        return;
    }
    let ended = end(lab.program("sh").args(["-c", &script])).with_code(1);
    let verdict = ended.stdout.lines().next().unwrap();
    for name in ["processors", "file descriptors"] {
        assert!(verdict.starts_with("This machine is not fit: ") && verdict.contains(name), "{verdict}");
    }
}
