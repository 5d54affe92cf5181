//! The server's threads: all are taken, by requests that wait.
//!
//! Two things speak for it, from different sources: as many requests' worth at once as there are
//! threads (the client's times), and threads that the server itself says are busy.

use model::AtOnce;

use crate::at_once;
use crate::words::{at_once_in_words, brief_count};

/// Threads are busy where this share of them is, on average: a thread is free for a moment between
/// two requests.
pub(crate) const BUSY: f64 = 0.9;

/// Whether that many of the threads were seen busy.
pub(crate) fn are_busy(busy: f64, slots: u32) -> bool {
    busy >= BUSY * f64::from(slots)
}

pub(super) fn evidence(
    slots: u32,
    connections: u32,
    at_once: Option<&AtOnce>,
    busy: Option<f64>,
) -> String {
    let mut parts = vec![format!("{connections} connections want {slots} threads")];
    if let Some(at_once) = at_once {
        parts.push(format!("{} requests' worth at a time", at_once_in_words(at_once)));
    }
    if let Some(busy) = busy {
        parts.push(format!("{} seen busy", brief_count(busy)));
    }
    parts.join("; ")
}

pub(super) fn sentence(slots: u32, at_once: Option<&AtOnce>, busy: Option<f64>) -> String {
    let worth = at_once.map(|at_once| {
        format!("it does {} requests' worth of work at a time", at_once_in_words(at_once))
    });
    let busy = busy.filter(|busy| are_busy(*busy, slots));
    let seen = busy.map(|busy| format!("{} busy, by the server's own count", busy_of(busy, slots)));
    let is_lower = at_once.is_some_and(|at_once| may_be_inside(at_once, slots));
    match (seen, worth) {
        // A thread that waits for a pool is as busy as one that serves.
        (Some(seen), Some(worth)) if is_lower => format!(
            "The threads may be the limit, or something inside the app that lets fewer pass: \
             {seen}, but {worth}."
        ),
        (None, Some(worth)) if is_lower => format!(
            "The threads may be the limit, or something inside the app that lets fewer pass: the \
             server has {slots}, and {worth}."
        ),
        (Some(seen), Some(worth)) if at_once.is_some_and(|it| is_that_number(it, slots)) => {
            format!("The threads are the limit: {seen}, and {worth}.")
        }
        (Some(seen), Some(worth)) => {
            format!("The threads are probably the limit: {seen} ({worth}).")
        }
        // So are they where they wait for a pool, a lock or a backend.
        (Some(seen), None) => format!(
            "The threads may be the limit, or something that lets fewer requests pass than there \
             are threads: {seen}."
        ),
        (None, Some(worth)) => {
            format!("The threads are probably the limit: the server has {slots}, and {worth}.")
        }
        (None, None) => format!(
            "The threads may be the limit, or something that lets fewer requests pass than there \
             are threads: there are {slots}."
        ),
    }
}

/// Whether it is so much less than the threads that something inside the app may let fewer pass.
pub(crate) fn may_be_inside(at_once: &AtOnce, slots: u32) -> bool {
    let nearly = if at_once::is_narrow(at_once) { NEARLY } else { NEARLY_AT_LARGE };
    at_once.mean < nearly * f64::from(slots)
}

/// Below this share of the slots something else may let fewer pass: of ten threads, a pool of nine.
const NEARLY: f64 = 0.95;
/// The same where the interval is so wide that chance alone puts the mean further off.
const NEARLY_AT_LARGE: f64 = 0.75;
/// An interval within this part of the slots tells them from other limits near by.
const CLOSE: f64 = 0.1;

/// Whether it is that number of threads, and hardly another.
fn is_that_number(at_once: &AtOnce, slots: u32) -> bool {
    let slots = f64::from(slots);
    let high = at_once.high.unwrap_or(f64::INFINITY);
    at_once.low >= (1.0 - CLOSE) * slots && high <= (1.0 + CLOSE) * slots
}

/// `all 10 are`, `9.3 of 10 are`.
fn busy_of(busy: f64, slots: u32) -> String {
    if busy >= f64::from(slots) - 0.05 {
        return format!("all {slots} are");
    }
    format!("{} of {slots} are", brief_count(busy))
}
