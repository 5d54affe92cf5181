//! What is asked of a sink, and whether it can be done. Nothing is started here.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

use http::{HeaderName, HeaderValue};
use model::{Nanos, Rate};

use crate::SinkError;
use crate::delay::{DelayLaw, StallLaw};
use crate::faults::Faults;
use crate::listen::Listen;
use crate::listener::PemPair;

/// More workers than any server has; each costs three rendered responses.
pub(crate) const MOST_WORKERS: u32 = 10_000;
/// More threads than serve any purpose.
pub(crate) const MOST_LOOPS: u32 = 1024;
/// Workers x bytes of a body: each worker's answers are rendered beforehand, three times for each status.
pub(crate) const MOST_BODY_BYTES: u64 = 256 << 20;

/// What the sink answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SinkBody {
    /// `application/cbor`, `{status: "replied", reply: {arg: …}}` with the request's number in four bytes, lowest first.
    #[default]
    Counter,
    /// `text/plain`, "ok" and a line feed.
    Ok,
    /// `application/octet-stream`, so many bytes.
    Bytes(u32),
}

/// What stands before the slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlotQueue {
    /// No slots at all: each request is served at once. Workers are the sink's own loops.
    #[default]
    Unlimited,
    /// One first-come-first-served queue for the slots of all workers.
    Shared,
    /// Each connection belongs to a worker for its life, and each worker has a queue of its own (Puma 7.0).
    Split(WorkerAssignment),
    /// As Puma up to 6 with keep-alive: a slot stays with a connection for up to 10 requests in a row though others
    /// wait, and after each answer for up to 0.2 s; connections are accepted only while a slot is free.
    Inline10,
}

/// Which worker an accepted connection belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkerAssignment {
    /// One after the other.
    #[default]
    RoundRobin,
    /// By a seeded draw.
    Random,
}

impl SlotQueue {
    /// Whether each connection belongs to a worker.
    pub(crate) fn has_seats(self) -> bool {
        matches!(self, SlotQueue::Split(_) | SlotQueue::Inline10)
    }
}

/// As a person writes them; the first name of each is the one that is printed.
const QUEUES: [(&str, SlotQueue); 6] = [
    ("unlimited", SlotQueue::Unlimited),
    ("shared", SlotQueue::Shared),
    ("split", SlotQueue::Split(WorkerAssignment::RoundRobin)),
    ("split:round-robin", SlotQueue::Split(WorkerAssignment::RoundRobin)),
    ("split:random", SlotQueue::Split(WorkerAssignment::Random)),
    ("inline10", SlotQueue::Inline10),
];

/// Parses to itself.
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
                "'{text}' is not a queue: write unlimited, shared, split (connections dealt in turn), split:random or inline10"
            )
        })
    }
}

/// What a sink shall be. The default is the load sink: any request is answered at once.
#[derive(Clone, Debug, PartialEq)]
pub struct SinkSettings {
    /// Where to listen; port 0 takes a free one.
    pub listen: Vec<Listen>,
    /// For the TLS among them; `None` makes a pair at the start, for the addresses listened at and `localhost`.
    pub pem: Option<PemPair>,
    /// The sink's own threads, 1 to 1024. Slots and their queues need 1.
    pub loops: u32,
    /// What stands before the slots.
    pub queue: SlotQueue,
    /// Workers, 1 to 10 000. They are names in a header here, not processes. Of no meaning to an unlimited queue, which
    /// has each loop for a worker.
    pub workers: u32,
    /// Slots a worker, 1 or more. Of no meaning to an unlimited queue.
    pub threads: u32,
    /// How long a request holds its slot, where its path is not `/sleep<seconds>`.
    pub delay: DelayLaw,
    /// Pauses in which nothing goes out.
    pub stalls: Option<StallLaw>,
    /// Chooses what is random: delays, faults, workers.
    pub seed: u64,
    /// What is answered.
    pub body: SinkBody,
    /// Further response headers, each a whole line `name: value`; sent as they are, but `connection: keep-alive` only where it is true.
    pub headers: Vec<String>,
    /// The response header that names the worker (`0`, `1`, …), such as `x-worker`; `None` for none.
    pub worker_header: Option<String>,
    /// Connections the kernel completes before they are accepted, if `net.core.somaxconn` allows as many; Linux lets one
    /// more in. Of several loops each has its own on TCP.
    pub backlog: u32,
    /// The most connections accepted in a second, at even distances; `None` for all at once.
    pub accept_rate: Option<Rate>,
    /// What goes wrong on purpose.
    pub faults: Faults,
    /// Spin for so long before an answer is due, as a wake-up takes its time: costs that much of a CPU.
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
            delay: DelayLaw::default(),
            stalls: None,
            seed: 0,
            body: SinkBody::Counter,
            headers: Vec::new(),
            worker_header: None,
            // Puma's own number.
            backlog: 1024,
            accept_rate: None,
            faults: Faults::default(),
            spin: Nanos::ZERO,
        }
    }
}

impl SinkSettings {
    /// Refuses what cannot be served, in a line that says how to fix it.
    pub(crate) fn check(&self) -> Result<(), SinkError> {
        let SinkSettings { queue, workers, threads, loops, .. } = self;
        let refused = |line: String| Err(SinkError(line));
        if self.listen.is_empty() {
            return refused("no place to listen at: give one, such as 127.0.0.1:8080".to_owned());
        }
        if !(1..=MOST_LOOPS).contains(loops) {
            return refused(format!("{loops} threads cannot be: give 1 to {MOST_LOOPS}"));
        }
        if *queue != SlotQueue::Unlimited && *loops > 1 {
            return refused(format!(
                "{queue} slots are kept by one thread, and {loops} were asked for: give 1, or the unlimited queue"
            ));
        }
        if *threads == 0 || !(1..=MOST_WORKERS).contains(workers) {
            return refused(format!(
                "{workers} workers x {threads} threads cannot be: give 1 to {MOST_WORKERS} workers and 1 thread or more"
            ));
        }
        if let (SinkBody::Bytes(bytes), workers) = (self.body, self.workers())
            && u64::from(bytes) * u64::from(workers) > MOST_BODY_BYTES
        {
            return refused(format!(
                "{workers} workers with {bytes} bytes of body each are too much: keep their product to {MOST_BODY_BYTES}"
            ));
        }
        if let Some(name) = self.worker_header.as_ref().filter(|name| !can_name_a_field(name)) {
            return refused(format!(
                "{name:?} cannot name the worker's header: use letters, digits and '-', and no name that HTTP needs itself"
            ));
        }
        if let Some(line) = self.headers.iter().find(|line| !is_field_line(line)) {
            return refused(format!(
                "{line:?} cannot be a response's header: write 'name: value', and no name that HTTP needs itself \
                 (content-length, content-type, connection, transfer-encoding)"
            ));
        }
        // Shares as 33.3 % and 66.7 % may exceed 1 by their rounding.
        if self.faults.total() > 1.0 + 1e-9 {
            let percent = self.faults.total() * 100.0;
            return refused(format!(
                "faults for {percent}% of all requests: a request has one at most, so keep their sum to 100%"
            ));
        }
        if self.faults.close_after == Some(0) {
            let line = "a connection cannot be closed after 0 answers: give 1 or more, or --reset 100%";
            return refused(line.to_owned());
        }
        Ok(())
    }

    /// How it serves, in short: its slots, their queue, and the time an answer takes.
    pub fn laws(&self) -> String {
        let SinkSettings { workers, threads, queue, .. } = self;
        let slots = match (queue, workers, threads) {
            (SlotQueue::Unlimited, ..) => "no slots".to_owned(),
            (_, 1, 1) => "1 slot".to_owned(),
            (_, 1, _) => format!("{threads} slots"),
            (_, _, 1) => format!("{workers} workers of 1 slot"),
            _ => format!("{workers} workers of {threads} slots"),
        };
        let delay =
            if self.delay == DelayLaw::default() { "no delay".to_owned() } else { format!("delay {}", self.delay) };
        format!("{slots}, queue {queue}, {delay}")
    }

    /// Workers that a header may name.
    pub(crate) fn workers(&self) -> u32 {
        if self.queue == SlotQueue::Unlimited { self.loops } else { self.workers }
    }

    /// For whom a certificate that is made at the start is good.
    pub(crate) fn names(&self) -> Vec<String> {
        let ip = |listen: &Listen| Some(listen.place.tcp()?.ip().to_string());
        let names: BTreeSet<String> = self.listen.iter().filter_map(ip).chain(["localhost".to_owned()]).collect();
        names.into_iter().collect()
    }
}

fn can_name_a_field(name: &str) -> bool {
    let taken = ["connection", "content-length", "content-type", "transfer-encoding"];
    HeaderName::from_bytes(name.as_bytes()).is_ok_and(|name| !taken.contains(&name.as_str()))
}

/// The one header of those that HTTP needs itself that may be asked for: where a connection is kept the answer says so, as nginx's
/// do. Otherwise only a client of HTTP/1.0 learns it.
pub(crate) const SAYS_KEEP_ALIVE: &str = "connection: keep-alive";

/// `name: value`, the value of what can be seen, blanks and tabs.
fn is_field_line(line: &str) -> bool {
    let field = line.split_once(':');
    line.eq_ignore_ascii_case(SAYS_KEEP_ALIVE)
        || field.is_some_and(|(name, value)| can_name_a_field(name) && HeaderValue::from_str(value).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::FaultLaw;

    fn slots(workers: u32, threads: u32) -> SinkSettings {
        SinkSettings { queue: SlotQueue::Shared, workers, threads, ..SinkSettings::default() }
    }

    fn named(header: &str) -> SinkSettings {
        SinkSettings { worker_header: Some(header.to_owned()), ..SinkSettings::default() }
    }

    fn with(line: &str) -> SinkSettings {
        SinkSettings { headers: vec![line.to_owned()], ..SinkSettings::default() }
    }

    #[test]
    fn what_cannot_be_served_is_refused_in_one_line() {
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
            SinkSettings { listen: vec![], ..SinkSettings::default() },
            SinkSettings { loops: 0, ..SinkSettings::default() },
            SinkSettings { loops: 2, ..slots(1, 1) },
            SinkSettings { loops: 2, queue: SlotQueue::Split(WorkerAssignment::Random), ..SinkSettings::default() },
            SinkSettings { body: SinkBody::Bytes(1 << 20), ..slots(1000, 1) },
            SinkSettings { faults: Faults { laws: vec![most; 2], close_after: None }, ..SinkSettings::default() },
            SinkSettings { faults: Faults { laws: Vec::new(), close_after: Some(0) }, ..SinkSettings::default() },
        ];
        for settings in bad {
            let line = settings.check().unwrap_err().to_string();
            assert_eq!(line.lines().count(), 1, "{line}");
        }
        assert!(named("X-Worker").check().is_ok());
        for line in ["server: nginx/1.22.1", "x:", "Connection: keep-alive"] {
            assert!(with(line).check().is_ok(), "{line}");
        }
        assert!(SinkSettings { loops: 4, ..SinkSettings::default() }.check().is_ok());
    }

    #[test]
    fn parse_of_print_is_itself() {
        for queue in ["unlimited", "shared", "split", "split:random", "inline10"] {
            assert_eq!(queue.parse::<SlotQueue>().unwrap().to_string(), queue);
        }
    }
}
