//! The diagnosis of a server that was already running and was only observed: what waits, where and
//! how long, what the limit is, and what to try. Each sentence requires its evidence.
//!
//! The limits are those of `limits`; `limit` decides which of them a watch's evidence shows.

mod evidence;
mod limit;
mod standstill;
mod tries;
mod uneven;
mod waits;

pub use self::evidence::{
    EarlierWaits, LEAST_QUEUE, StartRate, WaitingSpan, WaitsSeen, WatchEvidence, WatchedWorker,
};

use model::{Limit, Nanos};

use self::limit::{Found, Unseen};
use crate::limits;
use crate::words::{brief, brief_count, count_of, listed};

/// The diagnosis, in words.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnosis {
    /// The limit, if it is certain or probable.
    pub limit: Option<Limit>,
    /// What may be the limit, as a guess.
    pub guess: Option<Limit>,
    /// How long a request waits on average, by Little's law: waiting requests / the rate at which
    /// they begin.
    pub wait: Option<Nanos>,
    /// One line each: what waits, where and how long; which threads are busy; how much CPU is used.
    pub answer: Vec<String>,
    /// Since when requests have been waiting, and the trend; `None` if none waits, or none did a
    /// moment ago.
    pub since: Option<String>,
    /// Why it is so.
    pub why: Option<String>,
    /// What to try, one line each: a command or a setting.
    pub tries: Vec<String>,
}

impl Diagnosis {
    /// Draws the conclusions from what was seen.
    pub fn of(seen: &WatchEvidence) -> Diagnosis {
        let found = limit::of(seen);
        let wait = wait(seen, &found);
        let ended = seen.ended.map(|after| {
            format!("The server ended {} after the watch began. Before that:", brief(after))
        });
        let now: Vec<String> = waits::threads(seen).into_iter().chain(waits::who(seen)).collect();
        let now = Some(now.join(" ")).filter(|now| !now.is_empty());
        let estimate = wait.zip(seen.rate).map(|(wait, rate)| {
            format!(
                "A request waits about {} on average (estimate: {} waiting / {} per second).",
                brief(wait),
                seen.waiting(),
                rate.in_words()
            )
        });
        let answer = [ended, now, estimate, waits::full_queue(seen)].into_iter().flatten();
        let answer =
            answer.chain(waits::absent_workers(seen)).chain(waits::cpu(seen, &found)).collect();
        let (limit, guess) = match &found {
            Found::Known(limit) => (Some(limit.clone()), None),
            Found::Guess(limit) => (None, Some(limit.clone())),
            Found::NoneSeen
            | Found::Uneven
            | Found::Standstill
            | Found::Full
            | Found::NotKnown(_) => (None, None),
        };
        let since = waits::since(seen);
        let why = why(seen, &found);
        let tries = tries::of(seen, &found);
        Diagnosis { limit, guess, wait, answer, since, why, tries }
    }
}

/// The mean wait. `None` if no request waits or begins, if the rate may be from before they waited,
/// or if one worker has a backlog while
/// another has free threads: the wait then depends on the worker.
fn wait(seen: &WatchEvidence, found: &Found) -> Option<Nanos> {
    let is_one_queue = !matches!(found, Found::Uneven | Found::Standstill);
    let waiting = Some(seen.waiting()).filter(|waiting| *waiting > 0 && is_one_queue)?;
    Some(Nanos::from_secs_f64(f64::from(waiting) / seen.settled_rate()?))
}

fn why(seen: &WatchEvidence, found: &Found) -> Option<String> {
    let is_old = seen.major().is_some_and(|major| major <= 6);
    Some(match found {
        Found::NoneSeen => return None,
        Found::Known(limit @ Limit::InsideApp { .. }) if uneven::is_so(seen) => {
            format!("{} {}", of_limit(seen, limit), uneven::sentence(seen))
        }
        Found::Known(limit) => of_limit(seen, limit),
        Found::Guess(limit) => {
            let of_old = match seen.inside().filter(|_| is_old) {
                Some(0) if seen.out.is_none() => {
                    " (Puma 6 and older count a thread as busy that waits for a client's next \
                     request.)"
                }
                Some(1..) => {
                    " Puma 6 and older serve up to ten requests of a connection in a row, so some \
                     wait far longer."
                }
                Some(0) | None => "",
            };
            [of_limit(seen, limit), held(seen), of_old.to_owned()].concat()
        }
        Found::Uneven => with_threads(uneven::sentence(seen), seen),
        Found::Standstill => with_threads(standstill::sentence(seen), seen),
        Found::Full => "Every thread is busy; the next request waits.".to_owned(),
        Found::NotKnown(Unseen::Threads) if is_old => {
            "Not visible without statistics; Puma 6 and older leave connections in the accept \
             queue while all threads are busy."
                .to_owned()
        }
        Found::NotKnown(Unseen::Threads) => "Not visible without statistics.".to_owned(),
        Found::NotKnown(Unseen::FreeThreads) => {
            "Not clear: by the workers' last reports threads are free. Watch longer.".to_owned()
        }
        Found::NotKnown(Unseen::OneReport) => {
            "Not clear yet: one report may be a moment's peak. Workers report every 5 s.".to_owned()
        }
        Found::NotKnown(Unseen::Cpu) => {
            "Not known: whether the threads or the CPUs are the limit is not visible from here."
                .to_owned()
        }
    })
}

/// The sentence, followed by what the threads are doing.
fn with_threads(sentence: String, seen: &WatchEvidence) -> String {
    match what_threads_do(seen) {
        Some(waits) => format!("{sentence} {waits}"),
        None => sentence,
    }
}

/// The sentence about the limit, the same as for a measured run.
fn of_limit(seen: &WatchEvidence, limit: &Limit) -> String {
    limits::sentence(limit, seen.slots())
}

/// How long a request holds a thread, how much of that it computes, and what the threads are doing.
fn held(seen: &WatchEvidence) -> String {
    let mut text = String::new();
    if let Some((busy, rate)) = seen.busy().zip(seen.settled_rate()) {
        let held = brief(Nanos::from_secs_f64(f64::from(busy) / rate));
        let cpu = seen.cpu.map(|cpu| brief(Nanos::from_secs_f64(cpu / rate)));
        let cpu = cpu.map(|cpu| format!(", {cpu} of that on a CPU")).unwrap_or_default();
        text = format!(" A request holds one for {held}{cpu}.");
    }
    if let Some(waits) = what_threads_do(seen) {
        text.push(' ');
        text.push_str(&waits);
    }
    text
}

/// `7.8 wait for a lock`, `1 waits for a lock`. `what`: the words for one thread, and for several.
fn threads_that(threads: f64, what: [&str; 2]) -> String {
    let count = brief_count(threads);
    let [of_one, of_several] = what;
    let what = if count == "1" { of_one } else { of_several };
    format!("{count} {what}")
}

/// A smaller share of the threads than this is not mentioned.
const A_FEW: f64 = 0.05;

/// `Of 10 threads, by the kernel, 7.8 wait for a lock or a pool and 2.2 wait for a socket.`
fn what_threads_do(seen: &WatchEvidence) -> Option<String> {
    let all: Vec<WaitsSeen> = seen
        .workers
        .iter()
        .filter(|worker| worker.threads > Some(0))
        .map(|worker| worker.waits.filter(|waits| waits.looks > 0))
        .collect::<Option<_>>()?;
    let slots = seen.slots()?;
    let sum = |part: fn(&WaitsSeen) -> f64| all.iter().map(part).sum::<f64>();
    let mut parts = vec![
        (
            sum(|waits| waits.lock + waits.file_lock),
            ["waits for a lock or a pool", "wait for a lock or a pool"],
        ),
        (
            sum(|waits| waits.timed),
            [
                "waits with a time limit (a sleep, a pool)",
                "wait with a time limit (a sleep, a pool)",
            ],
        ),
        (sum(|waits| waits.socket), ["waits for a socket", "wait for a socket"]),
        (sum(|waits| waits.runnable), ["uses or wants a CPU", "use or want a CPU"]),
        (sum(|waits| waits.other), ["is in another system call", "are in other system calls"]),
    ];
    let has_locks = parts[0].0 >= A_FEW * f64::from(slots);
    parts.retain(|(threads, _)| *threads >= A_FEW * f64::from(slots));
    parts.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let mut parts: Vec<String> =
        parts.iter().map(|(threads, what)| threads_that(*threads, *what)).collect();
    if !has_locks {
        parts.push("none waits for a lock".to_owned());
    }
    Some(format!("Of {}, by the kernel, {}.", count_of(slots, "thread"), listed(&parts)))
}
