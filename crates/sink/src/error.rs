//! Why a sink cannot start: a line that says how to fix it. Nothing that a client does is in here.

use rustix::io::Errno;
use thiserror::Error;

/// Why the sink could not start. Once it runs it has no errors: what clients do wrong is counted in its ledger.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct SinkError(pub(crate) String);

impl SinkError {
    /// The error for a system call that failed while we tried to `what`.
    pub(crate) fn of(what: &str) -> impl Fn(Errno) -> SinkError {
        move |errno| {
            SinkError(match errno {
                Errno::MFILE | Errno::NFILE => {
                    format!("no file descriptor left to {what}: raise the limit of open files (ulimit -n)")
                }
                Errno::NOSYS | Errno::PERM => format!(
                    "cannot {what}: {errno}; a sandbox (seccomp, a container's profile) may forbid the system call: allow it"
                ),
                _ => format!("cannot {what}: {errno}; is the machine out of memory, threads or network?"),
            })
        }
    }
}
