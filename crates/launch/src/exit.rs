//! How a server ended, as values. Not why: that is in its [`Output`](crate::Output).

use std::fmt;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this exit code (0 to 255).
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It is gone, but so is its guard, which alone could have said how.
    Unknown,
}

impl fmt::Display for Exit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(out, "exit code {code}"),
            Exit::Signal(number) => write!(out, "signal {number}"),
            Exit::Unknown => out.write_str("nobody saw how"),
        }
    }
}

/// What it took to stop a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// How the server's own process ended.
    pub exit: Exit,
    /// Whether it outlived the grace period and was killed.
    pub forced: bool,
    /// Processes beside the server's own that were still alive then, and were killed.
    pub leftovers: u32,
    /// Processes that still live because we may not kill them (another user's, such as after `sudo`). Usually none.
    pub beyond_reach: Vec<i32>,
}
