//! The request loop: one thread, its connections, its tally.
//!
//! Each turn: wait for news; read the clock once; (A) receive all that came and record what ended at that instant; (B)
//! send all that is due, the clock read before each send. Receiving comes first so that the k-th answer of a batch does not carry
//! the cost of k sends. Nothing is formatted, shared or (once warm) allocated here. What stays true: every request that was begun is
//! recorded exactly once, with `due ≤ sent ≤ ended`.

use std::collections::VecDeque;
use std::iter::Peekable;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use model::tally::WorkerCount;
use model::{Clock, Exchange, Nanos, Outcome, Schedule, Tally, Window};

use crate::connection::{Connection, State};
use crate::head::Heads;
use crate::response::{Fed, Response};
use crate::shape::{Shape, Share};
use crate::wire::{Event, Trouble, Wire};

/// The longest wait in one go: how late a lane may notice a timeout or the user's interruption.
const LONGEST_WAIT: Nanos = Nanos::from_millis(100);
/// The pause after a failed connect, doubled with each failure in a row.
const FIRST_PAUSE: Nanos = Nanos::from_millis(10);
const LONGEST_PAUSE: Nanos = Nanos::from_secs(1);
/// Bytes received in one go.
const BUFFER: usize = 64 * 1024;

/// What a lane leaves behind.
#[derive(Debug)]
pub struct LaneEnd {
    /// All it recorded.
    pub tally: Tally,
    /// Each exchange in order of completion, where the shape asked to keep them.
    pub exchanges: Vec<Exchange>,
    /// When it was interrupted, if it was.
    pub interrupted_at: Option<Nanos>,
}

/// One thread's part of a run.
pub struct Lane<'a, C, W> {
    shape: &'a Shape,
    share: Share,
    clock: C,
    wire: W,
    window: Window,
    connections: Vec<Connection>,
    heads: Heads,
    tally: Tally,
    /// Answers by worker: measured, all. Folded into the tally by name at the end.
    workers: Vec<WorkerCount>,
    exchanges: Vec<Exchange>,
    /// Open loop: what is still to become due, every `lanes`-th request of the run's one schedule.
    schedule: Option<Peekable<std::iter::StepBy<std::iter::Skip<Schedule>>>>,
    start: Nanos,
    /// Open loop: requests that are due and found no free connection.
    queued: VecDeque<Nanos>,
    /// Connections that can take the next request at once: in a closed loop those whose previous one has just ended, in
    /// an open loop all free ones, the most recently used last.
    free: Vec<u32>,
    /// The other half of `free` while it is being emptied.
    freed_before: Vec<u32>,
    /// Connections in a pause.
    pausing: Vec<u32>,
    busy: usize,
    /// Requests ended so far.
    ended: u64,
    next_scan: Nanos,
    buffer: Vec<u8>,
}

impl<'a, C: Clock, W: Wire> Lane<'a, C, W> {
    /// A lane that will start at `start` on `clock`.
    pub fn new(shape: &'a Shape, share: Share, clock: C, wire: W, start: Nanos) -> Self {
        let window = shape.window(start);
        let quota = shape.requests_per_connection.unwrap_or(u64::MAX);
        let schedule =
            shape.pace.schedule().map(|all| all.skip(share.lane as usize).step_by(share.lanes as usize).peekable());
        Lane {
            shape,
            share,
            clock,
            wire,
            window,
            connections: (0..share.connections).map(|_| Connection::new(quota)).collect(),
            heads: Heads::new(&shape.worker_header, shape.request.is_head),
            tally: Tally::new(window, shape.connections as usize),
            workers: Vec::with_capacity(64),
            exchanges: Vec::new(),
            schedule,
            start,
            queued: VecDeque::with_capacity(1024),
            free: (0..share.connections).collect(),
            freed_before: Vec::with_capacity(share.connections as usize),
            pausing: Vec::with_capacity(share.connections as usize),
            busy: 0,
            ended: 0,
            next_scan: start,
            buffer: vec![0; BUFFER],
        }
    }

    /// Runs to the end: all planned requests ended, or `interrupt` was set. `ended` follows the number of requests ended.
    pub fn run(mut self, interrupt: &AtomicBool, ended: &AtomicU64) -> LaneEnd {
        let mut events = Vec::with_capacity(1024);
        let mut now = self.clock.now();
        while now < self.start {
            self.wire.wait((self.start - now).min(LONGEST_WAIT), &mut events);
            now = self.clock.now();
        }
        // The first requests of a closed loop are due at the start, whenever this lane woke up for it.
        self.send_what_is_due(now, self.start);
        let mut interrupted_at = None;
        while !self.is_over(now) {
            let at_most = self.longest_wait(now);
            self.wire.wait(at_most, &mut events);
            now = self.clock.now();
            for event in &events {
                self.handle(*event, now);
            }
            if now >= self.next_scan {
                self.give_up_the_late(now);
            }
            if !self.pausing.is_empty() {
                self.resume_the_paused(now);
            }
            self.send_what_is_due(now, now);
            ended.store(self.ended, Ordering::Relaxed);
            if interrupt.load(Ordering::Relaxed) {
                interrupted_at = Some(now);
                break;
            }
        }
        self.finish(now, interrupted_at)
    }

    /// Whether nothing is left to do.
    fn is_over(&mut self, now: Nanos) -> bool {
        if self.busy > 0 || !self.queued.is_empty() {
            return false;
        }
        match &self.schedule {
            Some(_) => self.next_due().is_none(),
            None => now >= self.window.until || self.connections.iter().all(|c| c.state == State::Finished),
        }
    }

    /// When the next request of an open loop becomes due; `None` after the last, and in a closed loop.
    fn next_due(&mut self) -> Option<Nanos> {
        let due = self.start + *self.schedule.as_mut()?.peek()?;
        (due < self.window.until).then_some(due)
    }

    fn longest_wait(&mut self, now: Nanos) -> Nanos {
        if self.schedule.is_none() && !self.free.is_empty() && now < self.window.until {
            return Nanos::ZERO;
        }
        let mut until = now + LONGEST_WAIT;
        until = until.min(self.next_scan);
        if let Some(due) = self.next_due() {
            until = until.min(due);
        }
        for slot in &self.pausing {
            until = until.min(self.connections[*slot as usize].pause_until);
        }
        until.saturating_sub(now)
    }

    /// News of one connection.
    fn handle(&mut self, event: Event, now: Nanos) {
        let slot = event.slot as usize;
        let mut now = now;
        if event.writable && matches!(self.connections[slot].state, State::Opening | State::Sending) {
            self.send(slot);
            // What is received below came after this send, not before.
            now = self.clock.now();
        }
        if event.readable {
            match self.connections[slot].state {
                State::Sending | State::Waiting => self.receive(slot, event.closing, now),
                State::Idle => self.receive_idle(slot),
                State::Opening | State::Closed | State::Pausing | State::Finished => {}
            }
        }
    }

    /// Receives until the socket is drained or the request has ended.
    fn receive(&mut self, slot: usize, closing: bool, now: Nanos) {
        loop {
            match self.wire.receive(slot, &mut self.buffer) {
                Ok(0) => {
                    let ended = self.connections[slot].reader.end();
                    match ended {
                        Some(response) => self.answered(slot, response, true, now),
                        None => self.end(slot, Outcome::Closed, now, None),
                    }
                    return;
                }
                Ok(n) => {
                    self.tally.received_bytes += n as u64;
                    match self.connections[slot].reader.feed(&self.buffer[..n], &mut self.heads) {
                        Ok(Fed::Done(response, used)) if used == n => {
                            return self.answered(slot, response, closing, now);
                        }
                        // Bytes after the answer, or no answer at all: this server cannot be followed on this connection.
                        Ok(Fed::Done(..)) | Err(_) => return self.end(slot, Outcome::BadResponse, now, None),
                        Ok(Fed::More) if n < BUFFER && !closing => return,
                        Ok(Fed::More) => {}
                    }
                }
                Err(Trouble::WouldBlock) => return,
                Err(_) => return self.end(slot, Outcome::Reset, now, None),
            }
        }
    }

    /// News of a connection without a request: it was closed, or sent what nobody asked for.
    fn receive_idle(&mut self, slot: usize) {
        if self.wire.receive(slot, &mut self.buffer) != Err(Trouble::WouldBlock) {
            self.tally.closed_by_server += 1;
            self.close(slot);
        }
    }

    /// A whole response came; `closing`: and the server has closed the connection.
    #[inline]
    fn answered(&mut self, slot: usize, response: Response, closing: bool, now: Nanos) {
        let connection = &self.connections[slot];
        // Answered before it was asked in full: the rest of the request would be read as the next one.
        let asked_in_full = connection.state == State::Waiting;
        let keep_alive = response.keep_alive && self.shape.keep_alive && asked_in_full && !closing;
        if let Some(worker) = response.worker {
            let worker = usize::from(worker);
            if worker >= self.workers.len() {
                self.workers.resize(worker + 1, WorkerCount::default());
            }
            self.workers[worker].all += 1;
            self.workers[worker].measured += u64::from(self.tally.measures(connection.due));
        }
        if !keep_alive {
            self.tally.closed_by_server += u64::from(self.shape.keep_alive);
            self.close(slot);
        }
        self.record(slot, Outcome::Answered(response.status), now, response.bytes);
    }

    /// The request ended without a whole response, and its connection with it.
    #[cold]
    fn end(&mut self, slot: usize, outcome: Outcome, now: Nanos, pause: Option<Nanos>) {
        let bytes = self.connections[slot].reader.received();
        self.close(slot);
        self.record(slot, outcome, now, bytes);
        if let Some(pause) = pause
            && self.connections[slot].state != State::Finished
        {
            let connection = &mut self.connections[slot];
            connection.state = State::Pausing;
            connection.pause_until = now + pause;
            self.free.retain(|free| *free as usize != slot);
            self.pausing.push(slot as u32);
        }
    }

    fn close(&mut self, slot: usize) {
        self.wire.close(slot);
        let connection = &mut self.connections[slot];
        connection.reader.reset();
        if matches!(connection.state, State::Idle) {
            connection.state = State::Closed;
        } else if connection.is_busy() {
            // Still counted busy until it is recorded; `Opening` says that there is no socket behind it.
            connection.state = State::Opening;
        }
    }

    /// Records how the present request of `slot` ended, and frees the connection.
    #[inline]
    fn record(&mut self, slot: usize, outcome: Outcome, ended: Nanos, bytes: u64) {
        let connection = &mut self.connections[slot];
        let exchange = Exchange {
            due: connection.due,
            sent: if connection.state == State::Opening && connection.written == 0 { ended } else { connection.sent },
            ended,
            received_bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            outcome,
        };
        connection.state = if connection.state == State::Waiting { State::Idle } else { State::Closed };
        if self.tally.measures(connection.due) {
            connection.requests_left -= 1;
        }
        let is_finished = connection.requests_left == 0;
        if is_finished {
            connection.state = State::Finished;
        }
        self.busy -= 1;
        self.ended += 1;
        self.tally.record(&exchange, self.share.first_connection as usize + slot);
        if self.shape.keep_exchanges {
            self.exchanges.push(exchange);
        }
        if is_finished {
            self.wire.close(slot);
        } else {
            self.free.push(slot as u32);
        }
    }

    /// Begins what is due: in a closed loop one request on each free connection, due at `due`; in an open loop whatever the
    /// schedule says, as far as connections are free.
    #[inline]
    fn send_what_is_due(&mut self, now: Nanos, due: Nanos) {
        if self.schedule.is_some() {
            while let Some(due) = self.next_due().filter(|due| *due <= now) {
                self.schedule.as_mut().and_then(Iterator::next);
                self.queued.push_back(due);
            }
            while !self.queued.is_empty()
                && let Some(slot) = self.free.pop()
                && let Some(due) = self.queued.pop_front()
            {
                self.begin(slot as usize, due, now);
            }
        } else if now < self.window.until && !self.free.is_empty() {
            // A request that fails at once frees its connection again: that one waits for the next turn.
            std::mem::swap(&mut self.free, &mut self.freed_before);
            let mut slots = std::mem::take(&mut self.freed_before);
            for slot in slots.drain(..) {
                self.begin(slot as usize, due, now);
            }
            self.freed_before = slots;
        }
    }

    #[inline]
    fn begin(&mut self, slot: usize, due: Nanos, now: Nanos) {
        self.busy += 1;
        let connection = &mut self.connections[slot];
        let is_open = connection.state == State::Idle;
        connection.state = State::Opening;
        connection.due = due;
        connection.begun = now;
        connection.written = 0;
        if !is_open {
            self.tally.connections_opened += 1;
            if let Err(trouble) = self.wire.open(slot) {
                return self.not_opened(slot, trouble);
            }
        }
        self.send(slot);
    }

    /// Sends the request, or the rest of it.
    #[inline]
    fn send(&mut self, slot: usize) {
        let bytes = &self.shape.request.bytes;
        let connection = &mut self.connections[slot];
        loop {
            let first = connection.written == 0;
            let instant = if first { self.clock.now() } else { connection.sent };
            match self.wire.send(slot, &bytes[connection.written..]) {
                Ok(n) => {
                    if first {
                        connection.sent = instant;
                        connection.failed_connects = 0;
                    }
                    connection.written += n;
                    self.tally.sent_bytes += n as u64;
                    if connection.written == bytes.len() {
                        connection.state = State::Waiting;
                        return;
                    }
                    connection.state = State::Sending;
                }
                Err(Trouble::WouldBlock) => return,
                Err(trouble) if first => return self.not_sent(slot, trouble),
                Err(_) => {
                    let now = self.clock.now();
                    return self.end(slot, Outcome::Reset, now, None);
                }
            }
        }
    }

    /// Nothing of the request could be sent: the connection was refused, or had been closed in the meantime.
    #[cold]
    fn not_sent(&mut self, slot: usize, trouble: Trouble) {
        if trouble == Trouble::Reset {
            let now = self.clock.now();
            self.end(slot, Outcome::Reset, now, None);
        } else {
            self.not_opened(slot, trouble);
        }
    }

    #[cold]
    fn not_opened(&mut self, slot: usize, trouble: Trouble) {
        let failed = self.connections[slot].failed_connects;
        self.connections[slot].failed_connects = failed.saturating_add(1);
        let pause = Nanos(FIRST_PAUSE.0 << failed.min(10)).min(LONGEST_PAUSE);
        let outcome = if trouble == Trouble::Refused { Outcome::Refused } else { Outcome::ConnectFailed };
        let now = self.clock.now();
        self.end(slot, outcome, now, Some(pause));
    }

    /// Gives up the requests that have taken longer than the timeout.
    fn give_up_the_late(&mut self, now: Nanos) {
        let step = (self.shape.timeout / 20).clamp(Nanos::from_millis(1), LONGEST_WAIT);
        self.next_scan = now + step;
        for slot in 0..self.connections.len() {
            let connection = &self.connections[slot];
            if connection.is_busy() && now.saturating_sub(connection.begun) >= self.shape.timeout {
                self.end(slot, Outcome::TimedOut, now, None);
            }
        }
    }

    fn resume_the_paused(&mut self, now: Nanos) {
        let mut i = 0;
        while i < self.pausing.len() {
            let slot = self.pausing[i] as usize;
            if self.connections[slot].pause_until <= now {
                self.connections[slot].state = State::Closed;
                self.pausing.swap_remove(i);
                self.free.push(slot as u32);
            } else {
                i += 1;
            }
        }
    }

    /// Records what has not ended, and names the workers.
    fn finish(mut self, now: Nanos, interrupted_at: Option<Nanos>) -> LaneEnd {
        for slot in 0..self.connections.len() {
            if self.connections[slot].is_busy() {
                self.end(slot, Outcome::InFlight, now, None);
            }
            self.wire.close(slot);
        }
        // Open loop: became due, and never found a free connection.
        for due in std::mem::take(&mut self.queued) {
            let exchange = Exchange { due, sent: now, ended: now, received_bytes: 0, outcome: Outcome::InFlight };
            self.tally.record(&exchange, self.share.first_connection as usize);
            if self.shape.keep_exchanges {
                self.exchanges.push(exchange);
            }
        }
        for (name, count) in self.heads.workers().iter().zip(&self.workers) {
            self.tally.per_worker.insert(name.clone(), *count);
        }
        LaneEnd { tally: self.tally, exchanges: self.exchanges, interrupted_at }
    }
}
