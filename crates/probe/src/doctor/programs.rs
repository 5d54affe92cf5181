//! What there is to be measured and to compare with: Puma, which is asked for its version, and other generators.

use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};

use model::{Clock, Nanos};
use rustix::fs::{OFlags, fcntl_setfl};

use super::{MachineAnswer, MachineEvidence, Programs};

/// How long Puma may take to tell its version.
const LONGEST: Nanos = Nanos::from_millis(1500);
const STEP: Nanos = Nanos::from_millis(5);

/// What came of asking Puma.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PumaVersion {
    /// It cannot be started.
    Missing,
    /// It did not end in time.
    Late,
    /// What it printed.
    Said(String),
}

/// Asks the Puma that a sweep would start. One that does not answer in time is killed.
pub(super) fn puma_version(programs: &Programs, clock: &impl Clock) -> PumaVersion {
    let Ok(Some((program, words))) = programs.puma.as_ref().map(|argv| argv.split_first()) else {
        return PumaVersion::Missing;
    };
    let mut command = Command::new(program);
    command.args(words).arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else { return PumaVersion::Missing };
    let deadline = clock.now() + LONGEST;
    while matches!(child.try_wait(), Ok(None)) {
        if clock.now() >= deadline {
            let _ = child.kill();
            let _ = child.wait();
            return PumaVersion::Late;
        }
        clock.sleep(STEP);
    }
    PumaVersion::Said(printed(&mut child))
}

/// What is in the pipes of a child that has ended. A version fits into a pipe; nothing is waited for, so that a child of its own that
/// holds the pipe open holds nobody up.
fn printed(child: &mut Child) -> String {
    let mut bytes = Vec::new();
    if let (Some(mut out), Some(mut err)) = (child.stdout.take(), child.stderr.take()) {
        for is_set in [fcntl_setfl(&out, OFlags::NONBLOCK), fcntl_setfl(&err, OFlags::NONBLOCK)] {
            if is_set.is_err() {
                return String::new();
            }
        }
        // Each ends with "would block" where it is still open; what came before that is kept.
        let _ = out.read_to_end(&mut bytes);
        let _ = err.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether an executable of this name is in `PATH`.
fn is_there(program: &str, path: &OsStr) -> bool {
    std::env::split_paths(path).any(|folder| {
        let file = folder.join(program).metadata();
        file.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    })
}

pub(super) fn puma(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let install = if is_there("ruby", &evidence.programs.path) {
        "gem install puma"
    } else {
        "sudo apt-get install ruby, then gem install puma"
    };
    let argv = match &evidence.programs.puma {
        Ok(argv) => argv,
        Err(why) => return Some(MachineAnswer::warn(why.clone(), install)),
    };
    let command = argv.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let said = match &evidence.puma {
        PumaVersion::Missing => return Some(MachineAnswer::warn(format!("{command} cannot be started"), install)),
        PumaVersion::Late => return None,
        PumaVersion::Said(said) => said,
    };
    // Ruby's warnings may stand before it.
    if let Some(version) = said.lines().find_map(|line| line.strip_prefix("puma version ")) {
        return Some(MachineAnswer::fine(format!("{} ({command})", version.trim())));
    }
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing");
    let last: String = last.trim().chars().take(60).collect();
    Some(MachineAnswer::warn(format!("{command} --version says: {last}"), "bundle install, or gem install puma"))
}

/// That there are none spoils no number.
#[expect(clippy::unnecessary_wraps, reason = "a question may have no answer; this one always has")]
pub(super) fn generators(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let Programs { path, generators, .. } = &evidence.programs;
    let (found, missing): (Vec<&str>, Vec<&str>) = generators.iter().partition(|name| is_there(name, path));
    let found = if found.is_empty() { "none".to_owned() } else { found.join(", ") };
    Some(MachineAnswer::fine(if missing.is_empty() {
        found
    } else {
        format!("{found}; not found: {}", missing.join(", "))
    }))
}

#[cfg(test)]
mod tests {
    use super::super::MachineGrade::{Fine, Unknown, Warn};
    use super::super::tests::ask_of;
    use super::*;
    use std::ffi::OsString;
    use testkit::clock::{Steady, Stepped};

    /// Sleeps, and stands still.
    struct Still;

    impl Clock for Still {
        fn now(&self) -> Nanos {
            Nanos::ZERO
        }

        fn wall(&self) -> Nanos {
            Nanos::ZERO
        }

        fn sleep(&self, duration: Nanos) {
            Steady.sleep(duration);
        }
    }

    fn programs(puma: &str) -> Programs {
        let puma = puma.split(' ').map(OsString::from).collect();
        Programs { path: "/usr/bin:/bin".into(), puma: Ok(puma), generators: vec!["sh", "no-such-generator"] }
    }

    #[test]
    fn a_puma_that_cannot_tell_its_version_is_a_doubt() {
        let said = |text: &str| PumaVersion::Said(text.to_owned());
        let cases = [
            (said("x.rb: warning: y\npuma version 6.4.2\n"), Fine, "6.4.2 (bundle exec puma)"),
            (
                said("Could not find gem 'puma' in locally installed gems 1.2.\n"),
                Warn,
                "bundle exec puma --version says: Could",
            ),
            (said(""), Warn, "bundle exec puma --version says: nothing"),
            (PumaVersion::Missing, Warn, "bundle exec puma cannot be started"),
            (PumaVersion::Late, Unknown, "puma --version does not tell"),
        ];
        let programs = programs("bundle exec puma");
        for (puma, grade, seen) in cases {
            let check = ask_of("Puma", &[], |all| (all.puma, all.programs) = (puma, programs.clone()));
            assert!(check.grade == grade && check.seen.starts_with(seen), "{check:?}");
        }
        let generators = ask_of("other generators", &[], |all| all.programs = programs.clone());
        assert_eq!(generators.seen, "sh; not found: no-such-generator");
    }

    #[test]
    fn a_program_that_does_not_end_or_leaves_a_pipe_open_holds_nobody_up() {
        let folder = std::env::temp_dir().join(format!("doctor of {}", std::process::id()));
        std::fs::write(&folder, "#!/bin/sh\necho puma version 1.2\nsleep 5 &\n").unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        let script = Programs { puma: Ok(vec!["sh".into(), folder.clone().into()]), ..programs("") };
        assert_eq!(puma_version(&script, &Still), PumaVersion::Said("puma version 1.2\n".to_owned()));
        std::fs::remove_file(folder).unwrap();
        let endless = Programs { puma: Ok(vec!["sh".into(), "-c".into(), "exec sleep 1000".into()]), ..programs("") };
        assert_eq!(puma_version(&endless, &Stepped::default()), PumaVersion::Late);
        assert_eq!(puma_version(&programs("no-such-puma"), &Stepped::default()), PumaVersion::Missing);
    }
}
