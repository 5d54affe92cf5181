//! The server's threads: all of them are busy, and requests wait for one.
//!
//! Two independent sources can show it: the client's times, if the server does as many requests'
//! worth of work at once as it has threads, and the server's own count of busy threads.

use model::{AtOnce, Limit, Strength, UsualTimes};

use crate::with_all_threads::WithAllThreads;
use crate::words::{brief, brief_count, count_of, share, worth_in_words};

/// All threads count as busy if at least this share of them is, on average: a thread is free for a
/// moment between two requests.
pub(crate) const BUSY: f64 = 0.9;

/// Whether the threads were seen busy.
pub(crate) fn are_busy(busy: f64, slots: u32) -> bool {
    busy >= BUSY * f64::from(slots)
}

pub(super) fn evidence(
    slots: u32,
    connections: u32,
    at_once: Option<&AtOnce>,
    busy: Option<f64>,
) -> String {
    let want = if connections == 1 { "wants" } else { "want" };
    let connections = count_of(connections, "connection");
    let mut parts = vec![format!("{connections} {want} {}", count_of(slots, "thread"))];
    if let Some(at_once) = at_once {
        parts.push(format!("{} at a time", worth_in_words(at_once)));
    }
    if let Some(busy) = busy {
        parts.push(format!("{} seen busy", brief_count(busy)));
    }
    parts.join("; ")
}

/// How well it is known that the threads are the limit, by the server's count of busy threads and
/// the client's times. `busy`: the count, if it is high enough.
pub(crate) fn strength(
    slots: u32,
    at_once: Option<&AtOnce>,
    busy: Option<f64>,
    with_all: WithAllThreads,
) -> Strength {
    let is_number = at_once.is_some_and(|at_once| is_that_number(at_once, slots));
    // A thread that waits for a pool is as busy as one that serves, so the client's times must not
    // contradict the count. With a single thread, nothing can let through fewer.
    let is_lower = slots > 1
        && match with_all {
            WithAllThreads::AsAlone(_) => false,
            WithAllThreads::Longer(_) => true,
            WithAllThreads::Unclear(_) | WithAllThreads::NotKnown => {
                at_once.is_some_and(|it| it.high.is_some_and(|high| high < f64::from(slots)))
            }
        };
    if is_lower || at_once.is_none() {
        Strength::MayBe
    } else if busy.is_some() && is_number {
        Strength::Is
    } else {
        Strength::Probably
    }
}

/// The sentence for [`Limit::Threads`].
pub(super) fn sentence(limit: &Limit) -> String {
    let Limit::Threads { slots, at_once, busy, unhindered, strength, computes, .. } = limit else {
        return String::new();
    };
    let slots = *slots;
    let worth = at_once
        .as_ref()
        .map(|at_once| format!("it does {} of work at a time", worth_in_words(at_once)));
    let busy = busy.filter(|busy| are_busy(*busy, slots));
    let seen = busy.map(|busy| format!("{} busy, by the server's own count", busy_of(busy, slots)));
    let is_number = at_once.as_ref().is_some_and(|it| is_that_number(it, slots));
    if let Some(times) = unhindered.filter(|_| !is_number) {
        return sentence_of_times(&times, seen);
    }
    if let Some(computes) = computes {
        let there = seen.unwrap_or_else(|| format!("the server has {slots}"));
        let Some(worth) = worth else {
            return format!(
                "The threads may be the limit: {there}. They probably compete for Ruby's lock, so \
                 more of them do more, though less and less; or something inside the app holds them \
                 up, such as a pool."
            );
        };
        return format!(
            "The threads may be the limit: {there}, and {worth}. They compete for Ruby's lock, since \
             a process computes for {} of the time; or something inside the app holds them up.",
            share(*computes)
        );
    }
    match (strength, seen, worth) {
        (Strength::MayBe, Some(seen), Some(worth)) => format!(
            "The threads may be the limit, or something smaller inside the app, such as a pool: \
             {seen}, but {worth}."
        ),
        (Strength::MayBe, None, Some(worth)) => format!(
            "The threads may be the limit, or something smaller inside the app, such as a pool: the \
             server has {slots}, and {worth}."
        ),
        (Strength::Is, Some(seen), Some(worth)) => {
            format!("The threads are the limit: {seen}, and {worth}.")
        }
        (_, Some(seen), Some(worth)) => {
            format!("The threads are probably the limit: {seen} ({worth}).")
        }
        // A thread that waits for a pool, a lock or a backend is as busy as one that serves.
        (_, Some(seen), None) => format!(
            "The threads may be the limit, or something smaller than the threads, such as a pool: \
             {seen}."
        ),
        (_, None, Some(worth)) => {
            format!("The threads are probably the limit: the server has {slots}, and {worth}.")
        }
        (_, None, None) => format!(
            "The threads may be the limit, or something smaller than the {slots} threads, such as a \
             pool."
        ),
    }
}

/// That they are the limit, or probably are; `None` if that is less certain.
pub(super) fn clause(limit: &Limit) -> Option<String> {
    let sentence = sentence(limit);
    let (known, _) = sentence.strip_prefix("The threads are ")?.split_once(": ")?;
    Some(format!("its threads are {known}"))
}

/// The sentence if a typical request takes no longer with all threads in use. `seen`: that they
/// were counted as busy.
fn sentence_of_times(times: &UsualTimes, seen: Option<String>) -> String {
    let nobody_waits = format!(
        "with one request in flight for each, at {}, a typical one takes {}, {} {}",
        count_of(times.connections, "connection"),
        brief(times.here),
        with_fewer(times),
        brief(times.with_fewer)
    );
    match seen {
        Some(seen) => format!("The threads are probably the limit: {seen}, and {nobody_waits}."),
        None => format!(
            "The threads are probably the limit: {nobody_waits}, and more connections bring no more."
        ),
    }
}

/// `alone`, `at 5 connections`.
pub(super) fn with_fewer(seen: &UsualTimes) -> String {
    if seen.fewer == 1 { "alone".to_owned() } else { format!("at {} connections", seen.fewer) }
}

/// An interval that stays within this share of the slots rules out other limits near them.
const CLOSE: f64 = 0.1;

/// Whether the interval fits this number of threads and hardly any other.
pub(crate) fn is_that_number(at_once: &AtOnce, slots: u32) -> bool {
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
