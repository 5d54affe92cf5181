//! Why a sink cannot start: each a line that says how to mend it. Nothing that a client does is in here.

use std::io;
use std::net::SocketAddr;

use rustix::io::Errno;
use thiserror::Error;

use crate::settings::MOST_WORKERS;

/// Why the sink could not start. Once it runs it has no errors: what clients do wrong is counted in its ledger.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SinkError {
    /// Without a slot nothing would ever be answered; with too many workers the sink would only allocate.
    #[error("{workers} workers x {threads} threads cannot be: give 1 to {MOST_WORKERS} workers and 1 thread or more")]
    BadSlots {
        /// Workers asked for.
        workers: u32,
        /// Threads a worker asked for.
        threads: u32,
    },
    /// The response would not be HTTP.
    #[error("{0:?} cannot name the worker's header: use letters, digits and '-', and no name that HTTP needs itself")]
    BadHeader(String),
    /// Something listens there already.
    #[error("{0} is in use: stop what listens there, or choose another port (port 0 takes a free one)")]
    AddressInUse(SocketAddr),
    /// The address is not of this machine.
    #[error("{0} is not an address of this machine: listen on 127.0.0.1, [::1] or one that `ip address` shows")]
    NotOurAddress(SocketAddr),
    /// The port is privileged.
    #[error("no permission to listen on {0}: choose a port of 1024 or more")]
    Forbidden(SocketAddr),
    /// No file descriptor left.
    #[error("no file descriptor left to {what}: raise the limit of open files (ulimit -n)")]
    OutOfFiles {
        /// What it was wanted for.
        what: &'static str,
    },
    /// The kernel lacks a system call, or a sandbox forbids it.
    #[error("cannot {what}: the sink needs Linux 5.11 or later, and a sandbox that allows epoll_pwait2")]
    OldKernel {
        /// What was tried.
        what: &'static str,
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
            Errno::NOSYS => SinkError::OldKernel { what },
            other => SinkError::Kernel { what, source: other.into() },
        }
    }
}
