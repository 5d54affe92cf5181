//! All that was asked of a sweep, every default made explicit, and the command line that asks for it again.

mod server;
mod stream;

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::Threshold;

pub(crate) use self::server::server_words;
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<String>,
    /// `--inspect`: what is read of server and kernel while a run goes on.
    pub probe: Probe,
    /// `--statsd-listen`: where app and server find a statsd that is ours; port 0 is whichever is free. It is part of what is
    /// measured: they are told, and send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statsd_listen: Option<SocketAddr>,
    /// `--expect` and `--fail-if`: what each run must keep.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<Threshold>,
}

/// What is read of server and kernel while a run goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_no_bpf: Option<String>,
}

impl Probe {
    /// The flag that asks for this, and for the app's own stamps, where `default` is what no flag asks for.
    pub(crate) fn word(self, default: Probe, asks_app: bool) -> Option<String> {
        let probe = match self {
            Probe::Bpf => "kernel".to_owned(),
            probe => probe.to_string(),
        };
        let words: Vec<String> =
            (self != default).then_some(probe).into_iter().chain(asks_app.then(|| "app".to_owned())).collect();
        (!words.is_empty()).then(|| format!("--inspect={}", words.join(",")))
    }
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

    /// The arguments after `longtail` that ask for this plan, without defaults. Parsing them gives the plan again.
    pub fn arguments(&self) -> Vec<String> {
        let mut words = vec!["sweep".to_owned()];
        let server = &self.server;
        words.extend(server_words(server));
        words.extend((server.socket != Socket::Tcp4).then(|| format!("-s{}", server.socket)));
        words.extend(self.stream.words());
        if !self.connections.is_empty() {
            let connections: Vec<String> = self.connections.iter().map(u32::to_string).collect();
            words.push(format!("--connections={}", connections.join(",")));
        } else if self.multiples != Plan::MULTIPLES {
            let multiples: Vec<String> = self.multiples.iter().map(f64::to_string).collect();
            words.push(format!("--multiples={}", multiples.join(",")));
        }
        words.extend((self.repeat != 1).then(|| format!("--repeat={}", self.repeat)));
        words.extend((!self.cool_down).then(|| "--no-cool-down".to_owned()));
        words.extend(self.probe_discipline.then(|| "--probe-discipline".to_owned()));
        // Another generator has no ceiling of ours.
        words.extend((!self.calibrate && self.with.is_none()).then(|| "--no-calibrate".to_owned()));
        words.extend(self.with.as_ref().map(|with| format!("--generator={with}")));
        // Another generator's runs are not inspected.
        let default = if self.with.is_some() { Probe::None } else { Probe::Auto };
        words.extend(self.probe.word(default, self.stream.anatomy));
        words.extend(self.statsd_listen.map(|address| format!("--statsd-listen={address}")));
        words.extend(self.thresholds.iter().map(Threshold::flag));
        if let ServerKind::Command { argv, slots, url } = &server.kind {
            words.extend([format!("--slots={slots}"), format!("--url={url}"), "--".to_owned()]);
            words.extend(argv.iter().cloned());
        }
        words
    }

    /// The whole command line, quoted for a shell.
    pub fn command_line(&self) -> String {
        command_line(&self.arguments())
    }
}

/// `longtail` and its arguments, quoted for a shell.
pub(crate) fn command_line(arguments: &[String]) -> String {
    std::iter::once("longtail".to_owned())
        .chain(arguments.iter().map(|word| quoted(word)))
        .collect::<Vec<_>>()
        .join(" ")
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
