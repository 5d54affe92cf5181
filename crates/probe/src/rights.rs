//! Linux capabilities: says which of them this process holds, and takes those for tracing from all
//! threads but the one that attaches tracepoints.
//!
//! Capabilities belong to threads (capabilities(7)), and a new thread has those of the thread that
//! starts it. So the first thread gives up what only tracing needs before it starts any other, and
//! leaves it to one thread that does nothing else. No thread that reads what a server sends can
//! load a program into the kernel.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// What tracing needs; the last one is as good as the first two.
const FOR_TRACING: CapabilitySet =
    CapabilitySet::BPF.union(CapabilitySet::PERFMON).union(CapabilitySet::SYS_ADMIN);

/// Work for the thread that may trace.
type Job = Box<dyn FnOnce() + Send>;

/// Takes jobs to the thread that may trace, once there is one.
static TRACER: OnceLock<Sender<Job>> = OnceLock::new();

/// Those that longtail has a use for, and the names of capabilities(7).
const USED: [(CapabilitySet, &str); 6] = [
    (CapabilitySet::BPF, "CAP_BPF"),
    (CapabilitySet::PERFMON, "CAP_PERFMON"),
    (CapabilitySet::SYS_ADMIN, "CAP_SYS_ADMIN"),
    (CapabilitySet::SYS_PTRACE, "CAP_SYS_PTRACE"),
    (CapabilitySet::DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH"),
    (CapabilitySet::DAC_OVERRIDE, "CAP_DAC_OVERRIDE"),
];

/// What was held before [`confine`] gave a part of it up.
static AT_START: OnceLock<CapabilitySet> = OnceLock::new();

/// The capabilities with a use here that this process was started with, by name.
pub fn held_at_start() -> Vec<&'static str> {
    let held = AT_START.get().copied().unwrap_or_else(held);
    USED.into_iter().filter(|(one, _)| held.contains(*one)).map(|(_, name)| name).collect()
}

/// What this thread may do; nothing where the kernel does not say.
fn held() -> CapabilitySet {
    capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective)
}

/// What tracing needs and this thread does not hold, by name; empty if it may trace.
pub(crate) fn missing_to_trace() -> Vec<&'static str> {
    missing_of(held())
}

fn missing_of(held: CapabilitySet) -> Vec<&'static str> {
    if held.contains(CapabilitySet::SYS_ADMIN) {
        return vec![];
    }
    let needed = [(CapabilitySet::BPF, "CAP_BPF"), (CapabilitySet::PERFMON, "CAP_PERFMON")];
    needed.into_iter().filter(|(one, _)| !held.contains(*one)).map(|(_, name)| name).collect()
}

/// Whether the processes of other users may be looked into: their descriptors, and what their
/// threads wait for.
pub fn sees_other_users() -> bool {
    sees_others(held())
}

fn sees_others(held: CapabilitySet) -> bool {
    held.contains(CapabilitySet::SYS_PTRACE)
        && held.intersects(CapabilitySet::DAC_READ_SEARCH | CapabilitySet::DAC_OVERRIDE)
}

/// As whom to run to see them, in a sentence that begins with "run as".
pub const TO_SEE_OTHER_USERS: &str = "root, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH";

/// What of another user's server is not visible without these rights.
pub const HIDDEN_OF_OTHER_USERS: &str =
    "what each thread waits for, and whose connections they are";

/// From here on only one thread, which attaches tracepoints, may load programs into the kernel;
/// without `traces` none may. To be called before there is a second thread. If the kernel refuses,
/// everything stays as it was.
pub fn confine(traces: bool) {
    let Ok(sets) = capabilities(None) else { return };
    AT_START.get_or_init(|| sets.effective);
    if !sets.permitted.intersects(FOR_TRACING) {
        return;
    }
    if traces {
        let (sender, jobs) = channel::<Job>();
        let spawned = std::thread::Builder::new().name("attaching".to_owned()).spawn(move || {
            for job in jobs {
                job();
            }
        });
        if spawned.is_err() {
            return;
        }
        TRACER.get_or_init(|| sender);
    }
    // A refusal leaves what was there.
    _ = set_capabilities(
        None,
        CapabilitySets {
            effective: sets.effective - FOR_TRACING,
            permitted: sets.permitted - FOR_TRACING,
            inheritable: sets.inheritable - FOR_TRACING,
        },
    );
}

/// Does this on the thread that may trace, or here if there is none.
pub(crate) fn with_rights_to_trace<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    let Some(tracer) = TRACER.get() else { return work() };
    let (sender, result) = channel();
    let job = Box::new(move || {
        // The receiver waits below.
        _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
    });
    tracer.send(job).expect("the tracer's thread never ends");
    result.recv().expect("each job answers").unwrap_or_else(|panic| resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracing_needs_two_capabilities_or_all() {
        let both = CapabilitySet::BPF | CapabilitySet::PERFMON;
        assert!(missing_of(both).is_empty());
        assert!(missing_of(CapabilitySet::SYS_ADMIN).is_empty());
        assert_eq!(missing_of(CapabilitySet::BPF), ["CAP_PERFMON"]);
        assert_eq!(missing_of(CapabilitySet::PERFMON), ["CAP_BPF"]);
        assert_eq!(missing_of(CapabilitySet::SYS_PTRACE), ["CAP_BPF", "CAP_PERFMON"]);
    }

    #[test]
    fn other_users_processes_are_seen_with_two_capabilities() {
        assert!(sees_others(CapabilitySet::SYS_PTRACE | CapabilitySet::DAC_READ_SEARCH));
        assert!(sees_others(CapabilitySet::SYS_PTRACE | CapabilitySet::DAC_OVERRIDE));
        assert!(!sees_others(CapabilitySet::SYS_PTRACE));
        assert!(!sees_others(CapabilitySet::DAC_READ_SEARCH | CapabilitySet::BPF));
    }
}
