//! One request, from when it was due to when it ended ([`Exchange`]): what every measurement is
//! made of.
//!
//! The due time is a field here, so that response time, service time and send lag are three methods
//! and nobody can use one for another silently.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// How one planned request ended. Each ends in exactly one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// A whole, well-formed response came, with this status code (100 to 999).
    Answered(u16),
    /// The connection could not be opened: refused.
    Refused,
    /// The connection could not be opened: no route to the host.
    NoRoute,
    /// The connection could not be opened within the time limit, or the kernel gave up trying.
    ConnectTimedOut,
    /// The connection could not be opened: this machine has no port left for it.
    NoPort,
    /// The connection could not be opened: this process has no descriptor left for it.
    NoDescriptor,
    /// The connection could not be opened for another reason (no TLS came about, no memory,
    /// forbidden).
    ConnectFailed,
    /// The connection was reset after it was opened.
    Reset,
    /// The server closed the connection before a whole response had come.
    Closed,
    /// No whole response within the time limit.
    TimedOut,
    /// What came is not HTTP, or contradicts itself.
    BadResponse,
    /// A whole, good response came, but its content is not as long as it was to be.
    WrongLength,
    /// Sent, and still without a response when the run ended.
    InFlight,
    /// Due while every connection was busy, and not sent because the user wants late requests
    /// skipped.
    Skipped,
    /// Due, and not sent before the run ended: no connection became free for it.
    NotSent,
}

impl Outcome {
    /// Whether this is what a client wanted: a response of class 2xx or 3xx.
    pub fn is_good(self) -> bool {
        matches!(self, Outcome::Answered(200..=399))
    }

    /// Whether no connection came about, and so nothing was sent.
    pub fn is_connect(self) -> bool {
        (Outcome::Refused..=Outcome::ConnectFailed).contains(&self)
    }

    /// Whether the true response time is longer than what was seen: the response might still have
    /// come.
    pub(crate) fn is_censored(self) -> bool {
        use Outcome::{ConnectTimedOut, InFlight, NotSent, TimedOut};
        matches!(self, TimedOut | ConnectTimedOut | InFlight | NotSent)
    }
}

/// One request: three instants of one monotonic clock, what it brought and how it ended.
///
/// `due ≤ sent ≤ ended`. A request that never reached the kernel has `sent == ended`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// When the schedule wanted it sent.
    pub due: Nanos,
    /// When its first byte went to the kernel.
    pub sent: Nanos,
    /// When its last byte came back, or it was given up.
    pub ended: Nanos,
    /// Bytes of the response that were received, head included; 4 GiB at most are counted here.
    pub received_bytes: u32,
    /// How it ended.
    pub outcome: Outcome,
}

impl Exchange {
    /// Whether anything of it reached the kernel.
    #[inline]
    pub fn was_sent(&self) -> bool {
        self.sent < self.ended
    }

    /// Whether its instants are in order, and its status is one: a record from another machine may
    /// have any.
    pub fn is_possible(&self) -> bool {
        let has_status = match self.outcome {
            Outcome::Answered(status) => (100..=999).contains(&status),
            _ => true,
        };
        has_status && self.due <= self.sent && self.sent <= self.ended
    }

    /// `ended - due`: what a user who wanted it then has waited. Includes every delay of the
    /// generator.
    pub fn response_time(&self) -> Nanos {
        self.ended.saturating_sub(self.due)
    }

    /// `ended - sent`: what the server, the kernel and the network took.
    pub fn service_time(&self) -> Nanos {
        self.ended.saturating_sub(self.sent)
    }

    /// `sent - due`: what the generator (a busy lane, a connection that had to be opened first)
    /// took.
    pub fn send_lag(&self) -> Nanos {
        self.sent.saturating_sub(self.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_is_good_and_a_503_is_not_and_the_atom_fits_half_a_cache_line() {
        assert!(Outcome::Answered(302).is_good() && !Outcome::Answered(503).is_good());
        assert!(!Outcome::TimedOut.is_good() && Outcome::TimedOut.is_censored());
        assert!(size_of::<Exchange>() <= 32);
    }
}
