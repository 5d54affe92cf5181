//! All that was asked of a sweep, every default made explicit.

mod server;
mod stream;

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::Threshold;

pub use self::server::{App, ServerKind, ServerPlan, Socket, Threads};
pub use self::stream::{LatePolicy, Stop, StreamPlan, Timestamps, Timing};

/// What `longtail sweep` was asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The server and how to start it.
    pub server: ServerPlan,
    /// The stream of requests.
    pub stream: StreamPlan,
    /// One run each: connections / slots.
    pub multiples: Vec<f64>,
    /// One run each, in place of the multiples where there are any: connections, in total.
    pub connections: Vec<u32>,
    /// How often the whole list is run, each time on a fresh server.
    pub repeat: u32,
    /// Whether each run is followed by a wait until the server is idle again.
    pub cool_down: bool,
    /// Whether the generator's own limit is measured first.
    pub calibrate: bool,
    /// Whether a short probe with and without keep-alive tells the order of service first.
    pub probe_discipline: bool,
    /// `--generator`: the other generator that makes the load, by its program's name; `None` is our own.
    pub with: Option<String>,
    /// `--inspect`: what is read of server and kernel while a run goes on.
    pub probe: Probe,
    /// `--statsd-listen`: where app and server find a statsd that is ours; port 0 is whichever is free. It is part of what is
    /// measured: they are told, and send.
    pub statsd_listen: Option<SocketAddr>,
    /// `--expect` and `--fail-if`: what each run must keep.
    pub thresholds: Vec<Threshold>,
}

/// What is read of server and kernel while a run goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Probe {
    /// Nothing.
    #[default]
    None,
    /// What everybody may read: sockets, processes, the server's statistics.
    Proc,
    /// That, and the kernel's tracepoints by BPF: each request's waits.
    Bpf,
    /// The most of these that rights and kernel allow and that does not cost too much.
    Auto,
}

/// What was read in the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeUsed {
    /// What.
    pub probe: Probe,
    /// Why the kernel's tracepoints were not listened to, where they might have been.
    pub why_no_bpf: Option<String>,
}

impl Plan {
    /// Multiple and connections of each run of a pass, on a server of so many slots. There is at least one connection.
    pub fn loads(&self, slots: u32) -> Vec<(f64, u32)> {
        let of_multiple = |multiple: &f64| (*multiple, ((multiple * f64::from(slots)).round() as u32).max(1));
        let of_connections = |n: &u32| (f64::from(*n) / f64::from(slots.max(1)), *n);
        if self.connections.is_empty() {
            self.multiples.iter().map(of_multiple).collect()
        } else {
            self.connections.iter().map(of_connections).collect()
        }
    }

    /// Load steps where no other are asked for: connections / slots.
    pub const MULTIPLES: [f64; 5] = [1.0, 1.5, 2.0, 3.0, 4.0];

    /// Runs, in total.
    pub fn runs(&self) -> usize {
        self.loads(1).len() * self.repeat as usize
    }
}

/// A word as a POSIX shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_only_where_a_shell_needs_it() {
        assert_eq!(quoted("-w2"), "-w2");
        assert_eq!(quoted("bundle exec puma"), "'bundle exec puma'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
