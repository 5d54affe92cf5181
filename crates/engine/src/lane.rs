//! The request loop: one thread, its connections, its tally.
//!
//! Each turn: wait for news; read the clock once; (A) receive all that came and record what ended at that instant; (B)
//! send all that is due, the clock read before each send. Receiving comes first so that the k-th answer of a batch does not carry
//! the cost of k sends. Nothing is formatted, shared or (once warm) allocated here. What stays true: every request that was begun is
//! recorded exactly once, with `due ≤ sent ≤ ended`. This file is the turn; A is in `lane/receive.rs`, B in
//! `lane/send.rs`, what both are for most requests of a busy closed loop in `lane/usual.rs`, and what is written down in `lane/records.rs`.

mod receive;
mod records;
mod send;
mod usual;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;

use model::{
    BacklogSamples, BadResponse, Batches, Clock, Counts, Dissection, Exchange, LaneFacts, Late, Nanos, NetworkPath,
    Outcome, Tally, Timestamps, Timing, Window,
};

use crate::agenda::{DueRequest, Scheduler};
use crate::awake::BusyPoll;
use crate::connection::{Connection, ConnectionState, take_answer};
use crate::cpu_use::ThreadCpuTime;
use crate::head::HeadCache;
use crate::journal::RecordBatch;
use crate::lateness::{self, WakeDelay};
use crate::progress::LaneProgress;
use crate::shape::{LaneShare, LoadSpec};
use crate::stamps::WallClock;
use crate::standstill::{NOTABLE, Standstill};
use crate::tcp_info::TcpInfo;
use crate::wire::{ConnectionDriver, ConnectionEvent};
use records::{Ending, JournalExtras, Records};

/// The longest wait in one go: how late a lane may notice a timeout or the user's interruption.
const LONGEST_WAIT: Nanos = Nanos::from_millis(100);
/// Closed loop: the pause after a failed connect, doubled with each failure in a row.
const FIRST_PAUSE: Nanos = Nanos::from_millis(10);
const LONGEST_PAUSE: Nanos = Nanos::from_secs(1);
/// Before a due time, how long a lane stays awake for it ([`Timing::Spin`]).
const SPIN: Nanos = lateness::MOST;
/// What a lane that coalesces rounds its waits up to ([`Timing::Coalesce`]).
const COALESCED: Nanos = Nanos::from_millis(1);
/// Bytes received in one go.
const BUFFER: usize = 64 * 1024;

/// What a lane leaves behind.
#[derive(Debug)]
pub struct LaneEnd {
    /// All it recorded.
    pub tally: Tally,
    /// The good answers by time.
    pub batches: Batches,
    /// What apps said of their time, where the shape asked for it.
    pub dissection: Option<Dissection>,
    /// Each exchange in order of completion, where the shape asked to keep them.
    pub exchanges: Vec<Exchange>,
    /// Records that the journal's reader was too slow for.
    pub dropped_records: u64,
    /// When it was interrupted, if it was.
    pub interrupted_at: Option<Nanos>,
    /// What its thread used of the CPU; `None` where the kernel does not say.
    pub facts: Option<LaneFacts>,
    /// How often the wall clock was set meanwhile; `None` where nobody needed it.
    pub clock_steps: Option<u32>,
    /// Open loop: what was due and not answered.
    pub backlog: Option<BacklogSamples>,
}

/// One thread's part of a run.
pub struct Lane<'a, C, W> {
    shape: &'a LoadSpec,
    clock: C,
    wire: W,
    window: Window,
    agenda: Scheduler,
    connections: Vec<Connection>,
    heads: HeadCache,
    /// Whether there are [usual exchanges](usual) in this load.
    may_be_usual: bool,
    /// Whether TCP is asked for the round trip of each connection.
    reads_paths: bool,
    records: Records,
    start: Nanos,
    /// Connections that can take the next request at once: in a closed loop those whose next request is due, in
    /// an open loop all free ones, the most recently used last.
    free: Vec<u32>,
    /// The other half of `free` while it is being emptied.
    freed_before: Vec<u32>,
    /// Connections whose sockets may hold more than was taken in one turn, and whether the server has closed them.
    unread: Vec<(u32, bool)>,
    /// Connections in a pause (a user who thinks, a connect that failed), and until when.
    pausing: BinaryHeap<Reverse<(Nanos, u32)>>,
    busy: usize,
    /// Of those, how many are measured.
    busy_measured: usize,
    next_scan: Nanos,
    /// What the kernel's stamps are on our clock, where there are stamps.
    wall: Option<WallClock>,
    /// Where the lane may stay awake for answers.
    awake: Option<BusyPoll>,
    /// How late its sleeps end.
    lateness: WakeDelay,
    /// Open loop: what was due and not answered.
    backlog: BacklogSamples,
    /// When it did not run.
    standstill: Standstill,
    /// Requests that had ended before the last turn.
    ended_before: u64,
    buffer: Vec<u8>,
}

impl<'a, C: Clock, W: ConnectionDriver> Lane<'a, C, W> {
    /// A lane that will start at `start` on `clock`, and write a journal where there is a reader for it.
    pub fn new(
        shape: &'a LoadSpec,
        share: LaneShare,
        clock: C,
        wire: W,
        start: Nanos,
        journal: Option<SyncSender<RecordBatch>>,
    ) -> Self {
        let window = shape.window(start);
        let quota = shape.requests_per_connection.unwrap_or(u64::MAX);
        let pipeline = shape.pipeline.max(1);
        // A connection stands in the list as often as it can take another request.
        let slots = (0..pipeline).flat_map(|_| 0..share.connections);
        // The first is taken last, so that an open loop opens its connections in order.
        let free: Vec<u32> = if shape.pace.is_open() { slots.rev().collect() } else { slots.collect() };
        let may_be_usual = usual::may_be(shape, journal.is_some());
        let records = Records::new(shape, share, &clock, start, journal);
        Lane {
            shape,
            clock,
            wire,
            window,
            agenda: Scheduler::new(shape, share, start),
            connections: (0..share.connections).map(|_| Connection::new(quota, start, pipeline)).collect(),
            heads: HeadCache::new(&shape.worker_header)
                .reading_app_times(shape.reads_app_times)
                .wanting(shape.body_bytes),
            may_be_usual,
            reads_paths: shape.transport.leaves_loopback(),
            records,
            start,
            pausing: BinaryHeap::with_capacity(free.len()),
            freed_before: Vec::with_capacity(free.len()),
            free,
            unread: Vec::new(),
            busy: 0,
            busy_measured: 0,
            next_scan: start,
            wall: None,
            awake: None,
            lateness: WakeDelay::default(),
            backlog: BacklogSamples::new(window),
            standstill: Standstill::new(window),
            ended_before: 0,
            buffer: vec![0; BUFFER],
        }
    }

    /// Runs to the end: all planned requests ended, or `interrupt` was set. `place` is where this lane's progress is shown.
    pub fn run(mut self, interrupt: &AtomicBool, place: &LaneProgress) -> LaneEnd {
        let mut events = Vec::with_capacity(1024);
        let mut now = self.clock.now();
        while now < self.start {
            self.wire.wait((self.start - now).min(LONGEST_WAIT), &mut events);
            now = self.clock.now();
        }
        // Pipelining: a stamp may be of a later answer's bytes.
        let is_stamped = self.shape.timestamps == Timestamps::Kernel && self.shape.pipeline <= 1;
        self.wall = is_stamped.then(|| WallClock::new(&self.clock));
        let stays_awake = self.shape.stays_awake && !self.agenda.is_open();
        self.awake = stays_awake.then(|| BusyPoll::new(self.shape.lanes)).flatten();
        self.send_what_is_due(now);
        let mut interrupted_at = None;
        let (began_at, began_with) = (now, ThreadCpuTime::now());
        self.standstill.look();
        while !self.is_over(now) {
            let before = now;
            if self.agenda.is_open() {
                // What was sent since has taken its time, and the next due time does not wait for it.
                now = self.clock.now();
                if now >= self.backlog.next() {
                    self.sample_the_backlog(now);
                }
            }
            let at_most = self.longest_wait(now);
            let until = now + at_most;
            self.wait(at_most, &mut events);
            now = self.clock.now();
            if now.saturating_sub(before) > at_most + NOTABLE {
                self.standstill.was_late(before + at_most, now);
            }
            if at_most > Nanos::ZERO && events.is_empty() {
                self.lateness.woke(until, now);
            }
            if !self.unread.is_empty() {
                self.receive_the_unread(now);
            }
            for event in &events {
                self.handle(*event, now);
            }
            if now >= self.next_scan {
                self.give_up_the_late(now);
            }
            self.resume_the_paused(now);
            self.send_what_is_due(now);
            self.records.journal.age(now);
            place.show(self.records.ended, || self.records.tally(&self.heads, &self.connections));
            if interrupt.load(Ordering::Relaxed) {
                interrupted_at = Some(now);
                break;
            }
        }
        place.show(self.records.ended, || self.records.tally(&self.heads, &self.connections));
        let spun = self.awake.as_ref().map_or(Nanos::ZERO, BusyPoll::spent);
        let facts = ThreadCpuTime::now().since(began_with, now.saturating_sub(began_at), spun);
        let Standstill { sum: stood_still, longest: longest_standstill, .. } = self.standstill;
        let facts = facts.map(|facts| LaneFacts { stood_still, longest_standstill, ..facts });
        self.finish(interrupted_at, facts)
    }

    /// Waits for news, `at_most` this long: awake at first, where that pays. It does not pay for the rest of answers of which the
    /// last news, still in `events`, were but pieces: who sleeps finds more of them at once, and reads less often.
    #[inline]
    fn wait(&mut self, at_most: Nanos, events: &mut Vec<ConnectionEvent>) {
        let ended_before = std::mem::replace(&mut self.ended_before, self.records.ended);
        let were_pieces = !events.is_empty() && self.records.ended == ended_before;
        match &mut self.awake {
            Some(awake) if at_most > Nanos::ZERO && !were_pieces => {
                let (clock, wire) = (&self.clock, &mut self.wire);
                // Several may be out on a connection, and its news come as one.
                let out = self.busy.min(self.connections.len());
                wait_awake(awake, clock, wire, at_most, out, events);
            }
            _ => self.wire.wait(at_most, events),
        }
    }

    /// Open loop: notes how many requests are due and not answered; those that were given up are among them. Once nothing becomes due any
    /// more there is no load to have a backlog of.
    #[cold]
    fn sample_the_backlog(&mut self, now: Nanos) {
        let given_up = |counts: &Counts| counts.of(Outcome::TimedOut);
        let tally = &self.records.tally;
        let unanswered = given_up(&tally.counts) + given_up(&tally.unmeasured);
        let waiting = (self.busy + self.agenda.queued()) as u64;
        match self.agenda.ended_at() {
            Some(last_due) => {
                self.backlog.take(now.min(last_due), waiting + unanswered);
                self.backlog.end(last_due);
            }
            None => self.backlog.take(now, waiting + unanswered),
        }
    }

    /// Whether nothing is left to do.
    fn is_over(&mut self, now: Nanos) -> bool {
        self.busy == 0
            && (self.agenda.is_over(now)
                || !self.agenda.is_open() && self.connections.iter().all(|c| c.state == ConnectionState::Finished))
    }

    /// How long nothing will have to be done.
    fn longest_wait(&mut self, now: Nanos) -> Nanos {
        if !self.unread.is_empty() {
            return Nanos::ZERO;
        }
        let has_free = !self.free.is_empty();
        if !self.agenda.is_open() && has_free && self.keeps_loading(now) && !self.agenda.is_exhausted() {
            return Nanos::ZERO;
        }
        let mut until = self.next_scan.min(now + LONGEST_WAIT);
        if let Some(due) = self.agenda.next_due() {
            until = until.min(match self.shape.timing {
                Timing::Precise => due.saturating_sub(self.lateness.expected()).max(now),
                Timing::Spin => due.saturating_sub(SPIN).max(now),
                Timing::Coalesce => Nanos(due.0.div_ceil(COALESCED.0) * COALESCED.0),
            });
        }
        if let Some(Reverse((pause_end, _))) = self.pausing.peek() {
            until = until.min(*pause_end);
        }
        until.saturating_sub(now)
    }

    /// What is out ends without a whole response, and its connection with it.
    #[cold]
    fn end(&mut self, slot: usize, outcome: Outcome, now: Nanos, pause: Option<Nanos>) {
        let bytes = self.connections[slot].reader.received();
        let oldest = self.connections[slot].outstanding.oldest().filter(|request| request.is_measured);
        let out_for = oldest.map(|request| now.saturating_sub(request.begun));
        if let Some(out_for) = out_for.filter(|out_for| *out_for >= NetworkPath::SLOW) {
            self.note_slow(slot, out_for);
        }
        self.close(slot);
        if let Some(pause) = pause {
            // In a closed loop the next request is due when the pause is over; record() puts it off until then.
            self.connections[slot].next_due = now + pause;
        }
        self.record_all(slot, outcome, None, now, bytes);
    }

    /// Records that all that is out on `slot` ended in `outcome`, a bad response for this `reason`; `bytes` were received of the
    /// oldest's answer.
    fn record_all(&mut self, slot: usize, outcome: Outcome, reason: Option<BadResponse>, now: Nanos, bytes: u64) {
        let mut bytes = bytes;
        while let Some(request) = self.connections[slot].outstanding.pop() {
            let answer = self.kept_answer(slot);
            let judged = (outcome, outcome.is_good());
            let kept = || JournalExtras { reason, answer, trace: None };
            self.records.end(slot, &request, judged, Ending::seen(now), std::mem::take(&mut bytes), kept);
            self.free_place(slot, request.is_measured, now);
        }
        self.connections[slot].sent_in_full = 0;
    }

    /// The raw answer to what just ended on `slot`, where answers are kept.
    fn kept_answer(&mut self, slot: usize) -> Option<Box<[u8]>> {
        let is_kept = self.shape.keep_answers && self.records.journal.is_kept();
        is_kept.then(|| take_answer(&mut self.connections[slot].answer)).flatten()
    }

    fn close(&mut self, slot: usize) {
        if self.reads_paths && self.connections[slot].state == ConnectionState::Open {
            self.read_path(slot);
        }
        self.wire.close(slot);
        self.unread.retain(|(other, _)| *other as usize != slot);
        let connection = &mut self.connections[slot];
        connection.retransmitted = 0;
        connection.reader.reset();
        connection.is_usual = false;
        connection.state = ConnectionState::Closed;
    }

    /// Notes what TCP says of a connection that is closed now.
    fn read_path(&mut self, slot: usize) {
        if let Some(TcpInfo { shortest_round_trip, retransmitted }) = self.wire.tcp_info(slot) {
            self.records.tally.network.record_connection(shortest_round_trip, retransmitted);
        }
    }

    /// A measured request on `slot` has taken long enough for a retransmission: whether there was one. On a connection that was
    /// slow before only what came since is looked at.
    #[cold]
    fn note_slow(&mut self, slot: usize, took: Nanos) {
        if let Some(TcpInfo { retransmitted, .. }) = self.wire.tcp_info(slot) {
            let before = std::mem::replace(&mut self.connections[slot].retransmitted, retransmitted);
            self.records.tally.network.record_slow(took, retransmitted > before);
        }
    }

    /// A request of `slot` has ended, and its end was seen at `seen`: its place on the connection is free for the next one.
    #[inline(always)]
    fn free_place(&mut self, slot: usize, was_measured: bool, seen: Nanos) {
        let connection = &mut self.connections[slot];
        connection.requests_left -= u64::from(was_measured);
        connection.next_due = connection.next_due.max(seen + self.shape.think);
        let next_due = connection.next_due;
        self.busy -= 1;
        self.busy_measured -= usize::from(was_measured);
        if connection.requests_left == 0 {
            self.retire(slot);
        } else if next_due > seen {
            self.pausing.push(Reverse((next_due, slot as u32)));
        } else {
            self.free.push(slot as u32);
        }
    }

    /// Begins what is due: in a closed loop a request on each free connection, in an open loop whatever the
    /// schedule says, as far as connections are free.
    #[inline]
    fn send_what_is_due(&mut self, now: Nanos) {
        if self.agenda.is_open() {
            self.agenda.queue_due(now);
            if self.agenda.has_queued() {
                self.give_up_the_queue(now);
            }
            while self.agenda.has_queued()
                && let Some(slot) = self.free.pop()
                && let Some(due) = self.agenda.pop(now, &mut self.records.tally.queued)
            {
                self.begin(slot as usize, due, now);
            }
            if self.agenda.has_queued() {
                match self.shape.late {
                    Late::Queue => self.agenda.mark_waiting(),
                    Late::Skip => self.skip_queued(now),
                }
            }
        } else if !self.free.is_empty() && self.keeps_loading(now) {
            // A request that fails at once frees its connection again: that one waits for the next turn.
            std::mem::swap(&mut self.free, &mut self.freed_before);
            let mut slots = std::mem::take(&mut self.freed_before);
            for slot in slots.drain(..) {
                let due = self.connections[slot as usize].next_due;
                match self.agenda.next_at(due) {
                    Some(due) => self.begin(slot as usize, due, now),
                    None => self.retire(slot as usize),
                }
            }
            self.freed_before = slots;
        } else {
            // The load is over. A server may hold a thread for each connection that is left open, while others wait for their last answer.
            for slot in std::mem::take(&mut self.free) {
                self.retire(slot as usize);
            }
        }
    }

    /// Closed loop: whether free connections are to make another request. After the window they do so, unmeasured,
    /// until the last measured request has ended: those still out would find the server emptier than everybody before.
    #[inline]
    fn keeps_loading(&self, now: Nanos) -> bool {
        now < self.window.until || self.busy_measured > 0
    }

    /// This connection is not needed any more, once nothing is out on it.
    #[cold]
    fn retire(&mut self, slot: usize) {
        let connection = &self.connections[slot];
        if connection.outstanding.is_empty() && connection.state != ConnectionState::Finished {
            self.close(slot);
            self.connections[slot].state = ConnectionState::Finished;
        }
    }

    /// Open loop: counts what is due and finds no connection, and does not send it.
    #[cold]
    fn skip_queued(&mut self, now: Nanos) {
        while let Some(DueRequest { number, at: due, .. }) = self.agenda.pop(now, &mut self.records.tally.queued) {
            self.records.unsent(number, due, due, Outcome::Skipped);
        }
    }

    /// Open loop on a server that does not keep up: a timeout after the last due time nothing more is sent. What is out
    /// then has its own timeout still.
    fn give_up_the_queue(&mut self, now: Nanos) {
        if self.agenda.ended_at().is_some_and(|last_due| now.saturating_sub(last_due) >= self.shape.timeout) {
            self.record_the_queue(now);
        }
    }

    /// Open loop: what became due and never found a free connection is in flight at the end.
    #[cold]
    fn record_the_queue(&mut self, now: Nanos) {
        while let Some(DueRequest { number, at: due, .. }) = self.agenda.pop(now, &mut self.records.tally.queued) {
            self.records.unsent(number, due, now.max(due), Outcome::InFlight);
        }
    }

    /// Gives up the requests that have taken longer than the timeout.
    fn give_up_the_late(&mut self, now: Nanos) {
        if let Some(wall) = &mut self.wall {
            wall.look(&self.clock, now);
        }
        let step = (self.shape.timeout / 20).clamp(Nanos::from_millis(1), LONGEST_WAIT);
        self.next_scan = now + step;
        self.standstill.look();
        for slot in 0..self.connections.len() {
            // The oldest one's answer comes first, so whatever is out behind it is given up with it.
            let oldest = self.connections[slot].outstanding.oldest();
            if oldest.is_some_and(|request| now.saturating_sub(request.begun) >= self.shape.timeout) {
                let is_connected = self.connections[slot].state == ConnectionState::Open;
                let outcome = if is_connected { Outcome::TimedOut } else { Outcome::ConnectTimedOut };
                self.end(slot, outcome, now, None);
            }
        }
    }

    /// Frees the connections whose pause is over.
    #[inline]
    fn resume_the_paused(&mut self, now: Nanos) {
        while let Some(Reverse((_, slot))) = self.pausing.peek().copied().filter(|Reverse((until, _))| *until <= now) {
            self.pausing.pop();
            self.free.push(slot);
        }
    }

    /// Records what has not ended, and names the workers.
    fn finish(mut self, interrupted_at: Option<Nanos>, facts: Option<LaneFacts>) -> LaneEnd {
        // Not the turn's time: the last turn may have sent after it.
        let now = self.clock.now();
        if let Some(wall) = &mut self.wall {
            wall.look_now(&self.clock);
        }
        for slot in 0..self.connections.len() {
            self.end(slot, Outcome::InFlight, now, None);
        }
        self.record_the_queue(now);
        let clock_steps = self.wall.map(|wall| wall.steps());
        let backlog = self.agenda.is_open().then(|| {
            self.backlog.end(self.agenda.last_due());
            self.backlog
        });
        let end = self.records.finish(&self.heads, &self.connections);
        LaneEnd { interrupted_at, facts, clock_steps, backlog, ..end }
    }
}

/// Waits for news of the connections that have something `out`, `at_most` this long, and is awake for the time that `awake` allows
/// before it sleeps.
#[inline]
fn wait_awake<C: Clock, W: ConnectionDriver>(
    awake: &mut BusyPoll,
    clock: &C,
    wire: &mut W,
    at_most: Nanos,
    out: usize,
    events: &mut Vec<ConnectionEvent>,
) {
    let mut budget = awake.budget().min(at_most);
    if budget > Nanos::ZERO {
        // What is there already was not waited for.
        wire.wait(Nanos::ZERO, events);
        if !events.is_empty() {
            return;
        }
    }
    let began = clock.now();
    if budget > Nanos::ZERO && awake.is_trial(began) {
        budget = Nanos::ZERO;
    }
    let mut waited = Nanos::ZERO;
    while waited < budget {
        wire.wait(Nanos::ZERO, events);
        let now = clock.now();
        waited = now.saturating_sub(began);
        if !events.is_empty() {
            return awake.spend(waited, now);
        }
    }
    if waited > Nanos::ZERO {
        awake.spend(waited, began + waited);
    }
    wire.wait(at_most.saturating_sub(waited), events);
    let now = clock.now();
    awake.slept(now.saturating_sub(began), events.len() >= out, now);
}
