//! What goes wrong on purpose. Which request is hit is a pure function of the seed and its number, so that a client's
//! ledger can be compared with what was done to it, exactly.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::bad_word::BadWord;
use crate::draw::{DrawStream, draw};

/// The fault laws. A request has one fault at most, so that the shares add up to 100 % at most.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// The connection is reset in place of an answer. On a Unix socket, which knows no reset, it is closed.
    pub reset: RequestShare,
    /// The answer is cut in the middle of its body, and the connection closed. Where there is no body, in its head.
    pub truncate: RequestShare,
    /// There is no answer, and the connection stays open.
    pub no_answer: RequestShare,
    /// Another status than 200.
    pub status: Vec<StatusFault>,
    /// The connection is closed after so many answers, and the last of them says so.
    pub close_after: Option<u32>,
}

/// Answers with another status.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StatusFault {
    /// The status.
    pub code: u16,
    /// How many have it.
    pub share: RequestShare,
}

/// What happens to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A reset.
    Reset,
    /// A cut answer.
    Truncate,
    /// No answer.
    NoAnswer,
    /// Another status.
    Status {
        /// Its place in [`Faults::status`].
        place: usize,
        /// The status.
        code: u16,
    },
}

impl Faults {
    /// What happens to request `number`.
    pub(crate) fn of(&self, seed: u64, number: u64) -> Option<Fault> {
        let u = draw(seed, DrawStream::Fault, number);
        let mut bound = 0.0;
        let status = |(place, fault): (usize, &StatusFault)| (Fault::Status { place, code: fault.code }, fault.share);
        let statuses = self.status.iter().enumerate().map(status);
        let kinds = [(Fault::Reset, self.reset), (Fault::Truncate, self.truncate), (Fault::NoAnswer, self.no_answer)];
        kinds.into_iter().chain(statuses).find_map(|(fault, share)| {
            bound += share.part();
            // A share of 0 hits nobody, whatever the rounding of the sum before it.
            (u <= bound && share > RequestShare::NONE).then_some(fault)
        })
    }

    /// The sum of all shares, of any request; `close_after` hits connections.
    pub(crate) fn total(&self) -> f64 {
        let statuses: f64 = self.status.iter().map(|fault| fault.share.part()).sum();
        self.reset.part() + self.truncate.part() + self.no_answer.part() + statuses
    }
}

impl FromStr for StatusFault {
    type Err = BadWord;

    fn from_str(text: &str) -> Result<StatusFault, BadWord> {
        let parts = text.split_once(':').and_then(|(code, share)| Some((code.parse().ok()?, share.parse().ok()?)));
        let is_good = |code: &u16| (200..600).contains(code) && ![204, 205, 304].contains(code);
        let (code, share) = parts.filter(|(code, _)| is_good(code)).ok_or_else(|| {
            BadWord::new(
                text,
                "a status and its share: write 503:1% (200 to 599, but not 204, 205 or 304, which have no body)",
            )
        })?;
        Ok(StatusFault { code, share })
    }
}

/// How often each fault was done, whether or not the client noticed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultCounts {
    /// Requests whose connection was reset.
    pub reset: u64,
    /// Requests whose answer was cut; not in the ledger's `answers`.
    pub truncated: u64,
    /// Requests that were left without an answer.
    pub unanswered: u64,
    /// Answers after which the connection was closed though the client had not asked for it.
    pub closed: u64,
    /// Answers with another status, by status; in the ledger's `answers`, too.
    pub by_status: BTreeMap<u16, u64>,
}

impl FaultCounts {
    /// Requests that will never be answered wholly.
    pub(crate) fn lost(&self) -> u64 {
        self.reset + self.truncated + self.unanswered
    }

    /// Adds another loop's.
    pub(crate) fn add(&mut self, other: &FaultCounts) {
        self.reset += other.reset;
        self.truncated += other.truncated;
        self.unanswered += other.unanswered;
        self.closed += other.closed;
        for (code, count) in &other.by_status {
            *self.by_status.entry(*code).or_default() += count;
        }
    }
}

/// A part of all requests, from none (0) to all (1); a person writes `2%` or `0.02`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct RequestShare(f64);

impl RequestShare {
    /// Nothing at all.
    pub const NONE: RequestShare = RequestShare(0.0);

    /// The share `part` of 1; `None` where it is not from 0 to 1.
    pub fn new(part: f64) -> Option<RequestShare> {
        (0.0..=1.0).contains(&part).then_some(RequestShare(part))
    }

    /// As a number from 0 to 1.
    pub fn part(self) -> f64 {
        self.0
    }
}

/// As a fraction: the shortest text that parses to the same share.
impl fmt::Display for RequestShare {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0)
    }
}

impl FromStr for RequestShare {
    type Err = BadWord;

    fn from_str(text: &str) -> Result<RequestShare, BadWord> {
        let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent, 100.0));
        let number: Option<f64> = number.parse().ok();
        number
            .and_then(|number| RequestShare::new(number / whole))
            .ok_or_else(|| BadWord::new(text, "a share of all requests: write 2% or 0.02, from 0 to 100%"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(text: &str) -> RequestShare {
        text.parse().unwrap()
    }

    fn faults() -> Faults {
        Faults {
            reset: share("1%"),
            truncate: share("2%"),
            no_answer: share("0.5%"),
            status: vec!["503:3%".parse().unwrap(), "500:1%".parse().unwrap()],
            close_after: None,
        }
    }

    #[test]
    fn each_fault_has_its_share() {
        let faults = faults();
        let count = 200_000;
        for seed in 1..=5 {
            let of = |wanted| (0..count).filter(|number| faults.of(seed, *number) == wanted).count() as f64;
            let expected = [
                (Some(Fault::Reset), 0.01),
                (Some(Fault::Truncate), 0.02),
                (Some(Fault::NoAnswer), 0.005),
                (Some(Fault::Status { place: 0, code: 503 }), 0.03),
                (Some(Fault::Status { place: 1, code: 500 }), 0.01),
                (None, 0.925),
            ];
            for (fault, part) in expected {
                let deviations = (of(fault) - count as f64 * part) / (count as f64 * part * (1.0 - part)).sqrt();
                assert!(deviations.abs() < 3.5, "seed {seed}, {fault:?}: {deviations} deviations");
            }
        }
    }

    #[test]
    fn all_and_nothing_are_exact() {
        let all = Faults { truncate: share("100%"), ..Faults::default() };
        assert!((0..10_000).all(|number| all.of(1, number) == Some(Fault::Truncate)));
        assert!((0..10_000).all(|number| Faults::default().of(1, number).is_none()));
        assert!(Faults { close_after: Some(3), ..Faults::default() }.total() <= 0.0);
    }

    #[test]
    fn percent_and_fraction_are_the_same() {
        for (text, part) in [("0.1%", 0.001), ("0.02", 0.02), ("100%", 1.0)] {
            assert_eq!(text.parse(), Ok(RequestShare(part)));
        }
    }
}
