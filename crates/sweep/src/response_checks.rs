//! Checks of the responses of a load (`--check`): their status, or their bodies: the length, the
//! hash, whether all are the same, or a counter that rises.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::str::FromStr;

use engine::RequestRecord;
use minicbor::Decoder;
use minicbor::data::Type;
use model::Outcome;
use ring::digest::{SHA256, digest};

/// The most different bodies, or counters, that are told apart.
const KEPT: usize = 1_000_000;

/// What is expected of every good response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseCheck {
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

impl ResponseCheck {
    /// Whether it needs the bytes of the responses.
    pub fn needs_responses(&self) -> bool {
        !matches!(self, ResponseCheck::Status(_))
    }

    /// The status that it wants.
    pub fn status(&self) -> Option<u16> {
        match self {
            ResponseCheck::Status(status) => Some(*status),
            ResponseCheck::Length(_)
            | ResponseCheck::Hash(_)
            | ResponseCheck::SameBody
            | ResponseCheck::CborCounter => None,
        }
    }
}

impl FromStr for ResponseCheck {
    type Err = String;

    fn from_str(text: &str) -> Result<ResponseCheck, String> {
        let check = match text.split_once('=').unwrap_or((text, "")) {
            ("status", value) => {
                value.parse().ok().filter(|s| (100..=999).contains(s)).map(ResponseCheck::Status)
            }
            ("length", value) => value.parse().ok().map(ResponseCheck::Length),
            ("sha256", hex)
                if hex.len() == 64 && hex.bytes().all(|digit| digit.is_ascii_hexdigit()) =>
            {
                Some(ResponseCheck::Hash(hex.to_ascii_lowercase()))
            }
            ("same-body", "") => Some(ResponseCheck::SameBody),
            ("cbor-counter", "") => Some(ResponseCheck::CborCounter),
            _ => None,
        };
        check.ok_or_else(|| {
            format!(
                "'{text}' is no check: write status=200, length=1024, sha256=HEX, same-body or \
                 cbor-counter"
            )
        })
    }
}

fn sha256(body: &[u8]) -> String {
    digest(&SHA256, body).as_ref().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// What a check has come to.
pub struct CheckedResponses {
    /// Whether it holds.
    pub holds: bool,
    /// What was seen, in one line.
    pub seen: String,
}

impl CheckedResponses {
    /// What was seen, and that the check failed if it did.
    pub fn line(&self) -> String {
        if self.holds { self.seen.clone() } else { format!("FAILED {}", self.seen) }
    }
}

/// One check and what it has seen.
pub struct ResponseChecker {
    check: ResponseCheck,
    checked: u64,
    wrong: u64,
    /// The first wrong response.
    example: Option<String>,
    /// Different bodies, by their SHA-256.
    bodies: HashSet<String>,
    counters: HashSet<u32>,
    largest: Option<u32>,
    duplicates: u64,
}

impl ResponseChecker {
    /// A check that has seen nothing yet.
    pub fn new(check: ResponseCheck) -> ResponseChecker {
        let bodies = HashSet::new();
        let counters = HashSet::new();
        ResponseChecker {
            check,
            checked: 0,
            wrong: 0,
            example: None,
            bodies,
            counters,
            largest: None,
            duplicates: 0,
        }
    }

    /// Checks a request's response, if there was one; a request without a response is counted as
    /// failed already.
    pub fn check(&mut self, record: &RequestRecord) {
        let Outcome::Answered(status) = record.exchange.outcome else { return };
        let wrong = match self.check {
            ResponseCheck::Status(expected) => {
                (status != expected).then(|| format!("status {status}"))
            }
            _ if !record.exchange.outcome.is_good() => return,
            _ => match record.response.as_deref().map(engine::response_body) {
                None => Some("more than 2 MiB, which is not looked into".to_owned()),
                Some(None) => Some("no body that can be read".to_owned()),
                Some(Some(body)) => self.wrong_body(&body),
            },
        };
        self.checked += 1;
        if let Some(why) = wrong {
            self.wrong += 1;
            self.example.get_or_insert_with(|| format!("request {}: {why}", record.number));
        }
    }

    /// What is wrong with a body.
    fn wrong_body(&mut self, body: &[u8]) -> Option<String> {
        let bytes = body.len();
        match &self.check {
            ResponseCheck::Status(_) => None,
            ResponseCheck::Length(expected) => {
                (bytes as u64 != *expected).then(|| format!("{bytes} bytes"))
            }
            ResponseCheck::Hash(expected) => {
                (sha256(body) != *expected).then(|| format!("another body of {bytes} bytes"))
            }
            ResponseCheck::SameBody => {
                if self.bodies.len() < KEPT {
                    self.bodies.insert(sha256(body));
                }
                None
            }
            ResponseCheck::CborCounter => {
                let Some(counter) = counter_of(body) else { return Some("no counter".to_owned()) };
                self.largest = self.largest.max(Some(counter));
                if self.counters.len() < KEPT && !self.counters.insert(counter) {
                    self.duplicates += 1;
                }
                None
            }
        }
    }

    /// Whether the check holds, and what was seen. Without any response it does not hold.
    pub fn result(&self) -> CheckedResponses {
        let ResponseChecker {
            check,
            checked,
            wrong,
            example,
            bodies,
            counters,
            largest,
            duplicates,
        } = self;
        let example = example.as_ref().map(|example| format!(" ({example})")).unwrap_or_default();
        let right = checked - wrong;
        let text = match check {
            ResponseCheck::Status(status) => {
                format!("status {status}: {right} of {checked} responses{example}")
            }
            ResponseCheck::Length(length) => {
                format!("{length} bytes: {right} of {checked} bodies{example}")
            }
            ResponseCheck::Hash(_) => format!("sha256: {right} of {checked} bodies{example}"),
            ResponseCheck::SameBody => {
                format!("same body: {} different in {checked} responses{example}", bodies.len())
            }
            ResponseCheck::CborCounter => {
                // Gaps below the largest counter: responses to other clients, or lost ones.
                let smallest = counters.iter().min().copied().unwrap_or(0);
                let span = largest.map_or(0, |largest| u64::from(largest - smallest) + 1);
                let gaps = span.saturating_sub(counters.len() as u64);
                let largest = largest.map_or_else(|| "-".to_owned(), |largest| largest.to_string());
                format!(
                    "Max counter value seen: {largest} - in {checked} responses, \
                     {duplicates} duplicates, {gaps} gaps, {wrong} without{example}"
                )
            }
        };
        let holds = *checked > 0 && *wrong == 0 && bodies.len() <= 1 && *duplicates == 0;
        CheckedResponses { holds, seen: text }
    }
}

/// The counter of a load sink's body, `{"reply": {"arg": counter}}`: a byte string of four bytes,
/// an array of them, or a number.
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

/// The value of the key `name` in a CBOR map.
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
    use model::{Exchange, Nanos, Outcome};

    use super::*;

    fn answer(number: u64, body: &[u8]) -> RequestRecord {
        let mut raw =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
        raw.extend_from_slice(body);
        let exchange = Exchange {
            due: Nanos::ZERO,
            sent: Nanos::ZERO,
            ended: Nanos(1),
            received_bytes: raw.len() as u32,
            outcome: Outcome::Answered(200),
        };
        RequestRecord { number, exchange, reason: None, response: Some(raw.into()), trace: None }
    }

    fn counted(counter: u32) -> Vec<u8> {
        let mut body = b"\xa2\x66status\x67replied\x65reply\xa1\x63arg\x44".to_vec();
        body.extend_from_slice(&counter.to_le_bytes());
        body
    }

    fn result(check: &str, bodies: &[Vec<u8>]) -> (bool, String) {
        let mut checker = ResponseChecker::new(check.parse().unwrap());
        for (number, body) in bodies.iter().enumerate() {
            checker.check(&answer(number as u64, body));
        }
        let CheckedResponses { holds, seen } = checker.result();
        (holds, seen)
    }

    #[test]
    fn a_rising_counter_is_followed() {
        let bodies: Vec<_> = [5, 6, 8, 8, 9].map(counted).to_vec();
        let (holds, text) = result("cbor-counter", &bodies);
        assert_eq!(
            text,
            "Max counter value seen: 9 - in 5 responses, 1 duplicates, 1 gaps, 0 without"
        );
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
