//! One request, from when it was due to when it ended ([`Exchange`]): the basis of every
//! measurement.
//!
//! The due time is a field, so response time, service time and send lag are three methods that
//! nobody can mix up silently.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// How one planned request ended. Each request has exactly one outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// A complete, well-formed response with this status code (100 to 999).
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
    /// The connection could not be opened for another reason (TLS handshake, memory, permissions).
    ConnectFailed,
    /// The connection was reset after it was opened.
    Reset,
    /// The server closed the connection before the response was complete.
    Closed,
    /// No complete response within the time limit.
    TimedOut,
    /// The response is not HTTP, or contradicts itself.
    BadResponse,
    /// A complete, good response, but its content has the wrong length.
    WrongLength,
    /// Sent, but without a response when the run ended.
    InFlight,
    /// Due while every connection was busy, and skipped because the user asked to skip late
    /// requests.
    Skipped,
    /// Due, but not sent before the run ended because no connection became free.
    NotSent,
}

impl Outcome {
    /// Whether this is a good response: 2xx or 3xx.
    pub fn is_good(self) -> bool {
        matches!(self, Outcome::Answered(200..=399))
    }

    /// Whether the server refused the request: 503 or 429, as one says that it has too much to do.
    pub fn is_refusal(self) -> bool {
        matches!(self, Outcome::Answered(503 | 429))
    }

    /// Whether this is a response that is neither good nor a refusal.
    pub fn is_error(self) -> bool {
        matches!(self, Outcome::Answered(_)) && !self.is_good() && !self.is_refusal()
    }

    /// Whether the connection failed, so nothing was sent.
    pub fn is_connect(self) -> bool {
        (Outcome::Refused..=Outcome::ConnectFailed).contains(&self)
    }

    /// Whether the true response time is longer than the measured one, because the response might
    /// still have come.
    pub(crate) fn is_censored(self) -> bool {
        use Outcome::{ConnectTimedOut, InFlight, NotSent, TimedOut};
        matches!(self, TimedOut | ConnectTimedOut | InFlight | NotSent)
    }
}

/// One request: three instants of one monotonic clock, the bytes received, and how it ended.
///
/// `due ≤ sent ≤ ended`. A request that never reached the kernel has `sent == ended`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// When the schedule wanted it sent.
    pub due: Nanos,
    /// When its first byte went to the kernel.
    pub sent: Nanos,
    /// When the last byte of its response arrived, or it was given up.
    pub ended: Nanos,
    /// Bytes of the response that were received, head included; at most 4 GiB are counted.
    pub received_bytes: u32,
    /// How it ended.
    pub outcome: Outcome,
}

impl Exchange {
    /// Whether any of it reached the kernel.
    #[inline]
    pub fn was_sent(&self) -> bool {
        self.sent < self.ended
    }

    /// Whether its instants are in order and its status is valid; a record from another machine may
    /// have anything.
    pub fn is_possible(&self) -> bool {
        let has_status = match self.outcome {
            Outcome::Answered(status) => (100..=999).contains(&status),
            _ => true,
        };
        has_status && self.due <= self.sent && self.sent <= self.ended
    }

    /// `ended - due`: how long a user who sent it when it was due would have waited. Includes every
    /// delay of the generator.
    pub fn response_time(&self) -> Nanos {
        self.ended.saturating_sub(self.due)
    }

    /// `ended - sent`: the time of server, kernel and network.
    pub fn service_time(&self) -> Nanos {
        self.ended.saturating_sub(self.sent)
    }

    /// `sent - due`: the delay by the generator (a busy lane, a connection that had to be opened
    /// first).
    pub fn send_lag(&self) -> Nanos {
        self.sent.saturating_sub(self.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_is_good_a_503_is_not_and_an_exchange_fits_half_a_cache_line() {
        assert!(Outcome::Answered(302).is_good() && !Outcome::Answered(503).is_good());
        assert!(Outcome::Answered(503).is_refusal() && !Outcome::Answered(503).is_error());
        assert!(Outcome::Answered(500).is_error() && !Outcome::TimedOut.is_error());
        assert!(!Outcome::TimedOut.is_good() && Outcome::TimedOut.is_censored());
        assert!(size_of::<Exchange>() <= 32);
    }
}
