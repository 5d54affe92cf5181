//! Finds the Puma to start, by `--puma`, a checkout, a bundle or PATH; and reads its version and
//! its boot lines, which are those of Puma 3 to 8. What a line does not say is `None`, never
//! guessed.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use model::{Clock, Nanos};

use super::Surroundings;
use crate::spec::{find_program, why_no_program, words};
use crate::start_server::run_to_end;
use crate::{GuardCommand, LaunchError, LaunchSpec};

/// The command of `--puma`, whose program must exist, or that of the checkout in that folder.
pub(super) fn given(text: &str, around: &Surroundings) -> Result<Vec<OsString>, LaunchError> {
    let folder = around.dir.join(text);
    if folder.join("puma.gemspec").is_file()
        && let Some((root, executable)) = nearest_checkout(&folder)
    {
        return command_of_checkout(root, executable, around);
    }
    let words = words(text).map_err(|reason| {
        LaunchError::Unusable(format!("--puma '{text}' is no command: {reason}"))
    })?;
    if folder.is_dir() && find_program(OsStr::new(&words[0]), &around.dir, &around.path).is_none() {
        return Err(LaunchError::Unusable(format!(
            "--puma '{text}' is a directory without puma.gemspec: name a checkout of Puma, or a \
             command"
        )));
    }
    let at = usize::from(words[0] == "ruby");
    if let Some(program) = words.get(at)
        && let Some((root, executable)) = checkout_with_executable(&around.dir.join(program))
    {
        let mut command = command_of_checkout(&root, executable, around)?;
        command.extend(words[at + 1..].iter().map(OsString::from));
        return Ok(command);
    }
    require_program(&words[0], "correct --puma, or leave it out to have puma found", around)?;
    Ok(words.into_iter().map(OsString::from).collect())
}

/// The command that starts Puma here if none is given: the first of
///
/// 1. in a checkout of Puma (or below): its own executable, by `bundle exec` where it has a lock
///    file, else `ruby -Ilib`;
/// 2. in a bundle that has Puma, searched upward as bundler does: `bundle exec puma`;
/// 3. `puma` on PATH.
///
/// # Errors
/// [`LaunchError::NoPuma`] if there is none, so that the caller can use another server;
/// [`LaunchError::ProgramNotFound`] if there is one, but not the `bundle` or `ruby` that it needs:
/// another Puma would be another version than the user's.
pub fn discover(around: &Surroundings) -> Result<Vec<OsString>, LaunchError> {
    let bundle = |program: &OsStr| {
        require_program("bundle", "run `gem install bundler`, or give --puma COMMAND", around)?;
        Ok(vec!["bundle".into(), "exec".into(), program.to_owned()])
    };
    if let Some((root, executable)) = nearest_checkout(&around.dir) {
        let path = |name: &str| {
            if root == around.dir { name.into() } else { root.join(name).into_os_string() }
        };
        if lock_file(root).is_some() {
            return bundle(&path(executable));
        }
        let root = if root == around.dir { Path::new("") } else { root };
        return command_of_checkout(root, executable, around);
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
fn command_of_checkout(
    root: &Path,
    executable: &str,
    around: &Surroundings,
) -> Result<Vec<OsString>, LaunchError> {
    require_program("ruby", "install Ruby, or give --puma COMMAND", around)?;
    let mut library = OsString::from("-I");
    library.push(root.join("lib"));
    Ok(vec!["ruby".into(), library, root.join(executable).into_os_string()])
}

/// The checkout whose executable this is: started by itself, it would load the Puma that is
/// installed, not the one beside it.
fn checkout_with_executable(program: &Path) -> Option<(PathBuf, &'static str)> {
    let (root, executable) = nearest_checkout(program.parent()?)?;
    (root.join(executable) == program).then(|| (root.to_owned(), executable))
}

/// The nearest directory from here upward that is a checkout of Puma, and its executable.
fn nearest_checkout(dir: &Path) -> Option<(&Path, &'static str)> {
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

/// The lock file by Bundler's rule: `gems.rb` has `gems.locked`, any other name gets `.lock`.
fn lock_of(gemfile: &Path) -> PathBuf {
    if gemfile.file_name() == Some(OsStr::new("gems.rb")) {
        return gemfile.with_file_name("gems.locked");
    }
    let mut lock = gemfile.as_os_str().to_owned();
    lock.push(".lock");
    lock.into()
}

/// Whether a lock file contains Puma: the bundle's gems are indented by four, their dependencies by
/// six.
fn lists_puma(lock: &str) -> bool {
    lock.lines().any(|line| line.starts_with("    puma ("))
}

fn require_program(program: &str, hint: &str, around: &Surroundings) -> Result<(), LaunchError> {
    if find_program(OsStr::new(program), &around.dir, &around.path).is_some() {
        return Ok(());
    }
    let why = why_no_program(OsStr::new(program), &around.dir);
    Err(LaunchError::ProgramNotFound { program: program.to_owned(), why, hint: hint.to_owned() })
}

/// What this Puma prints as its version; `None` if it did not end within `longest`.
///
/// # Errors
/// If it cannot be started.
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

/// What Puma's boot lines say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BootLines {
    /// `6.5.0`.
    pub version: Option<String>,
    /// `ruby 3.1.2-p20` on Puma 5 and before; on 6 the whole of `RUBY_DESCRIPTION`.
    pub runtime: Option<String>,
}

impl BootLines {
    /// Reads them from the lines that Puma wrote. The first mention counts: Puma boots before the
    /// app writes anything, and a restart repeats the same.
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
            // `Puma version: 6.5.0 ("Sky's Version")`; Puma 4 and before: `Version 4.3.5 (ruby
            // 2.6.5-p114), codename: …`.
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
    fn version_and_ruby_are_read_from_the_boot_lines_of_every_puma() {
        for boot in include_str!("boots.txt").split("\n\n") {
            let (text, expected) = boot.split_once("\n=> ").unwrap();
            let boot = BootLines::read(text.lines());
            let said: Vec<String> = boot.version.into_iter().chain(boot.runtime).collect();
            assert_eq!(said.join(", "), expected.trim_end(), "{text}");
        }
    }
}
