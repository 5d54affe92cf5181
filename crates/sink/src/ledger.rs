//! The sink's own count of what it received and sent: the server's side of "client's count =
//! server's count". Each loop keeps its own; they are added up on request.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::{Mutex, PoisonError};

use model::{Histogram, Nanos};
use serde::{Deserialize, Serialize};

/// The sink's count since it started. Requests for `/_ledger` itself are in none of these.
///
/// While the sink runs, `requests = answers + abandoned + faults.reset + faults.truncated +
/// faults.unanswered + waiting + busy + those being written`, and the sum of `per_worker` and
/// `waiting` and `busy` is `requests`.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SinkLedger {
    /// Complete, well-formed requests received.
    pub requests: u64,
    /// Responses completely passed to the kernel. Only the client knows whether it read them.
    pub answers: u64,
    /// Requests whose client was gone before the response was completely passed to the kernel.
    pub abandoned: u64,
    /// Invalid or too large requests, answered with 400 or 431; they are in no other count.
    pub bad_requests: u64,
    /// Connections accepted, except those that only asked for `/_ledger`.
    pub connections: u64,
    /// Of them, those open now.
    pub open_connections: u64,
    /// Bytes of the counted requests: heads, bodies and their framing; with TLS, the plain bytes.
    pub received_bytes: u64,
    /// Bytes passed to the kernel for the counted requests: complete and incomplete responses, and
    /// interim 100 responses; with TLS, the plain bytes once encrypted.
    pub sent_bytes: u64,
    /// Requests each worker has finished, whether or not the client was still there.
    pub per_worker: Vec<u64>,
    /// Requests that wait for a slot now.
    pub waiting: u64,
    /// Slots in use now.
    pub busy: u64,
    /// Times that the kernel did not take a response at once, because the client reads too slowly
    /// or not at all.
    pub stalled: u64,
    /// Times that a connection could not be accepted: no file descriptor or no memory left.
    pub accept_failures: u64,
    /// Connections to a TLS listener that did not speak TLS.
    pub failed_handshakes: u64,
    /// Faults that were made on purpose.
    pub faults: FaultCounts,
    /// How late responses were passed to the kernel (sent - due), for those from the slot pool. A
    /// response that needs no time and no slot is sent at once and not included.
    pub lateness: Histogram,
    /// Requests by the second of their arrival, since the start; 700 kB for a day.
    pub arrivals: Vec<u64>,
}

/// How often each fault was done, whether or not the client noticed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultCounts {
    /// Requests whose connection was reset.
    pub reset: u64,
    /// Requests whose response was cut; not in the ledger's `answers`.
    pub truncated: u64,
    /// Requests that were left without a response.
    pub unanswered: u64,
    /// Responses after which the connection was closed though the client had not asked for it.
    pub closed: u64,
    /// Responses with another status, by status; in the ledger's `answers`, too.
    pub by_status: BTreeMap<u16, u64>,
}

impl FaultCounts {
    /// Requests that will never be answered wholly.
    pub(crate) fn lost(&self) -> u64 {
        self.reset + self.truncated + self.unanswered
    }

    /// Adds the counts of another loop.
    pub(crate) fn add(&mut self, other: &FaultCounts) {
        self.reset += other.reset;
        self.truncated += other.truncated;
        self.unanswered += other.unanswered;
        self.closed += other.closed;
        for (code, count) in &other.by_status {
            *self.by_status.entry(*code).or_default() += count;
        }
    }
}

/// The ledger of one loop, as it is between two turns.
pub(crate) type LoopLedger = Mutex<SinkLedger>;

/// The text has the arrivals of this many seconds, the last ones: whoever stops a sink wants to
/// know what it just did.
const SECONDS: usize = 10;

impl SinkLedger {
    /// An empty ledger for so many workers.
    pub(crate) fn new(workers: u32) -> SinkLedger {
        SinkLedger { per_worker: vec![0; workers as usize], ..SinkLedger::default() }
    }

    /// Counts requests that arrived `since` the start.
    pub(crate) fn record_arrivals(&mut self, since: Nanos, requests: u64) {
        if requests > 0 {
            let second = (since.0 / 1_000_000_000) as usize;
            if second >= self.arrivals.len() {
                self.arrivals.resize(second + 1, 0);
            }
            self.arrivals[second] += requests;
        }
    }

    /// Received requests that are not done: they wait, hold a slot, or their response is being
    /// written.
    pub fn unfinished(&self) -> u64 {
        self.requests - self.answers - self.abandoned - self.faults.lost()
    }

    /// Adds the ledger of another loop.
    pub(crate) fn add(&mut self, other: &SinkLedger) {
        self.requests += other.requests;
        self.answers += other.answers;
        self.abandoned += other.abandoned;
        self.bad_requests += other.bad_requests;
        self.connections += other.connections;
        self.open_connections += other.open_connections;
        self.received_bytes += other.received_bytes;
        self.sent_bytes += other.sent_bytes;
        self.waiting += other.waiting;
        self.busy += other.busy;
        self.stalled += other.stalled;
        self.accept_failures += other.accept_failures;
        self.failed_handshakes += other.failed_handshakes;
        self.faults.add(&other.faults);
        self.lateness.merge(&other.lateness);
        for (mine, theirs) in
            [(&mut self.per_worker, &other.per_worker), (&mut self.arrivals, &other.arrivals)]
        {
            mine.resize(mine.len().max(theirs.len()), 0);
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
    }

    /// The sum over all loops, each read at the end of a turn.
    pub(crate) fn sum(all: &[LoopLedger]) -> SinkLedger {
        let mut sum = SinkLedger::default();
        for one in all {
            sum.add(&one.lock().unwrap_or_else(PoisonError::into_inner));
        }
        sum
    }

    /// A few lines, without zeros and trivial figures.
    pub fn text(&self) -> String {
        let SinkLedger { requests, answers, abandoned, waiting, busy, per_worker, .. } = self;
        let lines = [
            (
                "requests",
                format!(
                    "{requests} ({answers} answered, {abandoned} abandoned by their client, \
                     {waiting} waiting, {busy} in a slot)"
                ),
            ),
            ("connections", format!("{} ({} open)", self.connections, self.open_connections)),
            ("bytes", format!("{} received, {} sent", self.received_bytes, self.sent_bytes)),
            ("per worker", if per_worker.len() > 1 { numbers(per_worker) } else { String::new() }),
            ("arrivals", self.arrivals_in_words()),
            ("faults", self.faults.in_words()),
            ("troubles", self.troubles_in_words()),
            ("lateness", self.lateness_in_words()),
        ];
        let mut text = String::new();
        for (name, value) in lines.iter().filter(|(_, value)| !value.is_empty()) {
            _ = writeln!(text, "{name:<13}{value}");
        }
        text
    }

    fn arrivals_in_words(&self) -> String {
        let arrivals = &self.arrivals;
        let last = &arrivals[arrivals.len().saturating_sub(SECONDS)..];
        match last.len() {
            0 => String::new(),
            n if n < arrivals.len() => {
                format!("per second, the last {n} of {}: {}", arrivals.len(), numbers(last))
            }
            _ => format!("per second: {}", numbers(last)),
        }
    }

    fn troubles_in_words(&self) -> String {
        let troubles = [
            counted(self.bad_requests, "bad requests"),
            counted(self.failed_handshakes, "failed handshakes"),
            counted(self.accept_failures, "times no descriptor for a connection"),
            counted(self.stalled, "times a client read too slowly"),
        ];
        troubles.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    fn lateness_in_words(&self) -> String {
        let count = self.lateness.count();
        if count == 0 {
            return String::new();
        }
        let quantile = |q: f64| self.lateness.quantile(q).unwrap_or_default();
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(quantile);
        let most = self.lateness.max().unwrap_or_default();
        format!("p50 {p50}, p99 {p99}, p99.9 {p999}, max {most} of {count} held responses")
    }
}

impl FaultCounts {
    fn in_words(&self) -> String {
        let counts = [
            counted(self.reset, "reset"),
            counted(self.truncated, "truncated"),
            counted(self.unanswered, "left without a response"),
            counted(self.closed, "connections closed"),
        ];
        let statuses =
            self.by_status.iter().map(|(code, count)| format!("{count} answered {code}"));
        counts.into_iter().flatten().chain(statuses).collect::<Vec<_>>().join(", ")
    }
}

fn numbers(all: &[u64]) -> String {
    all.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

/// As text, because the histogram's buckets would be thousands of lines.
impl fmt::Debug for SinkLedger {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text())
    }
}

/// `None` if the count is 0.
fn counted(count: u64, what: &str) -> Option<String> {
    (count > 0).then(|| format!("{count} {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_ledger() -> impl Strategy<Value = SinkLedger> {
        let seconds = prop::collection::vec(0u64..5000, 0..20);
        (seconds, 0u64..1000, 0u64..5).prop_map(|(seconds, bytes, reset)| {
            let mut ledger = SinkLedger::new(2);
            for second in seconds {
                ledger.requests += 1;
                ledger.received_bytes += bytes;
                ledger.per_worker[(second % 2) as usize] += 1;
                ledger.lateness.record(Nanos(second));
                ledger.record_arrivals(Nanos::from_secs(second), 1);
            }
            ledger.faults.reset = reset;
            ledger
        })
    }

    proptest! {
        #[test]
        fn the_order_of_adding_does_not_matter(a in any_ledger(), b in any_ledger(), c in any_ledger()) {
            let sum = |all: [&SinkLedger; 3]| SinkLedger::sum(&all.map(|one| LoopLedger::new(one.clone())));
            let one = sum([&a, &b, &c]);
            prop_assert_eq!(&sum([&c, &a, &b]), &one);
            prop_assert_eq!(one.arrivals.iter().sum::<u64>(), one.requests);
            let text = serde_json::to_string(&one).unwrap();
            prop_assert_eq!(serde_json::from_str::<SinkLedger>(&text).unwrap(), one);
        }
    }

    #[test]
    fn a_ledger_prints_what_is_not_zero() {
        let mut ledger = SinkLedger {
            requests: 20,
            answers: 17,
            connections: 3,
            bad_requests: 1,
            ..SinkLedger::new(2)
        };
        ledger.per_worker = vec![11, 9, 0];
        ledger.arrivals = (0..12).collect();
        ledger.faults = FaultCounts {
            reset: 2,
            truncated: 1,
            by_status: [(503, 4)].into(),
            ..FaultCounts::default()
        };
        ledger.lateness.record(Nanos::from_micros(12));
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/ledger.txt");
        let both = format!("{}\n{}", SinkLedger::new(1).text(), ledger.text());
        testkit::golden::expect(std::path::Path::new(file), &both);
    }
}
