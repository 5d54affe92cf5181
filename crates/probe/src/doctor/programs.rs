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
