//! What a lane records: each request that ended, in exactly one place of its tally, and in the
//! journal if there is one.
//!
//! Everything here runs once a request, so it is one straight piece of code: times are computed
//! once, and nothing is looked up twice.

use std::mem::replace;
use std::sync::mpsc::SyncSender;

use model::histogram::BucketIndex;
use model::tally::WorkerCount;
use model::{
    AppTime, AppTimeAccumulator, BacklogSamples, Batches, ClassTally, Clock, Counts, Exchange,
    Histogram, LaneFacts, Nanos, Outcome, Phases, QueueTimes, Silence, Tally,
};
use serde::{Deserialize, Serialize};

use super::silences::ResponseClock;
use crate::connection::Outstanding;
use crate::head::{CACHED_HEADS, CachedHead, HeadCache};
use crate::load_spec::{LaneShare, LoadSpec};
use crate::progress::{Journal, RecordBatch, RequestRecord};
use crate::response::ReceivedResponse;

use super::sequence::ResponseSequence;

/// What a lane leaves behind, or several of them, [merged](LaneOutcome::merge).
#[derive(Debug, Serialize, Deserialize)]
pub struct LaneOutcome {
    /// All it recorded.
    pub tally: Tally,
    /// The good responses by time.
    pub batches: Batches,
    /// Times that the app reported, where the load asked for them.
    pub app_times: Option<AppTimeAccumulator>,
    /// Records that the journal's reader was too slow for.
    pub dropped_records: u64,
    /// When the run was interrupted, if it was.
    pub interrupted_at: Option<Nanos>,
    /// Each thread's use of the CPU, if the kernel tells.
    pub lanes: Vec<LaneFacts>,
    /// How often the wall clock was set during the run; `None` if the wall clock was not used.
    pub clock_steps: Option<u32>,
    /// Open loop: what was due and not answered.
    pub backlog: Option<BacklogSamples>,
    /// When each lane's server was silent.
    pub silences: Vec<Vec<Silence>>,
}

impl LaneOutcome {
    /// The outcome of a run in which no lane sent anything.
    pub fn nothing(spec: &LoadSpec, start: Nanos) -> LaneOutcome {
        let window = spec.window(start);
        LaneOutcome {
            tally: Tally::new(window, spec.load.connections as usize),
            batches: Batches::new(window),
            app_times: None,
            dropped_records: 0,
            interrupted_at: None,
            lanes: Vec::new(),
            clock_steps: None,
            backlog: None,
            silences: Vec::new(),
        }
    }

    /// Adds what other lanes of the same run left behind.
    ///
    /// # Panics
    /// If they are of another run.
    pub fn merge(&mut self, other: LaneOutcome) {
        self.tally.merge(&other.tally);
        self.batches.merge(other.batches);
        match (&mut self.app_times, other.app_times) {
            (Some(ours), Some(theirs)) => ours.merge(&theirs),
            (ours, theirs) => *ours = ours.take().or(theirs),
        }
        self.dropped_records += other.dropped_records;
        self.interrupted_at =
            [self.interrupted_at, other.interrupted_at].into_iter().flatten().min();
        self.lanes.extend(other.lanes);
        self.silences.extend(other.silences);
        self.clock_steps = self.clock_steps.max(other.clock_steps);
        match (&mut self.backlog, other.backlog) {
            (Some(ours), Some(theirs)) => ours.merge(theirs),
            (ours, theirs) => *ours = ours.take().or(theirs),
        }
    }
}

/// When a request ended, and when the lane saw that it had.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestEnd {
    pub(super) at: Nanos,
    pub(super) seen: Nanos,
    /// Where the kernel stamped it: how long it waited to be read, without the time for which the
    /// lane meant to leave it unread.
    pub(super) read_lag: Option<Nanos>,
}

impl RequestEnd {
    /// Without a kernel stamp it ended when it was seen.
    #[inline]
    pub(super) fn seen(now: Nanos) -> RequestEnd {
        RequestEnd { at: now, seen: now, read_lag: None }
    }
}

/// Responses of the fast path with the same cached head. They differ in their times only, so they
/// are counted.
#[derive(Clone, Copy, Default)]
struct ResponsesOfHead {
    serial: u64,
    status: u16,
    worker: Option<u16>,
    /// Bytes of one response.
    bytes: u64,
    body_bytes: u64,
    count: u64,
}

impl ResponsesOfHead {
    /// Counts of a head from here on.
    #[cold]
    fn of(cached: &CachedHead) -> ResponsesOfHead {
        let head = cached.head;
        ResponsesOfHead {
            serial: cached.serial,
            status: head.status,
            worker: head.worker,
            bytes: cached.length as u64,
            body_bytes: (cached.length - head.length) as u64,
            count: 0,
        }
    }

    /// Adds them to the tally, except for their status.
    fn add_to(&self, tally: &mut Tally) {
        if self.count > 0 {
            tally.add_alike(self.count);
            tally.received_bytes += self.count * self.bytes;
            tally.body_bytes += self.count * self.body_bytes;
        }
    }
}

/// What is recorded of the requests of one class and nowhere else.
struct ClassRecords {
    tally: ClassTally,
    by_head: [ResponsesOfHead; CACHED_HEADS],
}

impl ClassRecords {
    fn new(name: &str) -> ClassRecords {
        ClassRecords { tally: ClassTally::new(name), by_head: Default::default() }
    }

    /// The class's tally so far, with what its heads count.
    fn tally(&self) -> ClassTally {
        let mut tally = self.tally.clone();
        for responses in &self.by_head {
            tally.counts.add_answered(responses.status, responses.count);
        }
        tally
    }
}

/// Times that most requests would add to several histograms of the tally, recorded once.
#[derive(Default)]
struct SharedTimes {
    /// Send lags of requests that nothing but the generator made late: they are its own lags, too.
    lags: Histogram,
    /// Service times of good responses that came in one read: first and last byte together.
    in_one_piece: Histogram,
}

impl SharedTimes {
    /// Allocates room for all times beforehand, so that no lane allocates.
    fn new() -> SharedTimes {
        let mut times = SharedTimes::default();
        times.lags.make_room();
        times.in_one_piece.make_room();
        times
    }

    fn add_to(&self, tally: &mut Tally) {
        tally.send_lag.merge(&self.lags);
        tally.generator_lag.merge(&self.lags);
        tally.service_time.merge(&self.in_one_piece);
        let Phases { write, first_byte, read, .. } = &mut tally.phases;
        first_byte.merge(&self.in_one_piece.summary());
        // Most of them take no time; those that do are recorded already.
        for phase in [write, read] {
            phase.record_zeros(first_byte.count - phase.count);
        }
    }
}

/// How long this request waited for its connection to open; 0 if it was open.
#[inline]
fn connect_time(request: &Outstanding) -> Nanos {
    if request.opened == Nanos::ZERO {
        return Nanos::ZERO;
    }
    // Without a handshake the first byte goes out as soon as the connection is open.
    let connected = if request.connected > Nanos::ZERO { request.connected } else { request.sent };
    connected.saturating_sub(request.opened)
}

/// What one lane has recorded so far.
pub(super) struct Records {
    /// Everything except what is in `classes`, `by_head` and `shared`.
    pub(super) tally: Tally,
    /// Empty where requests are not told apart.
    classes: Vec<ClassRecords>,
    /// Responses of the fast path; without classes.
    by_head: [ResponsesOfHead; CACHED_HEADS],
    shared: SharedTimes,
    batches: Batches,
    /// Times that the app reports, if they are read.
    app_times: Option<AppTimeAccumulator>,
    /// How far the app's clock is ahead of ours.
    apps_ahead: Nanos,
    /// The first responses, in order.
    sequence: ResponseSequence,
    /// Responses by worker; added to the tally by name at the end.
    workers: Vec<WorkerCount>,
    /// Where there is a reader for it.
    pub(super) journal: Option<Journal>,
    first_connection: usize,
    /// Connections of this lane.
    connections: usize,
    /// Requests ended so far.
    pub(super) ended: u64,
    /// When whole responses came.
    pub(super) response_clock: ResponseClock,
}

impl Records {
    /// Nothing recorded yet, of a run that starts at `start`; a journal if there is a reader for
    /// it.
    pub(super) fn new<C: Clock>(
        spec: &LoadSpec,
        share: LaneShare,
        clock: &C,
        start: Nanos,
        journal: Option<SyncSender<RecordBatch>>,
    ) -> Records {
        let window = spec.window(start);
        let queue_times = spec.load.queue_header.map(|_| QueueTimes::with_room());
        Records {
            tally: Tally { queue_times, ..Tally::new(window, spec.load.connections as usize) },
            classes: spec.requests.classes().iter().map(|name| ClassRecords::new(name)).collect(),
            by_head: Default::default(),
            shared: SharedTimes::new(),
            batches: Batches::new(window),
            app_times: spec.reads_app_times.then(AppTimeAccumulator::default),
            apps_ahead: clock.shared_ahead(),
            sequence: ResponseSequence::new(spec.may_see_turns()),
            workers: Vec::with_capacity(64),
            journal: journal.map(Journal::new),
            first_connection: share.first_connection as usize,
            connections: share.connections as usize,
            ended: 0,
            response_clock: ResponseClock::new(spec.is_stamped()),
        }
    }

    /// Records what a whole response to `request` tells beyond how the request ended. `first_byte`
    /// is when its first byte came.
    #[inline(always)]
    pub(super) fn response(
        &mut self,
        request: &Outstanding,
        response: &ReceivedResponse,
        is_good: bool,
        first_byte: Nanos,
        end: RequestEnd,
    ) {
        self.tally.body_bytes += response.body_bytes;
        self.response_clock.came(response.head.worker, request.sent, end.at);
        if let Some(worker) = response.head.worker {
            self.count_worker(
                worker,
                WorkerCount { measured: u64::from(request.due.is_measured), all: 1 },
            );
        }
        if !request.due.is_measured {
            let longest = self.tally.longest_unmeasured_connect;
            self.tally.longest_unmeasured_connect = longest.max(connect_time(request));
            return;
        }
        if !is_good {
            return;
        }
        let phases = &mut self.tally.phases;
        if request.opened > Nanos::ZERO {
            phases.connect.record(connect_time(request));
            if request.connected > Nanos::ZERO {
                phases.handshake.record(request.sent.saturating_sub(request.connected));
            }
        }
        if request.written_at > request.sent {
            phases.write.record(request.written_at - request.sent);
        }
        let exchange = exchange(request, Outcome::Answered(response.head.status), end, 0);
        let service_time = exchange.service_time();
        if first_byte == end.at {
            self.shared.in_one_piece.record(service_time);
        } else {
            self.tally.service_time.record(service_time);
            phases.first_byte.record(first_byte.saturating_sub(exchange.sent));
            phases.read.record(end.at.saturating_sub(first_byte));
        }
        if let Some(app_times) = &mut self.app_times {
            let ours = |theirs: Nanos| theirs.saturating_sub(self.apps_ahead);
            let said = response.head.app_time.map(|said| match said {
                AppTime::Stamps { started, ended } => {
                    AppTime::Stamps { started: ours(started), ended: ours(ended) }
                }
                took @ AppTime::Took(_) => took,
            });
            app_times.record(&exchange, said);
            if let Some(computed) = response.head.queue_time
                && let Some(queue_times) = &mut self.tally.queue_times
            {
                let outside = said.map(|said| match said {
                    AppTime::Stamps { started, .. } => started.saturating_sub(exchange.sent),
                    AppTime::Took(app) => service_time.saturating_sub(app),
                });
                queue_times.record(computed, outside);
            }
        }
    }

    /// Whether the requests are told apart by class.
    pub(super) fn tells_classes(&self) -> bool {
        !self.classes.is_empty()
    }

    /// Records an exchange of the fast path on connection `slot`: `request` was sent on an open
    /// connection as soon as that was free, and its response came in one read, with the `head` that
    /// is cached at `hint`.
    #[inline(always)]
    pub(super) fn fast_path<const CLASSES: bool>(
        &mut self,
        slot: usize,
        request: &Outstanding,
        end: RequestEnd,
        hint: u8,
        head: &CachedHead,
    ) {
        let due = request.due.at;
        let lag = request.sent - due;
        let response_time = end.at - due;
        let place = BucketIndex::of(response_time);
        self.shared.lags.record(lag);
        self.shared.in_one_piece.record(end.at - request.sent);
        self.batches.record_at(place, due, response_time, lag);
        self.tally.record_own(due, request.sent, end.at);
        self.tally.per_connection[self.first_connection + slot] += 1;
        self.sequence.note(slot, response_time, true);
        if let Some(lag) = end.read_lag {
            self.tally.read_lag.record(lag);
        }
        let index = usize::from(hint) % CACHED_HEADS;
        if CLASSES && let Some(class) = self.classes.get_mut(usize::from(request.class)) {
            class.tally.record_at(place, response_time);
            let responses = &mut class.by_head[index];
            if responses.serial == head.serial {
                responses.count += 1;
            } else {
                self.begin_count_of_class(request.class, index, head);
            }
        } else {
            self.tally.record_at(place, response_time);
            if self.by_head[index].serial == head.serial {
                self.by_head[index].count += 1;
            } else {
                self.begin_count(index, head);
            }
        }
        self.response_clock.came(head.head.worker, request.sent, end.at);
        self.ended += 1;
    }

    /// From here on responses with this `head`, of which this is the first, are counted at `index`.
    #[cold]
    fn begin_count(&mut self, index: usize, head: &CachedHead) {
        let first = ResponsesOfHead { count: 1, ..ResponsesOfHead::of(head) };
        let replaced = replace(&mut self.by_head[index], first);
        self.tally.counts.add_answered(replaced.status, replaced.count);
        self.end_count(&replaced);
    }

    /// The same of responses to requests of a class.
    #[cold]
    fn begin_count_of_class(&mut self, class: u8, index: usize, head: &CachedHead) {
        let class = &mut self.classes[usize::from(class)];
        let first = ResponsesOfHead { count: 1, ..ResponsesOfHead::of(head) };
        let replaced = replace(&mut class.by_head[index], first);
        class.tally.counts.add_answered(replaced.status, replaced.count);
        self.end_count(&replaced);
    }

    /// Adds responses with the same head to the tally and to their worker, except for their status.
    #[cold]
    fn end_count(&mut self, responses: &ResponsesOfHead) {
        responses.add_to(&mut self.tally);
        if let Some(worker) = responses.worker {
            self.count_worker(
                worker,
                WorkerCount { measured: responses.count, all: responses.count },
            );
        }
    }

    #[inline]
    fn count_worker(&mut self, worker: u16, more: WorkerCount) {
        let worker = usize::from(worker);
        if worker >= self.workers.len() {
            self.workers.resize(worker + 1, WorkerCount::default());
        }
        self.workers[worker].all += more.all;
        self.workers[worker].measured += more.measured;
    }

    /// Records how `request` of connection `slot` ended, after `bytes` of its response. Where there
    /// is a journal, `complete` adds the rest of the record.
    #[inline(always)]
    pub(super) fn end(
        &mut self,
        slot: usize,
        request: &Outstanding,
        outcome: Outcome,
        end: RequestEnd,
        bytes: u64,
        complete: impl FnOnce(&mut RequestRecord),
    ) {
        let is_good = outcome.is_good();
        let exchange = exchange(request, outcome, end, bytes);
        self.sequence.note(slot, exchange.response_time(), is_good);
        if request.due.is_measured {
            let begun = if request.opened > Nanos::ZERO { request.opened } else { exchange.sent };
            let lag = begun.saturating_sub(request.due.possible);
            if lag == exchange.send_lag() && exchange.was_sent() {
                self.shared.lags.record(lag);
            } else {
                self.record_lags(lag, exchange.was_sent().then(|| exchange.send_lag()));
            }
            if is_good {
                self.batches.record(exchange.due, exchange.response_time(), lag);
            }
            if let Some(lag) = end.read_lag {
                self.tally.read_lag.record(lag);
            }
        }
        self.tally.record_judged(
            self.classes.get_mut(usize::from(request.class)).map(|class| &mut class.tally),
            &exchange,
            self.first_connection + slot,
            request.due.is_measured,
            is_good,
        );
        self.note(request.due.number, exchange, complete);
    }

    /// Records that the user stopped the run while `request` was in flight, after `bytes` of its
    /// response.
    #[cold]
    pub(super) fn stopped(&mut self, request: &Outstanding, now: Nanos, bytes: u64) {
        let exchange = exchange(request, Outcome::InFlight, RequestEnd::seen(now), bytes);
        if request.due.is_measured {
            let begun = if request.opened > Nanos::ZERO { request.opened } else { exchange.sent };
            let send_lag = exchange.was_sent().then(|| exchange.send_lag());
            self.record_lags(begun.saturating_sub(request.due.possible), send_lag);
        }
        let class = self.classes.get_mut(usize::from(request.class));
        self.tally.record_unfinished(class.map(|class| &mut class.tally), &exchange, true);
        self.note(request.due.number, exchange, |_| {});
    }

    /// Records that the user stopped the run while this request waited for a connection.
    #[cold]
    pub(super) fn stopped_unsent(&mut self, number: u64, class: u8, due: Nanos, now: Nanos) {
        let outcome = Outcome::NotSent;
        let exchange = Exchange { due, sent: now, ended: now, received_bytes: 0, outcome };
        let class = self.classes.get_mut(usize::from(class));
        self.tally.record_unfinished(class.map(|class| &mut class.tally), &exchange, false);
        self.note(number, exchange, |_| {});
    }

    /// Good responses to measured requests on connection `slot` so far.
    pub(super) fn good_of_connection(&self, slot: usize) -> u64 {
        self.tally.per_connection[self.first_connection + slot]
    }

    /// For a request that something besides the generator made late, or that was not sent.
    #[inline(never)]
    fn record_lags(&mut self, own: Nanos, send_lag: Option<Nanos>) {
        self.tally.generator_lag.record(own);
        if let Some(lag) = send_lag {
            self.tally.send_lag.record(lag);
        }
    }

    /// Records a request of this class that never had a connection.
    pub(super) fn unsent(
        &mut self,
        number: u64,
        class: u8,
        due: Nanos,
        ended: Nanos,
        outcome: Outcome,
    ) {
        let exchange = Exchange { due, sent: ended, ended, received_bytes: 0, outcome };
        let class = self.classes.get_mut(usize::from(class));
        self.tally.record_of(class.map(|class| &mut class.tally), &exchange, self.first_connection);
        self.note(number, exchange, |_| {});
    }

    #[inline(always)]
    fn note(&mut self, number: u64, exchange: Exchange, complete: impl FnOnce(&mut RequestRecord)) {
        self.ended += 1;
        if let Some(journal) = &mut self.journal {
            let mut record =
                RequestRecord { number, exchange, reason: None, response: None, trace: None };
            complete(&mut record);
            journal.record(record);
        }
    }

    /// Requests that have timed out so far.
    pub(super) fn timed_out(&self) -> u64 {
        let given_up = |counts: &Counts| counts.of(Outcome::TimedOut);
        let of_classes = self.classes.iter().map(|class| &class.tally);
        let of_classes = of_classes.map(|it| given_up(&it.counts) + given_up(&it.unmeasured));
        given_up(&self.tally.counts) + given_up(&self.tally.unmeasured) + of_classes.sum::<u64>()
    }

    /// The tally so far, without the workers.
    pub(super) fn tally(&self) -> Tally {
        let mut tally = self.tally.clone();
        for responses in &self.by_head {
            tally.counts.add_answered(responses.status, responses.count);
            responses.add_to(&mut tally);
        }
        for responses in self.classes.iter().flat_map(|class| &class.by_head) {
            responses.add_to(&mut tally);
        }
        let of_classes: Vec<ClassTally> = self.classes.iter().map(ClassRecords::tally).collect();
        tally.add_classes(&of_classes);
        self.shared.add_to(&mut tally);
        tally
    }

    /// The whole outcome, with the workers' names from `heads`.
    pub(super) fn finish(mut self, heads: &HeadCache) -> LaneOutcome {
        for responses in std::mem::take(&mut self.by_head) {
            self.tally.counts.add_answered(responses.status, responses.count);
            self.end_count(&responses);
        }
        let classes = std::mem::take(&mut self.classes);
        for responses in classes.iter().flat_map(|class| &class.by_head) {
            self.end_count(responses);
        }
        let of_classes: Vec<ClassTally> = classes.iter().map(ClassRecords::tally).collect();
        self.tally.add_classes(&of_classes);
        self.shared.add_to(&mut self.tally);
        self.tally.redirect = heads.redirect();
        self.tally.server_name = heads.server_name().map(str::to_owned);
        if let Some(quick) = self.tally.response_time.quantile(0.25) {
            let waited = quick + quick / 2;
            self.tally.turns = self.sequence.turns(self.connections, waited);
        }
        for (name, index) in heads.workers() {
            if let Some(count) = self.workers.get(usize::from(*index)) {
                self.tally.per_worker.insert(name.clone(), *count);
            }
        }
        self.tally.queue_times.take_if(|times| times.computed.count() == 0);
        let silences = self.response_clock.finish(self.tally.window, heads.workers());
        LaneOutcome {
            tally: self.tally,
            batches: self.batches,
            app_times: self.app_times,
            dropped_records: self.journal.map_or(0, Journal::close),
            interrupted_at: None,
            lanes: Vec::new(),
            clock_steps: None,
            backlog: None,
            silences: vec![silences],
        }
    }
}

#[inline(always)]
fn exchange(request: &Outstanding, outcome: Outcome, end: RequestEnd, bytes: u64) -> Exchange {
    Exchange {
        due: request.due.at,
        // A request that was never sent counts as sent when it ended.
        sent: if request.written == 0 { end.at } else { request.sent },
        ended: end.at,
        received_bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        outcome,
    }
}
