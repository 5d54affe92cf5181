//! The requests that hold a slot, whatever the queue before it. Pure: instants are told.
//!
//! What stays true: they end in the order of their due times, those of one instant in the order of their starts, and
//! never inside a stall.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use model::Nanos;

use crate::stalls::Stalls;

/// A request as the pool knows it. `C` is what the caller knows its connection by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Job<C> {
    /// Whose it is.
    pub(crate) connection: C,
    /// Its number among all requests.
    pub(crate) number: u64,
    /// How long it holds its slot.
    pub(crate) service: Nanos,
    /// Whether it is known to be its connection's last.
    pub(crate) last: bool,
}

/// A request before the slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting<C> {
    /// When it came.
    pub(crate) arrived: Nanos,
    /// What it is.
    pub(crate) job: Job<C>,
}

/// A request that has held its slot for its whole service time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Finished<C> {
    /// What it was.
    pub(crate) job: Job<C>,
    /// The worker whose slot it held, from 0.
    pub(crate) worker: u32,
    /// When it got the slot.
    pub(crate) started: Nanos,
    /// When it was over; not later than the instant it was asked for.
    pub(crate) due: Nanos,
    /// Whether the connection has had its ten in a row and no slot of its worker is free (`inline.rs`).
    pub(crate) crowded: bool,
}

#[derive(Debug)]
struct Busy<C> {
    due: Nanos,
    started: Nanos,
    /// Number of the start: unique.
    order: u64,
    worker: u32,
    job: Job<C>,
}

impl<C> PartialEq for Busy<C> {
    fn eq(&self, other: &Busy<C>) -> bool {
        self.order == other.order
    }
}

impl<C> Eq for Busy<C> {}

impl<C> PartialOrd for Busy<C> {
    fn partial_cmp(&self, other: &Busy<C>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<C> Ord for Busy<C> {
    fn cmp(&self, other: &Busy<C>) -> Ordering {
        (self.due, self.order).cmp(&(other.due, other.order))
    }
}

/// All slots in use.
#[derive(Debug)]
pub(crate) struct Running<C> {
    busy: BinaryHeap<Reverse<Busy<C>>>,
    starts: u64,
    stalls: Option<Stalls>,
}

impl<C> Running<C> {
    /// None in use.
    pub(crate) fn new(stalls: Option<Stalls>) -> Running<C> {
        Running { busy: BinaryHeap::new(), starts: 0, stalls }
    }

    /// When a request ends that starts at `at` and takes `service`.
    fn end_of(&self, at: Nanos, service: Nanos) -> Nanos {
        let end = at.saturating_add(service);
        self.stalls.map_or(end, |stalls| stalls.release(end))
    }

    /// Whether a request that takes no time and starts `now` ends now.
    #[inline]
    pub(crate) fn ends_at_once(&self, now: Nanos) -> bool {
        self.stalls.is_none_or(|stalls| stalls.release(now) == now)
    }

    /// A slot of `worker` is taken.
    pub(crate) fn start(&mut self, at: Nanos, worker: u32, job: Job<C>) {
        self.starts += 1;
        let due = self.end_of(at, job.service);
        self.busy.push(Reverse(Busy { due, started: at, order: self.starts, worker, job }));
    }

    /// When the next one is over.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        self.busy.peek().map(|Reverse(busy)| busy.due)
    }

    /// The next one that is over by `now`; its slot is free.
    pub(crate) fn finish(&mut self, now: Nanos) -> Option<Finished<C>> {
        if self.next_due()? > now {
            return None;
        }
        let Reverse(Busy { due, started, worker, job, .. }) = self.busy.pop()?;
        Some(Finished { job, worker, started, due, crowded: false })
    }

    /// Slots in use.
    pub(crate) fn len(&self) -> u64 {
        self.busy.len() as u64
    }
}

/// The worker with most free slots; of several, the first from `first` on.
pub(crate) fn freest(free: &[u32], first: usize) -> usize {
    let (before, from) = free.split_at(first);
    let mut freest = first;
    for (step, slots) in from.iter().chain(before).enumerate() {
        if *slots > free[freest] {
            freest = (first + step) % free.len();
        }
    }
    freest
}
