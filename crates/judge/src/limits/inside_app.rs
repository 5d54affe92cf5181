//! Something inside the app that lets fewer requests pass than there are threads: a pool, a lock, a
//! backend.
//!
//! Whatever it is, requests then take longer than alone, and how many of them are inside is not
//! known: 50 ms with 10 of them under a lock give five requests' worth with all ten inside.

use model::{AtOnce, Nanos};

use crate::words::{at_once_in_words, brief, count_of, tenths};

pub(super) fn evidence(slots: u32, at_once: &AtOnce, held: Nanos) -> String {
    format!(
        "{} requests' worth of work at a time on {slots} threads; one every {}",
        at_once_in_words(at_once),
        brief(held)
    )
}

pub(super) fn sentence(slots: u32, workers: u32, at_once: &AtOnce, held: Nanos) -> String {
    let worth = at_once_in_words(at_once);
    let first = format!(
        "Not the threads: the server does {worth} requests' worth of work at a time and has {slots} \
         threads. Something inside the app holds them up"
    );
    let per_worker = at_once.mean / f64::from(workers.max(1));
    let high = at_once.high.unwrap_or(f64::INFINITY);
    if workers > 1 && at_once.low <= f64::from(workers) && f64::from(workers) <= high {
        return format!(
            "{first}: it may be one request at a time in each of the {}, or {} in all.",
            count_of(workers, "worker"),
            tenths(at_once.mean)
        );
    }
    if at_once.low <= 1.0 && high >= 1.0 {
        return format!("{first}: it may be a lock or a backend that takes one request at a time.");
    }
    let pool = if workers > 1 && (per_worker - per_worker.round()).abs() < 0.1 && per_worker > 0.9 {
        format!("a pool of {:.0} in each worker", per_worker.round())
    } else {
        format!("a pool of {:.0}", at_once.mean.round())
    };
    format!(
        "{first}: it may be {pool}, or a lock or backend that each request holds for {}.",
        brief(held)
    )
}
