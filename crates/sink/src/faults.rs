//! What goes wrong on purpose. Which request is hit is a pure function of the seed and its number, so that a client's
//! ledger can be compared with what was done to it, exactly.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::chance::{DrawStream, RequestShare, draw};

/// The fault laws. A request has one fault at most, so that the shares add up to 100 % at most.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// What is done to requests.
    pub laws: Vec<FaultLaw>,
    /// The connection is closed after so many answers, and the last of them says so.
    pub close_after: Option<u32>,
}

/// A fault, and how many requests have it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FaultLaw {
    /// What happens.
    pub fault: Fault,
    /// To how many.
    pub share: RequestShare,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection is reset in place of an answer. On a Unix socket, which knows no reset, it is closed.
    Reset,
    /// The answer is cut in the middle of its body, and the connection closed. Where there is no body, in its head.
    Truncate,
    /// There is no answer, and the connection stays open.
    NoAnswer,
    /// Another status than 200.
    Status(u16),
}

impl Faults {
    /// What happens to request `number`.
    #[inline]
    pub(crate) fn of(&self, seed: u64, number: u64) -> Option<Fault> {
        if self.laws.is_empty() {
            return None;
        }
        let u = draw(seed, DrawStream::Fault, number);
        let mut bound = 0.0;
        self.laws.iter().find_map(|FaultLaw { fault, share }| {
            bound += share.part();
            // A share of 0 hits nobody, whatever the rounding of the sum before it.
            (u <= bound && *share > RequestShare::default()).then_some(*fault)
        })
    }

    /// The sum of all shares, of any request; `close_after` hits connections.
    pub(crate) fn total(&self) -> f64 {
        self.laws.iter().map(|law| law.share.part()).sum()
    }
}

/// `503:1%`: answers with another status.
impl FromStr for FaultLaw {
    type Err = String;

    fn from_str(text: &str) -> Result<FaultLaw, String> {
        let parts = text.split_once(':').and_then(|(code, share)| Some((code.parse().ok()?, share.parse().ok()?)));
        let is_good = |code: &u16| (200..600).contains(code) && ![204, 205, 304].contains(code);
        let (code, share) = parts.filter(|(code, _)| is_good(code)).ok_or_else(|| {
            format!(
                "'{text}' is not a status and its share: write 503:1% (200 to 599, but not 204, 205 or 304, which have no body)"
            )
        })?;
        Ok(FaultLaw { fault: Fault::Status(code), share })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn share(text: &str) -> RequestShare {
        text.parse().unwrap()
    }

    fn laws(laws: &[(Fault, &str)]) -> Faults {
        let laws = laws.iter().map(|(fault, text)| FaultLaw { fault: *fault, share: share(text) }).collect();
        Faults { laws, close_after: None }
    }

    #[test]
    fn each_fault_has_its_share() {
        let expected = [
            (Fault::Reset, "1%"),
            (Fault::Truncate, "2%"),
            (Fault::NoAnswer, "0.5%"),
            (Fault::Status(503), "3%"),
            (Fault::Status(500), "1%"),
        ];
        let faults = laws(&expected);
        let count = 200_000;
        for seed in 1..=5 {
            let of = |wanted| (0..count).filter(|number| faults.of(seed, *number) == wanted).count() as f64;
            let shares = expected.iter().map(|(fault, text)| (Some(*fault), share(text).part()));
            for (fault, part) in shares.chain([(None, 0.925)]) {
                let deviations = (of(fault) - count as f64 * part) / (count as f64 * part * (1.0 - part)).sqrt();
                assert!(deviations.abs() < 3.5, "seed {seed}, {fault:?}: {deviations} deviations");
            }
        }
    }

    #[test]
    fn all_and_nothing_are_exact() {
        let all = laws(&[(Fault::Reset, "0"), (Fault::Truncate, "100%"), (Fault::NoAnswer, "0%")]);
        assert!((0..10_000).all(|number| all.of(1, number) == Some(Fault::Truncate)));
        assert!((0..10_000).all(|number| Faults::default().of(1, number).is_none()));
    }
}
