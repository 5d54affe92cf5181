//! Requests are in flight although threads are free and nothing waits for one: more threads would
//! change nothing. What those requests wait for is told all the same, since a slow server is more
//! often like this than full.

use model::{Limit, LockWaiters};

use super::doing;
use super::evidence::{WatchEvidence, WatchedWorker};
use super::locks::{self, TWO_EACH};
use crate::limits::threads;
use crate::words::{capitalised, count_at_looks, count_of, listed};

/// With fewer requests than this that don't wait, one gets through, and another is between two
/// requests now and then.
const ONE_AT_A_TIME: f64 = 1.6;
/// More workers than this are not named one by one.
const MOST_NAMED: usize = 3;

/// What the requests in flight wait for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Held {
    /// In these workers some wait for a lock or a pool at nearly every look.
    Locks(Vec<LockedWorker>),
    /// Nearly all wait for a socket, a pipe or a command: so many.
    Elsewhere(f64),
    /// Nearly all compute, or want to: so many.
    Computing(f64),
    /// Nearly all wait with a time limit: so many.
    Timed(f64),
}

/// A worker in which requests wait for a lock or a pool.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LockedWorker {
    name: String,
    requests: u32,
    waiting: f64,
    is_on_file: bool,
}

impl LockedWorker {
    /// Its requests that get through the lock or the pool.
    fn passing(&self) -> f64 {
        (f64::from(self.requests) - self.waiting).max(0.0)
    }

    fn counts(&self) -> String {
        of_requests(self.waiting, self.requests)
    }
}

/// What they wait for, if it is clear how many requests there are: a free thread looks like one
/// that waits for a lock.
pub(super) fn of(seen: &WatchEvidence) -> Option<Held> {
    let out = clear_requests(seen)?;
    let locked: Vec<LockedWorker> = seen.workers.iter().filter_map(locked_worker).collect();
    if !locked.is_empty() {
        return Some(Held::Locks(locked));
    }
    let parts = doing::parts(seen)?;
    let is_most = |threads: f64| out >= TWO_EACH && threads::are_busy(threads, out);
    let asking = parts.socket - may_wait_for_clients(seen, parts.socket);
    if is_most(asking) {
        Some(Held::Elsewhere(asking))
    } else if is_most(parts.runnable) {
        Some(Held::Computing(parts.runnable))
    } else if is_most(parts.timed) {
        Some(Held::Timed(parts.timed))
    } else {
        None
    }
}

/// How many of the threads that wait for a socket may wait for a client's next request, as threads of
/// Puma 6 and older do: no more than there are connections without a request, and none of those of
/// which it is known where the socket leads.
fn may_wait_for_clients(seen: &WatchEvidence, waiting: f64) -> f64 {
    if seen.major().is_some_and(|major| major >= 7) {
        return 0.0;
    }
    let known: f64 = seen.backends.iter().map(|backend| backend.threads).sum();
    let idle = seen.connections.zip(seen.out).map(|(open, out)| (open - out).max(0.0));
    (waiting - known).max(0.0).min(idle.unwrap_or(waiting))
}

/// How many requests are in flight, if that is clear and was the same at every look.
fn clear_requests(seen: &WatchEvidence) -> Option<u32> {
    let out = seen.requests_out().filter(|out| *out > 0)?;
    let is_clear = Some(out) == seen.requests_out_at_most();
    is_clear.then_some(out).filter(|out| seen.slots() > Some(*out))
}

/// The worker, if some of its requests wait for a lock at nearly every look.
fn locked_worker(worker: &WatchedWorker) -> Option<LockedWorker> {
    /// So near to a whole number, the requests were as many at every look.
    const NEARLY_WHOLE: f64 = 0.1;
    let out = worker.requests_out.filter(|out| (out - out.round()).abs() <= NEARLY_WHOLE)?;
    let requests = out.round() as u32;
    let waits = locks::always_locked(worker)?;
    let waiting = waits.lock + waits.file_lock;
    (requests >= TWO_EACH && waiting < f64::from(requests)).then(|| LockedWorker {
        name: worker.name.clone(),
        requests,
        waiting,
        is_on_file: waits.file_lock > waiting / 2.0,
    })
}

/// What they wait for, and that threads are free.
pub(super) fn sentence(seen: &WatchEvidence, held: &Held) -> String {
    let out = seen.requests_out().unwrap_or(0);
    let most = |threads: f64, one: &str, several: &str| {
        let (of, verb) = match count_at_looks(threads) {
            count if count == "2" && out == 2 => ("both".to_owned(), several),
            count if count == out.to_string() => (format!("all {out}"), several),
            count if count == "1" => (format!("1 of {out}"), one),
            count => (format!("{count} of {out}"), several),
        };
        format!("{of} requests in flight {verb}, by the kernel's account")
    };
    let [waits, wait] = doing::outside(seen);
    let what = match held {
        Held::Locks(workers) => of_locks(workers, seen.workers.len()),
        Held::Elsewhere(threads) => format!(
            "Probably {} takes the time: {}.",
            doing::answer_from(seen),
            most(*threads, waits, wait)
        ),
        Held::Computing(threads) => {
            capitalised(&most(*threads, "uses or wants a CPU", "use or want a CPU")) + "."
        }
        Held::Timed(threads) if doing::sleep(seen) => {
            let sleep = ["sleeps until its time is up", "sleep until their time is up"];
            capitalised(&most(*threads, sleep[0], sleep[1])) + "."
        }
        Held::Timed(threads) => format!(
            "{}: a sleep, or a pool that gives up after a while.",
            capitalised(&most(*threads, "waits with a time limit", "wait with a time limit"))
        ),
    };
    format!("{what}{}", free_threads(seen))
}

/// ` No request waits for a thread (2 of 10 are free): more threads would change nothing.`
fn free_threads(seen: &WatchEvidence) -> String {
    let free = seen.slots().zip(seen.requests_out()).map(|(slots, out)| (slots, slots - out));
    free.map_or(String::new(), |(slots, free)| {
        let are = if free == 1 { "is" } else { "are" };
        format!(
            " No request waits for a thread ({free} of {slots} {are} free): more threads would \
             change nothing."
        )
    })
}

/// `It may be a pool of 3, or a lock that a request holds for part of its time: in worker 1, 2 of 5
/// requests wait for a lock or a pool, by the kernel's account, while 3 get through.` `of`: how many
/// workers there are.
fn of_locks(workers: &[LockedWorker], of: usize) -> String {
    let on_file = workers.iter().all(|worker| worker.is_on_file);
    let lock = if on_file { "a lock on a file" } else { "a lock or a pool" };
    let passing: Vec<u32> = workers.iter().map(|worker| worker.passing().round() as u32).collect();
    let is_same = passing.iter().all(|count| *count == passing[0]);
    let is_one = workers.iter().all(|worker| worker.passing() < ONE_AT_A_TIME);
    let each = if workers.len() > 1 { " in each worker" } else { "" };
    let guess = if is_one {
        format!("it may be one request at a time{each}")
    } else if on_file || !is_same {
        "it may be a lock, or a pool".to_owned()
    } else {
        format!(
            "it may be a pool of {}{each}, or a lock that a request holds for part of its time",
            passing[0]
        )
    };
    let is_alike = is_same && workers.iter().all(|worker| worker.requests == workers[0].requests);
    let all_waiting: f64 = workers.iter().map(|worker| worker.waiting).sum();
    let waiting = all_waiting / workers.len() as f64;
    let where_they_wait = if is_alike && workers.len() > 1 && workers.len() == of {
        format!("in each worker, {}", of_requests(waiting, workers[0].requests))
    } else if workers.len() <= MOST_NAMED {
        let each = workers.iter().map(|worker| format!("in {}, {}", worker.name, worker.counts()));
        listed(&each.collect::<Vec<_>>())
    } else {
        let requests = workers.iter().map(|worker| worker.requests).sum();
        let count = count_of(workers.len() as u32, "worker");
        format!("in {count}, {}", of_requests(all_waiting, requests))
    };
    let is_single = workers.len() == 1 || is_alike;
    let wait = if is_single && count_at_looks(waiting) == "1" { "waits" } else { "wait" };
    let get = if passing[0] == 1 { "gets" } else { "get" };
    let in_each = if workers.len() > 1 && !is_alike { " in each" } else { "" };
    let through = if is_same {
        format!(", while {} {get} through{in_each}", passing[0])
    } else {
        String::new()
    };
    format!(
        "{}: {where_they_wait} {wait} for {lock}, by the kernel's account{through}.",
        capitalised(&guess)
    )
}

/// `2 of 5 requests`
fn of_requests(waiting: f64, requests: u32) -> String {
    format!("{} of {requests} requests", count_at_looks(waiting))
}

/// What may be the limit, as for a server whose threads are all busy.
pub(super) fn guess(seen: &WatchEvidence, held: &Held) -> Option<Limit> {
    let Held::Locks(workers) = held else { return None };
    let locked = LockWaiters {
        busy: workers.iter().map(|worker| worker.requests).sum(),
        waiting: workers.iter().map(|worker| worker.waiting).sum(),
        is_on_file: workers.iter().all(|worker| worker.is_on_file),
    };
    Some(locks::inside_app(seen, locked))
}
