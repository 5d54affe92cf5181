//! The kernel's tracepoints of one TCP server, by BPF: when its connections were accepted, when requests came, were read and
//! answered, and when its threads waited for a CPU.
//!
//! What runs in the kernel is `path.bpf.c`, kept compiled beside it so that no compiler is needed here. It looks and
//! changes nothing. It is there as long as its [`TracedPath`] is: what holds it are descriptors of this process, which no child inherits and
//! which the kernel closes however the process ends.
//!
//! Not seen: Unix sockets; clients on other hosts (an answer is stamped where it reaches the client's socket); accepts by
//! `io_uring`. With TLS the requests cannot be distinguished from the handshake's messages, so there connections and processes are all.

mod path;
mod rights;

pub use path::{TracedAnswer, TracedPath, TracingPlan};
pub use rights::MissingRight;

/// Whether the tracepoints can be listened to here: tries it out, at a port that nobody has.
///
/// # Errors
/// With what is missing.
pub fn possible() -> Result<(), MissingRight> {
    TracedPath::follow(&TracingPlan { port: 0, processes: &[], requests: true, events: false }).map(drop)
}
