//! What is known of responses that broke off, could not be read, or were the last of a connection
//! that said nothing of its end: an example of each, so that a person can be told what came.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Outcome, counts};

/// How the end of a body was to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedEnd {
    /// It was to have this many bytes.
    Bytes(u64),
    /// By its last chunk.
    LastChunk,
    /// By the end of the connection.
    EndOfConnection,
}

/// How far a response had come when its request ended without all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartialResponse {
    /// Bytes of a head that had not ended.
    Head {
        /// So many.
        bytes: u64,
    },
    /// The whole head, and bytes of the content.
    Body {
        /// The status.
        status: u16,
        /// So many.
        bytes: u64,
        /// How the end was to be found.
        until: ExpectedEnd,
    },
}

impl PartialResponse {
    /// What came, and how it ended, in words.
    fn told(self, outcome: Outcome) -> String {
        let verb = match outcome {
            Outcome::Closed => "then ended",
            Outcome::Reset => "then was reset",
            _ => "then stopped",
        };
        match self {
            PartialResponse::Head { bytes } => {
                format!("an answer began, {verb} after {} of its head", bytes_of(bytes))
            }
            PartialResponse::Body { status, bytes, until: ExpectedEnd::Bytes(all) } => {
                format!("answered {status}, {verb} after {bytes} of {}", bytes_of(all))
            }
            PartialResponse::Body { status, bytes, until: ExpectedEnd::LastChunk } => {
                let end = if outcome == Outcome::TimedOut {
                    "its chunked body had not ended (a stream has no end)"
                } else {
                    "the last chunk of its body is missing"
                };
                format!("answered {status}, {verb} after {}: {end}", bytes_of(bytes))
            }
            PartialResponse::Body { status, bytes, until: ExpectedEnd::EndOfConnection } => {
                let came = bytes_of(bytes);
                format!(
                    "answered {status} without a length, {verb} after {came}: only the connection's end would end the body"
                )
            }
        }
    }
}

fn bytes_of(count: u64) -> String {
    format!("{count} byte{}", if count == 1 { "" } else { "s" })
}

/// Requests that ended after a part of their response, all with one outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialResponses {
    /// How many.
    pub requests: u64,
    /// The least that came to one of them.
    pub example: PartialResponse,
}

/// Bytes that it takes to tell another protocol.
const FIRST_BYTES: usize = 24;

/// The first bytes of what was to be a response and is not HTTP/1.1; in a file in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FirstBytes(Vec<u8>);

impl FirstBytes {
    /// The first of these.
    pub fn of(bytes: &[u8]) -> FirstBytes {
        FirstBytes(bytes[..bytes.len().min(FIRST_BYTES)].to_vec())
    }

    /// Whose they are, where they tell.
    fn protocol(&self) -> Option<&'static str> {
        let bytes = &self.0[..];
        // A frame's header: three bytes of length, its type, flags, and stream 0 (RFC 9113 section
        // 4.1).
        let is_frame = matches!(bytes, [_, _, _, 4 | 7, _, 0, 0, 0, 0, ..]);
        let starts = |text: &str| bytes.starts_with(text.as_bytes());
        match bytes {
            [0x15 | 0x16, 3, ..] => Some("TLS"),
            _ if is_frame => Some("HTTP/2"),
            [_, _, 0, 0, 0x0a, ..] => Some("MySQL"),
            _ if starts("HTTP/") && !starts("HTTP/1.") => Some("another version of HTTP"),
            _ if starts("SSH-") => Some("SSH"),
            _ if starts("220") => Some("SMTP or FTP"),
            _ if starts("-ERR") || starts("-DENIED") => Some("Redis"),
            _ if starts("+OK") => Some("POP3 or Redis"),
            _ if starts("* OK") => Some("IMAP"),
            _ if starts("<") => Some("a document without a head (HTTP/0.9)"),
            _ => None,
        }
    }

    /// Whether a TLS server says so.
    pub fn is_tls(&self) -> bool {
        self.protocol() == Some("TLS")
    }

    /// Whether they are of HTTP/2.
    pub fn is_http_2(&self) -> bool {
        self.protocol() == Some("HTTP/2")
    }
}

/// Each byte in two digits.
fn hexadecimal(bytes: &[u8]) -> Vec<String> {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Text in quotes, other bytes in hexadecimal, and whose they are.
impl fmt::Display for FirstBytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_text = |byte: &u8| matches!(byte, b' '..=b'~' | b'\r' | b'\n' | b'\t');
        if self.0.iter().all(is_text) {
            write!(out, "\"{}\"", self.0.escape_ascii())?;
        } else {
            let shown = hexadecimal(&self.0[..self.0.len().min(12)]);
            out.write_str(&shown.join(" "))?;
        }
        match self.protocol() {
            Some(protocol) => write!(out, ", which is {protocol}"),
            None => Ok(()),
        }
    }
}

impl From<FirstBytes> for String {
    fn from(bytes: FirstBytes) -> String {
        hexadecimal(&bytes.0).concat()
    }
}

impl TryFrom<String> for FirstBytes {
    type Error = String;

    fn try_from(text: String) -> Result<FirstBytes, String> {
        let pair =
            |at: usize| text.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
        let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(pair).collect();
        bytes.map(FirstBytes).ok_or_else(|| format!("'{text}' is not hexadecimal"))
    }
}

/// Kept-alive connections that the server closed without announcing it (`Connection: close`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SilentClosings {
    /// How many.
    pub connections: u64,
    /// Responses that had come on one of them, at the least.
    pub fewest_answers: u64,
    /// And at the most.
    pub most_answers: u64,
}

/// Fewer closings after the same number of responses may be chance.
const A_HABIT: u64 = 3;

impl SilentClosings {
    /// The number of responses after which the server closes each connection, where there is one.
    pub fn every(self) -> Option<u64> {
        let is_habit = self.connections >= A_HABIT && self.fewest_answers == self.most_answers;
        is_habit.then_some(self.fewest_answers)
    }

    fn and(self, other: SilentClosings) -> SilentClosings {
        SilentClosings {
            connections: self.connections + other.connections,
            fewest_answers: self.fewest_answers.min(other.fewest_answers),
            most_answers: self.most_answers.max(other.most_answers),
        }
    }
}

/// `the server closes each connection after its 10th answer without saying so (Connection: close)`.
impl fmt::Display for SilentClosings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SilentClosings { fewest_answers: fewest, most_answers: most, .. } = self;
        match self.every() {
            Some(every) => write!(
                out,
                "the server closes each connection after its {} answer without saying so (Connection: close)",
                ordinal(every)
            ),
            None if fewest == most => write!(
                out,
                "the server closed connections after {fewest} answers without saying so (Connection: close)"
            ),
            None => write!(
                out,
                "the server closed connections after {fewest} to {most} answers without saying so (Connection: close)"
            ),
        }
    }
}

/// `1st`, `2nd`, `10th`.
pub fn ordinal(number: u64) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// Examples of what came in place of responses. Of several the least counts, so that the order in
/// which lanes are merged does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BrokenResponses {
    /// Measured requests that ended after a part of their response, by outcome.
    pub half: BTreeMap<String, PartialResponses>,
    /// What a measured response began with that is not HTTP/1.1.
    pub first_bytes: Option<FirstBytes>,
    /// Connections that the server closed without a word.
    pub silent_closings: Option<SilentClosings>,
}

impl BrokenResponses {
    /// Whether there is nothing of the kind.
    pub fn is_empty(&self) -> bool {
        *self == BrokenResponses::default()
    }

    /// A request ended so, after this part of its response.
    #[cold]
    pub fn record_half(&mut self, outcome: Outcome, part: PartialResponse) {
        self.add_half(counts::name(outcome), PartialResponses { requests: 1, example: part });
    }

    /// What was to be a response begins so.
    #[cold]
    pub fn record_first_bytes(&mut self, bytes: &[u8]) {
        self.add_first_bytes(FirstBytes::of(bytes));
    }

    /// The server has closed a connection after so many responses, and not said so in the last one.
    #[cold]
    pub fn record_silent_closing(&mut self, answers: u64) {
        self.add_silent_closings(SilentClosings {
            connections: 1,
            fewest_answers: answers,
            most_answers: answers,
        });
    }

    fn add_half(&mut self, outcome: String, more: PartialResponses) {
        let known = self.half.entry(outcome);
        known
            .and_modify(|known| {
                known.requests += more.requests;
                known.example = known.example.min(more.example);
            })
            .or_insert(more);
    }

    fn add_first_bytes(&mut self, bytes: FirstBytes) {
        if self.first_bytes.as_ref().is_none_or(|known| bytes < *known) {
            self.first_bytes = Some(bytes);
        }
    }

    fn add_silent_closings(&mut self, more: SilentClosings) {
        self.silent_closings = Some(self.silent_closings.map_or(more, |known| known.and(more)));
    }

    /// Adds another lane's.
    pub fn merge(&mut self, other: &BrokenResponses) {
        for (outcome, more) in &other.half {
            self.add_half(outcome.clone(), *more);
        }
        if let Some(bytes) = &other.first_bytes {
            self.add_first_bytes(bytes.clone());
        }
        if let Some(more) = other.silent_closings {
            self.add_silent_closings(more);
        }
    }

    /// What is known of the `requests` that ended so.
    pub fn reason(&self, outcome: Outcome, requests: u64) -> Option<String> {
        if let Some(half) = self.half.get(&counts::name(outcome)) {
            let told = half.example.told(outcome);
            let of_them = half.requests;
            return Some(if of_them < requests {
                format!("{told} ({of_them} of them)")
            } else {
                told
            });
        }
        let ends = matches!(outcome, Outcome::Closed | Outcome::Reset);
        self.silent_closings.filter(|_| ends).map(|closings| closings.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_is_told_in_a_sentence() {
        let body = |bytes, until| PartialResponse::Body { status: 200, bytes, until };
        for (part, outcome, told) in [
            (
                body(2, ExpectedEnd::Bytes(5)),
                Outcome::Closed,
                "answered 200, then ended after 2 of 5 bytes",
            ),
            (
                body(2, ExpectedEnd::Bytes(5)),
                Outcome::Reset,
                "answered 200, then was reset after 2 of 5 bytes",
            ),
            (
                body(1, ExpectedEnd::LastChunk),
                Outcome::Closed,
                "answered 200, then ended after 1 byte: the last chunk of its body is missing",
            ),
            (
                PartialResponse::Head { bytes: 17 },
                Outcome::TimedOut,
                "an answer began, then stopped after 17 bytes of its head",
            ),
        ] {
            assert_eq!(part.told(outcome), told);
        }
    }

    #[test]
    fn the_least_that_came_is_the_example_and_a_habit_has_a_number() {
        let mut broken = BrokenResponses::default();
        for bytes in [7, 2] {
            let part = PartialResponse::Body { status: 200, bytes, until: ExpectedEnd::Bytes(9) };
            broken.record_half(Outcome::Closed, part);
        }
        assert_eq!(
            broken.reason(Outcome::Closed, 3).unwrap(),
            "answered 200, then ended after 2 of 9 bytes (2 of them)"
        );
        for _ in 0..3 {
            broken.record_silent_closing(10);
        }
        assert!(broken.reason(Outcome::Reset, 1).unwrap().contains("after its 10th answer"));
        broken.record_silent_closing(4);
        assert!(broken.reason(Outcome::Reset, 1).unwrap().contains("after 4 to 10 answers"));
        assert_eq!([1, 2, 3, 11, 22].map(ordinal), ["1st", "2nd", "3rd", "11th", "22nd"]);
    }

    #[test]
    fn first_bytes_are_shown_as_text_or_in_hexadecimal_and_survive_their_file() {
        for (bytes, shown) in [
            (
                &b"\x00\x00\x12\x04\x00\x00\x00\x00\x00"[..],
                "00 00 12 04 00 00 00 00 00, which is HTTP/2",
            ),
            (b"\x15\x03\x01\x00\x02\x02\x0a", "15 03 01 00 02 02 0a, which is TLS"),
            (b"SSH-2.0-OpenSSH_9.2\r\n", "\"SSH-2.0-OpenSSH_9.2\\r\\n\", which is SSH"),
            (b"hello", "\"hello\""),
        ] {
            let bytes = FirstBytes::of(bytes);
            assert_eq!(bytes.to_string(), shown);
            let file = serde_json::to_string(&bytes).unwrap();
            assert_eq!(serde_json::from_str::<FirstBytes>(&file).unwrap(), bytes);
        }
        assert!(serde_json::from_str::<FirstBytes>("\"0g\"").is_err());
    }
}
