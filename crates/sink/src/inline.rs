//! Puma up to 6 with keep-alive: a thread stays with its connection.
//!
//! After an answer the slot is held for that connection's next request for up to 0.2 s, and such a request starts at
//! once, before all that wait. Only where the connection has had ten in a row and others wait is it sent to the end of
//! its worker's queue (Puma 6.6.1: server.rb `process_client`, client.rb `FAST_TRACK_KA_TIMEOUT`, `max_fast_inline`).
//! Connections are accepted only while a slot is free (`wait_until_not_full` in its thread pool).
//!
//! Pure: no I/O, no clock; instants are told, and never fall. What stays true: a worker's requests wait only while each
//! of its slots is busy or held; each slot is free, busy or held for one connection.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use model::Nanos;

use crate::running::{Finished, Job, Running, Waiting, freest};
use crate::stalls::Stalls;

/// Requests in a row that nobody can interrupt (`max_fast_inline`).
const IN_A_ROW: u32 = 10;
/// How long a slot waits for its connection's next request (`FAST_TRACK_KA_TIMEOUT`).
const HOLD: Nanos = Nanos::from_millis(200);

/// What a connection has of its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Nothing: it is idle, or its request waits.
    Outside,
    /// A slot, busy with its request.
    Served,
    /// A slot that waits for its next request: the number of the hold.
    Held(u64),
}

#[derive(Debug)]
struct Seat {
    worker: u32,
    place: Place,
    /// Requests started since it got the slot.
    in_a_row: u32,
}

#[derive(Debug)]
struct Hold<C> {
    until: Nanos,
    number: u64,
    connection: C,
}

/// The workers, their queues, and what each connection has.
#[derive(Debug)]
pub(crate) struct Inline<C> {
    /// Free slots by worker.
    free: Vec<u32>,
    /// The worker at which the next search begins.
    next_worker: usize,
    queues: Vec<VecDeque<Waiting<C>>>,
    waiting: u64,
    seats: HashMap<C, Seat>,
    running: Running<C>,
    /// In the order of their ends, as each is as long as any other. The first is a valid one, or there is none.
    holds: VecDeque<Hold<C>>,
    holds_made: u64,
}

impl<C: Copy + Eq + Hash> Inline<C> {
    /// `workers` x `threads` free slots; both at least 1.
    pub(crate) fn new(workers: u32, threads: u32, stalls: Option<Stalls>) -> Inline<C> {
        Inline {
            free: vec![threads; workers as usize],
            next_worker: 0,
            queues: (0..workers).map(|_| VecDeque::new()).collect(),
            waiting: 0,
            seats: HashMap::new(),
            running: Running::new(stalls),
            holds: VecDeque::new(),
            holds_made: 0,
        }
    }

    /// Whether a connection may be accepted.
    pub(crate) fn has_room(&self) -> bool {
        self.free.iter().any(|free| *free > 0)
    }

    /// A connection comes, to the worker with most free slots.
    pub(crate) fn open(&mut self, connection: C) {
        let worker = freest(&self.free, self.next_worker);
        self.next_worker = (worker + 1) % self.free.len();
        self.seats.insert(connection, Seat { worker: worker as u32, place: Place::Outside, in_a_row: 0 });
    }

    /// A connection goes, and with it the hold of its slot. A request of it that is in the pool stays there.
    pub(crate) fn close(&mut self, now: Nanos, connection: C) {
        let Some(seat) = self.seats.remove(&connection) else { return };
        if let Place::Held(_) = seat.place {
            self.release(seat.worker, now);
        }
        self.forget_stale_holds();
    }

    /// A request comes.
    pub(crate) fn arrive(&mut self, now: Nanos, job: Job<C>) {
        let Some(seat) = self.seats.get_mut(&job.connection) else { return };
        let worker = seat.worker;
        if let Place::Held(_) = seat.place {
            seat.place = Place::Served;
            seat.in_a_row += 1;
            self.running.start(now, worker, job);
            self.forget_stale_holds();
        } else if self.free[worker as usize] > 0 {
            self.free[worker as usize] -= 1;
            self.begin(now, worker, job);
        } else {
            self.queues[worker as usize].push_back(Waiting { arrived: now, job });
            self.waiting += 1;
        }
    }

    /// When a request is over, or a hold.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        let hold = self.holds.front().map(|hold| hold.until);
        [hold, self.running.next_due()].into_iter().flatten().min()
    }

    /// The next one that is over by `now`. To be called until it gives `None`.
    pub(crate) fn finish(&mut self, now: Nanos) -> Option<Finished<C>> {
        loop {
            let next = self.next_due().filter(|due| *due <= now)?;
            if self.running.next_due() != Some(next) {
                self.end_hold();
                continue;
            }
            let mut finished = self.running.finish(next)?;
            let (worker, connection) = (finished.worker, finished.job.connection);
            let others_wait = !self.queues[worker as usize].is_empty();
            let none_free = self.free[worker as usize] == 0;
            match self.seats.get_mut(&connection) {
                Some(seat) if !finished.job.last && (seat.in_a_row < IN_A_ROW || !others_wait) => {
                    self.holds_made += 1;
                    finished.crowded = seat.in_a_row >= IN_A_ROW && none_free;
                    seat.place = Place::Held(self.holds_made);
                    let until = finished.due.saturating_add(HOLD);
                    self.holds.push_back(Hold { until, number: self.holds_made, connection });
                    self.forget_stale_holds();
                }
                Some(seat) => {
                    seat.place = Place::Outside;
                    finished.crowded = seat.in_a_row >= IN_A_ROW && none_free;
                    self.release(worker, finished.due);
                }
                None => self.release(worker, finished.due),
            }
            return Some(finished);
        }
    }

    /// Requests that wait for a slot.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Slots busy with a request; those held are not.
    pub(crate) fn busy(&self) -> u64 {
        self.running.len()
    }

    /// A slot's first request of a connection.
    fn begin(&mut self, at: Nanos, worker: u32, job: Job<C>) {
        if let Some(seat) = self.seats.get_mut(&job.connection) {
            seat.place = Place::Served;
            seat.in_a_row = 1;
        }
        self.running.start(at, worker, job);
    }

    /// A slot is free, at `at`: for the first that waits, or for nobody.
    fn release(&mut self, worker: u32, at: Nanos) {
        match self.queues[worker as usize].pop_front() {
            None => self.free[worker as usize] += 1,
            Some(next) => {
                self.waiting -= 1;
                self.begin(at.max(next.arrived), worker, next.job);
            }
        }
    }

    /// Nothing came in the time of the first hold.
    fn end_hold(&mut self) {
        let Some(hold) = self.holds.pop_front() else { return };
        if let Some(seat) = self.seats.get_mut(&hold.connection).filter(|seat| seat.place == Place::Held(hold.number)) {
            seat.place = Place::Outside;
            let worker = seat.worker;
            self.release(worker, hold.until);
        }
        self.forget_stale_holds();
    }

    fn forget_stale_holds(&mut self) {
        let valid = |hold: &Hold<C>| {
            self.seats.get(&hold.connection).is_some_and(|seat| seat.place == Place::Held(hold.number))
        };
        while self.holds.front().is_some_and(|hold| !valid(hold)) {
            self.holds.pop_front();
        }
    }
}
