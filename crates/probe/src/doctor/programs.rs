//! What there is to be measured and to compare with: Puma, and other generators.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;

use super::{FoundPuma, MachineAnswer, MachineEvidence, Programs};

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
    let FoundPuma { command, printed } = match &evidence.programs.puma {
        Ok(found) => found,
        Err(why) => return Some(MachineAnswer::warn(why.clone(), install)),
    };
    let said = printed.as_deref()?;
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

    #[test]
    fn a_puma_that_cannot_tell_its_version_is_a_doubt() {
        let cases = [
            (Some("x.rb: warning: y\npuma version 6.4.2\n"), Fine, "6.4.2 (bundle exec puma)"),
            (
                Some("Could not find gem 'puma' in locally installed gems 1.2.\n"),
                Warn,
                "bundle exec puma --version says: Could",
            ),
            (Some(""), Warn, "bundle exec puma --version says: nothing"),
            (None, Unknown, "puma --version does not tell"),
        ];
        for (printed, grade, seen) in cases {
            let found = FoundPuma { command: "bundle exec puma".to_owned(), printed: printed.map(str::to_owned) };
            let check = ask_of("Puma", &[], |all| all.programs.puma = Ok(found));
            assert!(check.grade == grade && check.seen.starts_with(seen), "{check:?}");
        }
        let programs = Programs {
            path: "/usr/bin:/bin".into(),
            puma: Err("no Puma".to_owned()),
            generators: vec!["sh", "no-such-generator"],
        };
        let generators = ask_of("other generators", &[], |all| all.programs = programs.clone());
        assert_eq!(generators.seen, "sh; not found: no-such-generator");
    }
}
