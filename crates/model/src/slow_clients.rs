//! Slow clients beside a load: what was asked for ([`SlowClients`]), and what became of them
//! ([`SlowClientCounts`]).
//!
//! They hold connections and, in some servers, threads. None of their requests is in the load's
//! figures.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Counts;

/// `--slow-clients`: how many clients, and how slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowClients {
    /// How many there are at any time.
    pub clients: u32,
    /// Bytes of a request that each sends per second, at most.
    #[serde(rename = "upload_bytes_per_s")]
    pub upload: u64,
    /// Bytes of a response that each reads per second, at most.
    #[serde(rename = "read_bytes_per_s")]
    pub read: u64,
    /// Bytes of the body that each posts; `None`: it sends the load's own requests.
    #[serde(rename = "body_bytes", default, skip_serializing_if = "Option::is_none")]
    pub body: Option<u64>,
}

/// A client on a bad mobile network.
const UPLOAD: u64 = 1_000;
const READ: u64 = 10_000;
/// More clients would need another kind of program.
const MOST_CLIENTS: u32 = 10_000;
/// The largest body that a slow client posts.
const LARGEST_BODY: u64 = 64_000_000;
/// The highest rate: such a client is not slow.
const HIGHEST: u64 = 1_000_000_000;

impl FromStr for SlowClients {
    type Err = String;

    fn from_str(text: &str) -> Result<SlowClients, String> {
        let (clients, rest) = text.split_once(':').unwrap_or((text, ""));
        let clients = clients.parse().ok().filter(|n| (1..=MOST_CLIENTS).contains(n));
        let clients = clients.ok_or_else(|| {
            format!(
                "'{text}' does not begin with a number of clients from 1 to {MOST_CLIENTS}: write \
                 20, or 20:upload=1kB/s,read=10kB/s"
            )
        })?;
        let mut slow = SlowClients { clients, upload: UPLOAD, read: READ, body: None };
        for setting in rest.split(',').filter(|setting| !setting.is_empty()) {
            let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
            match name {
                "upload" => slow.upload = bytes_per_second(value)?,
                "read" => slow.read = bytes_per_second(value)?,
                "body" => slow.body = Some(body_bytes(value)?),
                _ => {
                    return Err(format!(
                        "'{setting}' is not a setting of slow clients: write upload=1kB/s, \
                         read=10kB/s or body=20kB"
                    ));
                }
            }
        }
        Ok(slow)
    }
}

fn bytes_per_second(text: &str) -> Result<u64, String> {
    let bytes = text.strip_suffix("/s").and_then(bytes);
    bytes.filter(|bytes| (1..=HIGHEST).contains(bytes)).ok_or_else(|| {
        format!(
            "'{text}' is not a rate of bytes: write 500B/s, 1kB/s or 2.5MB/s (kB is 1000 bytes)"
        )
    })
}

fn body_bytes(text: &str) -> Result<u64, String> {
    bytes(text).filter(|bytes| *bytes <= LARGEST_BODY).ok_or_else(|| {
        format!("'{text}' is not the size of a body up to 64MB: write 500B, 20kB or 1MB")
    })
}

/// Units of bytes, the longer names first.
const UNITS: [(&str, u64); 3] = [("MB", 1_000_000), ("kB", 1_000), ("B", 1)];

fn bytes(text: &str) -> Option<u64> {
    let (number, factor) =
        UNITS.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))?;
    let number: f64 = number.trim().parse().ok()?;
    let bytes = (number * factor as f64).round();
    (bytes.is_finite() && bytes >= 0.0).then_some(bytes as u64)
}

/// `1 kB`, `2.5 MB`, `800 B`.
fn in_words(bytes: u64) -> String {
    let (unit, factor) = UNITS.iter().find(|(_, factor)| bytes >= *factor).unwrap_or(&UNITS[2]);
    format!("{} {unit}", bytes as f64 / *factor as f64)
}

/// `20 slow clients, sending at 1 kB/s and reading at 10 kB/s`.
impl fmt::Display for SlowClients {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clients = if self.clients == 1 { "client" } else { "clients" };
        let posting = self.body.map(|body| format!(" posts of {}", in_words(body)));
        write!(
            out,
            "{} slow {clients}, sending{} at {}/s and reading at {}/s",
            self.clients,
            posting.unwrap_or_default(),
            in_words(self.upload),
            in_words(self.read)
        )
    }
}

/// What became of the slow clients' connections, of which each has one request. Each connection
/// that was opened is in exactly one of the counts below it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowClientCounts {
    /// Connections opened.
    pub opened: u64,
    /// Whole responses, by status.
    pub responses: Counts,
    /// Connections that the server closed before the whole request was sent, without a response.
    pub closed_during_request: u64,
    /// Connections that the server closed after the whole request, before the response was whole.
    pub closed_during_response: u64,
    /// Connections on which something other than HTTP arrived.
    pub not_http: u64,
    /// Connections that were still in use when the load ended.
    pub unfinished: u64,
    /// Connects that failed; they are in no other count.
    pub not_opened: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes received.
    pub received_bytes: u64,
}

impl SlowClientCounts {
    /// Whole responses that are good: 2xx and 3xx.
    pub fn completed(&self) -> u64 {
        self.responses.good()
    }

    /// Connections that the server closed without a whole response.
    pub fn closed_by_server(&self) -> u64 {
        self.closed_during_request + self.closed_during_response
    }

    /// Connections in any count but [`SlowClientCounts::opened`]: always as many as were opened.
    pub fn accounted(&self) -> u64 {
        self.responses.total() + self.closed_by_server() + self.not_http + self.unfinished
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_have_rates_and_may_post_a_body() {
        for (text, in_words) in [
            ("20", "20 slow clients, sending at 1 kB/s and reading at 10 kB/s"),
            ("1:upload=50B/s", "1 slow client, sending at 50 B/s and reading at 10 kB/s"),
            (
                "5:read=2.5MB/s,upload=800B/s,body=20kB",
                "5 slow clients, sending posts of 20 kB at 800 B/s and reading at 2.5 MB/s",
            ),
        ] {
            assert_eq!(text.parse::<SlowClients>().unwrap().to_string(), in_words);
        }
        for text in [
            "",
            "0",
            "x",
            "10001",
            "5:upload",
            "5:upload=1kB",
            "5:upload=0B/s",
            "5:speed=1kB/s",
            "5:read=1GB/s",
            "5:body=65MB",
            "5:body=-1B",
            "5:upload=nanB/s",
        ] {
            assert!(text.parse::<SlowClients>().is_err(), "{text}");
        }
    }
}
