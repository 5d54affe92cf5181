//! `longtail doctor`: is this machine fit to measure on?
//!
//! What is asked, and what the answers mean, is in `probe::doctor`; here it becomes text.

use launch::{Surroundings, puma};
use probe::doctor::{Around, Check, Fitness, Grade, Group, examine};
use serde_json::json;

use crate::args::DoctorArgs;
use crate::clock::SystemClock;
use crate::exit::Exit;
use crate::mistake::Mistake;
use crate::ui;

/// No line is longer than this.
const WIDTH: usize = 110;
/// Columns before what was seen: the mark, and the name.
const INDENT: usize = 25;

/// Examines the machine and prints what was found.
///
/// # Errors
/// Where the current directory is gone.
pub(crate) fn run(args: DoctorArgs) -> Result<Exit, Mistake> {
    let around = Surroundings::here()?;
    let puma = puma::discover(&around).map_err(|error| error.to_string());
    let around = Around { path: around.path, puma };
    let checks = examine(&around, &SystemClock::start());
    let fitness = Fitness::of(&checks);
    ui::print(&if args.format.is_json() { json(&checks, &fitness) } else { text(&checks, &fitness) });
    Ok(if fitness.fit { Exit::Fine } else { Exit::Missed })
}

fn json(checks: &[Check], fitness: &Fitness) -> String {
    let all = json!({ "longtail_version": env!("CARGO_PKG_VERSION"), "fitness": fitness, "checks": checks });
    format!("{all:#}\n")
}

fn text(checks: &[Check], fitness: &Fitness) -> String {
    let mut text = String::new();
    for group in checks.chunk_by(|a, b| a.group == b.group) {
        text.push_str(heading(group[0].group));
        text.push('\n');
        for check in group {
            push(&mut text, &format!("{} {:<22}", mark(check.grade), check.name), &check.seen);
            if let Some(mend) = &check.mend {
                push(&mut text, "", &format!("spoils {}", check.spoils));
                push(&mut text, "", &format!("→ {mend}"));
            }
        }
        text.push('\n');
    }
    text + &fitness.text() + "\n"
}

fn heading(group: Group) -> &'static str {
    match group {
        Group::Processors => "processors",
        Group::Now => "right now",
        Group::Timers => "timers",
        Group::Network => "network",
        Group::Sight => "what can be seen",
        Group::Programs => "programs",
    }
}

fn mark(grade: Grade) -> char {
    match grade {
        Grade::Fine => '✓',
        Grade::Warn => '!',
        Grade::Bad => '✗',
        Grade::Unknown => '?',
    }
}

/// A line, continued below itself where it is too long; a word that is longer than a line stays whole.
fn push(text: &mut String, start: &str, words: &str) {
    let mut line = format!("{start:<INDENT$}");
    let mut filled = line.chars().count();
    for (nth, word) in words.split(' ').enumerate() {
        let length = word.chars().count();
        if nth > 0 && filled + 1 + length > WIDTH {
            text.push_str(line.trim_end());
            text.push('\n');
            line = format!("{:<INDENT$}  ", "");
            filled = INDENT + 2;
        } else if nth > 0 {
            line.push(' ');
            filled += 1;
        }
        line.push_str(word);
        filled += length;
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn check(name: &'static str, grade: Grade, seen: &str, mend: Option<&str>) -> Check {
        Check {
            group: Group::Network,
            name,
            seen: seen.to_owned(),
            figures: BTreeMap::new(),
            grade,
            spoils: "the tail",
            mend: mend.map(str::to_owned),
        }
    }

    #[test]
    fn what_is_not_fine_has_its_mend_below() {
        let checks = [
            check("TIME_WAIT", Grade::Fine, "3 connections", None),
            check("somaxconn", Grade::Warn, "128", Some("sudo sysctl -w net.core.somaxconn=4096")),
            check("tcp_syncookies", Grade::Unknown, "/proc/x does not tell", None),
        ];
        let expected = "\
network
✓ TIME_WAIT              3 connections
! somaxconn              128
                         spoils the tail
                         → sudo sysctl -w net.core.somaxconn=4096
? tcp_syncookies         /proc/x does not tell

fit with doubts: 1; unknown: 1
";
        assert_eq!(text(&checks, &Fitness::of(&checks)), expected);
    }

    #[test]
    fn long_lines_go_on_below() {
        let mut text = String::new();
        push(&mut text, "x", &"word ".repeat(40));
        assert!(text.lines().count() == 3 && text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert_eq!(text.split_whitespace().count(), 41);
    }
}
