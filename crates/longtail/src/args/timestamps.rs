//! `--timestamps`: whose clock says when an answer came, and what `auto` means.

use clap::ValueEnum;
use model::Timestamps;

use crate::mistake::Mistake;

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

/// What a run can have and wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation {
    /// Whether it is TCP: the kernel stamps no Unix stream.
    pub(crate) is_tcp: bool,
    /// Whether several answers may be under way on a connection: a stamp may be of a later one's bytes.
    pub(crate) is_pipelined: bool,
}

impl TimestampsWord {
    /// What it comes to.
    ///
    /// # Errors
    /// Where the kernel's stamps were asked for and cannot be had.
    pub(crate) fn resolve(self, situation: Situation) -> Result<Timestamps, Mistake> {
        let Situation { is_tcp, is_pipelined } = situation;
        let why_not = match () {
            () if !is_tcp => Some("is for TCP: the kernel stamps nothing on a Unix socket; leave it out"),
            () if is_pipelined => Some("needs one request at a time on a connection: leave out --pipeline, or this"),
            () if !engine::can_stamp() => {
                Some("cannot be had: this kernel does not know SO_TIMESTAMPNS; use --timestamps user")
            }
            () => None,
        };
        match (self, why_not) {
            (TimestampsWord::Kernel, Some(why)) => Err(Mistake::Flags(format!("--timestamps kernel {why}"))),
            (TimestampsWord::User, _) | (_, Some(_)) => Ok(Timestamps::User),
            (TimestampsWord::Auto | TimestampsWord::Kernel, None) => Ok(Timestamps::Kernel),
        }
    }
}
