//! `longtail doctor --report`: what a bug report needs, in at most twenty lines without a secret,
//! and without the names of this user's home and of this host.

use std::env;
use std::path::Path;

use model::Environment;
use probe::doctor::{MachineCheck, MachineFitness, MachineGrade};
use probe::rights;
use report::summary::Summary;

use crate::{secrets, study_files};

/// Variables that change what longtail does. Those that are set are named, without their values.
const SETTINGS: [&str; 9] = [
    "LONGTAIL_ALLOW_NET",
    "LONGTAIL_BINARY",
    "XDG_DATA_HOME",
    "PUMA_TEST_HOST4",
    "PUMA_TEST_PORT",
    "WEB_CONCURRENCY",
    "PUMA_MAX_THREADS",
    "BUNDLE_GEMFILE",
    "NO_COLOR",
];
/// The longest line, in characters; longer ones are cut.
const LONGEST: usize = 300;

/// The lines.
pub(super) fn lines(
    environment: &Environment,
    checks: &[MachineCheck],
    fitness: &MachineFitness,
) -> String {
    let gibibytes = environment.memory_bytes as f64 / (1u64 << 30) as f64;
    let mut lines = vec![
        row("longtail", &format!("{} {}", env!("CARGO_PKG_VERSION"), build())),
        row("system", &format!("{}, kernel {}", environment.os, environment.kernel)),
        row(
            "machine",
            &format!(
                "{}, {} CPUs for longtail, {gibibytes:.1} GiB",
                environment.cpu, environment.cores
            ),
        ),
        row("user", &user()),
    ];
    lines.extend(
        checks.iter().filter(|check| check.name == "Puma").map(|check| row("Puma", &check.seen)),
    );
    lines.push(row("terminal", &terminal()));
    lines.push(row("set", &settings()));
    lines.push(row("doctor", &doctor(checks, fitness)));
    lines.extend(last_study());
    lines.iter().map(|line| private(line) + "\n").collect()
}

fn row(name: &str, value: &str) -> String {
    let value: String = value.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{name:<9} {value}")
}

/// What kind of build this is.
fn build() -> String {
    let library = if cfg!(target_env = "musl") { "static, musl" } else { "glibc" };
    let kind = if cfg!(debug_assertions) { ", debug build" } else { "" };
    format!("({}, {library}{kind})", env::consts::ARCH)
}

/// Root or not, and what the kernel lets it do.
fn user() -> String {
    let who = if rustix::process::geteuid().is_root() { "root" } else { "not root" };
    let held = rights::held_at_start();
    if held.is_empty() {
        return format!("{who}, no capability for tracing or for other users' processes");
    }
    format!("{who}, {}", held.join(", "))
}

fn terminal() -> String {
    let set = |name: &str| env::var(name).unwrap_or_else(|_| "-".to_owned());
    format!("TERM {}, LANG {}", set("TERM"), set("LANG"))
}

fn settings() -> String {
    let set: Vec<&str> = SETTINGS.into_iter().filter(|name| env::var_os(name).is_some()).collect();
    if set.is_empty() { "no variable that changes longtail".to_owned() } else { set.join(" ") }
}

/// The verdict on the machine, and the names of what is not fine.
fn doctor(checks: &[MachineCheck], fitness: &MachineFitness) -> String {
    let named: Vec<&str> = checks
        .iter()
        .filter(|check| check.grade != MachineGrade::Fine)
        .map(|check| check.name)
        .collect();
    let verdict = if fitness.fit { "fit" } else { "not fit" };
    if named.is_empty() { verdict.to_owned() } else { format!("{verdict}; {}", named.join(", ")) }
}

/// The last study: what was typed, and what was found.
fn last_study() -> Vec<String> {
    let Ok(study) = study_files::last().and_then(|path| study_files::read(&path)) else {
        return vec![row("last", "no study is kept here")];
    };
    let summary = Summary::of(&study, None);
    vec![
        row("last", &format!("{} by longtail {}", summary.started_at, summary.longtail)),
        row("typed", &secrets::masked_line(&summary.command_line)),
        row("of", summary.measured.first().map_or("nothing", String::as_str)),
        row("found", &secrets::masked_line(&summary.sentence)),
    ]
}

/// The line without secrets, and without the names of this user's home and of this host.
fn private(line: &str) -> String {
    let mut line = secrets::without_ours(line);
    let home = env::var("HOME").unwrap_or_default();
    if Path::new(&home).components().count() > 1 {
        line = line.replace(&home, "~");
    }
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if host.len() > 3 {
        line = line.replace(&host, "(host)");
    }
    line.chars().take(LONGEST).collect()
}
