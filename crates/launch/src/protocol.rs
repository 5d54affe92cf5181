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
    /// It had to be killed.
    Forced,
    /// This process could not be killed.
    BeyondReach(i32),
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

/// A pipe's bytes, cut into whole lines.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer(Vec<u8>);

impl LineBuffer {
    /// Takes what was read and gives the lines that are whole now.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<String> {
        self.0.extend_from_slice(bytes);
        let Some(end) = self.0.iter().rposition(|byte| *byte == b'\n') else { return Vec::new() };
        let rest = self.0.split_off(end + 1);
        let whole = std::mem::replace(&mut self.0, rest);
        String::from_utf8_lossy(&whole).lines().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_said_is_one_line_that_is_given_out_when_it_is_whole() {
        let report = GuardReport::Failed("two\nlines, and \"quotes\"".to_owned());
        let text = line(&report) + &line(&GuardReport::Exited(ServerExit::Signal(9)));
        let mut buffer = LineBuffer::default();
        assert!(buffer.feed(&text.as_bytes()[..5]).is_empty());
        let lines = buffer.feed(&text.as_bytes()[5..]);
        let reports: Vec<GuardReport> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(reports, [report, GuardReport::Exited(ServerExit::Signal(9))]);
        assert!(serde_json::from_str::<GuardOrder>("hello").is_err());
    }
}
