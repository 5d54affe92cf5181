//! What else a study needs: tracepoints that may be attached, and a Puma.

use super::{FoundPuma, MachineAnswer, MachineEvidence};

/// Tried out, since a kernel that is locked down may refuse what is permitted.
#[expect(clippy::unnecessary_wraps, reason = "a question may have no answer; this one always has")]
pub(super) fn tracepoints(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let hint = "sudo setcap cap_bpf,cap_perfmon+ep \"$(command -v longtail)\", or run it as root; the kernel must be 6.3 or later";
    Some(match &evidence.tracepoints {
        Ok(()) => MachineAnswer::fine("works (sweep --inspect kernel)"),
        Err(missing) => MachineAnswer::warn(missing.clone(), hint),
    })
}

pub(super) fn puma(evidence: &MachineEvidence<'_>) -> Option<MachineAnswer> {
    let FoundPuma { command, printed } = match &evidence.installation.puma {
        Ok(found) => found,
        Err(why) => {
            let has_ruby = evidence.installation.has_ruby;
            let install =
                if has_ruby { "gem install puma" } else { "sudo apt-get install ruby, then gem install puma" };
            return Some(MachineAnswer::warn(why.clone(), install));
        }
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

#[cfg(test)]
mod tests {
    use super::super::MachineGrade::{Fine, Unknown, Warn};
    use super::super::tests::asked_with;
    use super::*;

    #[test]
    fn a_puma_that_cannot_tell_its_version_is_a_doubt() {
        let bundler = "Could not find gem 'puma' in locally installed gems 1.2.\n";
        let cases = [
            (Some("x.rb: warning: y\npuma version 6.4.2\n"), Fine, "6.4.2 (bundle exec puma)"),
            (Some(bundler), Warn, "bundle exec puma --version says: Could"),
            (Some(""), Warn, "bundle exec puma --version says: nothing"),
            (None, Unknown, "cannot be read here"),
        ];
        for (printed, grade, seen) in cases {
            let found = FoundPuma { command: "bundle exec puma".to_owned(), printed: printed.map(str::to_owned) };
            let check = asked_with("Puma", &[], |all| all.installation.puma = Ok(found));
            assert!(check.grade == grade && check.seen.starts_with(seen), "{check:?}");
        }
    }

    #[test]
    fn what_the_kernel_refuses_says_why() {
        let check =
            asked_with("BPF", &[], |all| all.tracepoints = Err("the tracepoint x: Operation not permitted".to_owned()));
        assert_eq!((check.grade, check.seen.as_str()), (Warn, "the tracepoint x: Operation not permitted"));
    }
}
