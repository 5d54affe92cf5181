//! Locks and pools inside the app, by the threads of each worker that wait for one.

use model::{Limit, LockWaiters, Nanos};

use super::evidence::{WaitsSeen, WatchEvidence, WatchedWorker};
use crate::limits::cpus::MAY_BE_THE_LOCK;

/// If a thread waits for a lock in at least this share of the samples, the lock is never free. A
/// lock that is free now and then is not the limit.
const ALWAYS: f64 = 0.9;
/// Fewer samples show only a moment.
const ENOUGH_LOOKS: usize = 10;
/// With this many requests per process or more, one waits for another.
pub(super) const TWO_EACH: u32 = 2;

/// If each process of Ruby whose threads wait for a lock computes so much that this may be Ruby's own,
/// which looks like any other lock: for which share of the time the one does that computes least.
pub(super) fn may_be_rubys(seen: &WatchEvidence) -> Option<f64> {
    let waits = |worker: &&WatchedWorker| worker.waits.is_some_and(|waits| waits.lock > 0.0);
    let shares = seen.workers.iter().filter(waits).map(|worker| worker.cpu);
    let least = shares.reduce(|a, b| Some(a?.min(b?)))??;
    (seen.is_ruby && least >= MAY_BE_THE_LOCK).then_some(least)
}

/// What the worker's threads do, if some of them wait for a lock other than Ruby's at nearly every
/// look.
pub(super) fn always_locked(worker: &WatchedWorker) -> Option<WaitsSeen> {
    let waits = worker.waits.filter(|waits| waits.looks >= ENOUGH_LOOKS)?;
    let is_locked = waits.locked_share >= ALWAYS && worker.runnable()? <= MAY_BE_THE_LOCK;
    is_locked.then_some(waits)
}

/// Whether a worker was looked at too seldom to say what its requests wait for: which of them sleep and
/// which ask a backend is chance, and so is whether a lock is ever free.
pub(super) fn are_too_few_looks(seen: &WatchEvidence) -> bool {
    seen.workers.iter().any(|worker| worker.waits.is_some_and(|waits| waits.looks < ENOUGH_LOOKS))
}

/// A lock, a pool or a backend inside the app, whichever these threads wait for.
pub(super) fn inside_app(seen: &WatchEvidence, locked: LockWaiters) -> Limit {
    // A worker without a request lets none through.
    let at_work = seen.workers.iter().filter(|worker| worker.busy() != Some(0));
    Limit::InsideApp {
        slots: seen.slots().unwrap_or(locked.busy),
        workers: at_work.count() as u32,
        at_once: None,
        held: seen.settled_rate().map(|rate| Nanos::from_secs_f64(1.0 / rate)),
        locked: Some(locked),
        hindered: None,
        busy: None,
        computes: None,
    }
}
