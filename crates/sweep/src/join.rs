//! Joins what the client has of each request with what the kernel saw of it: by the client's port, the request's number on its
//! connection, and that the connection was made when the client was opening it.
//!
//! The kernel tells of an answer before the client can have read it. So whoever takes what the client says first and then
//! all that the kernel reported has both halves of everything, and nothing ever waits for its other half.

use std::collections::HashMap;

use engine::{RequestRecord, RequestTrace};
use model::kernel::{KernelStamps, RequestPaths, Wayfinding};
use model::{Exchange, Nanos, Window};
use probe::bpf::TracedAnswer;

/// What the kernel reports and was never asked for is forgotten when it has become so much.
const MOST_REPORTED: usize = 1 << 20;

/// A run's requests, being joined.
pub(crate) struct StampJoin {
    /// By how much the kernel's clock is ahead of the client's.
    lead: Nanos,
    window: Window,
    pending: HashMap<(u16, u64), Vec<KernelStamps>>,
    found: Wayfinding,
    seen: u64,
}

impl StampJoin {
    /// Of the requests that are due in `window`, by the client's clock.
    pub(crate) fn new(lead: Nanos, window: Window) -> StampJoin {
        StampJoin { lead, window, pending: HashMap::new(), found: Wayfinding::default(), seen: 0 }
    }

    /// What the kernel saw of one answer.
    pub(crate) fn record_answer(&mut self, event: &TracedAnswer) {
        if self.pending.len() >= MOST_REPORTED {
            self.pending.clear();
        }
        self.pending.entry((event.port, event.number)).or_default().push(event.stamps);
    }

    /// What the client has of one request; all that was told of its answer was given to [`StampJoin::record_answer`] before.
    pub(crate) fn record(&mut self, record: &RequestRecord) {
        let exchange = self.shared(&record.exchange);
        let kernel = record.trace.and_then(|trace| self.take(&trace, exchange.ended));
        if self.window.contains(record.exchange.due) && exchange.outcome.is_good() {
            self.seen += 1;
            self.found.record(&exchange, kernel.as_ref(), record.trace.and_then(|trace| trace.app));
        }
    }

    /// The one connection of that port that was made between `opened` and `ended`.
    fn take(&mut self, trace: &RequestTrace, ended: Nanos) -> Option<KernelStamps> {
        let pending = self.pending.get_mut(&(trace.port, trace.number))?;
        let opened = trace.opened + self.lead;
        let is_it = |stamps: &KernelStamps| (opened..=ended).contains(&stamps.established);
        let only = pending.iter().filter(|stamps| is_it(stamps)).count() == 1;
        let place = pending.iter().position(is_it).filter(|_| only)?;
        let stamps = pending.swap_remove(place);
        // Those of the port's earlier connections will not be asked for any more.
        pending.retain(|other| other.established > ended);
        if pending.is_empty() {
            self.pending.remove(&(trace.port, trace.number));
        }
        Some(stamps)
    }

    fn shared(&self, exchange: &Exchange) -> Exchange {
        let there = |time: Nanos| time + self.lead;
        Exchange { due: there(exchange.due), sent: there(exchange.sent), ended: there(exchange.ended), ..*exchange }
    }

    /// All that was joined, of so many measured good answers in all.
    pub(crate) fn ways(mut self, good: u64) -> RequestPaths {
        self.found.lose(good.saturating_sub(self.seen));
        self.found.ways()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Outcome;

    const LEAD: Nanos = Nanos::from_secs(1000);

    fn join() -> StampJoin {
        StampJoin::new(LEAD, Window { from: Nanos::from_millis(10), until: Nanos::from_millis(500) })
    }

    /// All of it in ms of the client's clock.
    fn answer(port: u16, number: u64, established: u64, answered: u64) -> TracedAnswer {
        let at = |ms| Nanos::from_millis(ms) + LEAD;
        let stamps = KernelStamps {
            established: at(established),
            accepted: Some(at(established + 1)),
            arrived: Some(at(answered - 3)),
            read: at(answered - 2),
            answered: at(answered),
        };
        TracedAnswer { port, number, pid: 1, stamps }
    }

    fn record(port: u16, number: u64, opened: u64, due: u64, ended: u64) -> RequestRecord {
        let ms = Nanos::from_millis;
        let exchange = Exchange {
            due: ms(due),
            sent: ms(due),
            ended: ms(ended),
            received_bytes: 0,
            outcome: Outcome::Answered(200),
        };
        let trace = RequestTrace { port, number, opened: ms(opened), app: None };
        RequestRecord { number: 0, exchange, reason: None, answer: None, trace: Some(trace) }
    }

    #[test]
    fn a_port_that_comes_again_is_another_connection() {
        let mut join = join();
        for (established, answered) in [(5, 15), (50, 60), (90, 99)] {
            join.record_answer(&answer(4000, 0, established, answered));
        }
        join.record_answer(&answer(4000, 1, 50, 70));
        join.record_answer(&answer(4001, 0, 50, 60));
        join.record(&record(4000, 0, 49, 49, 61));
        join.record(&record(4000, 1, 49, 61, 71));
        join.record(&record(4000, 0, 89, 89, 100));
        // Of a connection that the kernel did not tell of, and not measured.
        join.record(&record(4002, 0, 89, 89, 100));
        join.record(&record(4001, 0, 49, 9, 61));
        let ways = join.ways(5);
        assert_eq!((ways.all.requests, ways.unmatched, ways.impossible), (3, 2, 0));
        assert_eq!(ways.all.response_time, Nanos::from_millis(12 + 10 + 11));
        assert_eq!((ways.all.in_server, ways.all.reading), (Nanos::from_millis(6), Nanos::from_millis(3)));
    }

    #[test]
    fn who_cannot_be_distinguished_is_not_joined() {
        let mut join = join();
        join.record_answer(&answer(4000, 0, 50, 60));
        join.record_answer(&answer(4000, 0, 52, 60));
        join.record(&record(4000, 0, 49, 49, 61));
        let ways = join.ways(1);
        assert_eq!((ways.all.requests, ways.unmatched), (0, 1));
    }
}
