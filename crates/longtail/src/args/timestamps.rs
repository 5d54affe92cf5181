//! `--timestamps`: whose clock says when an answer came, and what `auto` means.

use clap::ValueEnum;
use model::Timestamps;

use crate::mistake::{Mistake, wrong};

/// As the flag has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimestampsWord {
    /// The kernel, where it can: on TCP, and without pipelining
    #[default]
    Auto,
    /// The kernel, when the bytes came in: our own late reading is measured, and not in the times
    Kernel,
    /// The generator, when it reads
    User,
}

impl TimestampsWord {
    /// What it comes to. The kernel stamps no Unix stream; and of several answers under way on a connection (`is_pipelined`) a stamp may
    /// be of a later one's bytes.
    ///
    /// # Errors
    /// Where the kernel's stamps were asked for and cannot be had.
    pub(crate) fn resolve(self, is_tcp: bool, is_pipelined: bool) -> Result<Timestamps, Mistake> {
        let why_not = match () {
            () if !is_tcp => Some("is for TCP: the kernel stamps nothing on a Unix socket; leave it out"),
            () if is_pipelined => Some("needs one request at a time on a connection: leave out --pipeline, or this"),
            () if !engine::can_stamp() => {
                Some("cannot be had: this kernel does not know SO_TIMESTAMPNS; use --timestamps user")
            }
            () => None,
        };
        match (self, why_not) {
            (TimestampsWord::Kernel, Some(why)) => Err(wrong(format!("--timestamps kernel {why}"))),
            (TimestampsWord::User, _) | (_, Some(_)) => Ok(Timestamps::User),
            (TimestampsWord::Auto | TimestampsWord::Kernel, None) => Ok(Timestamps::Kernel),
        }
    }
}
