//! Counts requests by outcome; the sum is the number planned. In addition it counts why responses
//! could not be read or had a wrong length.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};
use thiserror::Error;

use crate::Outcome;

/// Requests by outcome. Recording never allocates.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, u64>", into = "BTreeMap<String, u64>")]
pub struct Counts(
    /// A response is at the index of its status code, any other outcome at its index in [`OTHERS`],
    /// which no status has.
    Box<[u64]>,
);

const OTHERS: [(Outcome, &str); 14] = [
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
    (Outcome::NotSent, "not_sent"),
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
    OTHERS
        .iter()
        .position(|(other, _)| *other == outcome)
        .expect("a response is counted by its status")
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
    /// If a status is above 999, which the parser rejects.
    #[inline]
    pub fn record(&mut self, outcome: Outcome) {
        self.0[place(outcome)] += 1;
    }

    /// Counts several requests with the same outcome.
    pub(crate) fn add(&mut self, outcome: Outcome, requests: u64) {
        self.0[place(outcome)] += requests;
    }

    /// Counts several responses with this status.
    ///
    /// # Panics
    /// Like [`Counts::record`].
    pub fn add_answered(&mut self, status: u16, requests: u64) {
        self.0[usize::from(status)] += requests;
    }

    /// How many ended in `outcome`.
    pub fn of(&self, outcome: Outcome) -> u64 {
        self.0[place(outcome)]
    }

    /// How many ended in an outcome of this kind.
    pub fn sum_of(&self, is_so: impl Fn(Outcome) -> bool) -> u64 {
        self.iter().filter(|(outcome, _)| is_so(*outcome)).map(|(_, requests)| requests).sum()
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

    /// The same for untrusted counts: `None` if the sum overflows.
    pub fn checked_total(&self) -> Option<u64> {
        self.0.iter().try_fold(0_u64, |sum, n| sum.checked_add(*n))
    }

    /// Good responses: 2xx and 3xx, see [`Outcome::is_good`].
    pub fn good(&self) -> u64 {
        self.0[200..400].iter().sum()
    }

    /// All requests without a good response: errors, timeouts, and those in flight or not sent at
    /// the end.
    pub fn failed(&self) -> u64 {
        self.total() - self.good()
    }

    /// The [names](name) of the outcomes that occurred and are not good.
    pub fn failures(&self) -> Vec<String> {
        self.iter()
            .filter(|(outcome, _)| !outcome.is_good())
            .map(|(outcome, _)| name(outcome))
            .collect()
    }

    /// Requests whose response might still have come: timed out, in flight at the end, or not sent.
    pub fn censored(&self) -> u64 {
        OTHERS
            .iter()
            .filter(|(outcome, _)| outcome.is_censored())
            .map(|(outcome, _)| self.of(*outcome))
            .sum()
    }

    /// Requests with a complete response, whatever its status.
    pub fn answered(&self) -> u64 {
        self.0[FIRST_STATUS..].iter().sum::<u64>() + self.of(Outcome::WrongLength)
    }

    /// Requests that were sent, or that we tried to send: all except those for which no connection
    /// was free.
    pub fn attempted(&self) -> u64 {
        self.total() - self.of(Outcome::Skipped) - self.of(Outcome::NotSent)
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
/// If it has a status.
pub fn word(outcome: Outcome) -> &'static str {
    OTHERS[place(outcome)].1
}

/// The outcome that has this [name].
pub fn outcome(named: &str) -> Option<Outcome> {
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

/// What is wrong with a [bad response](crate::Outcome::BadResponse): the first fault that was
/// found.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    Error,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum BadResponse {
    /// It doesn't begin like HTTP/1.0 or HTTP/1.1: another protocol, or noise.
    #[error("the response is not HTTP/1.1")]
    NotHttp,
    /// Its status line has no status from 100 to 999, or is malformed.
    #[error("the response's status line is malformed, or its status is not from 100 to 999")]
    StatusLine,
    /// A header or a line end violates the grammar (RFC 9112, section 5).
    #[error("the response's head is malformed")]
    MalformedHead,
    /// A header is folded over two lines, which is obsolete (RFC 9112, section 5.2).
    #[error("a header of the response is folded over two lines (obsolete line folding)")]
    FoldedLine,
    /// Its head is longer than 64 KiB, or has more than 256 fields.
    #[error("the response's head is longer than 64 KiB or has more than 256 fields")]
    LongHead,
    /// Its Content-Length is not a 64-bit number, or there are two different ones.
    #[error("the response's Content-Length is not a number, or there are two")]
    ContentLength,
    /// Its body is announced as chunked but isn't (RFC 9112, section 7.1).
    #[error("the response's chunked body is malformed")]
    ChunkedBody,
    /// 101: another protocol follows, which was not asked for (RFC 9110, section 15.2.2).
    #[error("the server switched to another protocol, unasked")]
    SwitchedProtocol,
    /// A body follows the response to HEAD, which has none (RFC 9110, section 9.3.2).
    #[error("the server answers HEAD with a body, which HTTP forbids")]
    BodyToHead,
    /// A body follows a 204 or 304, which has none (RFC 9110, sections 15.3.5 and 15.4.5).
    #[error("the server answers 204 or 304 with a body, which HTTP forbids")]
    BodyByStatus,
    /// Other bytes follow its end, with it or where the next response should begin.
    #[error("bytes after the end of the response")]
    TrailingBytes,
    /// It arrived on a new connection before any of the request was sent.
    #[error("the response came before the request was sent")]
    BeforeRequest,
}

impl BadResponse {
    /// Its name in files: `trailing_bytes`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Bad responses by reason. Each has exactly one; reasons that did not occur are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BadResponses(BTreeMap<BadResponse, u64>);

impl BadResponses {
    /// Counts `requests` that ended for this reason.
    #[cold]
    pub fn record(&mut self, reason: BadResponse, requests: u64) {
        if requests > 0 {
            *self.0.entry(reason).or_default() += requests;
        }
    }

    /// Every reason that occurred, with its count.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (BadResponse, u64)> + '_ {
        self.0.iter().map(|(reason, requests)| (*reason, *requests))
    }

    /// How many ended for this reason.
    pub fn of(&self, reason: BadResponse) -> u64 {
        self.0.get(&reason).copied().unwrap_or(0)
    }

    /// The total number of bad responses.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Adds another lane's.
    pub fn merge(&mut self, other: &BadResponses) {
        for (reason, requests) in other.iter() {
            self.record(reason, requests);
        }
    }
}

/// The reasons, the most frequent first, with their numbers if there are several: `the response's
/// chunked body is malformed (37), bytes after the end of the response (3)`.
impl fmt::Display for BadResponses {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all: Vec<_> = self.iter().collect();
        all.sort_by_key(|(_, requests)| Reverse(*requests));
        match &all[..] {
            [(reason, _)] => write!(out, "{reason}"),
            _ => out.write_str(
                &all.iter()
                    .map(|(reason, n)| format!("{reason} ({n})"))
                    .collect::<Vec<_>>()
                    .join(", "),
            ),
        }
    }
}

/// The lengths of responses whose content had the [wrong length](crate::Outcome::WrongLength).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrongLengths {
    /// Bytes that were expected.
    pub wanted_bytes: u64,
    /// Bytes of the shortest that was received.
    pub shortest_bytes: u64,
    /// Bytes of the longest that was received.
    pub longest_bytes: u64,
}

impl WrongLengths {
    /// A single response.
    pub fn of(wanted_bytes: u64, bytes: u64) -> WrongLengths {
        WrongLengths { wanted_bytes, shortest_bytes: bytes, longest_bytes: bytes }
    }

    /// Combines them with others of the same run and expected length.
    #[must_use]
    pub fn and(self, other: WrongLengths) -> WrongLengths {
        WrongLengths {
            wanted_bytes: self.wanted_bytes,
            shortest_bytes: self.shortest_bytes.min(other.shortest_bytes),
            longest_bytes: self.longest_bytes.max(other.longest_bytes),
        }
    }
}

/// `10240 bytes expected, 0 to 5120 received`. With all digits, because a length may be wrong by
/// one.
impl fmt::Display for WrongLengths {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WrongLengths { wanted_bytes, shortest_bytes, longest_bytes } = self;
        write!(out, "{wanted_bytes} byte{} expected, ", if *wanted_bytes == 1 { "" } else { "s" })?;
        if shortest_bytes == longest_bytes {
            write!(out, "{shortest_bytes} received")
        } else {
            write!(out, "{shortest_bytes} to {longest_bytes} received")
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn any_outcome() -> impl Strategy<Value = Outcome> {
        prop_oneof![
            (100u16..=999).prop_map(Outcome::Answered),
            (0..OTHERS.len()).prop_map(|i| OTHERS[i].0),
        ]
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

    const ALL: &[BadResponse] = BadResponse::VARIANTS;
    proptest! {
        #[test]
        fn every_bad_response_has_one_reason(reasons in prop::collection::vec((prop::sample::select(ALL), 0u64..5), 0..40)) {
            let mut all = BadResponses::default();
            for (reason, requests) in &reasons {
                all.record(*reason, *requests);
            }
            prop_assert_eq!(all.total(), reasons.iter().map(|(_, requests)| requests).sum::<u64>());
            prop_assert_eq!(all.total(), ALL.iter().map(|reason| all.of(*reason)).sum::<u64>());
            prop_assert!(all.iter().all(|(_, requests)| requests > 0));
            let text = serde_json::to_string(&all).unwrap();
            prop_assert_eq!(serde_json::from_str::<BadResponses>(&text).unwrap(), all);
        }
    }

    #[test]
    fn reasons_have_a_name_in_files_and_a_sentence_of_their_own() {
        let words: std::collections::BTreeSet<String> =
            ALL.iter().map(ToString::to_string).collect();
        assert_eq!(words.len(), ALL.len());
        for reason in ALL {
            assert_eq!(serde_json::to_string(reason).unwrap(), format!("\"{}\"", reason.name()));
        }
    }

    #[test]
    fn a_single_reason_has_no_number_and_lengths_are_exact() {
        let mut reasons = BadResponses::default();
        assert_eq!(reasons.to_string(), "");
        reasons.record(BadResponse::ContentLength, 37);
        let length = "the response's Content-Length is not a number, or there are two";
        assert_eq!(reasons.to_string(), length);
        reasons.record(BadResponse::TrailingBytes, 3);
        reasons.record(BadResponse::NotHttp, 1);
        let rest = "bytes after the end of the response (3), the response is not HTTP/1.1 (1)";
        assert_eq!(reasons.to_string(), format!("{length} (37), {rest}"));
        let one = WrongLengths::of(10_240, 10_239);
        assert_eq!(one.to_string(), "10240 bytes expected, 10239 received");
        assert_eq!(
            one.and(WrongLengths::of(10_240, 0)).to_string(),
            "10240 bytes expected, 0 to 10239 received"
        );
    }
}
