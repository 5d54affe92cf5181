//! Finds the Puma to start, by `--puma`, a checkout, a bundle or PATH; and reads what it says of
//! itself: its version, its boot lines, its configuration.
//!
//! For its configuration Puma is started once more, as it will be, with a script before it
//! ([`SCRIPT`]) that prints what its launcher has made of config file, environment and flags, and
//! ends it before anything is bound. So whatever a config file does is done, and a flag wins where
//! Puma lets it. Boot lines are those of Puma 3 to 8; what a line does not say is `None`, never
//! guessed.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use model::{Clock, Nanos, PumaSettings};

use super::Surroundings;
use crate::server::run_to_end;
use crate::spec::{find_program, words};
use crate::{GuardCommand, LaunchError, LaunchSpec, unwritable};

/// The words of `--puma`, whose program must exist, or of the checkout in that folder.
pub(super) fn given(text: &str, around: &Surroundings) -> Result<Vec<OsString>, LaunchError> {
    let folder = around.dir.join(text);
    if folder.join("puma.gemspec").is_file()
        && let Some((root, executable)) = checkout(&folder)
    {
        return of_checkout(root, executable, around);
    }
    let words = words(text).map_err(|reason| {
        LaunchError::Unusable(format!("--puma '{text}' is no command: {reason}"))
    })?;
    found(&words[0], "correct --puma, or leave it out to have puma found", around)?;
    Ok(words.into_iter().map(OsString::from).collect())
}

/// The command that starts Puma here, where none is given: the first of
///
/// 1. in a checkout of Puma (or below): its own executable, by `bundle exec` where it has a lock
///    file, else `ruby -Ilib`;
/// 2. in a bundle that has Puma, searched upward as bundler does: `bundle exec puma`;
/// 3. `puma` on PATH.
///
/// # Errors
/// [`LaunchError::NoPuma`] where there is none, so that the caller can use another server;
/// [`LaunchError::ProgramNotFound`] where there is one but not the `bundle` or `ruby` that it
/// needs. Taking another Puma then would measure another version than the user's.
pub fn discover(around: &Surroundings) -> Result<Vec<OsString>, LaunchError> {
    let bundle = |program: &OsStr| {
        found("bundle", "run `gem install bundler`, or give --puma COMMAND", around)?;
        Ok(vec!["bundle".into(), "exec".into(), program.to_owned()])
    };
    if let Some((root, executable)) = checkout(&around.dir) {
        let path = |name: &str| {
            if root == around.dir { name.into() } else { root.join(name).into_os_string() }
        };
        if lock_file(root).is_some() {
            return bundle(&path(executable));
        }
        let root = if root == around.dir { Path::new("") } else { root };
        return of_checkout(root, executable, around);
    }
    let lock = match &around.gemfile {
        Some(gemfile) => Some(lock_of(&around.dir.join(gemfile))),
        None => around.dir.ancestors().find_map(lock_file),
    };
    if lock.is_some_and(|lock| fs::read_to_string(lock).is_ok_and(|text| lists_puma(&text))) {
        return bundle(OsStr::new("puma"));
    }
    match find_program(OsStr::new("puma"), &around.dir, &around.path) {
        Some(_) => Ok(vec!["puma".into()]),
        None => Err(LaunchError::NoPuma),
    }
}

/// The executable of a checkout, without a bundle.
fn of_checkout(
    root: &Path,
    executable: &str,
    around: &Surroundings,
) -> Result<Vec<OsString>, LaunchError> {
    found("ruby", "install Ruby, or give --puma COMMAND", around)?;
    let mut library = OsString::from("-I");
    library.push(root.join("lib"));
    Ok(vec!["ruby".into(), library, root.join(executable).into_os_string()])
}

/// The nearest directory upward that is a checkout of Puma, and its executable there.
fn checkout(dir: &Path) -> Option<(&Path, &'static str)> {
    let root = dir.ancestors().find(|folder| folder.join("puma.gemspec").is_file())?;
    let executable = ["bin/puma", "exe/puma"].into_iter().find(|file| root.join(file).is_file())?;
    Some((root, executable))
}

fn lock_file(dir: &Path) -> Option<PathBuf> {
    ["Gemfile.lock", "gems.locked"]
        .map(|name| dir.join(name))
        .into_iter()
        .find(|lock| lock.is_file())
}

/// Bundler's rule: `gems.rb` has `gems.locked`, any other name gets `.lock`.
fn lock_of(gemfile: &Path) -> PathBuf {
    if gemfile.file_name() == Some(OsStr::new("gems.rb")) {
        return gemfile.with_file_name("gems.locked");
    }
    let mut lock = gemfile.as_os_str().to_owned();
    lock.push(".lock");
    lock.into()
}

/// Whether a lock file has resolved Puma: a gem of the bundle is indented by four, what one of them
/// wants by six.
fn lists_puma(lock: &str) -> bool {
    lock.lines().any(|line| line.starts_with("    puma ("))
}

fn found(program: &str, hint: &str, around: &Surroundings) -> Result<(), LaunchError> {
    match find_program(OsStr::new(program), &around.dir, &around.path) {
        Some(_) => Ok(()),
        None => {
            Err(LaunchError::ProgramNotFound { program: program.to_owned(), hint: hint.to_owned() })
        }
    }
}

/// Longest wait for it. A config file may load an app.
const PATIENCE: Nanos = Nanos::from_secs(30);

/// How the line with the settings begins.
const MARK: &str = "longtail-settings ";

/// Puts a method before Puma's `run`, as soon as there is one.
const SCRIPT: &str = include_str!("settings.rb");

/// Whether there is a config file that Puma would read: `config/puma.rb` and
/// `config/puma/ENVIRONMENT.rb` it finds by itself.
fn has_config(config: Option<&Path>, dir: &Path) -> bool {
    match config {
        Some(config) => config != Path::new("-"),
        None => dir.join("config/puma.rb").exists() || dir.join("config/puma").is_dir(),
    }
}

/// What a Puma's configuration says of who waits for whom: what the Puma of `spec` itself makes of
/// its config file, its environment and its flags. Without such a file all is as its version has
/// it. `None` where it did not say so in time, or the user interrupted.
///
/// # Errors
/// Where it cannot be started at all.
pub fn settings(
    config: Option<&Path>,
    spec: &LaunchSpec,
    guard: &GuardCommand,
    clock: &dyn Clock,
    is_interrupted: impl Fn() -> bool,
) -> Result<Option<PumaSettings>, LaunchError> {
    if !has_config(config, &spec.dir) {
        return Ok(Some(PumaSettings::default()));
    }
    let Some(scratch) = &spec.scratch else { return Ok(None) };
    let script = scratch.path().join("settings.rb");
    fs::write(&script, SCRIPT).map_err(unwritable(scratch.path()))?;
    // What is in RUBYOPT already, of the user or of -Y, goes on.
    let mut asking = LaunchSpec { scratch: None, ..spec.clone() };
    let before = asking.env.remove(OsStr::new("RUBYOPT"));
    let mut options = before.or_else(|| std::env::var_os("RUBYOPT")).unwrap_or_default();
    options.push(" -r");
    options.push(&script);
    asking.env.insert("RUBYOPT".into(), options);
    let gives_up = |waited| waited >= PATIENCE || is_interrupted();
    let (_, output) = run_to_end(&asking, guard, clock, Nanos::ZERO, gives_up)?;
    Ok(output.lines().find_map(|line| line.strip_prefix(MARK)).map(read))
}

/// What this Puma prints as its version; `None` where it did not end within `longest`.
///
/// # Errors
/// Where it cannot be started.
pub fn printed_version(
    puma: &[OsString],
    dir: &Path,
    guard: &GuardCommand,
    clock: &dyn Clock,
    longest: Nanos,
) -> Result<Option<String>, LaunchError> {
    let asking = LaunchSpec::command(puma.iter().cloned().chain(["--version".into()]), dir);
    let (exit, output) =
        run_to_end(&asking, guard, clock, Nanos::ZERO, |waited| waited >= longest)?;
    Ok(exit.map(|_| output.lines().collect::<Vec<_>>().join("\n")))
}

/// `max_fast_inline=10 queue_requests=true …` with Ruby's `inspect` of each value.
fn read(words: &str) -> PumaSettings {
    let value =
        |name: &str| words.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let flag = |name: &str| match value(name)? {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    };
    let number = |name: &str| match value(name)? {
        "Infinity" => Some(f64::INFINITY),
        text => text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0),
    };
    PumaSettings {
        // Requests are counted from 1: with 0 a turn has one too.
        max_fast_inline: number("max_fast_inline").map(|turn| (turn as u32).max(1)),
        queue_requests: flag("queue_requests"),
        enable_keep_alives: flag("enable_keep_alives"),
        wait_for_less_busy_worker: number("wait_for_less_busy_worker")
            .filter(|n| n.is_finite())
            .map(Nanos::from_secs_f64),
        waits_until_not_full: flag("waits_until_not_full"),
    }
}

/// What Puma's boot lines say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BootLines {
    /// `6.5.0`.
    pub version: Option<String>,
    /// `ruby 3.1.2-p20` on Puma 5 and before; on 6 the whole of `RUBY_DESCRIPTION`.
    pub runtime: Option<String>,
}

impl BootLines {
    /// Reads them out of the lines that Puma wrote. The first word counts: Puma boots before the
    /// app writes anything, and a restart says the same again.
    pub fn read<'a>(lines: impl IntoIterator<Item = &'a str>) -> BootLines {
        let mut boot = BootLines::default();
        for line in lines {
            // Cluster mode puts `[pid] ` before each line.
            let line = line.trim_start();
            let line = line
                .strip_prefix('[')
                .and_then(|rest| rest.split_once("] "))
                .map_or(line, |(_, rest)| rest);
            let Some(fact) = line.strip_prefix('*').map(str::trim) else { continue };
            // `Puma version: 6.5.0 ("Sky's Version")`; Puma 4 and before: `Version 4.3.5 (ruby 2.6.5-p114),
            // codename: …`.
            if let Some(text) =
                fact.strip_prefix("Puma version: ").or_else(|| fact.strip_prefix("Version "))
            {
                boot.version.get_or_insert(text.split(' ').next().unwrap_or(text).to_owned());
                let in_parentheses =
                    text.split_once(" (").and_then(|(_, rest)| rest.split_once(')'));
                if let Some((runtime, _)) =
                    in_parentheses.filter(|(inner, _)| !inner.starts_with('"'))
                {
                    boot.runtime.get_or_insert(runtime.to_owned());
                }
            } else if let Some(runtime) = fact.strip_prefix("Ruby version: ") {
                boot.runtime.get_or_insert(runtime.to_owned());
            }
        }
        boot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ruby_inspects_is_read() {
        testkit::golden::expect_rows(
            concat!(env!("CARGO_MANIFEST_DIR"), "/src/puma/settings.txt"),
            read,
        );
        assert!(SCRIPT.contains(MARK));
    }

    #[test]
    fn in_a_folder_of_nobodys_there_is_neither_a_config_file_nor_a_commit() {
        let nowhere = Path::new("/proc");
        assert!(has_config(Some(Path::new("puma.rb")), nowhere));
        assert!(!has_config(Some(Path::new("-")), nowhere) && !has_config(None, nowhere));
        assert_eq!(crate::git_head(nowhere), None);
    }

    #[test]
    fn every_puma_says_its_version_and_its_ruby() {
        for boot in include_str!("boots.txt").split("\n\n") {
            let (text, expected) = boot.split_once("\n=> ").unwrap();
            let boot = BootLines::read(text.lines());
            let said: Vec<String> = boot.version.into_iter().chain(boot.runtime).collect();
            assert_eq!(said.join(", "), expected.trim_end(), "{text}");
        }
    }
}
