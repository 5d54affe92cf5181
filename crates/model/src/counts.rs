//! How many requests ended in which way: the ledger whose sum is the number planned.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Outcome;

/// Requests by outcome. Recording never allocates.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, u64>", into = "BTreeMap<String, u64>")]
pub struct Counts(
    /// An answer stands at its status code, every other outcome at its place in [`OTHERS`], which no status has.
    Box<[u64]>,
);

const OTHERS: [(Outcome, &str); 13] = [
    (Outcome::Refused, "connect_refused"),
    (Outcome::ConnectFailed, "connect_failed"),
    (Outcome::Reset, "reset"),
    (Outcome::Closed, "closed_early"),
    (Outcome::TimedOut, "timed_out"),
    (Outcome::BadResponse, "bad_response"),
    (Outcome::InFlight, "in_flight_at_end"),
    (Outcome::Skipped, "skipped"),
    (Outcome::WrongLength, "wrong_length"),
    (Outcome::NoRoute, "no_route"),
    (Outcome::ConnectTimedOut, "connect_timed_out"),
    (Outcome::NoPort, "no_port"),
    (Outcome::NoDescriptor, "no_descriptor"),
];

const FIRST_STATUS: usize = 100;
const STATUSES: usize = 1000;

/// Where an outcome is counted.
#[inline]
fn place(outcome: Outcome) -> usize {
    match outcome {
        Outcome::Answered(status) => usize::from(status),
        other => place_of_other(other),
    }
}

#[cold]
fn place_of_other(outcome: Outcome) -> usize {
    OTHERS.iter().position(|(other, _)| *other == outcome).expect("an answer is counted by its status")
}

impl Default for Counts {
    fn default() -> Counts {
        Counts(vec![0; STATUSES].into())
    }
}

impl fmt::Debug for Counts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_map().entries(self.iter().map(|(outcome, n)| (name(outcome), n))).finish()
    }
}

impl Counts {
    /// Counts one request.
    ///
    /// # Panics
    /// Where a status is above 999: the parser lets no such one through.
    #[inline]
    pub fn record(&mut self, outcome: Outcome) {
        self.0[place(outcome)] += 1;
    }

    /// Counts so many requests that were answered with this status.
    ///
    /// # Panics
    /// As [`Counts::record`].
    pub(crate) fn add_answered(&mut self, status: u16, requests: u64) {
        self.0[usize::from(status)] += requests;
    }

    /// How many ended in `outcome`.
    pub fn of(&self, outcome: Outcome) -> u64 {
        self.0[place(outcome)]
    }

    /// Every outcome that occurred, with its count: statuses rising, then the rest.
    pub fn iter(&self) -> impl Iterator<Item = (Outcome, u64)> + '_ {
        let answered = (FIRST_STATUS..STATUSES).map(|status| Outcome::Answered(status as u16));
        let all = answered.chain(OTHERS.map(|(outcome, _)| outcome));
        all.map(|outcome| (outcome, self.of(outcome))).filter(|(_, n)| *n > 0)
    }

    /// All of them: the number planned.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Those that a client wanted: 2xx and 3xx, as [`Outcome::is_good`] says.
    pub fn good(&self) -> u64 {
        self.0[200..400].iter().sum()
    }

    /// All that are not good: the errors, timeouts and those in flight at the end.
    pub fn failed(&self) -> u64 {
        self.total() - self.good()
    }

    /// The [names](name) of the outcomes that occurred and are not good.
    pub fn failures(&self) -> Vec<String> {
        self.iter().filter(|(outcome, _)| !outcome.is_good()).map(|(outcome, _)| name(outcome)).collect()
    }

    /// Those whose answer might still have come: timed out or in flight at the end.
    pub fn censored(&self) -> u64 {
        OTHERS.iter().filter(|(outcome, _)| outcome.is_censored()).map(|(outcome, _)| self.of(*outcome)).sum()
    }

    /// Those that got a whole response, of whatever status.
    pub fn answered(&self) -> u64 {
        self.0[FIRST_STATUS..].iter().sum::<u64>() + self.of(Outcome::WrongLength)
    }

    /// Those that were sent, or that we at least tried to send: all but the skipped.
    pub fn attempted(&self) -> u64 {
        self.total() - self.of(Outcome::Skipped)
    }

    /// Adds another lane's, or another run's.
    pub fn merge(&mut self, other: &Counts) {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine += theirs);
    }
}

/// The name of an outcome in JSON and tables: the status code itself, or words such as `timed_out`.
pub fn name(outcome: Outcome) -> String {
    match outcome {
        Outcome::Answered(status) => status.to_string(),
        other => word(other).to_owned(),
    }
}

/// The name of an outcome without a status.
///
/// # Panics
/// Of one that has a status.
pub fn word(outcome: Outcome) -> &'static str {
    OTHERS[place(outcome)].1
}

/// The outcome that has this [name].
pub(crate) fn outcome(named: &str) -> Option<Outcome> {
    match named.parse::<u16>() {
        Ok(status @ 100..=999) => Some(Outcome::Answered(status)),
        _ => OTHERS.iter().find(|(_, name)| *name == named).map(|(outcome, _)| *outcome),
    }
}

impl From<Counts> for BTreeMap<String, u64> {
    fn from(counts: Counts) -> BTreeMap<String, u64> {
        counts.iter().map(|(outcome, n)| (name(outcome), n)).collect()
    }
}

impl TryFrom<BTreeMap<String, u64>> for Counts {
    type Error = String;

    fn try_from(by_name: BTreeMap<String, u64>) -> Result<Counts, String> {
        let mut counts = Counts::default();
        for (key, n) in by_name {
            counts.0[place(outcome(&key).ok_or(format!("unknown outcome '{key}'"))?)] = n;
        }
        Ok(counts)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn any_outcome() -> impl Strategy<Value = Outcome> {
        prop_oneof![(100u16..=999).prop_map(Outcome::Answered), (0..OTHERS.len()).prop_map(|i| OTHERS[i].0),]
    }

    proptest! {
        #[test]
        fn every_request_is_in_exactly_one_place(outcomes in prop::collection::vec(any_outcome(), 0..200)) {
            let mut counts = Counts::default();
            for outcome in &outcomes {
                counts.record(*outcome);
            }
            prop_assert_eq!(counts.total(), outcomes.len() as u64);
            let those = |is: fn(Outcome) -> bool| outcomes.iter().filter(|outcome| is(**outcome)).count() as u64;
            prop_assert_eq!(counts.good(), those(Outcome::is_good));
            prop_assert_eq!(counts.censored(), those(Outcome::is_censored));
            let text = serde_json::to_string(&counts).unwrap();
            prop_assert_eq!(serde_json::from_str::<Counts>(&text).unwrap(), counts);
        }
    }
}
