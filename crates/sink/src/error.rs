//! Why a sink cannot start: each a line that says how to fix it. Nothing that a client
//! does is in here.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;
use thiserror::Error;

use crate::listen::Listen;

/// Why the sink could not start. Once it runs it has no errors: what clients do wrong is counted in its ledger.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SinkError {
    /// What is asked for cannot be served.
    #[error("{0}")]
    Settings(String),
    /// A file does not hold what it should.
    #[error("cannot read {what} from {}: {reason} (it must be PEM; give both files, or neither for a pair made now)", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
        /// Why it was not found.
        reason: String,
    },
    /// Certificate and key do not fit together, or TLS cannot use them.
    #[error("TLS cannot be served: {0}; check that the key is the certificate's")]
    Tls(String),
    /// Something listens there already.
    #[error("{0} is in use: stop what listens there, or choose another port (port 0 takes a free one)")]
    AddressInUse(Listen),
    /// The path's folder is not there.
    #[error("{0} cannot be made: its folder is not there; make it, or choose another path")]
    NoFolder(Listen),
    /// The address is not of this machine.
    #[error("{0} is not an address of this machine: listen on 127.0.0.1, [::1] or one that `ip address` shows")]
    NotOurAddress(Listen),
    /// The port is privileged.
    #[error("no permission to listen on {0}: choose a port of 1024 or more, or a folder that you may write to")]
    Forbidden(Listen),
    /// No file descriptor left.
    #[error("no file descriptor left to {what}: raise the limit of open files (ulimit -n)")]
    OutOfFiles {
        /// What it was wanted for.
        what: &'static str,
    },
    /// The kernel lacks a system call, or a sandbox forbids it.
    #[error("cannot {what}: {errno}; a sandbox (seccomp, a container's profile) may forbid the system call: allow it")]
    Forbade {
        /// What was tried.
        what: &'static str,
        /// What was said.
        errno: Errno,
    },
    /// The kernel refused for another reason.
    #[error("cannot {what}: {source}; is the machine out of memory, threads or network?")]
    Kernel {
        /// What was tried.
        what: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
}

impl SinkError {
    /// The error for a system call that failed while we tried to `what`.
    pub(crate) fn of(what: &'static str) -> impl Fn(Errno) -> SinkError {
        move |errno| match errno {
            Errno::MFILE | Errno::NFILE => SinkError::OutOfFiles { what },
            errno @ (Errno::NOSYS | Errno::PERM) => SinkError::Forbade { what, errno },
            other => SinkError::Kernel { what, source: other.into() },
        }
    }
}
