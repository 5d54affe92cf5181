//! The words between longtail and a guard: one line each, orders one way, reports the other.
//!
//! Not an interface for others: both ends are the same executable. What is printed here is read back as itself.

use std::fmt;
use std::str::FromStr;

use model::Nanos;

use crate::Exit;

/// What longtail tells a guard. The end of the pipe is an order too: longtail is dead, kill everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// SIGTERM, and SIGKILL after this grace.
    Stop(Nanos),
    /// SIGKILL to everything.
    Kill,
}

impl fmt::Display for Order {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::Stop(grace) => write!(out, "stop {grace}"),
            Order::Kill => out.write_str("kill"),
        }
    }
}

impl FromStr for Order {
    type Err = ();

    fn from_str(line: &str) -> Result<Order, ()> {
        match line.split_once(' ') {
            Some(("stop", grace)) => Ok(Order::Stop(grace.parse().map_err(drop)?)),
            None if line == "kill" => Ok(Order::Kill),
            _ => Err(()),
        }
    }
}

/// What a guard tells longtail. The end of the pipe without [`Report::Ended`] means that the guard was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The server runs, with this process id.
    Started(i32),
    /// The guard could not do its work.
    Failed(String),
    /// The program could not be executed.
    NotExecuted(String),
    /// The server's own process ended.
    Exited(Exit),
    /// It had to be killed.
    Forced,
    /// So many other processes had to be killed.
    Leftovers(u32),
    /// This one could not be killed.
    BeyondReach(i32),
    /// Nothing lives any more (but what is beyond reach).
    Ended,
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Report::Started(pid) => write!(out, "pid {pid}"),
            Report::Failed(reason) => write!(out, "failed {}", one_line(reason)),
            Report::NotExecuted(reason) => write!(out, "not_executed {}", one_line(reason)),
            Report::Exited(Exit::Code(code)) => write!(out, "exit {code}"),
            Report::Exited(Exit::Signal(number)) => write!(out, "signal {number}"),
            Report::Exited(Exit::Unknown) => out.write_str("vanished"),
            Report::Forced => out.write_str("forced"),
            Report::Leftovers(n) => write!(out, "leftovers {n}"),
            Report::BeyondReach(pid) => write!(out, "beyond_reach {pid}"),
            Report::Ended => out.write_str("ended"),
        }
    }
}

impl FromStr for Report {
    type Err = ();

    fn from_str(line: &str) -> Result<Report, ()> {
        fn number<T: FromStr>(text: &str) -> Result<T, ()> {
            text.parse().map_err(|_| ())
        }
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        Ok(match word {
            "pid" => Report::Started(number(rest)?),
            "failed" => Report::Failed(rest.to_owned()),
            "not_executed" => Report::NotExecuted(rest.to_owned()),
            "exit" => Report::Exited(Exit::Code(number(rest)?)),
            "signal" => Report::Exited(Exit::Signal(number(rest)?)),
            "vanished" => Report::Exited(Exit::Unknown),
            "forced" => Report::Forced,
            "leftovers" => Report::Leftovers(number(rest)?),
            "beyond_reach" => Report::BeyondReach(number(rest)?),
            "ended" => Report::Ended,
            _ => return Err(()),
        })
    }
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

/// The text with every control character, a line's end among them, made a space: it stays one line on any terminal.
pub(crate) fn one_line(text: &str) -> String {
    text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood_at_the_other_end() {
        let reports = [
            Report::Started(42),
            Report::Failed("no such thing".to_owned()),
            Report::NotExecuted("Permission denied (os error 13)".to_owned()),
            Report::Exited(Exit::Code(3)),
            Report::Exited(Exit::Signal(9)),
            Report::Exited(Exit::Unknown),
            Report::Forced,
            Report::Leftovers(7),
            Report::BeyondReach(1234),
            Report::Ended,
        ];
        for report in reports {
            assert_eq!(report.to_string().parse(), Ok(report));
        }
        for order in [Order::Stop(Nanos::from_millis(1500)), Order::Stop(Nanos::ZERO), Order::Kill] {
            assert_eq!(order.to_string().parse(), Ok(order));
        }
        assert_eq!("hello".parse::<Order>(), Err(()));
        assert_eq!("hello".parse::<Report>(), Err(()));
    }

    #[test]
    fn a_report_stays_one_line_whatever_the_reason_holds() {
        assert_eq!(Report::Failed("two\nlines".to_owned()).to_string(), "failed two lines");
    }

    #[test]
    fn lines_are_given_out_when_they_are_whole() {
        let mut buffer = LineBuffer::default();
        assert!(buffer.feed(b"pi").is_empty());
        assert_eq!(buffer.feed(b"d 1\nexit 0\nen"), ["pid 1", "exit 0"]);
        assert_eq!(buffer.feed(b"ded\n"), ["ended"]);
    }
}
