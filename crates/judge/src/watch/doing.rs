//! What the threads that serve requests are doing, by the kernel's account.

use model::LockWaiters;

use super::evidence::{Backend, WaitsSeen, WatchEvidence};
use crate::limits::threads;
use crate::words::{brief_count, count_of, listed};

/// A smaller share of the threads than this is not mentioned.
const A_FEW: f64 = 0.05;
/// Threads of Puma 6 and older also wait up to 0.2 s for a client's next request, and that looks
/// like a wait for a backend. With fewer requests in flight than this share of the threads, it may
/// be most of what is seen.
const IN_FLIGHT: f64 = 0.75;
/// In a worker with a pool at least one thread has a connection, and one waits for its turn: on
/// average a little less, since a thread is sometimes seen between two requests.
const ABOUT_ONE: f64 = 0.8;

/// The waits of each worker; `None` if those of one of them are not visible.
fn of_workers(seen: &WatchEvidence) -> Option<Vec<WaitsSeen>> {
    seen.workers
        .iter()
        .filter(|worker| worker.threads > Some(0))
        .map(|worker| worker.waits.filter(|waits| waits.looks > 0))
        .collect()
}

fn sum(all: &[WaitsSeen], part: fn(&WaitsSeen) -> f64) -> f64 {
    all.iter().map(part).sum()
}

/// `7.8 wait for a lock`, `1 waits for a lock`. `what`: the words for one thread, and for several.
fn threads_that(threads: f64, what: [&str; 2]) -> String {
    let count = brief_count(threads);
    let [of_one, of_several] = what;
    let what = if count == "1" { of_one } else { of_several };
    format!("{count} {what}")
}

/// `Of 10 threads, by the kernel, 7.8 wait for a lock or a pool and 2.2 wait for a socket or a pipe.`
pub(super) fn sentence(seen: &WatchEvidence) -> Option<String> {
    let all = of_workers(seen)?;
    let slots = seen.slots()?;
    let locked = sum(&all, |waits| waits.lock + waits.file_lock);
    let has_locks = locked >= A_FEW * f64::from(slots);
    let locks = (locked, ["waits for a lock or a pool", "wait for a lock or a pool"]);
    let timed = if has_locks { TIMED_BESIDE_LOCKS } else { TIMED };
    let others = but_for_locks(seen, &all, timed);
    let mut parts = in_words(std::iter::once(locks).chain(others), slots);
    if !has_locks {
        parts.push("none waits for a lock".to_owned());
    }
    Some(format!("Of {}, by the kernel, {}.", count_of(slots, "thread"), listed(&parts)))
}

/// What the threads of all workers do; `None` if those of one of them are not visible.
pub(super) fn parts(seen: &WatchEvidence) -> Option<WaitsSeen> {
    let all = of_workers(seen)?;
    Some(WaitsSeen {
        timed: sum(&all, |waits| waits.timed),
        socket: sum(&all, |waits| waits.socket),
        runnable: sum(&all, |waits| waits.runnable),
        ..WaitsSeen::default()
    })
}

/// How many threads do this, and the words for one and for several.
type Part = (f64, [&'static str; 2]);

/// The words for a wait with a time limit. A pool is in one group alone: where some wait for a lock or
/// a pool without a limit, those with one are told apart from them; and those that such a pool lets
/// through do not wait for it.
const TIMED: [&str; 2] =
    ["waits with a time limit (a sleep, a pool)", "wait with a time limit (a sleep, a pool)"];
const TIMED_BESIDE_LOCKS: [&str; 2] = [
    "waits with a time limit (a sleep, or a pool that gives up after a while)",
    "wait with a time limit (a sleep, or a pool that gives up after a while)",
];
const TIMED_INSIDE: [&str; 2] = [
    "waits with a time limit (a sleep, or another pool)",
    "wait with a time limit (a sleep, or another pool)",
];

/// The words for a wait for something outside of the process.
pub(super) fn outside(seen: &WatchEvidence) -> [&'static str; 2] {
    let commands = seen.backends.iter().filter(|backend| backend.is_command).count();
    match commands {
        0 => ["waits for a socket or a pipe", "wait for a socket or a pipe"],
        _ if commands == seen.backends.len() => [
            "waits for a command that the app has started",
            "wait for a command that the app has started",
        ],
        _ => ["waits for a socket, a pipe or a command", "wait for a socket, a pipe or a command"],
    }
}

/// What the threads do that do not wait for a lock. `timed`: the words for a wait with a time limit.
fn but_for_locks(seen: &WatchEvidence, all: &[WaitsSeen], timed: [&'static str; 2]) -> [Part; 4] {
    let sum = |part| sum(all, part);
    [
        (sum(|waits| waits.timed), timed),
        (sum(|waits| waits.socket), outside(seen)),
        (sum(|waits| waits.runnable), ["uses or wants a CPU", "use or want a CPU"]),
        (sum(|waits| waits.other), ["is in another system call", "are in other system calls"]),
    ]
}

/// Each part that is not too small to mention, the largest first.
fn in_words(parts: impl IntoIterator<Item = Part>, slots: u32) -> Vec<String> {
    let is_shown = |(threads, _): &Part| *threads >= A_FEW * f64::from(slots);
    let mut parts: Vec<Part> = parts.into_iter().filter(is_shown).collect();
    parts.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    parts.into_iter().map(|(threads, what)| threads_that(threads, what)).collect()
}

/// The same where nothing waits, if requests are in flight. A free thread looks like one that waits
/// for a lock, so it must be clear how many requests there are.
pub(super) fn of_requests(seen: &WatchEvidence) -> Option<String> {
    let out = seen.requests_out().filter(|out| *out > 0)?;
    (Some(out) == seen.requests_out_at_most()).then(|| sentence(seen))?
}

/// Whether some threads wait with a time limit: they sleep, or wait for their turn in a pool.
pub(super) fn wait_with_a_limit(seen: &WatchEvidence) -> bool {
    of_workers(seen).is_some_and(|all| sum(&all, |waits| waits.timed) >= ABOUT_ONE)
}

/// Where the threads are all busy: what probably takes their time, or may do so, if their waits
/// tell.
pub(super) fn takes_the_time(seen: &WatchEvidence) -> Option<String> {
    let all = of_workers(seen).filter(|all| !all.is_empty())?;
    let slots = seen.slots()?;
    if may_wait_for_clients(seen, slots) {
        return None;
    }
    elsewhere(seen, &all, slots).or_else(|| pool(seen, &all, slots))
}

/// Whether what the threads do looks like a pool around a backend.
pub(super) fn may_be_pool(seen: &WatchEvidence) -> bool {
    let all = of_workers(seen).filter(|all| !all.is_empty());
    let is_pool = all.zip(seen.slots()).and_then(|(all, slots)| {
        let is_elsewhere = elsewhere(seen, &all, slots).is_some();
        pool(seen, &all, slots).filter(|_| !is_elsewhere && !may_wait_for_clients(seen, slots))
    });
    is_pool.is_some()
}

/// Whether nearly all threads wait for an answer from elsewhere, or for a command.
pub(super) fn wait_elsewhere(seen: &WatchEvidence) -> bool {
    let waits = of_workers(seen).zip(seen.slots()).and_then(|(all, slots)| {
        elsewhere(seen, &all, slots).filter(|_| !may_wait_for_clients(seen, slots))
    });
    waits.is_some()
}

/// Whether threads that wait for a socket may wait for a client's next request. Those of which it is
/// known where the socket leads do not.
fn may_wait_for_clients(seen: &WatchEvidence, slots: u32) -> bool {
    let known: f64 = seen.backends.iter().map(|backend| backend.threads).sum();
    let in_flight = f64::from(seen.requests_out().unwrap_or(0)).max(known);
    seen.major().is_none_or(|major| major <= 6) && in_flight < IN_FLIGHT * f64::from(slots)
}

/// What those do that a lock or a pool lets through.
pub(super) fn of_those_inside(seen: &WatchEvidence, locked: &LockWaiters) -> Option<String> {
    if let Some(waiting) = inside_a_call(seen, locked) {
        return Some(format!(
            "Of those that get through, {}: probably {} takes the time.",
            threads_that(waiting, outside(seen)),
            answer_from(seen)
        ));
    }
    let others = but_for_locks(seen, &of_workers(seen)?, TIMED_INSIDE);
    let others = in_words(others, seen.slots()?);
    (!others.is_empty()).then(|| format!("Of the others, {}.", listed(&others)))
}

/// Where those ask that a lock or a pool lets through, if that takes the time.
pub(super) fn called_inside(seen: &WatchEvidence, locked: &LockWaiters) -> Option<String> {
    inside_a_call(seen, locked)?;
    Some(backends(seen).unwrap_or_else(|| "another process".to_owned()))
}

/// How many threads wait for a socket, if these are most of those that a lock or a pool lets
/// through.
fn inside_a_call(seen: &WatchEvidence, locked: &LockWaiters) -> Option<f64> {
    /// Most of them.
    const MOST: f64 = 0.75;
    let all = of_workers(seen)?;
    let inside = f64::from(locked.busy) - locked.waiting;
    let waiting = sum(&all, |waits| waits.socket);
    let is_most = waiting >= ABOUT_ONE && waiting >= MOST * inside;
    (is_most && !may_wait_for_clients(seen, seen.slots()?)).then_some(waiting)
}

/// `an answer from 127.0.0.1:5432`, if it is known where the sockets lead; `the command convert`.
pub(super) fn answer_from(seen: &WatchEvidence) -> String {
    let named = |are_commands: bool, written: fn(&str) -> String| {
        let named = most_waited_for(seen).filter(|one| one.is_command == are_commands);
        let named: Vec<String> = named.map(|one| written(&one.place)).collect();
        (!named.is_empty()).then(|| listed(&named))
    };
    let places = named(false, str::to_owned).map(|places| format!("an answer from {places}"));
    let commands = named(true, |name| format!("`{name}`"));
    let commands = commands.map(|commands| format!("the command {commands}"));
    match (places, commands) {
        (Some(places), Some(commands)) => format!("{places} or {commands}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => "an answer from elsewhere (a database, an API, a child process)".to_owned(),
    }
}

/// Where the sockets lead that most of the waiting threads wait for, and commands.
fn backends(seen: &WatchEvidence) -> Option<String> {
    let named: Vec<String> = most_waited_for(seen).map(|one| one.place.clone()).collect();
    (!named.is_empty()).then(|| listed(&named))
}

/// What most of the threads wait for outside of the process, as far as it is known.
pub(super) fn most_waited_for(seen: &WatchEvidence) -> impl Iterator<Item = &Backend> {
    /// More are not named, nor those for which a smaller share waits.
    const MOST_NAMED: usize = 3;
    const LEAST: f64 = 0.1;
    let all: f64 = seen.backends.iter().map(|backend| backend.threads).sum();
    seen.backends.iter().filter(move |backend| backend.threads >= LEAST * all).take(MOST_NAMED)
}

/// Nearly all threads wait for something outside of the process.
fn elsewhere(seen: &WatchEvidence, all: &[WaitsSeen], slots: u32) -> Option<String> {
    let waiting = sum(all, |waits| waits.socket);
    let [waits, wait] = outside(seen);
    let threads = match brief_count(waiting) {
        _ if slots == 1 => format!("The only thread {waits}"),
        count if count == slots.to_string() => format!("All {slots} threads {wait}"),
        count => format!("{count} of {slots} threads {wait}"),
    };
    let are_commands =
        !seen.backends.is_empty() && seen.backends.iter().all(|backend| backend.is_command);
    let more = if are_commands { "can run" } else { "can be asked there" };
    threads::are_busy(waiting, slots).then(|| {
        format!(
            "{threads}, by the kernel's account: probably {} takes the time. More threads help if \
             more {more} at a time.",
            answer_from(seen)
        )
    })
}

/// In each worker the same number of threads waits for a backend, and all others wait with a time
/// limit, as Rails' threads do for a connection to the database.
fn pool(seen: &WatchEvidence, all: &[WaitsSeen], slots: u32) -> Option<String> {
    let inside = sum(all, |waits| waits.socket);
    let in_turn = sum(all, |waits| waits.timed);
    let size = (inside / all.len() as f64).round() as u32;
    let is_pool = |waits: &WaitsSeen| {
        waits.timed >= ABOUT_ONE && waits.socket >= ABOUT_ONE && waits.socket.round() as u32 == size
    };
    if !threads::are_busy(inside + in_turn, slots) || !all.iter().all(is_pool) {
        return None;
    }
    let backend = backends(seen).unwrap_or_else(|| "a backend".to_owned());
    let each = if all.len() > 1 { " in each worker" } else { "" };
    Some(format!(
        "It may be a pool of {size}{each}: of {}, by the kernel's account, {} ({backend}), and {} \
         (for their turn, if they do not sleep). Or the threads are the limit.",
        count_of(slots, "thread"),
        threads_that(inside, outside(seen)),
        threads_that(in_turn, ["with a time limit", "with a time limit"]),
    ))
}
