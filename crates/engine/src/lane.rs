//! The request loop: one thread, its connections, its tally.
//!
//! Each turn (`lane/run.rs`): wait for news; read the clock once; receive all that came, and record
//! with that time what ended (`lane/receive.rs`); send all that is due, reading the clock before
//! each send (`lane/send.rs`). Receiving comes first so that the k-th response of a batch does not
//! carry the cost of k sends. Nothing is formatted, shared or (once warm) allocated here. Every
//! request that was begun is recorded exactly once (`lane/records.rs`), with `due ≤ sent ≤ ended`.
//! This file has a lane's state, and how its requests and connections end.
//!
//! Most requests of a busy closed loop take the fast path: three pieces of code without a loop,
//! `begin_on_fast_path`, `take_on_fast_path` and `Records::fast_path`. Such a request is measured,
//! and goes out whole in one send on an open connection. Its response comes in one read before the
//! window ends, with a head that was seen before; it is good, has the expected length, and leaves
//! the connection open. Then only its times are recorded. The rest is the same for every response
//! with that head, so it is counted once for each head, and added up when somebody asks. Anything
//! else takes the slow path, and both leave the same tally (test
//! `the_fast_path_and_the_slow_path_record_the_same`).

mod receive;
mod records;
mod retries;
mod run;
mod send;
mod sequence;
mod silences;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::mpsc::SyncSender;

use model::{BacklogSamples, BadResponse, Clock, Nanos, NetworkPath, Outcome, Window};

use crate::connection::{ConnectionState, LaneConnection, take_response};
use crate::head::HeadCache;
use crate::kernel_timestamps::WallClock;
use crate::load_spec::{LaneShare, LoadSpec};
use crate::progress::RecordBatch;
use crate::queue_stamps::QueueStamps;
use crate::scheduler::Scheduler;
use crate::thread::Standstill;
use crate::waiting::{BusyPoll, UnreadResponses, WakeDelay};
use crate::wire::{ConnectionDriver, TcpInfo};
pub use records::LaneOutcome;
use records::{Records, RequestEnd};
use retries::Retries;

/// Bytes received in one go.
const BUFFER: usize = 64 * 1024;

/// One thread's part of a run.
pub struct Lane<'a, C, W> {
    spec: &'a LoadSpec,
    clock: C,
    wire: W,
    window: Window,
    scheduler: Scheduler,
    connections: Vec<LaneConnection>,
    heads: HeadCache,
    /// Whether there is a [fast path](self) for this load.
    allows_fast_path: bool,
    /// From this long on a response leaves the fast path: it is slow, or comes after the timeout.
    slow: Nanos,
    /// Whether TCP is asked for the round trip of each connection.
    reads_tcp_info: bool,
    records: Records,
    start: Nanos,
    /// Connections that can take the next request at once: in a closed loop those whose next
    /// request is due, in an open loop all free ones, the most recently used last.
    free: Vec<u32>,
    /// Closed loop: a second list, empty between turns. It takes the place of `free` while requests
    /// begin on the connections in that, so one that is free again at once waits for the next turn.
    freed_before: Vec<u32>,
    /// Connections whose sockets may hold more than was taken in one turn, and whether the server
    /// has closed them.
    unread: Vec<(u32, bool)>,
    /// Connections in a pause (a user who thinks, a connect that failed), and until when.
    pausing: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Connections whose request has begun and not ended.
    busy: usize,
    /// How many of those requests are measured.
    busy_measured: usize,
    /// Until when unmeasured requests are still waited for.
    drains_until: Option<Nanos>,
    /// When timeouts are looked for again.
    next_scan: Nanos,
    /// Converts the kernel's stamps to our clock, where there are stamps.
    wall: Option<WallClock>,
    /// Present where the lane may poll for responses.
    busy_poll: Option<BusyPoll>,
    wake_delay: WakeDelay,
    /// Open loop: whether responses may wait to be read.
    unread_responses: UnreadResponses,
    /// Open loop: whether, after the last due time, queued requests were already judged: sent late,
    /// or given up.
    has_judged_queue: bool,
    /// Open loop: failed requests that are sent again.
    retries: Retries,
    /// Open loop: requests that were due and unanswered.
    backlog: BacklogSamples,
    /// Present where requests say when they were sent.
    queue_stamps: Option<QueueStamps>,
    standstill: Standstill,
    /// Requests that had ended before the last turn.
    ended_before: u64,
    buffer: Vec<u8>,
}

impl<'a, C: Clock, W: ConnectionDriver> Lane<'a, C, W> {
    /// A lane that will start at `start` on `clock`, and sends its records to `journal` if there is
    /// one.
    pub fn new(
        spec: &'a LoadSpec,
        share: LaneShare,
        clock: C,
        wire: W,
        start: Nanos,
        journal: Option<SyncSender<RecordBatch>>,
    ) -> Self {
        let window = spec.window(start);
        let quota = spec.requests_per_connection.unwrap_or(u64::MAX);
        let slots = 0..share.connections;
        // Connections are taken from the end: reversed, an open loop opens them in order.
        let free: Vec<u32> =
            if spec.load.pace.is_open() { slots.rev().collect() } else { slots.collect() };
        let mut heads = HeadCache::new(&spec.worker_header);
        heads.reads_app_times = spec.reads_app_times;
        heads.wanted_bytes = spec.body_bytes;
        Lane {
            spec,
            wire,
            window,
            scheduler: Scheduler::new(spec, share, start),
            connections: (0..share.connections)
                .map(|_| LaneConnection::new(quota, start))
                .collect(),
            heads,
            allows_fast_path: journal.is_none() && spec.allows_fast_path(),
            slow: NetworkPath::SLOW.min(spec.load.timeout),
            reads_tcp_info: spec.transport.leaves_loopback(),
            records: Records::new(spec, share, &clock, start, journal),
            queue_stamps: QueueStamps::new(spec, &clock),
            clock,
            start,
            pausing: BinaryHeap::with_capacity(free.len()),
            freed_before: Vec::with_capacity(free.len()),
            free,
            unread: Vec::new(),
            busy: 0,
            busy_measured: 0,
            drains_until: None,
            next_scan: start,
            wall: None,
            busy_poll: None,
            wake_delay: WakeDelay::default(),
            unread_responses: UnreadResponses::default(),
            has_judged_queue: false,
            retries: Retries::of(spec),
            backlog: BacklogSamples::new(window),
            standstill: Standstill::new(window),
            ended_before: 0,
            buffer: vec![0; BUFFER],
        }
    }

    /// The same lane, with these connections open already.
    pub(crate) fn connected(mut self, are_open: &[bool]) -> Self {
        for (connection, _) in
            self.connections.iter_mut().zip(are_open).filter(|(_, is_open)| **is_open)
        {
            connection.state = ConnectionState::Open;
            connection.until_reconnect = self.spec.load.reconnect_after.unwrap_or(u64::MAX);
            self.records.tally.connections_opened += 1;
        }
        self
    }

    /// Ends the request of `slot` without a whole response, and its connection with it.
    #[cold]
    fn end(&mut self, slot: usize, outcome: Outcome, now: Nanos, pause: Option<Nanos>) {
        let bytes = self.connections[slot].reader.received();
        self.note_how_it_ends(slot, outcome);
        if let Some(request) = self.connections[slot].outstanding
            && request.due.is_measured
        {
            let out_for = now.saturating_sub(request.begun);
            if out_for >= NetworkPath::SLOW {
                self.note_slow(slot, out_for);
            }
        }
        self.close(slot);
        if let Some(pause) = pause {
            // Closed loop: free_connection() puts off the next request until the pause is over.
            self.connections[slot].next_due = now + pause;
        }
        self.record_end(slot, outcome, None, now, bytes);
    }

    /// Notes how a connection ended with a request in flight: how much of the response had come, or
    /// that the server closed it without announcing that.
    fn note_how_it_ends(&mut self, slot: usize, outcome: Outcome) {
        let connection = &self.connections[slot];
        let is_broken_off = matches!(outcome, Outcome::Closed | Outcome::Reset | Outcome::TimedOut);
        if !is_broken_off || connection.state != ConnectionState::Open {
            return;
        }
        match connection.reader.part() {
            Some(part) if connection.has_measured_request() => {
                self.records.tally.broken.record_half(outcome, part);
            }
            None if outcome != Outcome::TimedOut => self.note_silent_closing(slot),
            _ => {}
        }
    }

    /// Notes that the server closed the connection of `slot` between two responses, or with a
    /// response that did not announce it.
    #[cold]
    fn note_silent_closing(&mut self, slot: usize) {
        let responses = self.responses_of(slot);
        if responses > 0 {
            self.records.tally.broken.record_silent_closing(responses);
        }
    }

    /// Responses on the connection that `slot` has now.
    fn responses_of(&self, slot: usize) -> u64 {
        let connection = &self.connections[slot];
        let good = self.records.good_of_connection(slot) - connection.good_before;
        good + connection.other_responses
    }

    /// Notes the first bytes of something that is no HTTP response to a measured request;
    /// `received` bytes of it are in the buffer.
    #[cold]
    fn note_first_bytes(&mut self, slot: usize, reason: BadResponse, received: usize) {
        let connection = &self.connections[slot];
        let is_no_head = matches!(reason, BadResponse::NotHttp | BadResponse::StatusLine);
        if connection.has_measured_request() && is_no_head {
            let begun = connection.reader.begun_head();
            let bytes = if begun.is_empty() { &self.buffer[..received] } else { begun };
            self.records.tally.broken.record_first_bytes(bytes);
        }
    }

    /// Records that the request of `slot` ended in `outcome`, after `bytes` of its response; a bad
    /// response has a `reason`.
    fn record_end(
        &mut self,
        slot: usize,
        outcome: Outcome,
        reason: Option<BadResponse>,
        now: Nanos,
        bytes: u64,
    ) {
        let connection = &mut self.connections[slot];
        connection.is_sent_in_full = false;
        let Some(request) = connection.outstanding.take() else { return };
        let end = RequestEnd::seen(now);
        if self.retries.take(slot, &request, outcome, end, bytes) {
            return self.free_connection(slot, request.due.is_measured, now);
        }
        if let Some(reason) = reason
            && request.due.is_measured
        {
            self.records.tally.record_reason(reason, 1);
        }
        let keeps_responses = self.spec.keep_responses;
        self.records.end(slot, &request, outcome, end, bytes, |record| {
            record.reason = reason;
            record.response =
                if keeps_responses { take_response(&mut connection.response) } else { None };
        });
        self.free_connection(slot, request.due.is_measured, now);
    }

    /// The user has stopped the run: the request of this connection stays without a response.
    #[cold]
    fn stop(&mut self, slot: usize, now: Nanos) {
        let bytes = self.connections[slot].reader.received();
        self.close(slot);
        if let Some(request) = self.connections[slot].outstanding.take() {
            self.records.stopped(&request, now, bytes);
        }
    }

    fn close(&mut self, slot: usize) {
        if self.reads_tcp_info
            && self.connections[slot].state == ConnectionState::Open
            && let Some(TcpInfo { shortest_round_trip, retransmitted }) = self.wire.tcp_info(slot)
        {
            self.records.tally.network.record_connection(shortest_round_trip, retransmitted);
        }
        self.unread_responses.closed();
        self.wire.close(slot);
        self.unread.retain(|(other, _)| *other as usize != slot);
        let connection = &mut self.connections[slot];
        connection.retransmitted = 0;
        connection.reader.reset();
        connection.on_fast_path = false;
        self.unread_responses.opening -= usize::from(connection.state == ConnectionState::Opening);
        connection.state = ConnectionState::Closed;
    }

    /// Notes whether TCP retransmitted during a measured request of `slot`, which took long enough
    /// for that. Retransmissions before it do not count.
    #[cold]
    fn note_slow(&mut self, slot: usize, took: Nanos) {
        if let Some(TcpInfo { retransmitted, .. }) = self.wire.tcp_info(slot) {
            let before =
                std::mem::replace(&mut self.connections[slot].retransmitted, retransmitted);
            self.records.tally.network.record_slow(took, retransmitted > before);
        }
    }

    /// The request of `slot` has ended, and its end was seen at `seen`: the connection is free for
    /// the next one.
    #[inline(always)]
    fn free_connection(&mut self, slot: usize, was_measured: bool, seen: Nanos) {
        let connection = &mut self.connections[slot];
        connection.requests_left -= u64::from(was_measured);
        connection.next_due = connection.next_due.max(seen + self.spec.load.think);
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

    /// Closes a connection that makes no further request, once it is idle.
    #[cold]
    fn retire(&mut self, slot: usize) {
        let connection = &self.connections[slot];
        if connection.outstanding.is_none() && connection.state != ConnectionState::Finished {
            self.close(slot);
            self.connections[slot].state = ConnectionState::Finished;
        }
    }
}
