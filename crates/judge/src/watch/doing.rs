//! What the threads that serve requests are doing, by the kernel's account.

use std::net::SocketAddr;

use model::{LockWaiters, Nanos};

use super::evidence::{Backend, WaitsSeen, WatchEvidence};
use super::locks;
use crate::limits::threads;
use crate::words::{brief, capitalised, count_at_looks, count_of, listed, share, without_zeros};

/// A smaller share of the threads than this is not mentioned.
const A_FEW: f64 = 0.05;
/// Threads of Puma 6 and older also wait up to 0.2 s for a client's next request, and that looks
/// like a wait for a backend. With fewer requests in flight than this share of the threads, it may
/// be most of what is seen.
const IN_FLIGHT: f64 = 0.75;
/// In a worker with a pool at least one thread has a connection, and one waits for its turn: on
/// average a little less, since a thread is sometimes seen between two requests.
const ABOUT_ONE: f64 = 0.8;

/// How waits with a time limit end. Both a sleep and a wait for a turn in a pool have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimedWaits {
    /// Another thread ends them before the time is up: they wait for something that it has.
    Turns,
    /// Another thread ends some of them; the time of most runs out, as in a pool that has too little
    /// for all. Nobody ends a sleep.
    SomeTurns,
    /// The time runs out.
    RunOut,
    /// Too few of them have ended, or too few of them early.
    Unclear,
}

impl TimedWaits {
    fn of(all: &[WaitsSeen]) -> TimedWaits {
        /// Fewer in a worker show only a moment.
        const ENOUGH: u32 = 5;
        /// A wait may be over by chance just when a look is late.
        const NEARLY_ALL: f64 = 0.9;
        /// Fewer may be threads that something else woke.
        const SOME: u32 = 3;
        let is_known = all.iter().all(|waits| waits.ended.early + waits.ended.in_time >= ENOUGH);
        let are = |part: fn(&WaitsSeen) -> u32| {
            all.iter().all(|waits| {
                let ended = waits.ended.early + waits.ended.in_time;
                f64::from(part(waits)) >= NEARLY_ALL * f64::from(ended)
            })
        };
        let early: u32 = all.iter().map(|waits| waits.ended.early).sum();
        if !is_known {
            TimedWaits::Unclear
        } else if are(|waits| waits.ended.early) {
            TimedWaits::Turns
        } else if early >= SOME && all.iter().all(|waits| waits.ended.early > 0) {
            TimedWaits::SomeTurns
        } else if are(|waits| waits.ended.in_time) {
            TimedWaits::RunOut
        } else {
            TimedWaits::Unclear
        }
    }
}

/// Whether the threads that wait with a time limit sleep: their time runs out, and none of the others
/// asks a backend, as the threads do that have what a pool lends.
pub(super) fn sleep(seen: &WatchEvidence) -> bool {
    run_out(seen)
        && of_workers(seen).is_some_and(|all| all.iter().all(|waits| waits.socket < ABOUT_ONE))
}

/// Whether the time of those that wait with a time limit runs out.
fn run_out(seen: &WatchEvidence) -> bool {
    let with_such = |all: Vec<WaitsSeen>| {
        let some: Vec<WaitsSeen> = all.into_iter().filter(|waits| waits.timed >= A_FEW).collect();
        !some.is_empty() && TimedWaits::of(&some) == TimedWaits::RunOut
    };
    of_workers(seen).is_some_and(with_such)
}

/// Whether another thread ends some of the waits with a time limit in each worker before their time.
pub(super) fn others_end_them(seen: &WatchEvidence) -> bool {
    of_workers(seen).is_some_and(|all| {
        !all.is_empty() && matches!(TimedWaits::of(&all), TimedWaits::Turns | TimedWaits::SomeTurns)
    })
}

/// Whether threads of the app that serve no requests may end waits with a time limit, with a result.
pub(super) fn may_have_results(seen: &WatchEvidence) -> bool {
    of_workers(seen).is_some_and(|all| all.iter().any(may_be_results))
}

/// Whether so many threads wait for a lock or a pool without a time limit that they are mentioned.
pub(super) fn wait_for_a_lock(seen: &WatchEvidence) -> bool {
    of_workers(seen)
        .zip(seen.slots())
        .is_some_and(|(all, slots)| waiting_for_locks(&all) >= A_FEW * f64::from(slots))
}

fn waiting_for_locks(all: &[WaitsSeen]) -> f64 {
    sum(all, |waits| waits.lock + waits.file_lock)
}

/// What threads do that do not wait for each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OwnWaits {
    /// They sleep.
    sleeping: f64,
    /// They ask something outside of the process, or wait for a command.
    pub asking: f64,
}

/// Nearly all threads sleep, or ask somebody outside of the process, and none waits for another thread:
/// of many waits with a time limit not one was ended before. Several have to have ended on each thread,
/// since where most waits for a pool run out, one that returns what it had still ends one now and then.
pub(super) fn own_waits(seen: &WatchEvidence) -> Option<OwnWaits> {
    const ENOUGH_EACH: u32 = 2;
    let all = of_workers(seen)?;
    let slots = seen.slots()?;
    let sleeping = sum(&all, |waits| waits.timed);
    let asking = sum(&all, |waits| waits.socket);
    let locked = waiting_for_locks(&all);
    let early: u32 = all.iter().map(|waits| waits.ended.early).sum();
    let ended: u32 = all.iter().map(|waits| waits.ended.in_time).sum();
    let do_sleep = sleeping >= ABOUT_ONE && run_out(seen) && early == 0;
    let are_many = f64::from(ended) >= f64::from(ENOUGH_EACH) * sleeping;
    let are_all = threads::are_busy(sleeping + asking, slots) && locked < A_FEW * f64::from(slots);
    let is_clear = pool(seen, &all, slots).is_none() && !may_wait_for_clients(seen, slots);
    (do_sleep && are_many && are_all && is_clear).then_some(OwnWaits { sleeping, asking })
}

/// Whether the threads are probably the limit, as nearly all of them sleep.
pub(super) fn are_probably_the_threads(seen: &WatchEvidence) -> bool {
    own_waits(seen).is_some_and(|own| own.asking < ABOUT_ONE)
}

/// What limits a server whose threads do not wait for each other. A backend may be full, and then it
/// is the limit.
pub(super) fn of_own_waits(seen: &WatchEvidence) -> Option<String> {
    let own = own_waits(seen)?;
    let slots = seen.slots()?;
    let named: Vec<&Backend> = most_waited_for(seen).collect();
    let known: f64 = named.iter().map(|one| one.threads).sum();
    let others = (own.asking - known, outside(seen));
    let of_backend = |one: &&Backend| SameWait {
        threads: one.threads,
        does: waits_for(one),
        one_does: format!("waits for {}", one.place),
    };
    let mut parts: Vec<SameWait> = named.iter().map(of_backend).collect();
    parts.extend([(own.sleeping, SLEEPS), others].map(|(threads, what)| SameWait {
        threads,
        does: threads_that(threads, what),
        one_does: what[0].to_owned(),
    }));
    parts.retain(|part| part.threads >= A_FEW * f64::from(slots));
    parts.sort_by(|a, b| b.threads.total_cmp(&a.threads));
    let times = times_of_parts(&parts, seen);
    let mut parts: Vec<String> = parts.into_iter().map(|part| part.does).collect();
    parts.push("none waits for a lock nor, it seems, for a pool".to_owned());
    let by_whom = if seen.busy() == Some(slots) {
        format!("all {slots} are busy, by the server's own count; ")
    } else {
        format!("of {}, ", count_of(slots, "thread"))
    };
    let does = format!("{by_whom}{}.{times}", listed(&parts));
    if own.asking < ABOUT_ONE {
        return Some(format!(
            "Probably the threads are the limit: {does} Only an app that sleeps and looks again whether \
             something is free (a poll, a retry) would have another limit."
        ));
    }
    Some(match backends(seen) {
        Some(place) => format!(
            "The threads may be the limit, or {place} if it is full, which cannot be seen here: {does}"
        ),
        None => format!("The threads may be the limit, or what they ask if it is full: {does}"),
    })
}

/// Some threads that do the same.
struct SameWait {
    /// How many, on average.
    threads: f64,
    /// What they do: `about 5 wait for 127.0.0.1:5432`.
    does: String,
    /// What one of them does: `waits for 127.0.0.1:5432`.
    one_does: String,
}

/// How much of a request each of several waits is, where the rate is known: threads in it / requests a
/// second. Not every request has each of them.
fn times_of_parts(parts: &[SameWait], seen: &WatchEvidence) -> String {
    let Some(rate) = seen.rate_now().filter(|_| parts.len() > 1) else { return String::new() };
    let time = |part: &SameWait| {
        let each = brief(Nanos::from_secs_f64(part.threads / rate));
        match part.one_does.split_once(' ') {
            Some((verb, what)) => format!("{verb} {each} {what}"),
            None => format!("{} {each}", part.one_does),
        }
    };
    let times: Vec<String> = parts.iter().map(time).collect();
    format!(" On average over all requests, one {}; some may do only one of these.", listed(&times))
}

/// `about 5 wait for 127.0.0.1:5432`
fn waits_for(backend: &Backend) -> String {
    let count = count_at_looks(backend.threads);
    let wait = if count == "1" { "waits" } else { "wait" };
    let what = if backend.is_command { "the command " } else { "" };
    format!("{count} {wait} for {what}{}", backend.place)
}

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

/// `about 8 wait for a lock`, `1 waits for a lock`. `what`: the words for one thread, and for several.
fn threads_that(threads: f64, what: [&str; 2]) -> String {
    let count = count_at_looks(threads);
    let [of_one, of_several] = what;
    let what = if count == "1" { of_one } else { of_several };
    format!("{count} {what}")
}

/// `Of 10 threads, by the kernel, about 8 wait for a lock or a pool and 2.2 wait for a socket or a pipe.`
pub(super) fn sentence(seen: &WatchEvidence) -> Option<String> {
    let all = of_workers(seen)?;
    let slots = seen.slots()?;
    let has_locks = wait_for_a_lock(seen);
    let a_lock = match locks::may_be_rubys(seen).filter(|_| has_locks) {
        Some(computes) => format!(
            "a lock (Ruby's, since a process computes for {} of the time, or another) or a pool",
            share(computes)
        ),
        None => "a lock or a pool".to_owned(),
    };
    let wait_for_it = [format!("waits for {a_lock}"), format!("wait for {a_lock}")];
    let locks = (waiting_for_locks(&all), wait_for_it.each_ref().map(String::as_str));
    let are_turns = !has_locks && others_end_them(seen);
    let timed = match has_locks {
        _ if sleep(seen) => SLEEPS,
        false if are_turns => TURNS,
        _ if run_out(seen) => RUN_OUT,
        true => TIMED_BESIDE_LOCKS,
        false => TIMED,
    };
    let others = but_for_locks(seen, &all, timed);
    let mut parts = in_words(std::iter::once(locks).chain(others), slots);
    if !has_locks {
        parts.push("none waits for a lock".to_owned());
    }
    let of = count_of(slots, "thread");
    // In the middle of a list, a place would be read as that of all.
    let place = backends(seen).filter(|_| sum(&all, |waits| waits.socket) >= ABOUT_ONE);
    let place = place.map_or_else(String::new, |place| {
        format!(" What they wait for outside of the process: {place}.")
    });
    let ends = if are_turns { format!(" {}", how_they_end(&all)) } else { String::new() };
    Some(format!("Of {of}, by the kernel, {}.{ends}{place}", listed(&parts)))
}

/// How the waits with a time limit ended, of which another thread ended some early; and, where enough
/// of them ended, how many threads were in those of either kind at a time, by how many looks found them.
fn how_they_end(all: &[WaitsSeen]) -> String {
    const ENOUGH: u32 = 20;
    let early: u32 = all.iter().map(|waits| waits.ended.early).sum();
    let in_time: u32 = all.iter().map(|waits| waits.ended.in_time).sum();
    let share = share_that_lasted(all).filter(|_| early.min(in_time) >= ENOUGH);
    let threads_in = |share: Option<f64>| {
        let Some(share) = share else { return String::new() };
        let threads = count_at_looks(share * sum(all, |waits| waits.timed));
        let noun = if threads == "1" { "thread" } else { "threads" };
        format!(" ({threads} {noun} at a time)")
    };
    let lasted = match in_time {
        0 => String::new(),
        _ => {
            format!("; {in_time} lasted their full time, as sleeps do{}", threads_in(share))
        }
    };
    let [whose, like] = if all.iter().any(may_be_results) {
        ["Another thread", "as for a pool or a result"]
    } else {
        ["Another one of them", "as one does that returns what a pool lends"]
    };
    format!(
        "{whose} ended {early} of {} such waits early, {like}{}{lasted}.",
        early + in_time,
        threads_in(share.map(|share| 1.0 - share))
    )
}

/// The share of the time of the waits with a time limit that was of those that lasted until then, by how
/// many looks found them; `None` if there were none of either kind.
fn share_that_lasted(all: &[WaitsSeen]) -> Option<f64> {
    let early: u32 = all.iter().map(|waits| waits.ended.early_looks).sum();
    let in_time: u32 = all.iter().map(|waits| waits.ended.in_time_looks).sum();
    (early.min(in_time) > 0).then(|| f64::from(in_time) / f64::from(early + in_time))
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
type Part<'a> = (f64, [&'a str; 2]);

/// The words for a wait with a time limit. A pool is in one group alone: where some wait for a lock or
/// a pool without a limit, those with one are told apart from them; and those that such a pool lets
/// through do not wait for it.
const TIMED: [&str; 2] =
    ["waits with a time limit (a sleep, a pool)", "wait with a time limit (a sleep, a pool)"];
const TIMED_BESIDE_LOCKS: [&str; 2] = [
    "waits with a time limit (a sleep, or a pool that gives up after a while)",
    "wait with a time limit (a sleep, or a pool that gives up after a while)",
];
/// Those that others are seen to end.
const TURNS: [&str; 2] = ["waits with a time limit", "wait with a time limit"];
/// Those whose time is seen to run out; the second where others ask a backend.
const SLEEPS: [&str; 2] = ["sleeps", "sleep"];
const RUN_OUT: [&str; 2] = [
    "waits until its time is up (a sleep, or a pool that gives up after a while)",
    "wait until their time is up (a sleep, or a pool that gives up after a while)",
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
fn but_for_locks(
    seen: &WatchEvidence,
    all: &[WaitsSeen],
    timed: [&'static str; 2],
) -> [Part<'static>; 4] {
    let sum = |part| sum(all, part);
    [
        (sum(|waits| waits.timed), timed),
        (sum(|waits| waits.socket), outside(seen)),
        (sum(|waits| waits.runnable), ["uses or wants a CPU", "use or want a CPU"]),
        (sum(|waits| waits.other), ["is in another system call", "are in other system calls"]),
    ]
}

/// The parts that are not too small to mention, the largest first.
fn shown<'a>(parts: impl IntoIterator<Item = Part<'a>>, slots: u32) -> Vec<Part<'a>> {
    let is_shown = |(threads, _): &Part<'_>| *threads >= A_FEW * f64::from(slots);
    let mut parts: Vec<Part<'_>> = parts.into_iter().filter(is_shown).collect();
    parts.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    parts
}

/// Each of them in words.
fn in_words<'a>(parts: impl IntoIterator<Item = Part<'a>>, slots: u32) -> Vec<String> {
    let parts = shown(parts, slots).into_iter();
    parts.map(|(threads, what)| threads_that(threads, what)).collect()
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
    elsewhere(seen, &all, slots)
        .or_else(|| Some(in_a_pool(seen, &pool(seen, &all, slots)?, all.len(), slots)))
}

/// A pool around a backend, if what the threads do looks like one, and nothing else takes the time.
pub(super) fn likely_pool(seen: &WatchEvidence) -> Option<Pool> {
    let all = of_workers(seen).filter(|all| !all.is_empty())?;
    let slots = seen.slots()?;
    let is_elsewhere = elsewhere(seen, &all, slots).is_some();
    pool(seen, &all, slots).filter(|_| !is_elsewhere && !may_wait_for_clients(seen, slots))
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
    if is_inside_a_call(seen, locked) {
        return Some(format!("What takes the time then is probably {}.", answer_from(seen)));
    }
    let timed = if sleep(seen) { SLEEPS } else { TIMED_INSIDE };
    let inside = but_for_locks(seen, &of_workers(seen)?, timed);
    let slots = seen.slots()?;
    match shown(inside, slots).as_slice() {
        [] => None,
        // At some looks it is between two requests.
        [(threads, [of_one, _])] if threads.round() as u32 == 1 => {
            Some(format!("The other {of_one}."))
        }
        _ => Some(format!("Of the others, {}.", listed(&in_words(inside, slots)))),
    }
}

/// Where those ask that a lock or a pool lets through, if that takes the time.
pub(super) fn called_inside(seen: &WatchEvidence, locked: &LockWaiters) -> Option<String> {
    is_inside_a_call(seen, locked)
        .then(|| backends(seen).unwrap_or_else(|| "another process".to_owned()))
}

/// Whether most of those that a lock or a pool lets through wait for a socket.
fn is_inside_a_call(seen: &WatchEvidence, locked: &LockWaiters) -> bool {
    /// Most of them.
    const MOST: f64 = 0.75;
    let Some((all, slots)) = of_workers(seen).zip(seen.slots()) else { return false };
    let inside = f64::from(locked.busy) - locked.waiting;
    let waiting = sum(&all, |waits| waits.socket);
    let is_most = waiting >= ABOUT_ONE && waiting >= MOST * inside;
    is_most && !may_wait_for_clients(seen, slots)
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

/// `about 6 of 10 threads wait for 127.0.0.1:5432`, if at least half of the busy threads wait for one
/// place outside of the process.
pub(super) fn most_wait_for_one_place(seen: &WatchEvidence) -> Option<String> {
    let slots = seen.slots()?;
    let half = f64::from(seen.busy_or_taken()?) / 2.0;
    let asked = most_waited_for(seen).next().filter(|one| !one.is_command)?;
    (asked.threads >= half.max(ABOUT_ONE)).then(|| {
        let count = count_at_looks(asked.threads);
        let wait = if count == "1" { "waits" } else { "wait" };
        format!("{count} of {} {wait} for {}", count_of(slots, "thread"), asked.place)
    })
}

/// The places that have to take as many requests at once as there are threads, if a pool is made as
/// large; commands have no such limit.
pub(super) fn asked_places(seen: &WatchEvidence) -> Option<String> {
    let places = most_waited_for(seen).filter(|one| !one.is_command);
    let places: Vec<String> = places.map(|one| one.place.clone()).collect();
    (!places.is_empty()).then(|| listed(&places))
}

/// The port of the only place that is asked, if a server of this machine listens there.
pub(super) fn asked_port_here(seen: &WatchEvidence) -> Option<u16> {
    let mut places = most_waited_for(seen).filter(|one| !one.is_command);
    let only = places.next().filter(|_| places.next().is_none() && !seen.is_elsewhere)?;
    let address: SocketAddr = only.place.parse().ok()?;
    address.ip().is_loopback().then_some(address.port())
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
    let threads = match count_at_looks(waiting) {
        _ if slots == 1 => format!("the only thread {waits}"),
        count if count == slots.to_string() => format!("all {slots} threads {wait}"),
        count if count == format!("about {slots}") => format!("nearly all {slots} threads {wait}"),
        count => format!("{count} of {slots} threads {wait}"),
    };
    let are_commands =
        !seen.backends.is_empty() && seen.backends.iter().all(|backend| backend.is_command);
    let more = if are_commands { "can run" } else { "can be asked there" };
    let unseen = if are_commands { "" } else { "; that cannot be seen here" };
    threads::are_busy(waiting, slots).then(|| {
        format!(
            "Probably {} takes the time: {threads}, by the kernel's account. More threads help if \
             more {more} at a time{unseen}.",
            answer_from(seen)
        )
    })
}

/// What looks like a pool in each worker: so many threads have what it lends, and all others wait with
/// a time limit, as Rails' threads do for a connection to the database.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pool {
    /// In each worker.
    size: u32,
    /// How many of those that have what it lends ask a backend, and how many sleep.
    asking: f64,
    sleeping: f64,
    /// How many wait for their turn, or, where it is not probable, with a time limit.
    pub waiting: f64,
    /// Whether these are seen to wait for their turn, and always as many; else they may sleep.
    pub is_probable: bool,
    /// How their waits end.
    ends: TimedWaits,
    /// What is seen of requests that also do something without what the pool lends.
    beside: Option<BesideOtherWork>,
}

/// What shows that something is a pool although requests also do something without what it lends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum BesideOtherWork {
    /// The place in `WatchEvidence::backends` that only those with a connection ask.
    Around(usize),
    /// At which share of the looks as many threads as it is large did not wait for it, and never fewer.
    AsMany(f64),
}

impl Pool {
    /// Whether the waits for a turn run out, which the app's log tells as errors.
    pub(super) fn runs_out(&self) -> bool {
        self.ends == TimedWaits::RunOut
    }
}

/// The places that have to take as many requests at once as there are threads, if the pool is made as
/// large.
pub(super) fn places_of_pool(seen: &WatchEvidence) -> Option<String> {
    match likely_pool(seen).and_then(|pool| pool.beside) {
        Some(BesideOtherWork::Around(place)) => Some(seen.backends[place].place.clone()),
        Some(BesideOtherWork::AsMany(_)) => None,
        None => asked_places(seen),
    }
}

/// What looks most like a pool.
fn pool(seen: &WatchEvidence, all: &[WaitsSeen], slots: u32) -> Option<Pool> {
    // Those that ask several places hardly all do so by what one pool lends.
    let is_one_place = most_waited_for(seen).count() <= 1;
    let of_askers = pool_of_askers(all, slots).filter(|pool| pool.is_probable || is_one_place);
    pool_of_any(all, slots)
        .or_else(|| pool_around_a_place(seen, all))
        .or(of_askers.filter(|pool| pool.is_probable))
        .or_else(|| pool_beside_other_work(all, slots))
        .or(of_askers)
}

/// Whether threads of the app that serve no requests may have ended the waits that ended early, with a
/// result: they ran about as often, or how often is not known.
fn may_be_results(waits: &WaitsSeen) -> bool {
    waits.ended.runs_beside.is_none_or(|runs| runs * 2 >= u64::from(waits.ended.early))
}

/// In each worker the same number of threads is in no wait that another one ends, whatever they do, and
/// nearly always: they have what the others wait for. How many sleep beside others that wait for a
/// result is another number at each look.
fn pool_of_any(all: &[WaitsSeen], slots: u32) -> Option<Pool> {
    /// Fewer looks may be alike by chance.
    const ENOUGH_LOOKS: u32 = 20;
    /// One that has returned what it had is seen on its way to its next turn now and then.
    const STEADY: f64 = 0.8;
    /// Of waits that ended in either way, in each worker.
    const ENOUGH_WAITS: u32 = 5;
    let size = all.first()?.ended.others.number;
    let is_pool = |waits: &WaitsSeen| {
        let others = waits.ended.others;
        let are_known = others.looks >= ENOUGH_LOOKS && others.share >= STEADY;
        let are_many = waits.ended.early.min(waits.ended.in_time) >= ENOUGH_WAITS;
        are_known && are_many && size > 0 && others.number == size && !may_be_results(waits)
    };
    // Waits of either kind were seen: those for a turn, and what those do that have it.
    share_that_lasted(all)?;
    let pool = probable_pool(all, size, None);
    let are_all = threads::are_busy(pool.asking + pool.sleeping + pool.waiting, slots);
    (are_all && pool.waiting >= ABOUT_ONE && all.iter().all(is_pool)).then_some(pool)
}

/// In each worker the same number of threads asks one place at most looks, and none more, though others
/// of it wait until another one ends that: as many have a connection to it. As many threads, or more, are
/// in no such wait at every look.
fn pool_around_a_place(seen: &WatchEvidence, all: &[WaitsSeen]) -> Option<Pool> {
    const ENOUGH_LOOKS: u32 = 20;
    /// What threads do each by itself is not done by one number of them, other than none and all, at so
    /// many looks.
    const STEADY: f64 = 0.6;
    const ENOUGH_WAITS: u32 = 5;
    let is_pool = |size: u32| {
        let is_in = |waits: &WaitsSeen| {
            let fewest = waits.ended.fewest_others;
            let are_many = waits.ended.early >= ENOUGH_WAITS && fewest.looks >= ENOUGH_LOOKS;
            are_many && fewest.number == size && !may_be_results(waits)
        };
        size > 0 && all.iter().all(is_in)
    };
    let is_one = |backend: &Backend| {
        backend.in_each_worker.is_some_and(|asking| {
            let is_known = asking.looks >= ENOUGH_LOOKS && asking.share >= STEADY;
            is_known && is_pool(asking.number)
        })
    };
    let place = seen.backends.iter().position(is_one)?;
    let size = seen.backends[place].in_each_worker?.number;
    let pool = probable_pool(all, size, Some(BesideOtherWork::Around(place)));
    (pool.waiting >= ABOUT_ONE).then_some(pool)
}

/// A pool of which is seen that it is one, and how many threads do what.
fn probable_pool(all: &[WaitsSeen], size: u32, beside: Option<BesideOtherWork>) -> Pool {
    let timed = sum(all, |waits| waits.timed);
    let sleeping = share_that_lasted(all).unwrap_or(0.0) * timed;
    Pool {
        size,
        asking: sum(all, |waits| waits.socket),
        sleeping,
        waiting: timed - sleeping,
        is_probable: true,
        ends: TimedWaits::Turns,
        beside,
    }
}

/// In each worker there are always at least as many threads in no wait that another one ends, and often
/// exactly so many: these have what the others wait for, and the more there are, the more do something
/// without it. The number of threads that do something each by itself, however it varies, has no such
/// least number that is also usual (a binomial distribution).
fn pool_beside_other_work(all: &[WaitsSeen], slots: u32) -> Option<Pool> {
    /// Of each worker, and of all together.
    const ENOUGH_LOOKS: u32 = 20;
    const ENOUGH_IN_ALL: u32 = 40;
    /// Where threads do something each by itself and this share of the looks finds some number, of which
    /// two threads are left, one look in twenty or more finds a smaller one.
    const OFTEN: f64 = 0.3;
    const LEFT: u32 = 2;
    /// While a few long waits last, many looks find the same.
    const ENOUGH_WAITS: u32 = 20;
    let size = all.first()?.ended.fewest_others.number;
    let is_pool = |waits: &WaitsSeen| {
        let fewest = waits.ended.fewest_others;
        let is_known = fewest.looks >= ENOUGH_LOOKS && fewest.share >= OFTEN;
        let are_many = waits.ended.early >= ENOUGH_WAITS;
        is_known && are_many && size > 0 && fewest.number == size && !may_be_results(waits)
    };
    let looks: u32 = all.iter().map(|waits| waits.ended.fewest_others.looks).sum();
    let are_left = size + LEFT <= slots / all.len() as u32;
    let shares: f64 = all.iter().map(|waits| waits.ended.fewest_others.share).sum();
    let as_many = BesideOtherWork::AsMany(shares / all.len() as f64);
    let pool = probable_pool(all, size, Some(as_many));
    let is_clear = looks >= ENOUGH_IN_ALL && are_left && pool.waiting >= ABOUT_ONE;
    (is_clear && all.iter().all(is_pool)).then_some(pool)
}

/// In each worker the same number of threads waits for a backend, and all others wait with a time
/// limit. Requests that sleep beside others that ask a backend look the same, but nobody ends a sleep
/// before its time is up, and how many sleep is another number now and then.
fn pool_of_askers(all: &[WaitsSeen], slots: u32) -> Option<Pool> {
    /// At so many of the looks the pool was in use as a whole; at the others one that returned what
    /// it had was seen on the way to its next turn.
    const STEADY: f64 = 0.6;
    /// Where most waits run out, this is the better part of the evidence.
    const VERY_STEADY: f64 = 0.9;
    let asking = sum(all, |waits| waits.socket);
    let waiting = sum(all, |waits| waits.timed);
    let size = (asking / all.len() as f64).round() as u32;
    let is_pool = |waits: &WaitsSeen| {
        waits.timed >= ABOUT_ONE && waits.socket >= ABOUT_ONE && waits.socket.round() as u32 == size
    };
    let is_like_one = threads::are_busy(asking + waiting, slots) && all.iter().all(is_pool);
    let is_steady = |share: f64| all.iter().all(|waits| waits.untimed_alike >= share);
    let ends = TimedWaits::of(all);
    let is_probable = match ends {
        TimedWaits::Turns => is_steady(STEADY),
        TimedWaits::SomeTurns => is_steady(VERY_STEADY),
        TimedWaits::RunOut | TimedWaits::Unclear => false,
    };
    let is_possible = ends != TimedWaits::RunOut || is_steady(VERY_STEADY);
    (is_like_one && is_possible).then_some(Pool {
        size,
        asking,
        sleeping: 0.0,
        waiting,
        is_probable,
        ends,
        beside: None,
    })
}

/// A time that looks at the threads tell, to two digits: how many do what is a mean of some dozen looks.
pub(super) fn rounded(time: Nanos) -> Nanos {
    to_digits(time, time, 2)
}

/// A time, rounded as one of this size is with so many digits.
pub(super) fn to_digits(time: Nanos, like: Nanos, digits: u32) -> Nanos {
    let unit = 10u64.pow((like.0.max(1).ilog10() + 1).saturating_sub(digits));
    Nanos((time.0 + unit / 2) / unit * unit)
}

/// The same in words, without zeros behind a point.
pub(super) fn roughly(time: Nanos) -> String {
    let text = brief(time);
    match text.split_once(' ') {
        Some((figure, unit)) => format!("{} {unit}", without_zeros(figure)),
        None => text,
    }
}

/// How long a request waits for what others have, and how long it has it then, on average.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TurnTimes {
    /// What others have: `the lock or the pool`.
    pub lends: &'static str,
    /// How long it waits for that.
    pub waits: Nanos,
    /// How long it has it.
    pub has: Nanos,
    /// For what it has it: a place that it asks; `None` if that is several things, or not known.
    pub asks: Option<String>,
    /// How much of `has` is with what they waited for, where that is always in use: a request may also do
    /// something without it.
    pub in_turn: Option<Nanos>,
}

impl TurnTimes {
    /// If the rate is known and that is everything that requests do: so many threads each, on average.
    pub(super) fn of(
        seen: &WatchEvidence,
        lends: &'static str,
        waiting: f64,
        having: f64,
    ) -> Option<TurnTimes> {
        let rate = seen.rate_now().filter(|_| having >= ABOUT_ONE)?;
        let [waits, has] = [waiting, having].map(|threads| Nanos::from_secs_f64(threads / rate));
        Some(TurnTimes { lends, waits, has, asks: None, in_turn: None })
    }

    /// The same where so many at a time have what the others wait for.
    pub(super) fn with_turns_of(self, seen: &WatchEvidence, at_a_time: f64) -> TurnTimes {
        let in_turn = seen.rate_now().map(|rate| Nanos::from_secs_f64(at_a_time / rate));
        TurnTimes { in_turn: in_turn.map(|time| time.min(self.has)), ..self }
    }

    /// The same where none of the threads that serve requests has what they wait for.
    pub(super) fn of_one_beside(seen: &WatchEvidence, waiting: f64) -> Option<TurnTimes> {
        let waits = Nanos::from_secs_f64(waiting / seen.rate_now()?);
        Some(TurnTimes {
            lends: "one beside those that serve requests",
            waits,
            has: Nanos::ZERO,
            asks: None,
            in_turn: None,
        })
    }

    /// How long a request takes in all, with its wait for a thread or to be accepted.
    pub(super) fn of_total(&self, wait: Nanos, for_what: &str) -> String {
        let total = to_digits(wait + self.in_thread(), wait + self.in_thread(), 3);
        let wait = to_digits(wait, wait, 3);
        format!(
            "A request takes about {}, on average: it waits {} {for_what} and {} for {}{}.",
            brief(total),
            brief(wait),
            roughly(self.waits_of(total, wait)),
            self.lends,
            self.rest()
        )
    }

    /// How long a request has a thread.
    pub(super) fn in_thread(&self) -> Nanos {
        self.waits + self.has
    }

    /// The same in words, with its parts.
    pub(super) fn of_thread(&self) -> String {
        let in_thread = to_digits(self.in_thread(), self.in_thread(), 3);
        format!(
            "Each request then has a thread for {}, on average: it waits {} for {}{}.",
            brief(in_thread),
            roughly(self.waits_of(in_thread, Nanos::ZERO)),
            self.lends,
            self.rest()
        )
    }

    /// How long it waits for what others have, so that the parts add up to the total as they are written.
    fn waits_of(&self, total: Nanos, wait: Nanos) -> Nanos {
        if self.has == Nanos::ZERO {
            return rounded(self.waits);
        }
        to_digits(total.saturating_sub(wait + rounded(self.has)), total, 3)
    }

    /// What it does then.
    fn rest(&self) -> String {
        /// With this share of it in its turn, a request does hardly anything else then.
        const NEARLY_ALL: f64 = 0.9;
        if self.has == Nanos::ZERO {
            return String::new();
        }
        let rest = roughly(rounded(self.has));
        if let Some(place) = &self.asks {
            return format!(", and then {rest} for {place}");
        }
        let is_nearly_all = |time: &Nanos| time.0 as f64 >= NEARLY_ALL * self.has.0 as f64;
        match self.in_turn {
            Some(time) if is_nearly_all(&time) => format!(", and then has it for {rest}"),
            Some(time) => {
                let time = roughly(rounded(time));
                format!(", and takes {rest} for the rest, about {time} of it in its turn")
            }
            None => format!(", and takes {rest} for the rest"),
        }
    }

    /// `On average a request waits 60.6 ms for it, and then has it for 40.4 ms.`
    pub(super) fn sentence(&self) -> String {
        let [waits, has] = [self.waits, self.has].map(|time| roughly(rounded(time)));
        format!("On average a request waits {waits} for {}, and then has it for {has}.", self.lends)
    }
}

/// The same of a pool, if what the threads do looks like one.
pub(super) fn turns_in_a_pool(seen: &WatchEvidence) -> Option<TurnTimes> {
    let pool = likely_pool(seen).filter(|pool| pool.is_probable)?;
    let at_work = sum(&of_workers(seen)?, WaitsSeen::with_request);
    let times = TurnTimes::of(seen, "its turn in the pool", pool.waiting, at_work - pool.waiting)?;
    let is_for_one_thing = match pool.beside {
        Some(BesideOtherWork::Around(_)) => most_waited_for(seen).count() == 1,
        Some(BesideOtherWork::AsMany(_)) => false,
        None => true,
    };
    let is_only_asked = pool.sleeping < ABOUT_ONE && is_for_one_thing;
    let at_a_time = f64::from(pool.size) * of_workers(seen)?.len() as f64;
    let times = times.with_turns_of(seen, at_a_time);
    Some(TurnTimes { asks: asked_places(seen).filter(|_| is_only_asked), ..times })
}

/// `a pool of 2 connections to 127.0.0.1:5432 in each worker`, if what the threads do looks like one.
pub(super) fn pool_in_short(seen: &WatchEvidence) -> Option<String> {
    let pool = likely_pool(seen).filter(|pool| pool.is_probable)?;
    Some(named(seen, &pool, of_workers(seen)?.len()))
}

fn named(seen: &WatchEvidence, pool: &Pool, workers: usize) -> String {
    let each = if workers > 1 { " in each worker" } else { "" };
    let of_what = match pool.beside {
        Some(BesideOtherWork::Around(place)) => {
            let connections = if pool.size == 1 { "connection" } else { "connections" };
            format!(" {connections} to {}", seen.backends[place].place)
        }
        Some(BesideOtherWork::AsMany(_)) | None => String::new(),
    };
    format!("a pool of {}{of_what}{each}", pool.size)
}

/// What may be the limit where that is the threads, or only may be something smaller.
pub(super) fn may_be_in_short(seen: &WatchEvidence) -> String {
    if are_probably_the_threads(seen) {
        return "Probably the threads are the limit: nearly all of them sleep.".to_owned();
    }
    let workers = seen.workers.len();
    let other = if own_waits(seen).is_some() {
        let place = backends(seen).unwrap_or_else(|| "what they ask".to_owned());
        format!("{place} if it is full")
    } else if let Some(pool) = likely_pool(seen) {
        named(seen, &pool, workers)
    } else {
        "something inside the app, such as a pool".to_owned()
    };
    format!("The threads may be the limit, or {other}.")
}

/// The sentence about a pool.
fn in_a_pool(seen: &WatchEvidence, pool: &Pool, workers: usize, slots: u32) -> String {
    let each = if workers > 1 { " in each worker" } else { "" };
    let place = backends(seen).unwrap_or_else(|| "a backend".to_owned());
    let asks = if pool.beside.is_some() {
        // Some of the places are asked without what the pool lends.
        listed(&most_waited_for(seen).map(waits_for).collect::<Vec<_>>())
    } else {
        format!("{} ({place})", threads_that(pool.asking, outside(seen)))
    };
    let inside = match (pool.sleeping >= ABOUT_ONE, pool.asking >= ABOUT_ONE) {
        (true, false) => threads_that(pool.sleeping, SLEEPS),
        (true, true) => format!("{}, {asks}", threads_that(pool.sleeping, SLEEPS)),
        (false, _) => asks,
    };
    let inside = format!("of {}, by the kernel's account, {inside}", count_of(slots, "thread"));
    let size = pool.size;
    if pool.is_probable {
        let turns = match pool.ends {
            TimedWaits::SomeTurns => {
                let turns = [
                    "waits for its turn: some get it before their time limit, others do not",
                    "wait for their turn: some get it before their time limit, others do not",
                ];
                threads_that(pool.waiting, turns)
            }
            TimedWaits::Turns | TimedWaits::RunOut | TimedWaits::Unclear => {
                let turns = [
                    "waits for its turn, and gets it before its time limit",
                    "wait for their turn, and get it before their time limit",
                ];
                threads_that(pool.waiting, turns)
            }
        };
        let which = if workers > 1 { "each worker's threads" } else { "the threads" };
        let seen_of_it = match pool.beside {
            Some(BesideOtherWork::AsMany(as_many)) => format!(
                " At every look at least {size} of {which} had their turn or did something without it, and \
                 at {} of the looks exactly {size}.",
                share(as_many)
            ),
            Some(BesideOtherWork::Around(_)) | None => String::new(),
        };
        let pool = named(seen, pool, workers);
        return format!("Probably {pool}: {inside}, and {turns}.{seen_of_it}");
    }
    let (whose, limit) = match pool.ends {
        TimedWaits::RunOut => {
            (" whose waits run out", ["until its time is up", "until their time is up"])
        }
        TimedWaits::Turns | TimedWaits::SomeTurns | TimedWaits::Unclear => {
            ("", ["with a time limit", "with a time limit"])
        }
    };
    let limit = threads_that(pool.waiting, limit);
    format!(
        "Cannot be told: a pool of {size}{each}{whose}, or requests that sleep beside requests that \
         ask {place}. {}, and {limit}.",
        capitalised(&inside)
    )
}
