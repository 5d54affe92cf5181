//! Examples of responses that broke off, could not be parsed, or were the last on a connection that
//! was closed without notice, so that a message can say what arrived.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Outcome, counts};

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedEnd {
    /// After this many bytes.
    Bytes(u64),
    /// By its last chunk.
    LastChunk,
    /// By the end of the connection.
    EndOfConnection,
}

/// How much of a response had arrived when its request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartialResponse {
    /// Part of the head.
    Head {
        /// Bytes that arrived.
        bytes: u64,
    },
    /// The whole head and part of the content.
    Body {
        /// The status.
        status: u16,
        /// Bytes that arrived.
        bytes: u64,
        /// How the end would have been found.
        until: ExpectedEnd,
    },
}

impl PartialResponse {
    /// What arrived and how it ended, in words.
    fn in_words(self, outcome: Outcome) -> String {
        let verb = match outcome {
            Outcome::Closed => "then ended",
            Outcome::Reset => "then was reset",
            _ => "then stopped",
        };
        match self {
            PartialResponse::Head { bytes } => {
                format!("a response began, {verb} after {} of its head", bytes_of(bytes))
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
                let received = bytes_of(bytes);
                format!(
                    "answered {status} without a length, {verb} after {received}: only the \
                     connection's end would end the body"
                )
            }
        }
    }
}

fn bytes_of(count: u64) -> String {
    format!("{count} byte{}", if count == 1 { "" } else { "s" })
}

/// Requests that failed in the middle of their response, all with the same outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialResponses {
    /// How many.
    pub requests: u64,
    /// The shortest part that arrived for one of them.
    pub example: PartialResponse,
}

/// Bytes needed to recognize another protocol.
const FIRST_BYTES: usize = 24;

/// The first bytes of a response that is not HTTP/1.1; hexadecimal in files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FirstBytes(Vec<u8>);

impl FirstBytes {
    /// The first of these bytes.
    pub fn of(bytes: &[u8]) -> FirstBytes {
        FirstBytes(bytes[..bytes.len().min(FIRST_BYTES)].to_vec())
    }

    /// The protocol, if it can be recognized.
    fn protocol(&self) -> Option<&'static str> {
        let bytes = &self.0[..];
        // A frame header: three bytes of length, type, flags, and stream 0 (RFC 9113, section 4.1).
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

    /// Whether they are from a TLS server.
    pub fn is_tls(&self) -> bool {
        self.protocol() == Some("TLS")
    }

    /// Whether they are HTTP/2.
    pub fn is_http_2(&self) -> bool {
        self.protocol() == Some("HTTP/2")
    }
}

/// Each byte in two digits.
fn hexadecimal(bytes: &[u8]) -> Vec<String> {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Text in quotes, other bytes in hexadecimal, and the protocol.
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

/// Kept-alive connections that the server closed, and after how many responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionClosings {
    /// How many.
    pub connections: u64,
    /// The fewest responses on one of them.
    pub fewest_answers: u64,
    /// The most responses on one of them.
    pub most_answers: u64,
}

/// Fewer closings after the same number of responses may be chance.
const LEAST_CLOSINGS: u64 = 3;

impl ConnectionClosings {
    /// One connection, closed after so many responses.
    pub fn one(answers: u64) -> ConnectionClosings {
        ConnectionClosings { connections: 1, fewest_answers: answers, most_answers: answers }
    }

    /// The number of responses after which the server closes each connection, if it is always the
    /// same.
    pub fn every(self) -> Option<u64> {
        let is_always = self.fewest_answers == self.most_answers;
        (is_always && self.connections >= LEAST_CLOSINGS).then_some(self.fewest_answers)
    }

    /// These and others.
    #[must_use]
    pub fn and(self, other: ConnectionClosings) -> ConnectionClosings {
        ConnectionClosings {
            connections: self.connections + other.connections,
            fewest_answers: self.fewest_answers.min(other.fewest_answers),
            most_answers: self.most_answers.max(other.most_answers),
        }
    }
}

/// A sentence about closings without notice, such as `the server closes each connection after its
/// 10th response without announcing it (Connection: close)`.
impl fmt::Display for ConnectionClosings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConnectionClosings { fewest_answers: fewest, most_answers: most, .. } = self;
        match self.every() {
            Some(every) => write!(
                out,
                "the server closes each connection after its {} response without announcing it \
                 (Connection: close)",
                ordinal(every)
            ),
            None if fewest == most => write!(
                out,
                "the server closed connections after {fewest} responses without announcing it \
                 (Connection: close)"
            ),
            None => write!(
                out,
                "the server closed connections after {fewest} to {most} responses without \
                 announcing it (Connection: close)"
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

/// Examples of what arrived instead of good responses. The smallest example is kept, so the order
/// in which lanes are merged does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BrokenResponses {
    /// Measured requests that failed in the middle of their response, by outcome.
    pub half: BTreeMap<String, PartialResponses>,
    /// How a measured response began that is not HTTP/1.1.
    pub first_bytes: Option<FirstBytes>,
    /// Connections that the server closed without announcing it.
    pub silent_closings: Option<ConnectionClosings>,
}

impl BrokenResponses {
    /// Whether there are no examples.
    pub fn is_empty(&self) -> bool {
        *self == BrokenResponses::default()
    }

    /// Records a request that failed after this part of its response.
    #[cold]
    pub fn record_half(&mut self, outcome: Outcome, part: PartialResponse) {
        self.add_half(counts::name(outcome), PartialResponses { requests: 1, example: part });
    }

    /// Records how a response began that is not HTTP/1.1.
    #[cold]
    pub fn record_first_bytes(&mut self, bytes: &[u8]) {
        self.add_first_bytes(FirstBytes::of(bytes));
    }

    /// Records that the server closed a connection after this many responses without announcing it
    /// in the last one.
    #[cold]
    pub fn record_silent_closing(&mut self, answers: u64) {
        self.add_silent_closings(ConnectionClosings::one(answers));
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

    fn add_silent_closings(&mut self, more: ConnectionClosings) {
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

    /// What is known about the `requests` that failed with this outcome.
    pub fn reason(&self, outcome: Outcome, requests: u64) -> Option<String> {
        if let Some(half) = self.half.get(&counts::name(outcome)) {
            let told = half.example.in_words(outcome);
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
    fn what_arrived_is_described_in_a_sentence() {
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
                "a response began, then stopped after 17 bytes of its head",
            ),
        ] {
            assert_eq!(part.in_words(outcome), told);
        }
    }

    #[test]
    fn the_shortest_part_is_the_example_and_regular_closings_have_a_number() {
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
        assert!(broken.reason(Outcome::Reset, 1).unwrap().contains("after its 10th response"));
        broken.record_silent_closing(4);
        assert!(broken.reason(Outcome::Reset, 1).unwrap().contains("after 4 to 10 responses"));
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
