//! The settings of a sink, and whether they are possible. Nothing is started here.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use http::{HeaderName, HeaderValue};
use model::{DelayLaw, Endpoint, Nanos, Rate};
use rustix::io::Errno;
use thiserror::Error;

use crate::laws::{FaultLaw, StallLaw};

/// More workers than any server has. Three responses are rendered for each.
const MOST_WORKERS: u32 = 10_000;
/// The most threads; more would serve no purpose.
const MOST_LOOPS: u32 = 1024;
/// The most workers x bytes of a body: each worker's responses are rendered beforehand, three times
/// for each status.
const MOST_BODY_BYTES: u64 = 256 << 20;

/// One place to listen at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Listen {
    /// The address.
    pub place: Endpoint,
    /// Whether it speaks TLS.
    pub tls: bool,
}

impl From<SocketAddr> for Listen {
    fn from(address: SocketAddr) -> Listen {
        Listen { place: Endpoint::Tcp(address), tls: false }
    }
}

/// `127.0.0.1:8080`, `tls://[::1]:8443`, `unix:///run/sink.sock`, `unix://@sink`. What is printed
/// parses to the same place.
impl fmt::Display for Listen {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tls = self.tls;
        match &self.place {
            Endpoint::Tcp(address) if tls => write!(out, "tls://{address}"),
            Endpoint::Tcp(address) => write!(out, "{address}"),
            Endpoint::Unix(path) => {
                write!(out, "{}unix://{}", if tls { "tls+" } else { "" }, path.display())
            }
            Endpoint::Abstract(name) => {
                write!(out, "{}unix://@{}", if tls { "tls+" } else { "" }, name.escape_ascii())
            }
        }
    }
}

/// As printed; an address may also have `tcp://`, and `ssl://` means `tls://`, as in Puma.
impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Listen, String> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("tcp", text));
        let place = match scheme {
            "tcp" | "tls" | "ssl" => rest.parse().ok().map(Endpoint::Tcp),
            "unix" | "tls+unix" => {
                Endpoint::unix(rest.as_ref()).ok().filter(|_| !rest.contains('\0'))
            }
            _ => None,
        };
        let place = place.ok_or_else(|| {
            format!(
                "'{text}' is not an address to listen at: write 127.0.0.1:8080, [::1]:8080, \
                 tls://127.0.0.1:8443, unix:///run/sink.sock or unix://@name (a path or name of \
                 107 bytes at most)"
            )
        })?;
        Ok(Listen { place, tls: !matches!(scheme, "tcp" | "unix") })
    }
}

/// The files of a certificate and its key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PemPair {
    /// The certificate and its chain.
    pub certificate: PathBuf,
    /// Its private key; may be the same file.
    pub key: PathBuf,
}

/// The body of the sink's responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SinkBody {
    /// `application/cbor`, `{status: "replied", reply: {arg: …}}` with the request's number in four
    /// bytes, lowest first.
    #[default]
    Counter,
    /// `text/plain`, "ok" and a line feed.
    Ok,
    /// `application/octet-stream`, this many bytes.
    Bytes(u32),
}

/// The queue before the slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlotQueue {
    /// No slots at all: each request is served at once. Workers are the sink's own loops.
    #[default]
    Unlimited,
    /// One first-come-first-served queue for the slots of all workers.
    Shared,
    /// Each connection belongs to one worker, assigned in turn, and each worker has its own queue
    /// (Puma 7.0).
    Split,
    /// Like `Split`, but a seeded draw chooses the worker.
    SplitRandom,
    /// Like Puma 6 and older with keep-alive: a slot stays with a connection for up to 10 requests
    /// in a row although others wait, and after each response for up to 0.2 s; connections are
    /// accepted only while a slot is free.
    Inline10,
}

impl SlotQueue {
    /// Whether each connection belongs to a worker.
    pub(crate) fn has_seats(self) -> bool {
        matches!(self, SlotQueue::Split | SlotQueue::SplitRandom | SlotQueue::Inline10)
    }
}

/// Their names; the first one of each is printed.
const QUEUES: [(&str, SlotQueue); 6] = [
    ("unlimited", SlotQueue::Unlimited),
    ("shared", SlotQueue::Shared),
    ("split", SlotQueue::Split),
    ("split:round-robin", SlotQueue::Split),
    ("split:random", SlotQueue::SplitRandom),
    ("inline10", SlotQueue::Inline10),
];

/// What is printed parses to the same queue.
impl fmt::Display for SlotQueue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = QUEUES.iter().find(|(_, queue)| queue == self).map(|(name, _)| *name);
        out.write_str(name.unwrap_or_default())
    }
}

impl FromStr for SlotQueue {
    type Err = String;

    fn from_str(text: &str) -> Result<SlotQueue, String> {
        let queue = QUEUES.iter().find(|(name, _)| *name == text).map(|(_, queue)| *queue);
        queue.ok_or_else(|| {
            format!(
                "'{text}' is not a queue: write unlimited, shared, split (connections dealt in \
                 turn), split:random or inline10"
            )
        })
    }
}

/// The settings of a sink. The default is the load sink, which answers any request at once.
#[derive(Clone, Debug, PartialEq)]
pub struct SinkSettings {
    /// Where to listen; port 0 takes a free one.
    pub listen: Vec<Listen>,
    /// For TLS listeners; `None` makes a pair at the start, for their addresses and `localhost`.
    pub pem: Option<PemPair>,
    /// The sink's own threads, 1 to 1024. Slots and their queues need 1.
    pub loops: u32,
    /// The queue before the slots.
    pub queue: SlotQueue,
    /// Workers, 1 to 10 000. They are names in a header here, not processes. Ignored by an
    /// unlimited queue, where each loop is a worker.
    pub workers: u32,
    /// Slots per worker, 1 or more. Ignored by an unlimited queue.
    pub threads: u32,
    /// How long a request holds its slot, unless its path is `/sleep<seconds>`.
    pub delay: DelayLaw,
    /// Pauses in which nothing is sent.
    pub stalls: Option<StallLaw>,
    /// The seed of random choices: delays, faults, workers.
    pub seed: u64,
    /// The body of responses.
    pub body: SinkBody,
    /// Further response headers, each a line `name: value`; sent as they are, except that
    /// `connection: keep-alive` is sent only if it is true.
    pub headers: Vec<String>,
    /// The response header that names the worker (`0`, `1`, …), such as `x-worker`; `None` for
    /// none.
    pub worker_header: Option<String>,
    /// Connections that the kernel completes before they are accepted, if `net.core.somaxconn`
    /// allows as many; Linux allows one more. On TCP, each loop has its own queue.
    pub backlog: u32,
    /// The most connections accepted per second, evenly spaced; `None` for no limit.
    pub accept_rate: Option<Rate>,
    /// Faults to make. A request has at most one, so the shares must not exceed 100 % in total.
    pub faults: Vec<FaultLaw>,
    /// A connection is closed after this many responses, and the last one announces it.
    pub close_after: Option<u32>,
    /// How long to spin before a response is due, because a wake-up takes time. Costs that much
    /// CPU.
    pub spin: Nanos,
}

impl Default for SinkSettings {
    fn default() -> SinkSettings {
        SinkSettings {
            listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)).into()],
            pem: None,
            loops: 1,
            queue: SlotQueue::Unlimited,
            workers: 1,
            threads: 1,
            delay: Nanos::ZERO.into(),
            stalls: None,
            seed: 0,
            body: SinkBody::Counter,
            headers: Vec::new(),
            worker_header: None,
            // Puma's default.
            backlog: 1024,
            accept_rate: None,
            faults: Vec::new(),
            close_after: None,
            spin: Nanos::ZERO,
        }
    }
}

impl SinkSettings {
    /// Refuses settings that can't be served, with a line that says how to fix them.
    pub(crate) fn check(&self) -> Result<(), SinkError> {
        let SinkSettings { queue, workers, threads, loops, .. } = self;
        let body_bytes = if let SinkBody::Bytes(bytes) = self.body { bytes } else { 0 };
        let worker_header = self.worker_header.as_ref().filter(|name| !can_name_a_field(name));
        let header = self.headers.iter().find(|line| !is_field_line(line));
        let faults: f64 = self.faults.iter().map(|law| law.share.part()).sum();
        let complaint = if self.listen.is_empty() {
            "no place to listen at: give one, such as 127.0.0.1:8080".to_owned()
        } else if !(1..=MOST_LOOPS).contains(loops) {
            format!("{loops} threads are not possible: give 1 to {MOST_LOOPS}")
        } else if *queue != SlotQueue::Unlimited && *loops > 1 {
            format!(
                "{queue} slots are kept by one thread, and {loops} were asked for: give 1, or the \
                 unlimited queue"
            )
        } else if *threads == 0 || !(1..=MOST_WORKERS).contains(workers) {
            format!(
                "{workers} workers x {threads} threads are not possible: give 1 to {MOST_WORKERS} \
                 workers and 1 thread or more"
            )
        } else if u64::from(body_bytes) * u64::from(self.workers()) > MOST_BODY_BYTES {
            format!(
                "{} workers with {body_bytes} bytes of body each are too much: keep their product \
                 to {MOST_BODY_BYTES}",
                self.workers()
            )
        } else if let Some(name) = worker_header {
            format!(
                "{name:?} cannot name the worker's header: use letters, digits and '-', and no \
                 name that HTTP needs itself"
            )
        } else if let Some(line) = header {
            format!(
                "{line:?} cannot be a response's header: write 'name: value', and no name that HTTP needs itself \
                 (content-length, content-type, connection, transfer-encoding)"
            )
        } else if faults > 1.0 + 1e-9 {
            // Because of rounding, shares such as 33.3 % and 66.7 % may add up to more than 1.
            format!(
                "faults for {}% of all requests: a request has at most one, so keep their sum to \
                 100%",
                faults * 100.0
            )
        } else if self.close_after == Some(0) {
            "a connection cannot be closed after 0 responses: give 1 or more, or --reset 100%"
                .to_owned()
        } else {
            return Ok(());
        };
        Err(SinkError(complaint))
    }

    /// How it serves, in short: its slots, their queue, and the delay.
    pub fn laws(&self) -> String {
        let SinkSettings { workers, threads, queue, .. } = self;
        let slots = match (queue, workers, threads) {
            (SlotQueue::Unlimited, ..) => "no slots".to_owned(),
            (_, 1, 1) => "1 slot".to_owned(),
            (_, 1, _) => format!("{threads} slots"),
            (_, _, 1) => format!("{workers} workers of 1 slot"),
            _ => format!("{workers} workers of {threads} slots"),
        };
        let delay = if self.delay == Nanos::ZERO.into() {
            "no delay".to_owned()
        } else {
            format!("delay {}", self.delay)
        };
        format!("{slots}, queue {queue}, {delay}")
    }

    /// Workers that a header may name.
    pub(crate) fn workers(&self) -> u32 {
        if self.queue == SlotQueue::Unlimited { self.loops } else { self.workers }
    }

    /// The names in a certificate that is made at the start.
    pub(crate) fn names(&self) -> Vec<String> {
        let ip = |listen: &Listen| Some(listen.place.tcp()?.ip().to_string());
        let names: BTreeSet<String> =
            self.listen.iter().filter_map(ip).chain(["localhost".to_owned()]).collect();
        names.into_iter().collect()
    }
}

fn can_name_a_field(name: &str) -> bool {
    let taken = ["connection", "content-length", "content-type", "transfer-encoding"];
    HeaderName::from_bytes(name.as_bytes()).is_ok_and(|name| !taken.contains(&name.as_str()))
}

/// The only one of HTTP's own headers that may be set: responses say that the connection stays
/// open, like nginx's. By default only HTTP/1.0 clients are told.
pub(crate) const SAYS_KEEP_ALIVE: &str = "connection: keep-alive";

/// `name: value`, with a value of visible characters, blanks and tabs.
fn is_field_line(line: &str) -> bool {
    let field = line.split_once(':');
    line.eq_ignore_ascii_case(SAYS_KEEP_ALIVE)
        || field.is_some_and(|(name, value)| {
            can_name_a_field(name) && HeaderValue::from_str(value).is_ok()
        })
}

/// Why the sink could not start, in a line that says how to fix it. A running sink has no errors:
/// clients' mistakes are counted in its ledger.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct SinkError(pub(crate) String);

impl SinkError {
    /// The error for a system call that failed while we tried to `what`.
    pub(crate) fn of(what: &str) -> impl Fn(Errno) -> SinkError {
        move |errno| {
            SinkError(match errno {
                Errno::MFILE | Errno::NFILE => {
                    format!(
                        "no file descriptor left to {what}: raise the limit of open files (ulimit \
                         -n)"
                    )
                }
                Errno::NOSYS | Errno::PERM => format!(
                    "cannot {what}: {errno}; a sandbox (seccomp, a container's profile) may \
                     forbid the system call: allow it"
                ),
                _ => format!(
                    "cannot {what}: {errno}; is the machine out of memory, threads or network?"
                ),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_settings_are_refused_in_one_line() {
        let load = SinkSettings::default;
        let slots = |workers, threads| SinkSettings {
            queue: SlotQueue::Shared,
            workers,
            threads,
            ..load()
        };
        let named =
            |header: &str| SinkSettings { worker_header: Some(header.to_owned()), ..load() };
        let with = |line: &str| SinkSettings { headers: vec![line.to_owned()], ..load() };
        let most: FaultLaw = "503:60%".parse().unwrap();
        let bad = [
            slots(0, 5),
            slots(2, 0),
            slots(MOST_WORKERS + 1, 1),
            named(""),
            named("x worker"),
            named("x\r\nworker"),
            named("Content-Length"),
            with("server"),
            with(": nginx"),
            with("server: a\r\nb: c"),
            with("Connection: close"),
            SinkSettings { listen: vec![], ..load() },
            SinkSettings { loops: 0, ..load() },
            SinkSettings { loops: 2, ..slots(1, 1) },
            SinkSettings { loops: 2, queue: SlotQueue::SplitRandom, ..load() },
            SinkSettings { body: SinkBody::Bytes(1 << 20), ..slots(1000, 1) },
            SinkSettings { faults: vec![most; 2], ..load() },
            SinkSettings { close_after: Some(0), ..load() },
        ];
        for settings in bad {
            let line = settings.check().unwrap_err().to_string();
            assert_eq!(line.lines().count(), 1, "{line}");
        }
        let lines = ["server: nginx/1.22.1", "x:", "Connection: keep-alive"].map(with);
        for good in
            lines.into_iter().chain([named("X-Worker"), SinkSettings { loops: 4, ..load() }])
        {
            assert!(good.check().is_ok(), "{good:?}");
        }
    }

    #[test]
    fn parse_of_print_is_itself() {
        for queue in ["unlimited", "shared", "split", "split:random", "inline10"] {
            assert_eq!(queue.parse::<SlotQueue>().unwrap().to_string(), queue);
        }
        let sockets = ["unix:///run/sink.sock", "unix://tmp/x", "unix://@sink", "tls+unix://@sink"];
        let tcp = ["127.0.0.1:8080", "[::1]:0", "tls://127.0.0.1:8443"].map(|text| (text, text));
        let aliases =
            [("tcp://127.0.0.1:1", "127.0.0.1:1"), ("ssl://127.0.0.1:1", "tls://127.0.0.1:1")];
        for (text, printed) in
            sockets.map(|text| (text, text)).into_iter().chain(tcp).chain(aliases)
        {
            assert_eq!(text.parse::<Listen>().unwrap().to_string(), printed);
        }
    }
}
