//! All that was asked of a sweep, every default made explicit, and the command line that asks for it again.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::anatomy::STAMPS;
use crate::{Body, Cpus, Nanos, Timestamps};

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
    #[serde(default)]
    pub connections: Vec<u32>,
    /// How often the whole list is run, each time on a fresh server.
    pub repeat: u32,
    /// Whether each run is followed by a wait until the server is idle again.
    pub cool_down: bool,
    /// Whether the generator's own limit is measured first.
    pub calibrate: bool,
    /// Whether a short probe with and without keep-alive tells the order of service first.
    #[serde(default)]
    pub probe_discipline: bool,
    /// `--with`: the other generator that makes the load, by its program's name; `None` is our own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<String>,
    /// `--probe`: what is read of server and kernel while a run goes on.
    #[serde(default)]
    pub probe: Probe,
    /// `--statsd-listen`: where app and server find a statsd that is ours; port 0 is whichever is free. It is part of what is
    /// measured: they are told, and send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statsd_listen: Option<SocketAddr>,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_no_bpf: Option<String>,
}

impl fmt::Display for Probe {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Probe::None => "none",
            Probe::Proc => "proc",
            Probe::Bpf => "bpf",
            Probe::Auto => "auto",
        })
    }
}

/// The server and how to start it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerPlan {
    /// Which server.
    pub kind: ServerKind,
    /// `-w`: worker processes, 0 for single mode; `None` leaves it to the config file.
    pub workers: Option<u32>,
    /// `-t`: threads a worker; `None` leaves it to the config file.
    pub threads: Option<Threads>,
    /// `-r`: the rackup file; `None` is an app that longtail brings.
    pub rackup: Option<PathBuf>,
    /// `--app`: which of them.
    #[serde(default)]
    pub app: App,
    /// `-C`: Puma's config file.
    pub config: Option<PathBuf>,
    /// `-Y`: start Ruby with YJIT.
    pub yjit: bool,
    /// `-s`: the kind of socket to bind.
    pub socket: Socket,
    /// `--server-cpus`: the processors that it may run on; `None` where it may run wherever longtail may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Cpus>,
}

/// Which server to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ServerKind {
    /// Puma, by this command (words split as a shell does at spaces), or the one that is found.
    Puma {
        /// `--puma`: the command that starts it.
        command: Option<String>,
    },
    /// The server inside longtail.
    Builtin,
    /// Any other command that serves `url` with `slots` slots.
    Command {
        /// Program and arguments.
        argv: Vec<String>,
        /// What it can process at once.
        slots: u32,
        /// Where it will answer.
        url: String,
    },
}

/// The apps that longtail brings, for a Puma without a rackup file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum App {
    /// `servers/sleep.ru`: Rack alone.
    #[default]
    Sleep,
    /// `servers/rails`: an API in Rails, which must be installed.
    Rails,
    /// `servers/bodies.ru`: Rack alone, bodies of four kinds and any size.
    Bodies,
}

/// Threads of one Puma worker, as `-t MIN:MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Threads {
    /// Threads it starts with.
    pub min: u32,
    /// Threads it grows to.
    pub max: u32,
}

/// Why a text is not a number of threads.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{0}' is not a number of threads: write MIN:MAX such as 5:5 or 0:16, the maximum at least 1")]
pub struct BadThreads(String);

impl FromStr for Threads {
    type Err = BadThreads;

    fn from_str(text: &str) -> Result<Threads, BadThreads> {
        let bad = || BadThreads(text.to_owned());
        let (min, max) = text.split_once(':').unwrap_or((text, text));
        let min = min.parse().map_err(|_| bad())?;
        let max = max.parse().map_err(|_| bad())?;
        if max == 0 || min > max { Err(bad()) } else { Ok(Threads { min, max }) }
    }
}

impl fmt::Display for Threads {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.min, self.max)
    }
}

/// The kind of socket the server is bound to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Socket {
    /// IPv4, 127.0.0.1 unless `PUMA_TEST_HOST4` says otherwise.
    #[default]
    Tcp4,
    /// IPv6, `::1` unless `PUMA_TEST_HOST6` says otherwise.
    Tcp6,
    /// TLS over IPv4.
    Ssl4,
    /// TLS over IPv6.
    Ssl6,
    /// A Unix socket in the file system.
    Unix,
    /// A Unix socket in Linux's abstract namespace.
    Aunix,
}

impl Socket {
    /// Whether it is TCP with nothing on top, which every server can bind.
    pub fn is_plain_tcp(self) -> bool {
        matches!(self, Socket::Tcp4 | Socket::Tcp6)
    }

    /// Whether it is no TCP at all.
    pub fn is_unix(self) -> bool {
        matches!(self, Socket::Unix | Socket::Aunix)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Socket::Tcp4 => "tcp4",
            Socket::Tcp6 => "tcp6",
            Socket::Ssl4 => "ssl4",
            Socket::Ssl6 => "ssl6",
            Socket::Unix => "unix",
            Socket::Aunix => "aunix",
        }
    }
}

impl fmt::Display for Socket {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// The stream of requests of each run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamPlan {
    /// `-d`: how long the app is asked to hold a thread; the theory's service time. `None`: unknown, measured first.
    #[serde(rename = "delay_ns")]
    pub delay: Option<Nanos>,
    /// `--path`: what is requested; `None` is `/sleep<delay>`, or the body's.
    pub path: Option<String>,
    /// `--body`: what every answer is to carry; `None`: whatever the path brings.
    #[serde(default)]
    pub body: Option<Body>,
    /// Not `-k`: whether a connection carries more than one request.
    pub keep_alive: bool,
    /// When a run ends.
    pub stop: Stop,
    /// Load before the measured window, not measured.
    #[serde(rename = "warm_up_ns")]
    pub warm_up: Nanos,
    /// An answer that takes longer is given up and counted as timed out.
    #[serde(rename = "timeout_ns")]
    pub timeout: Nanos,
    /// Threads of the generator.
    pub lanes: u32,
    /// Whose clock says when an answer came.
    #[serde(default)]
    pub timestamps: Timestamps,
    /// The response header in which a worker names itself.
    pub worker_header: String,
    /// `--anatomy`: whether the app is asked when it began and ended.
    #[serde(default)]
    pub anatomy: bool,
}

impl StreamPlan {
    /// What is requested.
    pub fn target_path(&self) -> String {
        match (&self.path, self.body, self.delay) {
            (Some(path), _, _) => path.clone(),
            (None, Some(body), _) => format!("/{body}"),
            (None, None, Some(delay)) => format!("/sleep{}", delay.as_secs_f64()),
            (None, None, None) => "/".to_owned(),
        }
    }

    /// Headers that go with it: a body and its delay are asked for as Puma's own apps understand it too.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let ask = self.anatomy.then(|| (STAMPS, "1".to_owned()));
        let Some(body) = self.body else { return ask.into_iter().collect() };
        let delay = self.delay.filter(|delay| *delay > Nanos::ZERO);
        let delay = delay.map(|delay| ("dly", delay.as_secs_f64().to_string()));
        std::iter::once(("body-conf", body.to_string())).chain(delay).chain(ask).collect()
    }

    /// The flags that ask for it; `length` is the one that says how long a run is.
    pub(crate) fn words(&self, length: &str) -> Vec<String> {
        let mut words = Vec::new();
        words.extend(self.delay.map(|d| format!("-d{d}")));
        words.extend(self.path.iter().flat_map(|path| ["--path".to_owned(), path.clone()]));
        words.extend(self.body.map(|body| format!("--body={body}")));
        words.extend((!self.keep_alive).then(|| "-k".to_owned()));
        words.push(match self.stop {
            Stop::After(time) => format!("{length}{time}"),
            Stop::RequestsPerConnection(n) => format!("-R{n}"),
        });
        words.push(format!("--warm-up={}", self.warm_up));
        words.push(format!("--timeout={}", self.timeout));
        words.push(format!("--lanes={}", self.lanes));
        words.push(format!("--timestamps={}", self.timestamps));
        words.push(format!("--worker-header={}", self.worker_header));
        words.extend(self.anatomy.then(|| "--anatomy".to_owned()));
        words
    }
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// No request becomes due after this time (warm-up not included); those out are waited for.
    #[serde(rename = "after_ns")]
    After(Nanos),
    /// Each connection makes this many requests (warm-up not included).
    RequestsPerConnection(u64),
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

    /// Runs, in total.
    pub fn runs(&self) -> usize {
        self.loads(1).len() * self.repeat as usize
    }

    /// The arguments after `longtail` that ask for this plan. Parsing them gives the plan again.
    pub fn arguments(&self) -> Vec<String> {
        let mut words = vec!["sweep".to_owned()];
        let server = &self.server;
        words.extend(server_words(server));
        words.push(format!("-s{}", server.socket));
        words.extend(self.stream.words("--for="));
        if self.connections.is_empty() {
            let multiples: Vec<String> = self.multiples.iter().map(f64::to_string).collect();
            words.push(format!("--multiples={}", multiples.join(",")));
        } else {
            let connections: Vec<String> = self.connections.iter().map(u32::to_string).collect();
            words.push(format!("--connections={}", connections.join(",")));
        }
        words.push(format!("--repeat={}", self.repeat));
        words.extend((!self.cool_down).then(|| "--no-cool-down".to_owned()));
        words.extend(self.probe_discipline.then(|| "--probe-discipline".to_owned()));
        // Another generator has no ceiling of ours.
        words.extend((!self.calibrate && self.with.is_none()).then(|| "--no-calibrate".to_owned()));
        words.extend(self.with.as_ref().map(|with| format!("--with={with}")));
        // Nobody looks on while another generator drives.
        words.extend((self.probe != Probe::Auto && self.with.is_none()).then(|| format!("--probe={}", self.probe)));
        words.extend(self.statsd_listen.map(|address| format!("--statsd-listen={address}")));
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

/// The flags that ask for a server, but for its socket.
pub(crate) fn server_words(server: &ServerPlan) -> Vec<String> {
    let mut words = Vec::new();
    match &server.kind {
        ServerKind::Puma { command: None } | ServerKind::Command { .. } => {}
        ServerKind::Puma { command: Some(command) } => words.extend(["--puma".to_owned(), command.clone()]),
        ServerKind::Builtin => words.extend(["--server".to_owned(), "builtin".to_owned()]),
    }
    words.extend(server.workers.map(|w| format!("-w{w}")));
    words.extend(server.threads.map(|t| format!("-t{t}")));
    for (flag, path) in [("-r", &server.rackup), ("-C", &server.config)] {
        words.extend(path.iter().flat_map(|path| [flag.to_owned(), path.display().to_string()]));
    }
    words.extend((server.app == App::Rails).then(|| "--app=rails".to_owned()));
    words.extend(server.yjit.then(|| "-Y".to_owned()));
    words.extend(server.cpus.as_ref().map(|cpus| format!("--server-cpus={cpus}")));
    words
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
    fn threads_are_read_as_puma_does() {
        assert_eq!("5:5".parse(), Ok(Threads { min: 5, max: 5 }));
        assert_eq!("0:16".parse(), Ok(Threads { min: 0, max: 16 }));
        assert_eq!("4".parse(), Ok(Threads { min: 4, max: 4 }));
        for text in ["", "5:", "5:2", "0:0", "a:b", "-1:5"] {
            assert!(text.parse::<Threads>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_word_is_quoted_only_where_a_shell_needs_it() {
        assert_eq!(quoted("-w2"), "-w2");
        assert_eq!(quoted("bundle exec puma"), "'bundle exec puma'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
