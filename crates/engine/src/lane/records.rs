//! What a lane writes down: each request that ended, in exactly one place of its tally, and where it was asked for also one by one.
//!
//! Everything here runs once a request, so it is one straight piece of code: times are computed once, and nothing is looked up twice.

use std::sync::mpsc::SyncSender;

use model::histogram::Place;
use model::tally::WorkerCount;
use model::{BadResponse, Batches, Clock, Exchange, Histogram, Nanos, Outcome, Phases, Tally};

use super::LaneEnd;
use crate::alike::Alike;
use crate::app_time::AppTimes;
use crate::connection::{Connection, Outstanding};
use crate::head::HeadCache;
use crate::journal::{Journal, RecordBatch, RequestRecord, RequestTrace};
use crate::response::ReceivedResponse;
use crate::shape::{LaneShare, LoadSpec};

/// When a request ended, and when the lane saw that it had.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    pub(super) at: Nanos,
    pub(super) seen: Nanos,
    /// Whether the two are of two clocks, so that their distance is the lane's read lag.
    pub(super) is_stamped: bool,
}

impl Ending {
    /// Of what has no stamp: it ended when it was seen.
    #[inline]
    pub(super) fn seen(now: Nanos) -> Ending {
        Ending { at: now, seen: now, is_stamped: false }
    }
}

/// What a journal gets of a request beside how it ended.
#[derive(Default)]
pub(super) struct JournalExtras {
    pub(super) reason: Option<BadResponse>,
    pub(super) answer: Option<Box<[u8]>>,
    pub(super) trace: Option<RequestTrace>,
}

/// What most requests have in common, recorded once: it is added to the tally [in the end](FastPathTotals::add_to), or when somebody asks.
#[derive(Default)]
struct FastPathTotals {
    /// Send lags that are the generator's own lags too: nothing else made those requests late.
    lags: Histogram,
    /// Service times of good answers that came in one piece: their first byte came with the last.
    in_one_piece: Histogram,
}

impl FastPathTotals {
    /// Adds all of it, with what the usual answers have in `alike`, and how many of them each connection had from `first_connection` on.
    fn add_to(&self, tally: &mut Tally, alike: &Alike, first_connection: usize, by_connection: &[Connection]) {
        for (status, answers) in &alike.by_status {
            tally.add_alike(*status, *answers);
        }
        tally.received_bytes += alike.bytes;
        tally.body_bytes += alike.body_bytes;
        for (count, connection) in tally.per_connection[first_connection..].iter_mut().zip(by_connection) {
            *count += connection.usual_answers;
        }
        tally.send_lag.merge(&self.lags);
        tally.generator_lag.merge(&self.lags);
        tally.service_time.merge(&self.in_one_piece);
        let Phases { write, first_byte, read, .. } = &mut tally.phases;
        first_byte.merge(&self.in_one_piece.summary());
        // Of no length, mostly: what has one is there already.
        for phase in [write, read] {
            phase.record_zeros(first_byte.count - phase.count);
        }
    }
}

/// What one lane has recorded so far.
pub(super) struct Records {
    /// All but what is in `usual`.
    pub(super) tally: Tally,
    usual: FastPathTotals,
    batches: Batches,
    /// What apps say of their time, where that is read.
    app_times: Option<AppTimes>,
    /// Answers by worker. Folded into the tally by name at the end.
    workers: Vec<WorkerCount>,
    exchanges: Vec<Exchange>,
    keep_exchanges: bool,
    pub(super) journal: Journal,
    first_connection: usize,
    /// Requests ended so far.
    pub(super) ended: u64,
}

impl Records {
    /// Nothing recorded yet, of a run that starts at `start`; a journal where there is a reader for it.
    pub(super) fn new<C: Clock>(
        shape: &LoadSpec,
        share: LaneShare,
        clock: &C,
        start: Nanos,
        journal: Option<SyncSender<RecordBatch>>,
    ) -> Records {
        let window = shape.window(start);
        Records {
            tally: Tally::new(window, shape.connections as usize),
            usual: FastPathTotals::default(),
            batches: Batches::new(window),
            app_times: shape.reads_app_times.then(|| AppTimes::new(clock)),
            workers: Vec::with_capacity(64),
            exchanges: Vec::new(),
            keep_exchanges: shape.keep_exchanges,
            journal: Journal::new(journal),
            first_connection: share.first_connection as usize,
            ended: 0,
        }
    }

    /// A whole response to `request` came: what it tells beside how the request ended. `first_byte` is when its first byte came.
    #[inline(always)]
    pub(super) fn response(
        &mut self,
        request: &Outstanding,
        response: &ReceivedResponse,
        is_good: bool,
        first_byte: Nanos,
        end: Ending,
    ) {
        self.tally.body_bytes += response.body_bytes;
        if let Some(worker) = response.worker {
            let count = WorkerCount { measured: u64::from(request.is_measured), all: 1 };
            self.answers_of(usize::from(worker), count);
        }
        if !request.is_measured || !is_good {
            return;
        }
        let phases = &mut self.tally.phases;
        if request.opened > Nanos::ZERO {
            let connected = if request.connected > Nanos::ZERO { request.connected } else { request.sent };
            phases.connect.record(connected.saturating_sub(request.opened));
            if request.connected > Nanos::ZERO {
                phases.handshake.record(request.sent.saturating_sub(request.connected));
            }
        }
        if request.written_at > request.sent {
            phases.write.record(request.written_at - request.sent);
        }
        let sent = sent(request, end);
        let service_time = end.at.saturating_sub(sent);
        if first_byte == end.at {
            self.usual.in_one_piece.record(service_time);
        } else {
            self.tally.service_time.record(service_time);
            phases.first_byte.record(first_byte.saturating_sub(sent));
            phases.read.record(end.at.saturating_sub(first_byte));
        }
        if let Some(app_times) = &mut self.app_times {
            let exchange = exchange(request, Outcome::Answered(response.status), end, 0);
            app_times.record(&exchange, response.app_time);
        }
    }

    /// A usual exchange has ended: all that is its own of it. `request` was sent on an open connection as soon as that was free,
    /// and its answer came in one piece.
    #[inline(always)]
    pub(super) fn usual(&mut self, request: &Outstanding, end: Ending) {
        let (lag, response_time) = (request.sent - request.due, end.at - request.due);
        let place = Place::of(response_time);
        self.usual.lags.record(lag);
        self.usual.in_one_piece.record(end.at - request.sent);
        self.batches.record_at(place, request.due, response_time, lag);
        self.tally.record_own(place, request.due, request.sent, end.at);
        if end.is_stamped {
            self.tally.read_lag.record(end.seen - end.at);
        }
        self.ended += 1;
    }

    #[inline]
    fn answers_of(&mut self, worker: usize, more: WorkerCount) {
        if worker >= self.workers.len() {
            self.workers.resize(worker + 1, WorkerCount::default());
        }
        self.workers[worker].all += more.all;
        self.workers[worker].measured += more.measured;
    }

    /// Records how `request` of connection `slot` ended, and whether that is good; with the `bytes` that were received of its
    /// answer, and what else is `kept` of it, which is only asked for where there is a journal.
    #[inline(always)]
    pub(super) fn end(
        &mut self,
        slot: usize,
        request: &Outstanding,
        (outcome, is_good): (Outcome, bool),
        end: Ending,
        bytes: u64,
        kept: impl FnOnce() -> JournalExtras,
    ) {
        let exchange = exchange(request, outcome, end, bytes);
        if request.is_measured {
            let begun = if request.opened > Nanos::ZERO { request.opened } else { exchange.sent };
            let lag = begun.saturating_sub(request.possible);
            if lag == exchange.send_lag() && exchange.was_sent() {
                self.usual.lags.record(lag);
            } else {
                self.record_lags(lag, exchange.was_sent().then(|| exchange.send_lag()));
            }
            if is_good {
                self.batches.record(request.due, exchange.response_time(), lag);
            }
            if end.is_stamped {
                self.tally.read_lag.record(end.seen - end.at);
            }
        }
        self.tally.record_judged(&exchange, self.first_connection + slot, request.is_measured, is_good);
        self.one_by_one(request.number, exchange, kept);
    }

    /// A good answer to `request` that is not as long as was `wanted`: the outcome that it has instead.
    #[cold]
    pub(super) fn wrong_length(
        &mut self,
        request: &Outstanding,
        wanted: Option<u64>,
        response: &ReceivedResponse,
    ) -> Outcome {
        if request.is_measured
            && let Some(wanted) = wanted
        {
            self.tally.record_wrong_length(wanted, response.body_bytes);
        }
        Outcome::WrongLength
    }

    /// Where something beside the generator made a request late, or it was not sent.
    #[inline(never)]
    fn record_lags(&mut self, own: Nanos, send_lag: Option<Nanos>) {
        self.tally.generator_lag.record(own);
        if let Some(lag) = send_lag {
            self.tally.send_lag.record(lag);
        }
    }

    /// The tally so far, all of it but the workers.
    pub(super) fn tally(&self, heads: &HeadCache, connections: &[Connection]) -> Tally {
        let mut tally = self.tally.clone();
        self.usual.add_to(&mut tally, &heads.alike(), self.first_connection, connections);
        tally
    }

    /// Records a request that never had a connection.
    pub(super) fn unsent(&mut self, number: u64, due: Nanos, ended: Nanos, outcome: Outcome) {
        let exchange = Exchange { due, sent: ended, ended, received_bytes: 0, outcome };
        self.tally.record(&exchange, self.first_connection);
        self.one_by_one(number, exchange, JournalExtras::default);
    }

    #[inline(always)]
    fn one_by_one(&mut self, number: u64, exchange: Exchange, kept: impl FnOnce() -> JournalExtras) {
        self.ended += 1;
        if self.keep_exchanges {
            self.keep(exchange);
        }
        if self.journal.is_kept() {
            let JournalExtras { reason, answer, trace } = kept();
            self.journal.record(RequestRecord { number, exchange, reason, answer, trace });
        }
    }

    #[cold]
    fn keep(&mut self, exchange: Exchange) {
        self.exchanges.push(exchange);
    }

    /// All of it, with the names of the workers that `heads` have.
    pub(super) fn finish(mut self, heads: &HeadCache, connections: &[Connection]) -> LaneEnd {
        let alike = heads.alike();
        for (worker, answers) in &alike.by_worker {
            self.answers_of(usize::from(*worker), WorkerCount { measured: *answers, all: *answers });
        }
        for (name, count) in heads.workers().iter().zip(&self.workers) {
            self.tally.per_worker.insert(name.clone(), *count);
        }
        self.usual.add_to(&mut self.tally, &alike, self.first_connection, connections);
        LaneEnd {
            dropped_records: self.journal.close(),
            tally: self.tally,
            batches: self.batches,
            dissection: self.app_times.map(AppTimes::into_dissection),
            exchanges: self.exchanges,
            interrupted_at: None,
            facts: None,
            clock_steps: None,
            backlog: None,
        }
    }
}

/// When it was sent; what never was, when it ended.
#[inline(always)]
fn sent(request: &Outstanding, end: Ending) -> Nanos {
    if request.written == 0 { end.at } else { request.sent }
}

#[inline(always)]
fn exchange(request: &Outstanding, outcome: Outcome, end: Ending, bytes: u64) -> Exchange {
    Exchange {
        due: request.due,
        sent: sent(request, end),
        ended: end.at,
        received_bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        outcome,
    }
}
