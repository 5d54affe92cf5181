//! The slots and the queue before them: a request arrives, may wait, holds a slot for its service
//! time, and ends.
//!
//! The disciplines differ only in three things: which worker's slots a request may use (any, or
//! those of its connection's worker), in which queue it waits (a common one, or its worker's), and
//! whether a slot stays with its connection after a response. `inline10` is Puma 6 and older with
//! keep-alive: the slot is held for that connection's next request for up to 0.2 s, and such a
//! request starts at once, before all that wait. Only if the connection has had ten in a row and
//! others wait is it sent to the end of its worker's queue, and connections are accepted only while
//! a slot is free (Puma 6.6.1: server.rb `process_client`, client.rb `FAST_TRACK_KA_TIMEOUT`,
//! `max_fast_inline`, `wait_until_not_full`). `split` is Puma 7.0 with keep-alive.
//!
//! Pure code, without I/O or a clock; instants are parameters and never decrease. Invariants: no
//! request waits while a slot that it may use is free; requests of one queue start in order of
//! arrival; each holds its slot for exactly its service time, and one that would end in a stall
//! ends with the stall. A slot's next request starts when the slot became free, not when the loop
//! noticed it, so the loop's lateness does not add up along the queue.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use model::{DrawStream, Nanos, draw};

use crate::SinkSettings;
use crate::connection::ConnectionKey;
use crate::laws::StallLaw;
use crate::settings::SlotQueue;

/// Requests in a row that are not interrupted (`max_fast_inline`).
const IN_A_ROW: u32 = 10;
/// How long a slot waits for its connection's next request (`FAST_TRACK_KA_TIMEOUT`).
const HOLD: Nanos = Nanos::from_millis(200);

/// A request as the pool knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SlotRequest {
    /// Its connection.
    pub(crate) connection: ConnectionKey,
    /// Its number among all requests.
    pub(crate) number: u64,
    /// How long it holds its slot.
    pub(crate) service: Nanos,
    /// Whether it is known to be its connection's last.
    pub(crate) last: bool,
}

/// A request that has held its slot for its whole service time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FinishedRequest {
    /// What it was.
    pub(crate) request: SlotRequest,
    /// The worker whose slot it held.
    pub(crate) worker: u32,
    /// When it got the slot.
    pub(crate) started: Nanos,
    /// When it was over; not later than the instant passed to `finish`.
    pub(crate) due: Nanos,
    /// Whether its connection has had its ten in a row and no slot of its worker is free.
    pub(crate) crowded: bool,
}

/// When a slot is given back. The derived order is by time, then by creation; no two have both in
/// common.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SlotEnd {
    due: Nanos,
    order: u64,
    worker: usize,
    used: SlotUse,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SlotUse {
    /// A request holds it, from then on.
    Request(SlotRequest, Nanos),
    /// It waits for this connection's next request. If that arrived in time, no seat refers to this
    /// end any more.
    Hold(ConnectionKey),
}

/// A connection's place at its worker.
#[derive(Debug)]
struct Seat {
    worker: usize,
    /// The slot that waits for its next request, identified by the order of its end.
    held: Option<u64>,
    /// Requests started since it got the slot.
    in_a_row: u32,
}

/// All slots of a loop, and the requests in and before them.
#[derive(Debug)]
pub(crate) struct SlotPool {
    queue: SlotQueue,
    stalls: Option<StallLaw>,
    seed: u64,
    /// The number of the first worker.
    first_worker: u32,
    /// Free slots by worker, and their sum.
    free: Vec<u32>,
    total_free: u64,
    /// Where the next search for a free slot begins, so that ties rotate.
    next_worker: usize,
    /// One queue, or one for each worker, of arrivals and requests.
    queues: Vec<VecDeque<(Nanos, SlotRequest)>>,
    waiting: u64,
    busy: u64,
    ends: BinaryHeap<Reverse<SlotEnd>>,
    ends_made: u64,
    /// The connections, if each belongs to a worker.
    seats: HashMap<ConnectionKey, Seat>,
    opened: u64,
}

impl SlotPool {
    /// The pool for these settings and the loop with this number. An unlimited queue is one worker
    /// with slots for all.
    pub(crate) fn new(settings: &SinkSettings, number: u32) -> SlotPool {
        let (first_worker, workers, threads) = match settings.queue {
            SlotQueue::Unlimited => (number, 1, u32::MAX),
            _ => (0, settings.workers as usize, settings.threads),
        };
        let queues = if settings.queue.has_seats() { workers } else { 1 };
        SlotPool {
            queue: settings.queue,
            stalls: settings.stalls,
            seed: settings.seed,
            first_worker,
            free: vec![threads; workers],
            total_free: workers as u64 * u64::from(threads),
            next_worker: 0,
            queues: vec![VecDeque::new(); queues],
            waiting: 0,
            busy: 0,
            ends: BinaryHeap::new(),
            ends_made: 0,
            seats: HashMap::new(),
            opened: 0,
        }
    }

    /// Whether a connection is accepted only while a slot is free.
    pub(crate) fn limits_accepts(&self) -> bool {
        self.queue == SlotQueue::Inline10
    }

    /// Whether a connection may be accepted now.
    pub(crate) fn has_room(&self) -> bool {
        !self.limits_accepts() || self.total_free > 0
    }

    /// Adds a connection, and assigns its worker if it needs one.
    pub(crate) fn open(&mut self, connection: ConnectionKey) {
        let workers = self.free.len() as u64;
        let worker = match self.queue {
            SlotQueue::Unlimited | SlotQueue::Shared => return,
            SlotQueue::Split => (self.opened % workers) as usize,
            SlotQueue::SplitRandom => {
                // The draw is from (0, 1]: its complement is from [0, 1).
                let draw = 1.0 - draw(self.seed, DrawStream::Worker, self.opened);
                ((draw * workers as f64) as u64).min(workers - 1) as usize
            }
            SlotQueue::Inline10 => self.freest(),
        };
        self.opened += 1;
        self.seats.insert(connection, Seat { worker, held: None, in_a_row: 0 });
    }

    /// Removes a connection and the hold of its slot. Its request in the pool, if any, stays there.
    pub(crate) fn close(&mut self, now: Nanos, connection: ConnectionKey) {
        if let Some(Seat { worker, held: Some(_), .. }) = self.seats.remove(&connection) {
            self.release(now, worker);
        }
    }

    /// Adds a request. If any slot will do, one is free and the request takes no time, it is
    /// returned at once without using the pool.
    #[inline]
    pub(crate) fn arrive(&mut self, now: Nanos, request: SlotRequest) -> Option<FinishedRequest> {
        if self.queue.has_seats() {
            self.arrive_at_seat(now, request);
        } else if self.total_free == 0 {
            self.wait(now, 0, request);
        } else {
            let worker = self.freest();
            if request.service == Nanos::ZERO && self.released(now) == now {
                let worker = self.first_worker + worker as u32;
                return Some(FinishedRequest {
                    request,
                    worker,
                    started: now,
                    due: now,
                    crowded: false,
                });
            }
            self.take(worker);
            self.start(now, worker, request);
        }
        None
    }

    /// When the next request or hold is over.
    #[inline]
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        self.ends.peek().map(|Reverse(end)| end.due)
    }

    /// The next request that is over by `now`, in the order of due times. Call it until it returns
    /// `None`.
    #[inline]
    pub(crate) fn finish(&mut self, now: Nanos) -> Option<FinishedRequest> {
        while self.next_due()? <= now {
            let Reverse(SlotEnd { due, order, worker, used }) = self.ends.pop()?;
            match used {
                SlotUse::Request(request, started) => {
                    return Some(self.end(due, worker, request, started));
                }
                SlotUse::Hold(connection) => {
                    // No request came in time.
                    if let Some(seat) =
                        self.seats.get_mut(&connection).filter(|seat| seat.held == Some(order))
                    {
                        seat.held = None;
                        self.release(due, worker);
                    }
                }
            }
        }
        None
    }

    /// Requests that wait for a slot.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Slots busy with a request; those held are not.
    pub(crate) fn busy(&self) -> u64 {
        self.busy
    }

    fn arrive_at_seat(&mut self, now: Nanos, request: SlotRequest) {
        let Some(seat) = self.seats.get_mut(&request.connection) else { return };
        let worker = seat.worker;
        if seat.held.take().is_some() {
            seat.in_a_row += 1;
            self.start(now, worker, request);
        } else if self.free[worker] > 0 {
            seat.in_a_row = 1;
            self.take(worker);
            self.start(now, worker, request);
        } else {
            self.wait(now, worker, request);
        }
    }

    fn wait(&mut self, now: Nanos, queue: usize, request: SlotRequest) {
        self.queues[queue].push_back((now, request));
        self.waiting += 1;
    }

    fn take(&mut self, worker: usize) {
        self.free[worker] -= 1;
        self.total_free -= 1;
    }

    fn start(&mut self, started: Nanos, worker: usize, request: SlotRequest) {
        self.busy += 1;
        let due = self.released(started.saturating_add(request.service));
        self.push_end(due, worker, SlotUse::Request(request, started));
    }

    /// The order of the new end.
    fn push_end(&mut self, due: Nanos, worker: usize, used: SlotUse) -> u64 {
        self.ends_made += 1;
        self.ends.push(Reverse(SlotEnd { due, order: self.ends_made, worker, used }));
        self.ends_made
    }

    /// A request is over: its slot is held for its connection, or free.
    fn end(
        &mut self,
        due: Nanos,
        worker: usize,
        request: SlotRequest,
        started: Nanos,
    ) -> FinishedRequest {
        self.busy -= 1;
        let holds = self.queue == SlotQueue::Inline10;
        let seat = if holds { self.seats.get(&request.connection) } else { None };
        let has_had_its_ten = seat.is_some_and(|seat| seat.in_a_row >= IN_A_ROW);
        let crowded = has_had_its_ten && self.free[worker] == 0;
        if seat.is_some() && !request.last && (!has_had_its_ten || self.queues[worker].is_empty()) {
            let hold =
                self.push_end(due.saturating_add(HOLD), worker, SlotUse::Hold(request.connection));
            if let Some(seat) = self.seats.get_mut(&request.connection) {
                seat.held = Some(hold);
            }
        } else {
            self.release(due, worker);
        }
        FinishedRequest {
            request,
            worker: self.first_worker + worker as u32,
            started,
            due,
            crowded,
        }
    }

    /// Frees a slot at `at`, for the first waiting request if any.
    fn release(&mut self, at: Nanos, worker: usize) {
        let queue = if self.queue.has_seats() { worker } else { 0 };
        let Some((arrived, request)) = self.queues[queue].pop_front() else {
            self.free[worker] += 1;
            self.total_free += 1;
            return;
        };
        self.waiting -= 1;
        if let Some(seat) = self.seats.get_mut(&request.connection) {
            seat.in_a_row = 1;
        }
        self.start(at.max(arrived), worker, request);
    }

    /// When a response due at `at` is sent.
    #[inline]
    fn released(&self, at: Nanos) -> Nanos {
        self.stalls.map_or(at, |stalls| stalls.release(at))
    }

    /// The worker with the most free slots; ties rotate.
    #[inline]
    fn freest(&mut self) -> usize {
        if self.free.len() == 1 {
            return 0;
        }
        let (before, from) = self.free.split_at(self.next_worker);
        let mut freest = self.next_worker;
        for (step, slots) in from.iter().chain(before).enumerate() {
            if *slots > self.free[freest] {
                freest = (self.next_worker + step) % self.free.len();
            }
        }
        self.next_worker = (freest + 1) % self.free.len();
        freest
    }
}
