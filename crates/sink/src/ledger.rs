//! What the sink saw and said: the server's side of "client's count = server's count". Each loop keeps its own, and they
//! are added up when somebody asks.

use std::fmt::{self, Write};

use model::{Histogram, Nanos};
use serde::{Deserialize, Serialize};

use crate::faults::FaultCounts;

/// The sink's count since it started. Requests for `/_ledger` itself are in none of these.
///
/// While the sink runs, `requests = answers + abandoned + faults.reset + faults.truncated + faults.unanswered + waiting +
/// busy + those being written`, and the sum of `per_worker` and `waiting` and `busy` is `requests`.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SinkLedger {
    /// Whole, well-formed requests received.
    pub requests: u64,
    /// Answers wholly handed to the kernel. Whether the client read them only the client can tell.
    pub answers: u64,
    /// Requests whose client was gone before the answer was wholly handed to the kernel.
    pub abandoned: u64,
    /// What was no HTTP/1 request, or too large a one: answered by 400 or 431, in no other count.
    pub bad_requests: u64,
    /// Connections accepted, those that asked for nothing but `/_ledger` aside.
    pub connections: u64,
    /// Of them, those open now.
    pub open_connections: u64,
    /// Bytes of the requests counted: heads, bodies and their framing. Of TLS, what is inside.
    pub received_bytes: u64,
    /// Bytes handed to the kernel for the requests counted: whole and unfinished answers, and interim 100 responses. Of
    /// TLS, what is inside, once it is sealed.
    pub sent_bytes: u64,
    /// Requests each worker has finished, whether or not the client was still there.
    pub per_worker: Vec<u64>,
    /// Requests that wait for a slot now.
    pub waiting: u64,
    /// Slots in use now.
    pub busy: u64,
    /// Times that the kernel did not take a response at once, because the client reads too slowly or not at all.
    pub stalled: u64,
    /// Times that a connection could not be accepted: no file descriptor or no memory left.
    pub accept_failures: u64,
    /// Connections to a TLS listener that said something else.
    pub failed_handshakes: u64,
    /// What went wrong on purpose.
    pub faults: FaultCounts,
    /// How late answers were handed to the kernel: sent - due, of those that came out of the pool. An answer that is
    /// given at once, as it takes no time and no slot is wanting, is not in here: it has no instant to keep.
    pub lateness: Histogram,
    /// Requests by the second of their arrival.
    pub arrivals: ArrivalCounts,
    /// What each of the sink's own threads did.
    pub per_thread: Vec<ThreadCount>,
}

/// One thread's part of the ledger, in the same words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadCount {
    /// As in the ledger.
    pub requests: u64,
    /// As in the ledger.
    pub answers: u64,
    /// As in the ledger.
    pub connections: u64,
    /// As in the ledger.
    pub received_bytes: u64,
    /// As in the ledger.
    pub sent_bytes: u64,
}

impl SinkLedger {
    /// An empty ledger for so many workers.
    pub(crate) fn new(workers: u32) -> SinkLedger {
        SinkLedger { per_worker: vec![0; workers as usize], ..SinkLedger::default() }
    }

    /// Shows this ledger as that of thread `number` of so many.
    pub(crate) fn of_thread(mut self, number: u32, threads: u32) -> SinkLedger {
        self.per_thread = vec![ThreadCount::default(); threads as usize];
        self.per_thread[number as usize] = ThreadCount {
            requests: self.requests,
            answers: self.answers,
            connections: self.connections,
            received_bytes: self.received_bytes,
            sent_bytes: self.sent_bytes,
        };
        self
    }

    /// Requests received that nothing was said about yet: they wait, hold a slot, or their answer is being written.
    pub fn unfinished(&self) -> u64 {
        self.requests - self.answers - self.abandoned - self.faults.lost()
    }

    /// Adds another thread's.
    pub fn add(&mut self, other: &SinkLedger) {
        self.requests += other.requests;
        self.answers += other.answers;
        self.abandoned += other.abandoned;
        self.bad_requests += other.bad_requests;
        self.connections += other.connections;
        self.open_connections += other.open_connections;
        self.received_bytes += other.received_bytes;
        self.sent_bytes += other.sent_bytes;
        add_each(&mut self.per_worker, &other.per_worker, |mine, theirs| *mine += theirs);
        self.waiting += other.waiting;
        self.busy += other.busy;
        self.stalled += other.stalled;
        self.accept_failures += other.accept_failures;
        self.failed_handshakes += other.failed_handshakes;
        self.faults.add(&other.faults);
        self.lateness.merge(&other.lateness);
        self.arrivals.add(&other.arrivals);
        add_each(&mut self.per_thread, &other.per_thread, |mine, theirs| {
            mine.requests += theirs.requests;
            mine.answers += theirs.answers;
            mine.connections += theirs.connections;
            mine.received_bytes += theirs.received_bytes;
            mine.sent_bytes += theirs.sent_bytes;
        });
    }

    /// All of them in one.
    pub(crate) fn sum(all: impl IntoIterator<Item = SinkLedger>) -> SinkLedger {
        let mut all = all.into_iter();
        let mut sum = all.next().unwrap_or_default();
        for one in all {
            sum.add(&one);
        }
        sum
    }
}

fn add_each<T: Copy + Default>(mine: &mut Vec<T>, theirs: &[T], add: impl Fn(&mut T, T)) {
    if mine.len() < theirs.len() {
        mine.resize(theirs.len(), T::default());
    }
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        add(mine, *theirs);
    }
}

/// Lines of seconds at most: the last ones, as somebody who ends a sink asks what it did just now.
const SECONDS: usize = 10;

impl SinkLedger {
    /// A few lines: what is zero and what says nothing is left out.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let mut line = |name: &str, value: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{name:<13}{value}");
        };
        line("requests", self.requests_text());
        line("connections", format!("{} ({} open)", self.connections, self.open_connections));
        line("bytes", format!("{} received, {} sent", self.received_bytes, self.sent_bytes));
        if self.per_thread.len() > 1 {
            for (number, thread) in self.per_thread.iter().enumerate() {
                let name = format!("  thread {number}");
                line(&name, format!("{} requests, {} connections", thread.requests, thread.connections));
            }
        }
        if self.per_worker.len() > 1 && self.per_worker.len() != self.per_thread.len() {
            let workers: Vec<_> = self.per_worker.iter().map(u64::to_string).collect();
            line("per worker", workers.join(" "));
        }
        if !self.arrivals.counts.is_empty() {
            line("arrivals", self.arrivals_text());
        }
        for (name, value) in [("faults", self.faults_text()), ("troubles", self.troubles_text())] {
            if !value.is_empty() {
                line(name, value);
            }
        }
        if self.lateness.count() > 0 {
            line("lateness", self.lateness_text());
        }
        out
    }

    fn requests_text(&self) -> String {
        let SinkLedger { requests, answers, abandoned, waiting, busy, .. } = self;
        format!(
            "{requests} ({answers} answered, {abandoned} abandoned by their client, {waiting} waiting, {busy} in a slot)"
        )
    }

    /// `per second, the last 10 of 42 s: 998 1003 …`
    fn arrivals_text(&self) -> String {
        let all = &self.arrivals.counts;
        let each = self.arrivals.seconds_each;
        let last = &all[all.len().saturating_sub(SECONDS)..];
        let span = if each == 1 { "second".to_owned() } else { format!("{each} seconds") };
        let which =
            if last.len() < all.len() { format!(", the last {} of {}", last.len(), all.len()) } else { String::new() };
        let counts: Vec<_> = last.iter().map(u64::to_string).collect();
        format!("per {span}{which}: {}", counts.join(" "))
    }

    fn faults_text(&self) -> String {
        let faults = &self.faults;
        let kinds = [
            counted(faults.reset, "reset"),
            counted(faults.truncated, "truncated"),
            counted(faults.unanswered, "left without an answer"),
            counted(faults.closed, "connections closed"),
        ];
        let statuses = faults.by_status.iter().map(|(code, count)| format!("{count} answered {code}"));
        kinds.into_iter().flatten().chain(statuses).collect::<Vec<_>>().join(", ")
    }

    fn troubles_text(&self) -> String {
        let kinds = [
            counted(self.bad_requests, "bad requests"),
            counted(self.failed_handshakes, "failed handshakes"),
            counted(self.accept_failures, "times no descriptor for a connection"),
            counted(self.stalled, "times a client read too slowly"),
        ];
        kinds.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    fn lateness_text(&self) -> String {
        let of = |time: Option<Nanos>| time.unwrap_or_default();
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|q| of(self.lateness.quantile(q)));
        let count = self.lateness.count();
        format!("p50 {p50}, p99 {p99}, p99.9 {p999}, max {} of {count} held answers", of(self.lateness.max()))
    }
}

/// As text: a histogram's buckets are thousands of lines.
impl fmt::Debug for SinkLedger {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text())
    }
}

/// `None` where there is none.
fn counted(count: u64, what: &str) -> Option<String> {
    (count > 0).then(|| format!("{count} {what}"))
}

/// The most counts: an hour and more in whole seconds.
const MOST: usize = 4096;

/// How many requests came when: counts by second, of which there are never more than a few thousand. A sink that runs
/// for days counts by two seconds then, by four, and so on; no request is lost by that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrivalCounts {
    /// Seconds each count is about: 1, 2, 4, …
    pub seconds_each: u64,
    /// Requests, from the start on.
    pub counts: Vec<u64>,
}

impl Default for ArrivalCounts {
    fn default() -> ArrivalCounts {
        ArrivalCounts { seconds_each: 1, counts: Vec::new() }
    }
}

impl ArrivalCounts {
    /// Counts requests that came `since` the start.
    pub(crate) fn record(&mut self, since: Nanos, requests: u64) {
        if requests == 0 {
            return;
        }
        let mut place = (since.0 / 1_000_000_000 / self.seconds_each) as usize;
        if place >= self.counts.len() {
            while place >= MOST {
                self.fold();
                place /= 2;
            }
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += requests;
    }

    /// Adds another loop's.
    pub(crate) fn add(&mut self, other: &ArrivalCounts) {
        while self.seconds_each < other.seconds_each {
            self.fold();
        }
        let ratio = (self.seconds_each / other.seconds_each) as usize;
        let length = other.counts.len().div_ceil(ratio);
        if self.counts.len() < length {
            self.counts.resize(length, 0);
        }
        for (place, count) in other.counts.iter().enumerate() {
            self.counts[place / ratio] += count;
        }
    }

    /// Twice the span for each count.
    fn fold(&mut self) {
        self.counts = self.counts.chunks(2).map(|pair| pair.iter().sum()).collect();
        self.seconds_each *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_ledger() -> impl Strategy<Value = SinkLedger> {
        let seconds = prop::collection::vec(0u64..5000, 0..20);
        (seconds, 0u32..3, 0u64..1000, 0u64..5).prop_map(|(seconds, thread, bytes, reset)| {
            let mut ledger = SinkLedger::new(2);
            for second in seconds {
                ledger.requests += 1;
                ledger.received_bytes += bytes;
                ledger.per_worker[(second % 2) as usize] += 1;
                ledger.lateness.record(Nanos(second));
                ledger.arrivals.record(Nanos::from_secs(second), 1);
            }
            ledger.faults.reset = reset;
            ledger.of_thread(thread, 3)
        })
    }

    proptest! {
        #[test]
        fn the_order_of_adding_does_not_matter(a in any_ledger(), b in any_ledger(), c in any_ledger()) {
            let sum = |all: [&SinkLedger; 3]| SinkLedger::sum(all.map(Clone::clone));
            let one = sum([&a, &b, &c]);
            prop_assert_eq!(&sum([&c, &a, &b]), &one);
            prop_assert_eq!(one.per_thread.iter().map(|thread| thread.requests).sum::<u64>(), one.requests);
            prop_assert_eq!(one.arrivals.counts.iter().sum::<u64>(), one.requests);
        }

        #[test]
        fn a_ledger_survives_its_json(ledger in any_ledger()) {
            let text = serde_json::to_string(&ledger).unwrap();
            prop_assert_eq!(serde_json::from_str::<SinkLedger>(&text).unwrap(), ledger);
        }
    }

    #[test]
    fn an_empty_ledger_is_short() {
        let text = SinkLedger::new(1).of_thread(0, 1).text();
        assert_eq!(
            text,
            "requests     0 (0 answered, 0 abandoned by their client, 0 waiting, 0 in a slot)\n\
             connections  0 (0 open)\n\
             bytes        0 received, 0 sent\n"
        );
    }

    #[test]
    fn a_full_ledger_says_all() {
        let mut ledger =
            SinkLedger { requests: 20, answers: 17, connections: 3, bad_requests: 1, ..SinkLedger::new(2) };
        ledger.per_worker = vec![11, 9, 0];
        ledger.arrivals = ArrivalCounts { seconds_each: 1, counts: (0..12).collect() };
        ledger.faults = FaultCounts { reset: 2, truncated: 1, by_status: [(503, 4)].into(), ..FaultCounts::default() };
        ledger.lateness.record(Nanos::from_micros(12));
        let mut both = ledger.clone().of_thread(0, 2);
        both.add(&SinkLedger::new(3).of_thread(1, 2));
        assert_eq!(
            both.text(),
            "requests     20 (17 answered, 0 abandoned by their client, 0 waiting, 0 in a slot)\n\
             connections  3 (0 open)\n\
             bytes        0 received, 0 sent\n\
             \x20 thread 0   20 requests, 3 connections\n\
             \x20 thread 1   0 requests, 0 connections\n\
             per worker   11 9 0\n\
             arrivals     per second, the last 10 of 12: 2 3 4 5 6 7 8 9 10 11\n\
             faults       2 reset, 1 truncated, 4 answered 503\n\
             troubles     1 bad requests\n\
             lateness     p50 12us, p99 12us, p99.9 12us, max 12us of 1 held answers\n"
        );
    }

    fn arrivals_of(seconds: &[u64]) -> ArrivalCounts {
        let mut arrivals = ArrivalCounts::default();
        for second in seconds {
            arrivals.record(Nanos::from_secs(*second), 1);
        }
        arrivals
    }

    #[test]
    fn a_request_is_counted_in_its_second() {
        assert_eq!(arrivals_of(&[0, 0, 2]).counts, [2, 0, 1]);
    }

    #[test]
    fn days_are_bounded() {
        let days = arrivals_of(&[0, 1, 7, 10 * 86_400]);
        assert!(days.counts.len() <= MOST && days.seconds_each == 256, "{}", days.seconds_each);
        assert_eq!((days.counts[0], days.counts.iter().sum()), (3, 4u64));
    }

    proptest! {
        #[test]
        fn the_sum_of_two_is_recording_all_in_one(
            a in prop::collection::vec(0u64..20_000, 0..40), b in prop::collection::vec(0u64..200, 0..40),
        ) {
            let both = arrivals_of(&[a.as_slice(), b.as_slice()].concat());
            let (mut ab, mut ba) = (arrivals_of(&a), arrivals_of(&b));
            ab.add(&arrivals_of(&b));
            ba.add(&arrivals_of(&a));
            prop_assert_eq!(&ab, &both);
            prop_assert_eq!(&ba, &both);
        }
    }
}
