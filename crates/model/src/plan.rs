//! What a study was asked to do, every default made explicit: the server, the stream of requests,
//! the load.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::app_time::STAMPS;
use crate::secret::{MaskedText, Private};
use crate::server_kind::ServerKind;
use crate::socket::Socket;
use crate::{
    Body, Cpus, Nanos, Objective, Pace, PlannedEvent, QueueHeader, RequestMix, RetryPolicy,
    SlowClients, Threshold,
};

/// What `longtail sweep` was asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The server and how to start it.
    pub server: ServerPlan,
    /// The stream of requests.
    pub stream: StreamPlan,
    /// The load of each run, as connections / slots.
    pub multiples: Vec<f64>,
    /// The load of each run, as connections in total. If there are any, they replace the multiples.
    pub connections: Vec<u32>,
    /// How often the whole list is run, each time on a fresh server.
    pub repeat: u32,
    /// Whether each run is followed by a wait until the server is idle again.
    pub cool_down: bool,
    /// Whether the generator's own limit is measured first.
    pub calibrate: bool,
    /// Whether a short probe, with and without keep-alive, finds out the order of service first.
    pub probe_discipline: bool,
    /// `--generator`: the other generator that makes the load, by its program's name; `None` is our
    /// own.
    pub with: Option<String>,
    /// `--inspect`: what is read from server and kernel during a run.
    pub probe: Probe,
    /// `--statsd-listen`: where we receive statsd from app and server; port 0 is any free port. It
    /// is in the plan because it changes what is measured: they are told the address and send to
    /// it.
    pub statsd_listen: Option<SocketAddr>,
    /// `--expect` and `--fail-if`: the thresholds that each run must meet.
    pub thresholds: Vec<Threshold>,
}

/// What is read from server and kernel during a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Probe {
    /// Nothing.
    #[default]
    None,
    /// What every user may read: sockets, processes, the server's statistics.
    Proc,
    /// The same, and the kernel's tracepoints by BPF: each request's waits.
    Bpf,
    /// As much of this as rights and kernel allow, as long as it is cheap enough.
    Auto,
}

/// What was read in the end, and why not more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeUsed {
    /// What was read.
    pub probe: Probe,
    /// Why the kernel's tracepoints were not used, where they might have been.
    pub why_no_bpf: Option<String>,
}

impl Plan {
    /// The multiple and the connections of each run of one pass over the list, on a server with
    /// this many slots. There is at least one connection.
    pub fn loads(&self, slots: u32) -> Vec<(f64, u32)> {
        let slots = f64::from(slots);
        if self.connections.is_empty() {
            let connections = |multiple: f64| ((multiple * slots).round() as u32).max(1);
            self.multiples.iter().map(|multiple| (*multiple, connections(*multiple))).collect()
        } else {
            self.connections.iter().map(|n| (f64::from(*n) / slots.max(1.0), *n)).collect()
        }
    }

    /// Load steps by default: connections / slots.
    pub const MULTIPLES: [f64; 5] = [1.0, 1.5, 2.0, 3.0, 4.0];

    /// Runs, in total.
    pub fn runs(&self) -> usize {
        self.loads(1).len() * self.repeat as usize
    }
}

/// A word, quoted for a POSIX shell where it needs that.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
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
    /// `--app`: which app that is.
    pub app: App,
    /// `-C`: Puma's config file.
    pub config: Option<PathBuf>,
    /// `-Y`: start Ruby with YJIT.
    pub yjit: bool,
    /// `-s`: the kind of socket to bind.
    pub socket: Socket,
    /// `--server-cpus`: the processors that it may run on; `None` if it may run wherever
    /// longtail may.
    pub cpus: Option<Cpus>,
    /// `--server-address`: the address of this machine that it listens on, for generators on other
    /// machines; `None` is loopback.
    pub address: Option<IpAddr>,
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

impl FromStr for Threads {
    type Err = String;

    fn from_str(text: &str) -> Result<Threads, String> {
        let (min, max) = text.split_once(':').unwrap_or((text, text));
        let threads = min.parse().ok().zip(max.parse().ok()).map(|(min, max)| Threads { min, max });
        threads.filter(|threads| threads.max > 0 && threads.min <= threads.max).ok_or_else(|| {
            format!(
                "'{text}' is not a number of threads: write MIN:MAX such as 5:5 or 0:16, the \
                 maximum at least 1"
            )
        })
    }
}

impl fmt::Display for Threads {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.min, self.max)
    }
}

/// The stream of requests of each run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamPlan {
    /// `-d`: how long the app is asked to hold a thread; the theory's service time. `None`:
    /// unknown, measured first.
    #[serde(rename = "delay_ns")]
    pub delay: Option<Nanos>,
    /// `--path`: what is requested; `None` is `/sleep<delay>`, or the body's.
    pub path: Option<Private<String>>,
    /// `--body`: the body that every response is to have; `None`: whatever the path returns.
    pub body: Option<Body>,
    /// `--mix`: several requests in place of one. Then `path` is the path of one of them, which is
    /// requested to see whether the server is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mix: Option<PlannedMix>,
    /// Whether a connection carries more than one request (with `-k` it does not).
    pub keep_alive: bool,
    /// When a run ends.
    pub stop: Stop,
    /// Load before the measured window, not measured.
    #[serde(rename = "warm_up_ns")]
    pub warm_up: Nanos,
    /// A response that takes longer is given up and counted as timed out.
    #[serde(rename = "timeout_ns")]
    pub timeout: Nanos,
    /// Threads of the generator.
    pub lanes: u32,
    /// Whose clock says when a response came.
    pub timestamps: Timestamps,
    /// The response header in which a worker names itself.
    pub worker_header: String,
    /// `--inspect app`: whether the app is asked to say when it began and ended each request.
    #[serde(rename = "anatomy")]
    pub reads_app_times: bool,
    /// `--from`: commands that run a program on another machine, one for each generator; if there
    /// are none, this process is the generator.
    pub from: Vec<MaskedText>,
}

/// Requests by weight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedMix {
    /// What is sent, in words: `5002 requests of mix.txt, by weight, 402 KiB of memory`.
    pub described: String,
    /// The names of its classes; empty where requests are not told apart.
    pub classes: Vec<String>,
    /// The requests, rendered for [`ANY_HOST`](crate::ANY_HOST); `None` in a study that was read.
    #[serde(skip)]
    pub requests: Option<Arc<RequestMix>>,
}

impl StreamPlan {
    /// What is requested.
    pub fn target_path(&self) -> Private<String> {
        match (&self.path, self.body, self.delay) {
            (Some(path), _, _) => path.clone(),
            (None, Some(body), _) => format!("/{body}").into(),
            (None, None, Some(delay)) => format!("/sleep{}", delay.as_secs_f64()).into(),
            (None, None, None) => "/".into(),
        }
    }

    /// How the requests of one run are sent, at this pace over this many connections. When the run
    /// ends, and what is requested, is not part of it.
    pub fn settings(&self, pace: Pace, connections: u32) -> LoadSettings {
        // Every field is named, so that the compiler asks where a new one belongs.
        let StreamPlan {
            keep_alive,
            warm_up,
            timeout,
            lanes,
            timestamps,
            stop: _,
            delay: _,
            path: _,
            body: _,
            mix: _,
            worker_header: _,
            reads_app_times: _,
            from: _,
        } = *self;
        LoadSettings {
            pace,
            warm_up,
            keep_alive,
            timeout,
            lanes,
            timestamps,
            ..LoadSettings::closed(connections)
        }
    }

    /// Header lines of each request: they ask for a body and its delay as Puma's own test apps
    /// expect.
    pub fn headers(&self) -> Vec<String> {
        let ask = self.reads_app_times.then(|| format!("{STAMPS}: 1"));
        let Some(body) = self.body else { return ask.into_iter().collect() };
        let delay = self.delay.filter(|delay| *delay > Nanos::ZERO);
        let delay = delay.map(|delay| format!("dly: {}", delay.as_secs_f64()));
        std::iter::once(format!("body-conf: {body}")).chain(delay).chain(ask).collect()
    }
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// No request becomes due after this time (warm-up not included); those in flight are waited
    /// for.
    #[serde(rename = "after_ns")]
    After(Nanos),
    /// Each connection makes this many requests (warm-up not included).
    RequestsPerConnection(u64),
}

/// What becomes of a request that is due while all connections are busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LatePolicy {
    /// It waits for a connection, and its due time stays: the wait is part of its response time.
    #[default]
    Queue,
    /// It is counted and not sent.
    Skip,
}

/// How a lane waits for the next due time: precision costs wake-ups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timing {
    /// Wakes at whole milliseconds and sends what has become due: least CPU, up to 1 ms late.
    Coalesce,
    /// Wakes for each due time, by a nanosecond timer that is set as much earlier as wake-ups
    /// usually come late: a few microseconds late.
    #[default]
    Precise,
    /// As precise, but busy polling for the last 50 µs before each due time: less than a
    /// microsecond late on a free core.
    Spin,
}

/// Whose clock says when a response came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Timestamps {
    /// The kernel's: when its last segment came in. The time until the lane reads it (read lag) is
    /// measured apart, and is not in the times.
    Kernel,
    /// The lane's, when it reads the response: the read lag is part of the times, and unknown.
    #[default]
    User,
}

/// How requests are sent: when they are due, over which connections, when one is given up.
///
/// One struct all the way: the flags fill it, a [`LoadPlan`] keeps it in the study, and the engine
/// runs it, on this machine or another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadSettings {
    /// When requests are due.
    pub pace: Pace,
    /// Closed loop: a pause between the end of a request and the due time of the connection's next
    /// one.
    #[serde(rename = "think_ns")]
    pub think: Nanos,
    /// Connections, in total: exactly this many in a closed loop, at most this many in an open one.
    pub connections: u32,
    /// Open loop: what becomes of a request that is due while all connections are busy.
    pub late: LatePolicy,
    /// Measured requests in total, after which the run ends; `None` if only time ends it.
    pub requests_total: Option<u64>,
    /// Load before the measured window.
    #[serde(rename = "warm_up_ns")]
    pub warm_up: Nanos,
    /// Whether a connection carries more than one request.
    pub keep_alive: bool,
    /// Requests after which we close a connection and open it anew; `None` for no limit.
    #[serde(alias = "requests_per_connection")]
    pub reconnect_after: Option<u64>,
    /// Longest wait for a response, from the moment the request was begun, connect included.
    #[serde(rename = "timeout_ns")]
    pub timeout: Nanos,
    /// Longest wait for a connection to open; `None`: as long as the timeout.
    #[serde(rename = "connect_timeout_ns", default, skip_serializing_if = "Option::is_none")]
    pub connect_timeout: Option<Nanos>,
    /// The header that says when each request was sent; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_header: Option<QueueHeader>,
    /// Open loop: how often a failed request is sent again; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    /// Threads of each generator; never more than connections.
    pub lanes: u32,
    /// Open loop: how precisely due times are kept.
    pub timing: Timing,
    /// Whose clock says when a response came.
    pub timestamps: Timestamps,
}

impl LoadSettings {
    /// An endless closed loop on one thread, with a timeout of 30 s.
    pub fn closed(connections: u32) -> LoadSettings {
        LoadSettings {
            pace: Pace::Closed,
            think: Nanos::ZERO,
            connections,
            late: LatePolicy::Queue,
            requests_total: None,
            warm_up: Nanos::ZERO,
            keep_alive: true,
            reconnect_after: None,
            timeout: Nanos::from_secs(30),
            connect_timeout: None,
            queue_header: None,
            retry: None,
            lanes: 1,
            timing: Timing::Precise,
            timestamps: Timestamps::User,
        }
    }

    /// The highest rate of an open loop, in requests per second.
    pub fn highest_rate(&self) -> Option<f64> {
        match &self.pace {
            Pace::Closed => None,
            Pace::Open { profile, .. } => Some(profile.peak().per_second()),
        }
    }
}

/// What `longtail load` was asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadPlan {
    /// The URL that requests go to, without credentials.
    pub url: MaskedText,
    /// The socket behind it, in words: `127.0.0.1:3000`, `unix /run/app.sock`, `unix @app`; several
    /// where a name has several addresses.
    pub endpoints: Vec<String>,
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// What is sent, in words: `GET`, `POST with 120 bytes`, `17 requests in order`.
    pub requests: String,
    /// How they are sent.
    #[serde(flatten)]
    pub load: LoadSettings,
    /// Length of the measured window; `None` if only a count ends the run.
    #[serde(rename = "length_ns")]
    pub length: Option<Nanos>,
    /// `--expect` and `--fail-if`: the thresholds that the run must meet.
    pub thresholds: Vec<Threshold>,
    /// `--check status=N`: the status that each response is to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_status: Option<u16>,
    /// The run ends early when one of these holds.
    pub stop_if: Vec<Objective>,
    /// `--during`: what is done to the server in the middle of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub during: Option<PlannedEvent>,
    /// The log, with a line for each request.
    pub log: Option<PathBuf>,
    /// `--service`: how long a request holds a slot of the server; the number of slots follows from
    /// it.
    #[serde(rename = "service_time_ns")]
    pub service_time: Option<Nanos>,
    /// `--statsd-listen`: where we received statsd.
    pub statsd_listen: Option<SocketAddr>,
    /// `--alone`: whether each class of requests is measured alone before the load.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub classes_alone: bool,
    /// `--slow-clients`: clients beside the load, which are not in its figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_clients: Option<SlowClients>,
    /// `--from`: commands that run a program on another machine, one for each generator; if there
    /// are none, this process is the generator.
    pub from: Vec<MaskedText>,
}

impl LoadPlan {
    /// Length of the measured window: as asked for, but in an open loop no longer than its count of
    /// requests takes. `None` if it lasts until the last response.
    pub fn measured(&self) -> Option<Nanos> {
        let LoadSettings { pace, requests_total, warm_up, .. } = &self.load;
        let counted = requests_total.and_then(|count| pace.time_of_count(count, *warm_up));
        counted.into_iter().chain(self.length).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_only_where_a_shell_needs_it() {
        assert_eq!(
            ["-w2", "bundle exec puma", "it's"].map(quoted),
            ["-w2", "'bundle exec puma'", "'it'\\''s'"]
        );
    }
}
