//! Checks of the answers, made off the lanes: they get the raw bytes of each answer and judge them in their own time.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::str::FromStr;

use engine::RequestRecord;
use minicbor::Decoder;
use minicbor::data::Type;
use sha2::{Digest as _, Sha256};

/// Different bodies, or counters, that are kept apart; more are only counted.
const KEPT: usize = 1_000_000;

/// What is expected of every good answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// This status.
    Status(u16),
    /// A body of so many bytes.
    Length(u64),
    /// A body with this SHA-256, in hexadecimal digits.
    Hash(String),
    /// The same body as all others.
    SameBody,
    /// A CBOR body with a counter: `{…, reply: {arg: <4 bytes, little endian>}}`.
    CborCounter,
}

impl Check {
    /// Whether the bytes of the answers are needed for it.
    pub(crate) fn needs_answers(&self) -> bool {
        !matches!(self, Check::Status(_))
    }
}

impl FromStr for Check {
    type Err = String;

    fn from_str(text: &str) -> Result<Check, String> {
        let check = match text.split_once('=').unwrap_or((text, "")) {
            ("status", value) => value.parse().ok().filter(|s| (100..=999).contains(s)).map(Check::Status),
            ("length", value) => value.parse().ok().map(Check::Length),
            ("sha256", hex) if hex.len() == 64 && hex.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
                Some(Check::Hash(hex.to_ascii_lowercase()))
            }
            ("same-body", "") => Some(Check::SameBody),
            ("cbor-counter", "") => Some(Check::CborCounter),
            _ => None,
        };
        check.ok_or_else(|| {
            format!("'{text}' is no check: write status=200, length=1024, sha256=HEX, same-body or cbor-counter")
        })
    }
}

fn sha256(body: &[u8]) -> String {
    Sha256::digest(body).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// One check and what it has seen.
pub(crate) struct Checker {
    check: Check,
    seen: SeenAnswers,
}

/// The answers that a check was made of.
#[derive(Default)]
struct SeenAnswers {
    checked: u64,
    wrong: u64,
    /// The first answer that was wrong.
    example: Option<String>,
    /// Different bodies, by their SHA-256.
    bodies: HashSet<String>,
    counters: HashSet<u32>,
    largest: Option<u32>,
    duplicates: u64,
}

impl Checker {
    pub(crate) fn new(check: Check) -> Checker {
        Checker { check, seen: SeenAnswers::default() }
    }

    /// Looks at one request's end. Only answers are checked; what had none is an error already.
    pub(crate) fn check(&mut self, record: &RequestRecord) {
        let model::Outcome::Answered(status) = record.exchange.outcome else { return };
        let wrong = match self.check {
            Check::Status(expected) => (status != expected).then(|| format!("status {status}")),
            _ if !record.exchange.outcome.is_good() => return,
            _ => match record.answer.as_deref().map(engine::response_body) {
                None => Some("more than 2 MiB, which is not looked into".to_owned()),
                Some(None) => Some("no body that can be read".to_owned()),
                Some(Some(body)) => self.wrong_body(&body),
            },
        };
        self.seen.checked += 1;
        if let Some(why) = wrong {
            self.seen.wrong += 1;
            self.seen.example.get_or_insert_with(|| format!("request {}: {why}", record.number));
        }
    }

    /// What is wrong with a body.
    fn wrong_body(&mut self, body: &[u8]) -> Option<String> {
        let (seen, bytes) = (&mut self.seen, body.len());
        match &self.check {
            Check::Status(_) => None,
            Check::Length(expected) => (bytes as u64 != *expected).then(|| format!("{bytes} bytes")),
            Check::Hash(expected) => (sha256(body) != *expected).then(|| format!("another body of {bytes} bytes")),
            Check::SameBody => {
                if seen.bodies.len() < KEPT {
                    seen.bodies.insert(sha256(body));
                }
                None
            }
            Check::CborCounter => {
                let Some(counter) = counter_of(body) else { return Some("no counter".to_owned()) };
                seen.largest = seen.largest.max(Some(counter));
                if seen.counters.len() < KEPT && !seen.counters.insert(counter) {
                    seen.duplicates += 1;
                }
                None
            }
        }
    }

    /// Whether it holds, and what was seen, in one line. What nothing was checked by does not hold.
    pub(crate) fn result(&self) -> (bool, String) {
        let SeenAnswers { checked, wrong, example, bodies, counters, largest, duplicates } = &self.seen;
        let example = example.as_ref().map(|example| format!(" ({example})")).unwrap_or_default();
        let right = checked - wrong;
        let text = match &self.check {
            Check::Status(status) => format!("status {status}: {right} of {checked} answers{example}"),
            Check::Length(length) => format!("{length} bytes: {right} of {checked} bodies{example}"),
            Check::Hash(_) => format!("sha256: {right} of {checked} bodies{example}"),
            Check::SameBody => format!("same body: {} different in {checked} answers{example}", bodies.len()),
            Check::CborCounter => {
                // Gaps below the largest: what was answered to others, or to us and lost.
                let smallest = counters.iter().min().copied().unwrap_or(0);
                let span = largest.map_or(0, |largest| u64::from(largest - smallest) + 1);
                let gaps = span.saturating_sub(counters.len() as u64);
                let largest = largest.map_or_else(|| "-".to_owned(), |largest| largest.to_string());
                format!(
                    "Max counter value seen: {largest} - in {checked} answers, {duplicates} duplicates, {gaps} gaps, {wrong} without{example}"
                )
            }
        };
        (*checked > 0 && *wrong == 0 && bodies.len() <= 1 && *duplicates == 0, text)
    }
}

/// The counter of a load sink's body, `{"reply": {"arg": counter}}`: four bytes, as such or one by one, or a number.
fn counter_of(body: &[u8]) -> Option<u32> {
    let reply = cbor_entry(Decoder::new(body), "reply")?;
    let mut counter = cbor_entry(reply, "arg")?;
    match counter.datatype().ok()? {
        Type::Bytes => Some(u32::from_le_bytes(counter.bytes().ok()?.try_into().ok()?)),
        Type::Array | Type::ArrayIndef => {
            let bytes: Vec<u8> = counter.array_iter().ok()?.collect::<Result<_, _>>().ok()?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        }
        _ => counter.u32().ok(),
    }
}

/// What a CBOR map has by that name.
fn cbor_entry<'b>(mut map: Decoder<'b>, name: &str) -> Option<Decoder<'b>> {
    let entries = map.map().ok()?;
    for _ in 0..entries.unwrap_or(u64::MAX) {
        if map.str().ok()? == name {
            return Some(map);
        }
        map.skip().ok()?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Exchange, Nanos, Outcome};

    fn answer(number: u64, body: &[u8]) -> RequestRecord {
        let mut raw = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
        raw.extend_from_slice(body);
        let exchange = Exchange {
            due: Nanos::ZERO,
            sent: Nanos::ZERO,
            ended: Nanos(1),
            received_bytes: raw.len() as u32,
            outcome: Outcome::Answered(200),
        };
        RequestRecord { number, exchange, reason: None, answer: Some(raw.into()), trace: None }
    }

    fn counted(counter: u32) -> Vec<u8> {
        let mut body = b"\xa2\x66status\x67replied\x65reply\xa1\x63arg\x44".to_vec();
        body.extend_from_slice(&counter.to_le_bytes());
        body
    }

    fn result(check: &str, bodies: &[Vec<u8>]) -> (bool, String) {
        let mut checker = Checker::new(check.parse().unwrap());
        for (number, body) in bodies.iter().enumerate() {
            checker.check(&answer(number as u64, body));
        }
        checker.result()
    }

    #[test]
    fn a_rising_counter_is_followed() {
        let bodies: Vec<_> = [5, 6, 8, 8, 9].map(counted).to_vec();
        let (holds, text) = result("cbor-counter", &bodies);
        assert_eq!(text, "Max counter value seen: 9 - in 5 answers, 1 duplicates, 1 gaps, 0 without");
        assert!(!holds);
        assert!(result("cbor-counter", &[counted(1), counted(2)]).0);
        assert!(!result("cbor-counter", &[b"ok".to_vec()]).0);
    }

    #[test]
    fn bodies_are_compared_whole() {
        assert!(result("same-body", &[b"a".to_vec(), b"a".to_vec()]).0);
        assert!(!result("same-body", &[b"a".to_vec(), b"b".to_vec()]).0);
        assert!(result("length=2", &[b"ok".to_vec()]).0);
        let (holds, text) = result("length=2", &[b"ok".to_vec(), b"oops".to_vec()]);
        assert_eq!((holds, text.as_str()), (false, "2 bytes: 1 of 2 bodies (request 1: 4 bytes)"));
        let hash = "2689367b205c16ce32ed4200942b8b8b1e262dfc70d9bc9fbc77c49699a4f1df";
        assert!(result(&format!("sha256={hash}"), &[b"ok".to_vec()]).0);
    }
}
