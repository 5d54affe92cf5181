//! `longtail doctor`: is this machine fit to measure on? What do this machine's generators reach
//! (`--generators`), and how far off is longtail itself (`--self-test`)?
//!
//! What is asked of the machine, and what the answers mean, is in `probe::doctor`; here it becomes
//! text.

mod bug_report;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::atomic::Ordering;

use generators::rates::{CalibrationFindings, CalibrationRounds, SinkUnderLoad};
use generators::{GeneratorRunner, LoadOrder, rates};
use launch::{LaunchError, Surroundings, find_program, puma};
use model::{LoadSettings, Nanos, SystemClock};
use probe::doctor::{
    FoundPuma, MachineCheck, MachineFitness, MachineGrade, PumaInstallation, examine,
};
use report::number::count_of;
use report::tree::{ListItem, ReportSection};
use report::{Width, text};
use selftest::CaseResult;
use serde_json::json;

use crate::args::DoctorArgs;
use crate::exit::{Exit, Mistake, refuse_if, wrong};
use crate::progress::ProgressDisplay;
use crate::study_files::wall_time;
use crate::ui;
use crate::{guard, signals, this_program};

/// How long Puma may take to print its version.
const LONGEST_VERSION: Nanos = Nanos::from_millis(1500);
/// No line is longer than this.
const COLUMNS: usize = 100;

/// Examines what was asked for, and prints what was found.
///
/// # Errors
/// If a flag belongs to another examination, or something that this one needs is missing.
pub(crate) fn run(args: &DoctorArgs) -> Result<Exit, Mistake> {
    let is_of_generators = args.connections.is_some()
        || args.length.is_some()
        || args.rounds.is_some()
        || !args.tools.is_empty();
    if is_of_generators && !args.generators {
        return Err(wrong("-c, --for, --rounds and --tools belong to doctor --generators: add it"));
    }
    refuse_if(args.quick && !args.self_test, "--quick belongs to doctor --self-test: add it")?;
    match (args.generators, args.self_test) {
        (true, _) => examine_generators(args),
        (_, true) => examine_longtail(args),
        _ => examine_machine(args),
    }
}

/// Examines the machine and prints what was found.
///
/// # Errors
/// If the current directory is gone.
fn examine_machine(args: &DoctorArgs) -> Result<Exit, Mistake> {
    let around = Surroundings::here()?;
    let clock = SystemClock::start();
    let version = |argv: Vec<OsString>| -> Result<FoundPuma, LaunchError> {
        let printed = puma::printed_version(&argv, &around.dir, &guard(), &clock, LONGEST_VERSION)?;
        Ok(FoundPuma {
            command: argv.join(OsStr::new(" ")).to_string_lossy().into_owned(),
            printed,
        })
    };
    let puma = puma::discover(&around).and_then(version).map_err(|error| error.to_string());
    let has_ruby = find_program(OsStr::new("ruby"), Path::new(""), &around.path).is_some();
    let checks = examine(PumaInstallation { puma, has_ruby }, &clock);
    let fitness = MachineFitness::of(&checks);
    if args.report {
        let environment = sweep::environment(env!("CARGO_PKG_VERSION"));
        ui::print(&bug_report::lines(&environment, &checks, &fitness));
        return Ok(Exit::Fine);
    }
    if args.output.is_json() {
        ui::print_json(
            &json!({ "longtail_version": env!("CARGO_PKG_VERSION"), "fitness": fitness, "checks": checks }),
        );
    } else {
        ui::print(&machine_text(&checks, &fitness, args.full, ui::terminal_width()));
    }
    Ok(Exit::Missed.if_so(!fitness.fit))
}

/// The verdict, what is not fine, and how much is; with `is_full` what is fine as well.
fn machine_text(
    checks: &[MachineCheck],
    fitness: &MachineFitness,
    is_full: bool,
    width: Width,
) -> String {
    let is_shown = |check: &&MachineCheck| is_full || check.grade != MachineGrade::Fine;
    let shown: Vec<&MachineCheck> = checks.iter().filter(is_shown).collect();
    let item = |check: &&MachineCheck| {
        let spoils = check.hint.as_ref().map(|_| format!("spoils {}", check.spoils));
        let mark = match check.grade {
            MachineGrade::Fine => '✓',
            MachineGrade::Warn => '!',
            MachineGrade::Bad => '✗',
            MachineGrade::Unknown => '?',
        };
        let label = format!("{mark} {:<16}", check.name);
        let item = ListItem::labelled(label, std::iter::once(check.seen.clone()).chain(spoils));
        check.hint.iter().fold(item, ListItem::hint)
    };
    let mut sections = vec![ReportSection::new(format!("This machine is {}.", verdict(fitness)))];
    let groups = shown.chunk_by(|a, b| a.group == b.group);
    sections.extend(
        groups.map(|group| ReportSection::new(group[0].group).list(group.iter().map(item))),
    );
    let passed = (checks.len() - shown.len()) as u64;
    if passed > 0 {
        let how = "passed: longtail doctor --full lists what they saw.";
        sections.push(ReportSection::new(format!("{} {how}", count_of(passed, "check"))));
    }
    text::sections(&sections, width.at_most(COLUMNS))
}

/// `fit`, `fit with warnings: 3`, `not fit: busy; warnings: 2`, and how much is unknown.
fn verdict(fitness: &MachineFitness) -> String {
    let verdict =
        if fitness.fit { "fit".to_owned() } else { format!("not fit: {}", fitness.bad.join(", ")) };
    let warnings = match (fitness.warnings, fitness.fit) {
        (0, _) => String::new(),
        (n, true) => format!(" with warnings: {n}"),
        (n, false) => format!("; warnings: {n}"),
    };
    let unknown = if fitness.unknown == 0 {
        String::new()
    } else {
        format!("; unknown: {}", fitness.unknown)
    };
    verdict + &warnings + &unknown
}

/// Runs every generator that is there against one sink, in rounds, and prints what they reach.
///
/// # Errors
/// If a flag is wrong, or the sink cannot be started.
fn examine_generators(args: &DoctorArgs) -> Result<Exit, Mistake> {
    let length = args.length.unwrap_or(Nanos::from_secs(1));
    if length == Nanos::ZERO || !length.0.is_multiple_of(1_000_000_000) {
        return Err(wrong(format!(
            "--for {length}: not every generator can do that; give whole seconds, such as 1s"
        )));
    }
    let load = LoadSettings::closed(args.connections.unwrap_or(50));
    let order = LoadOrder { time: Some(length), ..LoadOrder::get("", load) };
    let interrupt = signals::interruption()?;
    let clock = SystemClock::start();
    signals::begin();
    let mut found = CalibrationFindings {
        started_at: wall_time(),
        environment: sweep::environment(env!("CARGO_PKG_VERSION")),
        connections: order.load.connections,
        length,
        rounds: args.rounds.unwrap_or(3),
        interrupted: false,
        compared: Vec::new(),
        missing: Vec::new(),
    };
    found.find_generators(&args.tools, &this_program());
    let runner = GeneratorRunner::new(guard(), clock)?;
    let sink = SinkUnderLoad::start(&guard(), clock)?;
    let rounds =
        CalibrationRounds { sink: &sink, order: &order, runner: &runner, interrupt: &interrupt };
    let progress = ProgressDisplay::new();
    let all = found.rounds;
    for round in 1..=all {
        let tell = |name: &str| progress.working(&format!("round {round}/{all}: {name}"));
        rounds.round(round, &mut found.compared, &tell);
    }
    drop(progress);
    sink.stop();
    found.interrupted = interrupt.load(Ordering::Relaxed);
    if args.output.is_json() {
        ui::print_json(&found);
    } else {
        ui::print(&rates::table(&found, ui::terminal_width()));
    }
    let is_interrupted = Exit::Interrupted.if_so(found.interrupted);
    Ok(is_interrupted.and(Exit::Invalid.if_so(found.is_longtail_without_figures())))
}

/// Runs the self-test and prints how far off the engine was. A wrong count is exit code 1.
///
/// # Errors
/// If a sink or the engine cannot start.
fn examine_longtail(args: &DoctorArgs) -> Result<Exit, Mistake> {
    let clock = SystemClock::start();
    let interrupt = signals::interruption()?;
    let started_at = wall_time();
    signals::begin();
    let progress = ProgressDisplay::new();
    let mut outcomes = Vec::new();
    let mut interrupted = false;
    for case in selftest::all(args.quick) {
        progress.working(case.name);
        let Some(outcome) = case.run(clock, &interrupt)? else {
            interrupted = true;
            break;
        };
        outcomes.push(outcome);
    }
    drop(progress);
    let environment = sweep::environment(env!("CARGO_PKG_VERSION"));
    let conserved = outcomes.iter().all(CaseResult::is_conserved);
    if args.output.is_json() {
        ui::print_json(&json!({
            "started_at": started_at, "environment": environment, "quick": args.quick, "interrupted": interrupted,
            "conserved": conserved, "cases": outcomes,
        }));
    } else {
        ui::print(&selftest::table(&outcomes, &environment, ui::terminal_width()));
    }
    Ok(Exit::Interrupted.if_so(interrupted).and(Exit::Missed.if_so(!conserved)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_fine_has_its_hint_below() {
        let check = |name, grade, seen: &str, hint: Option<&str>| MachineCheck {
            group: "network",
            name,
            seen: seen.to_owned(),
            grade,
            spoils: "the tail",
            hint: hint.map(str::to_owned),
        };
        let checks = [
            check("TIME_WAIT", MachineGrade::Fine, "3 connections", None),
            check(
                "somaxconn",
                MachineGrade::Warn,
                "128",
                Some("sudo sysctl -w net.core.somaxconn=4096"),
            ),
            check("tcp_syncookies", MachineGrade::Unknown, "cannot be read here", None),
        ];
        let expected = "\
This machine is fit with warnings: 1; unknown: 1.

network
  ! somaxconn         128
                      spoils the tail
    → sudo sysctl -w net.core.somaxconn=4096
  ? tcp_syncookies    cannot be read here

1 check passed: longtail doctor --full lists what they saw.
";
        let fitness = MachineFitness::of(&checks);
        assert_eq!(machine_text(&checks, &fitness, false, Width::ANY), expected);
        let full = machine_text(&checks, &fitness, true, Width::ANY);
        assert!(
            full.contains("\n  ✓ TIME_WAIT         3 connections\n") && !full.contains("passed"),
            "{full}"
        );
    }

    #[test]
    fn the_verdict_says_how_much_is_not_fine() {
        let of = |bad: &[&'static str], warnings, unknown| {
            verdict(&MachineFitness { fit: bad.is_empty(), bad: bad.to_vec(), warnings, unknown })
        };
        assert_eq!(
            [of(&[], 0, 0), of(&[], 2, 0), of(&[], 0, 1)],
            ["fit", "fit with warnings: 2", "fit; unknown: 1"]
        );
        assert_eq!(of(&["busy", "cpu quota"], 0, 0), "not fit: busy, cpu quota");
        assert_eq!(of(&["busy"], 1, 1), "not fit: busy; warnings: 1; unknown: 1");
    }
}
