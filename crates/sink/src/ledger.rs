//! What the sink saw and said: the server's side of "client's count = server's count". Each loop keeps its own, and they
//! are added up when somebody asks.

use model::Histogram;
use serde::{Deserialize, Serialize};

use crate::arrivals::ArrivalCounts;
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

#[cfg(test)]
mod tests {
    use super::*;
    use model::Nanos;
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
}
