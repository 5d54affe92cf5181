//! The questions of `doctor` asked of made-up machines.

use std::collections::BTreeSet;

use proctree::ProcessStat;
use rustix::thread::current_timer_slack;
use testkit::clock::Stepped;

use super::MachineGrade::{Bad, Fine, Unknown, Warn};
use super::samples::{WAIT, busiest, lane_sends, lane_waits, lateness};
use super::*;
use crate::host::CpuTicks;

const NO_PUMA: PumaInstallation = PumaInstallation { puma: Err(String::new()), has_ruby: false };

/// Questions and their answers, and the files that they name.
const CASES: &str = include_str!("cases.txt");
const FILES: &str = include_str!("files.txt");

/// The cells of a row.
fn cells<const N: usize>(row: &str) -> [&str; N] {
    row.split('|').map(str::trim).collect::<Vec<_>>().try_into().expect(row)
}

fn filled(template: String, words: &str) -> String {
    words.split(',').fold(template, |text, word| text.replacen("{}", word, 1))
}

#[test]
fn every_question_is_answered_from_its_files() {
    for row in CASES.lines().skip(1) {
        let [name, said, grade, seen, hint] = cells(row);
        let files: Vec<(&str, String)> = said
            .split(' ')
            .map(|file| file.split_once('=').unwrap_or((file, "")))
            .map(|(short, words)| {
                let [_, path, template] =
                    FILES.lines().map(cells::<3>).find(|cells| cells[0] == short).expect(short);
                let template = template.replace("\\n", "\n").replace("\\t", "\t");
                // The processors' own lists have commas.
                let is_list = short.starts_with("core");
                (
                    path,
                    if is_list { template.replace("{}", words) } else { filled(template, words) },
                )
            })
            .collect();
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        let check = asked_with(name, &files, |_| {});
        assert!(
            format!("{:?}", check.grade) == grade && check.seen.contains(seen),
            "{row}\n{check:?}"
        );
        assert_eq!(check.hint.is_some(), !hint.is_empty(), "{row}\n{check:?}");
        let is_said = |said: String| {
            hint.strip_prefix('*').map_or(said.starts_with(hint), |part| said.contains(part))
        };
        assert!(check.hint.is_none_or(is_said), "{row}");
    }
}

#[test]
fn a_slow_clock_is_exchanged_for_a_better_one_where_there_is_one() {
    let folder = "/sys/devices/system/clocksource/clocksource0";
    let [current, all] =
        ["current", "available"].map(|which| format!("{folder}/{which}_clocksource"));
    let cases = [
        ("hpet\n", "tsc hpet acpi_pm \n", 1100, Warn, "echo tsc | sudo tee /sys/"),
        ("acpi_pm", "acpi_pm", 3000, Bad, "a machine"),
        ("tsc\n", "tsc hpet \n", 25, Fine, ""),
    ];
    for (source, available, ns, grade, hint) in cases {
        let files = [(current.as_str(), source), (all.as_str(), available)];
        let check = asked_with("clocksource", &files, |all| all.clock_reading = Nanos(ns));
        assert_eq!(
            (check.grade, check.seen),
            (grade, format!("{}, {ns} ns a reading", source.trim()))
        );
        assert!(check.hint.unwrap_or_default().starts_with(hint));
    }
}

#[test]
fn a_puma_that_cannot_tell_its_version_and_a_kernel_that_refuses_are_doubts() {
    let bundler = "Could not find gem 'puma' in locally installed gems 1.2.\n";
    for (printed, grade, seen) in [
        (Some("x.rb: warning: y\npuma version 6.4.2\n"), Fine, "6.4.2 (bundle exec puma)"),
        (Some(bundler), Warn, "bundle exec puma --version says: Could"),
        (Some(""), Warn, "bundle exec puma --version says: nothing"),
        (None, Unknown, "cannot be read here"),
    ] {
        let found = FoundPuma {
            command: "bundle exec puma".to_owned(),
            printed: printed.map(str::to_owned),
        };
        let check = asked_with("Puma", &[], |all| all.installation.puma = Ok(found));
        assert!(check.grade == grade && check.seen.starts_with(seen), "{check:?}");
    }
    let refused = "the tracepoint x: Operation not permitted";
    let check = asked_with("BPF", &[], |all| all.tracepoints = Err(refused.to_owned()));
    assert_eq!((check.grade, check.seen.as_str()), (Warn, refused));
}

/// The answer to one question on a machine that has these files, and no others, with other evidence
/// beside them.
fn asked_with(
    name: &str,
    files: &[(&str, &str)],
    change: impl FnOnce(&mut MachineEvidence<'_>),
) -> MachineCheck {
    asked_all(files, change).into_iter().find(|check| check.name == name).unwrap()
}

fn asked_all(
    files: &[(&str, &str)],
    change: impl FnOnce(&mut MachineEvidence<'_>),
) -> Vec<MachineCheck> {
    let read = |path: &str| {
        files.iter().find(|(other, _)| *other == path).map(|(_, text)| (*text).to_owned())
    };
    let mut evidence = MachineEvidence {
        read: &read,
        activity: None,
        clock_reading: Nanos(25),
        waits: None,
        send: None,
        tracepoints: Ok(()),
        installation: NO_PUMA,
    };
    change(&mut evidence);
    questions::all(&evidence)
}

#[test]
fn what_cannot_be_read_is_unknown_and_never_fine() {
    for check in asked_all(&[], |_| {}) {
        let is_read = !["BPF", "Puma"].contains(&check.name);
        assert!(check.grade == Unknown || !is_read, "{check:?}");
    }
}

#[test]
fn this_machine_answers_every_question_once() {
    let checks = examine(
        PumaInstallation { puma: Err("no Puma".to_owned()), ..NO_PUMA },
        &Stepped::default(),
    );
    let names: BTreeSet<_> = checks.iter().map(|check| check.name).collect();
    assert_eq!((names.len(), checks.len()), (15, 15));
    for check in &checks {
        assert_eq!(check.hint.is_some(), matches!(check.grade, Warn | Bad), "{check:?}");
        assert!(!check.seen.is_empty() && !check.spoils.is_empty(), "{check:?}");
    }
}

#[test]
fn a_figure_is_graded_by_two_limits_and_one_bad_answer_makes_a_machine_unfit() {
    let grade = |figure| MachineAnswer::graded(figure, 1.0, 2.0, String::new(), "hint").grade;
    assert_eq!([1.0, 2.0, 2.1, f64::NAN].map(grade), [Fine, Warn, Bad, Bad]);
    let all = [Fine, Warn, Bad, Unknown]
        .map(|grade| MachineCheck { grade, ..asked_with("busy", &[], |_| {}) });
    assert_eq!(
        MachineFitness::of(&all),
        MachineFitness { fit: false, bad: vec!["busy"], warnings: 1, unknown: 1 }
    );
    let fit = MachineFitness { fit: true, bad: Vec::new(), warnings: 1, unknown: 0 };
    assert_eq!(MachineFitness::of(&all[..2]), fit);
}

#[test]
fn busy_is_neither_idle_nor_stolen() {
    let ticks = CpuTicks { all: 200, idle: 130, steal: 10 };
    let busiest = vec!["rustc".to_owned()];
    let of = |name| {
        asked_with(name, &[], |all| {
            all.activity = Some(Activity { ticks, busiest: busiest.clone() });
        })
    };
    assert_eq!(
        (of("busy").grade, of("busy").seen),
        (Bad, "30 % of all processors in 1 s, most by rustc".to_owned())
    );
    assert_eq!(
        (of("stolen time").grade, of("stolen time").seen),
        (Warn, "5.0 % in 1 s".to_owned())
    );
}

#[test]
fn the_busiest_are_named_with_all_their_processes() {
    let of = |all: &[(u32, &str, u64)]| -> Vec<ProcessStat> {
        let process = |(pid, name, cpu_ticks): &(u32, &str, u64)| ProcessStat {
            pid: *pid,
            name: (*name).to_owned(),
            cpu_ticks: *cpu_ticks,
            ..ProcessStat::default()
        };
        all.iter().map(process).collect()
    };
    let before = of(&[(1, "ruby", 1000), (2, "rustc", 10), (3, "idle", 5)]);
    let after = of(&[(1, "ruby", 1040), (2, "rustc", 50), (4, "rustc", 30), (3, "idle", 6)]);
    assert_eq!(busiest(&before, &after), ["rustc", "ruby"]);
}

#[test]
fn waits_are_graded_by_what_they_take_beyond_their_time() {
    let clock = Stepped::default();
    let mut nth = 0;
    let late = lateness(&clock, || {
        nth += 1;
        clock
            .advance(WAIT + if nth == 50 { Nanos::from_millis(7) } else { Nanos::from_micros(30) });
    });
    assert_eq!(late, WaitLateness { median: Nanos::from_micros(30), worst: Nanos::from_millis(7) });
    let check = asked_with("late waits", &[], |all| all.waits = Some(late));
    assert_eq!(check.seen, "1 ms waits end 30 µs late, the worst of 200 7000 µs");
    for (median, worst, grade) in
        [(30, 900, Fine), (30, 6000, Warn), (300, 900, Warn), (4000, 4000, Bad)]
    {
        let late =
            WaitLateness { median: Nanos::from_micros(median), worst: Nanos::from_micros(worst) };
        assert_eq!(asked_with("late waits", &[], |all| all.waits = Some(late)).grade, grade);
    }
}

#[test]
fn sends_are_timed_and_graded() {
    assert_eq!(
        lane_sends(&Stepped::default()),
        Some(Nanos::ZERO),
        "the clock stands still meanwhile"
    );
    for (micros, grade) in [(18, Fine), (80, Warn), (900, Bad)] {
        let check = asked_with("sends", &[], |all| all.send = Some(Nanos::from_micros(micros)));
        assert_eq!(
            (check.grade, check.seen),
            (grade, format!("a request leaves in {micros} µs, the median of 200"))
        );
    }
}

#[test]
fn the_threads_slack_is_as_before() {
    let before = current_timer_slack().unwrap();
    lane_waits(&Stepped::default());
    assert_eq!(current_timer_slack().unwrap(), before);
}
