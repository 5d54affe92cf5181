//! The slots and the queue before them, whichever it is. Pure: no I/O, no clock; instants are told, and never fall.

use std::hash::Hash;

use model::Nanos;

use crate::Settings;
use crate::inline::Inline;
use crate::queue::Queue;
use crate::running::{Finished, Job, Running};
use crate::shared::Shared;
use crate::split::Split;

/// The pool. `C` is what the caller knows a connection by.
#[derive(Debug)]
pub(crate) enum Pool<C> {
    /// A slot for each request, of the one worker of this number.
    Unlimited(u32, Running<C>),
    /// One queue.
    Shared(Shared<C>),
    /// A queue for each worker.
    Split(Split<C>),
    /// As Puma up to 6.
    Inline(Inline<C>),
}

impl<C: Copy + Eq + Hash> Pool<C> {
    /// The pool of these settings; `number` is the loop's.
    pub(crate) fn new(settings: &Settings, number: u32) -> Pool<C> {
        let Settings { queue, workers, threads, seed, stalls, .. } = *settings;
        match queue {
            Queue::Unlimited => Pool::Unlimited(number, Running::new(stalls)),
            Queue::Shared => Pool::Shared(Shared::new(workers, threads, stalls)),
            Queue::Split(assignment) => Pool::Split(Split::new(workers, threads, assignment, seed, stalls)),
            Queue::Inline10 => Pool::Inline(Inline::new(workers, threads, stalls)),
        }
    }

    /// Whether a connection may be accepted now.
    pub(crate) fn has_room(&self) -> bool {
        match self {
            Pool::Inline(inline) => inline.has_room(),
            Pool::Unlimited(..) | Pool::Shared(_) | Pool::Split(_) => true,
        }
    }

    /// A connection comes.
    pub(crate) fn open(&mut self, connection: C) {
        match self {
            Pool::Split(split) => split.open(connection),
            Pool::Inline(inline) => inline.open(connection),
            Pool::Unlimited(..) | Pool::Shared(_) => {}
        }
    }

    /// A connection goes. A request of it that is in the pool stays there.
    pub(crate) fn close(&mut self, now: Nanos, connection: C) {
        match self {
            Pool::Split(split) => split.close(connection),
            Pool::Inline(inline) => inline.close(now, connection),
            Pool::Unlimited(..) | Pool::Shared(_) => {}
        }
    }

    /// A request comes. Where it is over at once and nobody waits, it is given back, and nothing is spent on the pool.
    #[inline]
    pub(crate) fn arrive(&mut self, now: Nanos, job: Job<C>) -> Option<Finished<C>> {
        match self {
            Pool::Unlimited(worker, running) => {
                if job.service == Nanos::ZERO && running.ends_at_once(now) {
                    return Some(Finished { job, worker: *worker, started: now, due: now, crowded: false });
                }
                running.start(now, *worker, job);
            }
            Pool::Shared(shared) => {
                if job.service == Nanos::ZERO
                    && shared.ends_at_once(now)
                    && let Some(worker) = shared.pass()
                {
                    return Some(Finished { job, worker, started: now, due: now, crowded: false });
                }
                shared.arrive(now, job);
            }
            Pool::Split(split) => split.arrive(now, job),
            Pool::Inline(inline) => inline.arrive(now, job),
        }
        None
    }

    /// When there is something to do next.
    #[inline]
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        match self {
            Pool::Unlimited(_, running) => running.next_due(),
            Pool::Shared(shared) => shared.next_due(),
            Pool::Split(split) => split.next_due(),
            Pool::Inline(inline) => inline.next_due(),
        }
    }

    /// The next request that is over by `now`, in the order of due times. To be called until it gives `None`.
    #[inline]
    pub(crate) fn finish(&mut self, now: Nanos) -> Option<Finished<C>> {
        match self {
            Pool::Unlimited(_, running) => running.finish(now),
            Pool::Shared(shared) => shared.finish(now),
            Pool::Split(split) => split.finish(now),
            Pool::Inline(inline) => inline.finish(now),
        }
    }

    /// Requests that wait for a slot.
    pub(crate) fn waiting(&self) -> u64 {
        match self {
            Pool::Unlimited(..) => 0,
            Pool::Shared(shared) => shared.waiting(),
            Pool::Split(split) => split.waiting(),
            Pool::Inline(inline) => inline.waiting(),
        }
    }

    /// Slots in use.
    pub(crate) fn busy(&self) -> u64 {
        match self {
            Pool::Unlimited(_, running) => running.len(),
            Pool::Shared(shared) => shared.busy(),
            Pool::Split(split) => split.busy(),
            Pool::Inline(inline) => inline.busy(),
        }
    }
}
