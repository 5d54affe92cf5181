//! The words between longtail and a guard: one line of JSON each, orders one way, reports the other; and how a server ended.
//!
//! Not an interface for others: both ends are the same executable.

use std::fmt;

use model::Nanos;
use serde::{Deserialize, Serialize};

/// What longtail tells a guard. The end of the pipe is an order too: longtail is dead, kill everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum GuardOrder {
    /// SIGTERM, and SIGKILL after this grace.
    Stop(Nanos),
    /// SIGKILL to everything.
    Kill,
}

/// What a guard tells longtail. The end of the pipe without [`GuardReport::Ended`] means that the guard was killed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum GuardReport {
    /// The server runs, with this process id.
    Started(i32),
    /// The guard could not do its work.
    Failed(String),
    /// The program could not be executed.
    NotExecuted(String),
    /// The server's own process ended.
    Exited(ServerExit),
    /// Processes of it could not be killed.
    BeyondReach,
    /// Nothing lives any more (but what is beyond reach).
    Ended,
}

/// How a server's process ended. Not why: that is in its [`ServerOutput`](crate::ServerOutput).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServerExit {
    /// By itself, with this exit code (0 to 255).
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It is gone, but so is its guard, which alone could have said how.
    Unknown,
}

impl fmt::Display for ServerExit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerExit::Code(code) => write!(out, "exit code {code}"),
            ServerExit::Signal(number) => write!(out, "signal {number}"),
            ServerExit::Unknown => out.write_str("nobody saw how"),
        }
    }
}

/// An order or a report as a line.
pub(crate) fn line(words: &impl Serialize) -> String {
    serde_json::to_string(words).expect("words and numbers are JSON") + "\n"
}
