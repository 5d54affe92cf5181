//! Something inside the app that lets through fewer requests than there are threads: a pool, a
//! lock, a backend.
//!
//! Requests then take longer than alone, and how many are inside is unknown. If each takes 50 ms,
//! of which 10 ms under a lock, ten threads do five requests' worth of work, and all ten are
//! inside.

use model::{AtOnce, Limit, LockWaiters, Nanos, UsualTimes};

use super::threads::with_fewer;
use crate::server_limit::NEAR_A_POOL;
use crate::words::{brief, brief_count, count_at_looks, count_of, share, tenths, worth_in_words};

pub(super) fn evidence(
    slots: u32,
    at_once: Option<&AtOnce>,
    held: Option<Nanos>,
    locked: Option<&LockWaiters>,
) -> String {
    let mut parts = Vec::new();
    if let Some(at_once) = at_once {
        let worth = worth_in_words(at_once);
        parts.push(format!("{worth} of work at a time on {}", count_of(slots, "thread")));
    }
    if let Some(LockWaiters { busy, waiting, .. }) = locked {
        parts.push(format!("{} of {busy} busy threads wait for a lock", brief_count(*waiting)));
    }
    if let Some(held) = held {
        parts.push(format!("one every {}", brief(held)));
    }
    parts.join("; ")
}

/// The sentence if the kernel was asked what the threads wait for. That is one source of evidence:
/// threads may also wait for each other because one works for all of them, as in a group commit.
fn sentence_of_locks(workers: u32, locked: &LockWaiters) -> String {
    let LockWaiters { busy, waiting, is_on_file } = *locked;
    let passing = f64::from(busy) - waiting;
    let per_worker = passing / f64::from(workers.max(1));
    let is_one = per_worker < ONE_AT_A_TIME;
    let in_each = if workers > 1 && !is_on_file { " in each worker" } else { "" };
    let whole = per_worker.round();
    let pool = if workers <= 1 {
        format!("a pool of {passing:.0}")
    } else if (per_worker - whole).abs() < NEARLY_WHOLE {
        format!("a pool of {whole:.0} in each worker")
    } else {
        format!("a pool of about {passing:.0} in all")
    };
    if is_beside_the_pool(locked) {
        return format!(
            "Probably a thread beside those that serve requests: of {}, by the kernel's account, {} \
             wait for another thread, and none has what the others wait for. It may work off a \
             queue, or hold a lock.",
            count_of(busy, "busy thread"),
            count_at_looks(waiting)
        );
    }
    let what = match (is_on_file, is_one) {
        (true, _) => "a lock on a file".to_owned(),
        (false, true) => format!("one request at a time{in_each}, by a lock or a pool of one"),
        (false, false) => format!("{pool}, or a lock that a request holds for part of its time"),
    };
    let through = match is_one {
        true if is_on_file => ", and one at a time gets through".to_owned(),
        true => String::new(),
        false => format!(", and about {passing:.0} at a time get through"),
    };
    let wait = if count_at_looks(waiting) == "1" { "waits" } else { "wait" };
    format!(
        "Probably {what}: of {}, by the kernel's account, {} {wait} for it{through}.",
        count_of(busy, "busy thread"),
        count_at_looks(waiting)
    )
}

/// Whether none of the threads that serve requests has what they wait for. One that had it would be seen
/// to do something else nearly always, but for the moments between two turns.
pub(crate) fn is_beside_the_pool(locked: &LockWaiters) -> bool {
    const NOBODY: f64 = 0.3;
    !locked.is_on_file && f64::from(locked.busy) - locked.waiting < NOBODY
}

/// With fewer threads than this that don't wait, one is served, and another is between two requests
/// now and then.
const ONE_AT_A_TIME: f64 = 1.6;

/// So near to a whole number, it may be the size of a pool.
const NEARLY_WHOLE: f64 = 0.2;

/// For studies that other programs wrote.
fn sentence_without_evidence(slots: u32) -> String {
    format!(
        "Something smaller than the {slots} threads is the limit inside the app, such as a pool."
    )
}

/// The sentence for [`Limit::InsideApp`].
pub(super) fn sentence(limit: &Limit) -> String {
    let Limit::InsideApp { slots, workers, at_once, held, locked, hindered, busy, computes } =
        limit
    else {
        return String::new();
    };
    let workers = *workers;
    if let Some(locked) = locked {
        return sentence_of_locks(workers, locked);
    }
    let Some(at_once) = at_once else { return sentence_without_evidence(*slots) };
    let worth = worth_in_words(at_once);
    let longer = hindered.as_ref().map(longer_than_with_fewer).unwrap_or_default();
    let idle = busy.map(|busy| {
        format!(" By its own count {} are busy while requests wait.", brief_count(busy))
    });
    let idle = idle.unwrap_or_default();
    let threads = count_of(*slots, "thread");
    let seen = format!("the server does {worth} of work at a time and has {threads}.{idle}");
    let held_up = what_holds_them_up(at_once, *slots, workers, *held);
    match computes {
        // If it is the lock, more threads do more: they wait while others compute.
        Some(computes) => format!(
            "It may be Ruby's lock, since a process computes for {} of the time: then more threads do \
             more, though less and less. Otherwise {held_up}: {seen}",
            share(*computes)
        ),
        None => format!(
            "Probably not the threads: {seen}{longer} Something inside the app holds them up: it may \
             be {held_up}."
        ),
    }
}

/// How long a request takes though a thread is free for it.
fn longer_than_with_fewer(seen: &UsualTimes) -> String {
    format!(
        " With no more requests in flight than threads, at {}, a typical one takes {} or more, {} {}.",
        count_of(seen.connections, "connection"),
        brief(seen.here),
        with_fewer(seen),
        brief(seen.with_fewer)
    )
}

/// What may be letting this many requests through at a time, and no more.
fn what_holds_them_up(at_once: &AtOnce, slots: u32, workers: u32, held: Option<Nanos>) -> String {
    let per_worker = at_once.mean / f64::from(workers.max(1));
    let high = at_once.high.unwrap_or(f64::INFINITY);
    if workers > 1 && at_once.low <= f64::from(workers) && f64::from(workers) <= high {
        return format!(
            "one request at a time in each of the {}, or {} in all",
            count_of(workers, "worker"),
            tenths(at_once.mean)
        );
    }
    if at_once.low <= 1.0 && high >= 1.0 {
        return "a lock or a backend that takes one request at a time".to_owned();
    }
    let held = held.map(|held| format!(" that each request holds for {}", brief(held)));
    // The time is that of one for all workers.
    let of_all = if workers > 1 && held.is_some() { " of all workers" } else { "" };
    let lock = format!("a lock or backend{of_all}{}", held.unwrap_or_default());
    let each = per_worker.round();
    let is_each = workers > 1 && (per_worker - each).abs() < 0.1 && per_worker > 0.9;
    // A pool lets through no more than its size, by chance a little more.
    let size = at_once.mean.round().max((at_once.low * (1.0 - NEAR_A_POOL)).ceil());
    // A pool of as many as there are threads holds up nothing.
    if size >= f64::from(slots) {
        return lock;
    }
    let pool = if is_each {
        format!("a pool of {each:.0} in each worker")
    } else {
        format!("a pool of {size:.0}")
    };
    format!("{pool}, or {lock}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_no_smaller_than_what_it_lets_through() {
        let named = |mean, low| {
            let at_once = AtOnce { mean, low, high: Some(mean + 1.0) };
            what_holds_them_up(&at_once, 10, 2, None)
        };
        assert_eq!(named(4.4, 4.3), "a pool of 5, or a lock or backend");
        assert_eq!(named(4.4, 3.9), "a pool of 4, or a lock or backend");
        assert_eq!(named(9.4, 9.4), "a lock or backend");
    }
}
