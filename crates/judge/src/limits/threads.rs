//! The server's threads: all are taken, by requests that wait.
//!
//! Two things speak for it, from different sources: as many requests' worth at once as there are
//! threads (the client's times), and threads that the server itself says are busy.

use model::AtOnce;

use crate::at_once::{self, Beside};
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
    let mut evidence = format!("{connections} connections want {slots} threads");
    if let Some(at_once) = at_once {
        evidence.push_str(&format!("; {} requests' worth at a time", at_once_in_words(at_once)));
    }
    if let Some(busy) = busy {
        evidence.push_str(&format!("; {} seen busy", brief_count(busy)));
    }
    evidence
}

pub(super) fn sentence(slots: u32, at_once: Option<&AtOnce>, busy: Option<f64>) -> String {
    let worth = at_once.map(|at_once| {
        format!("it does {} requests' worth of work at a time", at_once_in_words(at_once))
    });
    let is_equal =
        at_once.is_some_and(|at_once| at_once::beside(at_once, f64::from(slots)) == Beside::Equal);
    match (busy.filter(|busy| are_busy(*busy, slots)), worth) {
        (Some(busy), Some(worth)) if !is_equal => format!(
            "The threads are probably the limit: {} busy, by the server's own count ({worth}).",
            busy_of(busy, slots)
        ),
        (Some(busy), Some(worth)) => format!(
            "The threads are the limit: {} busy, by the server's own count, and {worth}.",
            busy_of(busy, slots)
        ),
        (Some(busy), None) => format!(
            "The threads are probably the limit: {} busy, by the server's own count.",
            busy_of(busy, slots)
        ),
        (None, Some(worth)) => {
            format!("The threads are probably the limit: the server has {slots}, and {worth}.")
        }
        (None, None) => format!("The threads may be the limit: there are {slots}."),
    }
}

/// `all 10 are`, `9.3 of 10 are`.
fn busy_of(busy: f64, slots: u32) -> String {
    if busy >= f64::from(slots) - 0.05 {
        return format!("all {slots} are");
    }
    format!("{} of {slots} are", brief_count(busy))
}
