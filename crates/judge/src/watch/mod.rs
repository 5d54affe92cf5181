//! The diagnosis of a server that was already running and was only observed: what waits, where and
//! how long, what the limit is, and what to try. Each sentence requires its evidence.
//!
//! The limits are those of `limits`; `limit` decides which of them a watch's evidence shows.

mod doing;
mod evidence;
mod idle;
mod limit;
mod locks;
mod other_server;
mod shared;
mod standstill;
mod tries;
mod uneven;
mod waits;

pub use self::evidence::{
    Backend, EarlierWaits, EarlierWhy, EndedWaits, LEAST_QUEUE, NumberAtLooks, SharedConnections,
    StartRate, WaitingSpan, WaitsSeen, WatchEvidence, WatchedWorker,
};

pub use self::waits::TURN_IT_ON;

use model::{Limit, LockWaiters, Nanos, number};

use self::idle::Held;
use self::limit::{Found, Unseen};
use crate::limits::{self, inside_app::is_beside_the_pool};
use crate::words::brief;

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
    /// How long a request has a thread, where all are in use and it is known.
    pub held: Option<Nanos>,
    /// How long a request takes or waits, and for what; in short where only some wait to be accepted.
    pub how_long: Option<String>,
    /// What the times of a request are computed from, where the answer says some.
    pub estimate: Option<String>,
    /// Where only some requests wait to be accepted: which, and how long.
    pub accepting: Option<AcceptWait>,
    /// What limits the server or may do so, in a few words; else what is known in its place.
    pub conclusion: Option<String>,
    /// One line each: what waits, where and how long; which threads are busy; how much CPU is used.
    pub answer: Vec<String>,
    /// Since when requests have been waiting, and the trend; `None` if none waits, or none did a
    /// moment ago.
    pub since: Option<String>,
    /// Why it is so.
    pub why: Option<String>,
    /// What to try, one line each: a command or a setting.
    pub tries: Vec<String>,
    /// Whether a longer watch alone would tell more: then that is all there is to try.
    pub is_early: bool,
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
        let accepting = AcceptWait::of(seen).filter(|_| wait.is_some());
        let all_busy = seen.busy().filter(|busy| Some(*busy) >= seen.slots());
        let held = all_busy.zip(seen.rate_now());
        let held = held.map(|(busy, rate)| Nanos::from_secs_f64(f64::from(busy) / rate));
        let held = held.or_else(|| held_by_kernel(seen, &found));
        let turns = turns(seen, &found);
        let turn_wait = wait.and_then(|mean| turn_wait(seen, mean));
        let how_long = wait.map(|wait| {
            let is_accepting = accepting.is_some() || other_server::is_such(seen);
            let for_what = if is_accepting { "to be accepted" } else { "for a thread" };
            let mean = match (&turns, held) {
                (Some(turns), _) => turns.of_total(wait, for_what),
                (None, Some(held)) => wait_and_held(wait, for_what, held),
                (None, None) => {
                    format!("A request waits about {} {for_what}, on average.", brief(wait))
                }
            };
            let in_thread = turns.as_ref().map(doing::TurnTimes::in_thread).or(held);
            let few_wait = accepting.as_ref().map(|accepting| accepting.sentence(in_thread));
            let few_wait = few_wait.or_else(|| Some(in_turns(turn_wait?, in_thread)));
            let where_most_wait = uneven::where_most_wait(seen);
            let sentences = std::iter::once(mean).chain(few_wait).chain(where_most_wait);
            sentences.collect::<Vec<_>>().join(" ")
        });
        let takes = takes(seen)
            .filter(|_| wait.is_none())
            .map(|takes| format!("A request takes about {}, on average.", brief(takes)));
        let estimate = estimate(seen, accepting.as_ref(), wait);
        let in_short = accepting.as_ref().map(|accepting| {
            let then = turns.as_ref().map(|turns| format!(" {}", turns.of_thread()));
            accepting.in_short() + &then.unwrap_or_default()
        });
        let in_short = in_short.or_else(|| how_long.clone()).or_else(|| takes.clone());
        let answer = [ended, how_long, takes, now, waits::full_queue(seen)].into_iter().flatten();
        let answer =
            answer.chain(waits::absent_workers(seen)).chain(waits::cpu(seen, &found)).collect();
        let (limit, guess) = match &found {
            Found::Known(limit) => (Some(limit.clone()), None),
            Found::Guess(limit) => (None, Some(limit.clone())),
            Found::Idle(held) => (None, idle::guess(seen, held)),
            Found::NoneSeen
            | Found::Uneven
            | Found::Standstill
            | Found::Full
            | Found::NotKnown(_) => (None, None),
        };
        let since = waits::since(seen, &found, wait);
        let why: Vec<String> =
            shared::sentence(seen).into_iter().chain(why(seen, &found, turn_wait)).collect();
        let why = Some(why.join(" ")).filter(|why| !why.is_empty());
        let in_a_row = accepting.as_ref().filter(|some| is_served_in_a_row(seen, some.requests));
        let few_wait = in_a_row.map(|accepting| accepting.each).or(turn_wait);
        let newer = wait.zip(few_wait).map(|(mean, each)| newer_puma(mean, each));
        let tries = tries::of(seen, &found).into_iter().chain(newer).collect();
        // A queue is often over when somebody ends the watch; its reason is what it was for.
        let is_unseen = matches!(found, Found::NoneSeen | Found::NotKnown(_));
        let is_early = matches!(
            found,
            Found::NotKnown(
                Unseen::Brief | Unseen::FreeThreads | Unseen::OneReport | Unseen::OldReports
            )
        );
        let (why, tries) = match seen.earlier_why.as_ref().filter(|_| is_unseen) {
            Some(earlier) => {
                let ago = waits::ended(seen, earlier.ago);
                let before = format!("{}: {}", before_in_words(ago), earlier.why);
                let now = why.map(|why| format!("{why} ")).unwrap_or_default();
                (Some(now + &before), earlier.tries.clone())
            }
            None => (why, tries),
        };
        Diagnosis {
            limit,
            guess,
            wait,
            held,
            how_long: in_short,
            estimate,
            accepting,
            conclusion: conclusion(seen, &found),
            answer,
            since,
            why,
            tries,
            is_early,
        }
    }
}

/// `A moment ago`, `Until 3 s ago`.
fn before_in_words(ago: Nanos) -> String {
    if ago < Nanos::from_secs(1) {
        "A moment ago".to_owned()
    } else {
        format!("Until {} ago", brief(ago))
    }
}

/// The mean wait. `None` if no request waits or begins, if the rate may be from before they waited,
/// or if one worker has a backlog while another has free threads: the wait then depends on the
/// worker.
fn wait(seen: &WatchEvidence, found: &Found) -> Option<Nanos> {
    let is_one_queue = !matches!(found, Found::Uneven | Found::Standstill);
    let waiting = Some(seen.waiting()).filter(|waiting| *waiting > 0 && is_one_queue)?;
    Some(Nanos::from_secs_f64(f64::from(waiting) / seen.rate_now()?))
}

/// How long a request takes where none waits for a thread, by Little's law.
fn takes(seen: &WatchEvidence) -> Option<Nanos> {
    /// Of some requests it may not be clear at a look whether they are answered.
    const UNCLEAR: f64 = 1.15;
    let out = seen.out.filter(|out| *out >= 1.0 && seen.waiting() == 0)?;
    let is_clear = seen.out_most.is_none_or(|most| most <= UNCLEAR * out);
    let rate = seen.rate_now().filter(|_| is_clear)?;
    Some(Nanos::from_secs_f64(out / rate))
}

/// What the times in the answer are computed from: `14 waiting / 112 responses per second, by the
/// kernel's counts`.
fn estimate(
    seen: &WatchEvidence,
    accepting: Option<&AcceptWait>,
    wait: Option<Nanos>,
) -> Option<String> {
    let rate = match (seen.rate, seen.answered_rate()) {
        (Some(rate), _) => format!("{} requests per second, by Puma's count", rate.in_words()),
        (None, Some(rate)) => {
            format!("{} responses per second, by the kernel's counts", number::rate_in_words(rate))
        }
        (None, None) => return None,
    };
    let waiting = || format!("{} waiting", seen.waiting());
    match (accepting, wait) {
        (Some(accepting), _) => {
            let accepted = number::significant(accepting.accepted_per_s);
            let counted = if is_served_in_a_row(seen, accepting.requests) {
                "a tenth of the requests per second"
            } else {
                "by the kernel's counts"
            };
            Some(format!("{} / {accepted} accepted per second, {counted}", waiting()))
        }
        (None, Some(_)) => Some(format!("{} / {rate}", waiting())),
        (None, None) => {
            takes(seen)?;
            let out = seen.out.map(number::rate_in_words)?;
            Some(format!("{out} in flight / {rate}"))
        }
    }
}

/// `Probably a pool of 2 in each worker is the limit.`
fn conclusion(seen: &WatchEvidence, found: &Found) -> Option<String> {
    let takes_the_time = || format!("Probably {} takes the time.", doing::answer_from(seen));
    Some(match found {
        Found::Known(limit) => limits::in_short(limit)?,
        Found::Guess(Limit::InsideApp { .. }) => {
            format!("Probably {} is the limit.", doing::pool_in_short(seen)?)
        }
        Found::Guess(_) | Found::Full if doing::wait_elsewhere(seen) => takes_the_time(),
        Found::Guess(_) => doing::may_be_in_short(seen),
        Found::Idle(Held::Elsewhere(_)) => takes_the_time(),
        Found::Uneven => "Requests wait in one worker while others have free threads.".to_owned(),
        Found::Standstill => standstill::in_short(seen),
        Found::Idle(Held::Locks(_) | Held::Timed(_) | Held::Computing(_))
        | Found::Full
        | Found::NoneSeen
        | Found::NotKnown(_) => return None,
    })
}

/// The reason. `turn_wait`: how long some requests wait while ten of another connection are served, where
/// the answer says it.
fn why(seen: &WatchEvidence, found: &Found, turn_wait: Option<Nanos>) -> Option<String> {
    let is_old = seen.major().is_some_and(|major| major <= 6);
    Some(match found {
        Found::NoneSeen => {
            return doing::of_requests(seen).or_else(|| other_server::sentence(seen));
        }
        Found::Idle(held) => idle::sentence(seen, held),
        Found::Known(limit) if uneven::is_so(seen) => {
            format!("{} {}", of_known(seen, limit), uneven::sentence(seen))
        }
        Found::Known(limit) => of_known(seen, limit),
        Found::Guess(limit) => {
            let of_old = match seen.inside().filter(|_| is_old) {
                Some(0) if seen.out.is_none() => {
                    " (Puma 6 and older count a thread as busy that waits for a client's next \
                     request.)"
                }
                Some(1..) if turn_wait.is_none() => {
                    " Puma 6 and older serve up to ten requests of a connection in a row, so some \
                     wait far longer."
                }
                Some(_) | None => "",
            };
            let does = doing::takes_the_time(seen).or_else(|| doing::of_own_waits(seen));
            let sentence = match does {
                Some(sentence) => with_turns(sentence, seen),
                None => with_threads(of_limit(seen, limit), seen),
            };
            sentence + of_old
        }
        Found::Uneven => with_threads(uneven::sentence(seen), seen),
        Found::Standstill => with_threads(standstill::sentence(seen), seen),
        Found::Full => {
            let full = "Every thread is busy; the next request waits.".to_owned();
            match doing::takes_the_time(seen) {
                Some(sentence) => format!("{full} {}", with_turns(sentence, seen)),
                None => with_threads(full, seen),
            }
        }
        Found::NotKnown(Unseen::Threads) if is_old => {
            "Not visible without statistics; Puma 6 and older leave connections in the accept \
             queue while all threads are busy."
                .to_owned()
        }
        Found::NotKnown(Unseen::Threads) => other_server::sentence(seen)
            .unwrap_or_else(|| "Not visible without statistics.".to_owned()),
        Found::NotKnown(Unseen::FreeThreads) => {
            "Not clear: by the workers' last reports threads are free. Watch longer.".to_owned()
        }
        Found::NotKnown(Unseen::OldReports) => {
            "Not clear yet: the workers' last reports are from before this load. Workers report \
             every 5 s."
                .to_owned()
        }
        Found::NotKnown(Unseen::Brief) => {
            "Watched too briefly to say why: what a few looks at the threads find may be chance."
                .to_owned()
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
    match doing::sentence(seen) {
        Some(waits) => format!("{sentence} {waits}"),
        None => sentence,
    }
}

/// The sentence, followed by how long each waits for its turn in a pool, where the answer does not say it.
fn with_turns(sentence: String, seen: &WatchEvidence) -> String {
    match doing::turns_in_a_pool(seen).filter(|_| !is_total_told(seen)) {
        Some(turns) => format!("{sentence} {}", turns.sentence()),
        None => sentence,
    }
}

/// Whether the answer says how long a request takes in all, where the parts are known.
fn is_total_told(seen: &WatchEvidence) -> bool {
    seen.waiting() > 0 && seen.rate_now().is_some()
}

/// The sentence about a limit that is certain or probable, and what those do that a lock lets through.
fn of_known(seen: &WatchEvidence, limit: &Limit) -> String {
    let sentence = of_limit(seen, limit);
    let Limit::InsideApp { locked: Some(locked), .. } = limit else { return sentence };
    let file = match seen.locked_files.as_slice() {
        [file] if locked.is_on_file => Some(format!("The file is {file}.")),
        _ => None,
    };
    let having = f64::from(locked.busy) - locked.waiting;
    let times = doing::TurnTimes::of(seen, "it", locked.waiting, having);
    let times = times.filter(|_| !is_total_told(seen)).map(|times| times.sentence());
    let inside = doing::of_those_inside(seen, locked);
    [Some(sentence), times, file, inside].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The sentence about the limit, the same as for a measured run.
fn of_limit(seen: &WatchEvidence, limit: &Limit) -> String {
    limits::sentence(limit, seen.slots())
}

/// How long a request waits for what a lock or a pool lets through, and how long it has it then, where
/// that is all that requests do.
fn turns(seen: &WatchEvidence, found: &Found) -> Option<doing::TurnTimes> {
    match found {
        Found::Known(Limit::InsideApp { locked: Some(locked), workers, .. }) => {
            let turns = turns_at(seen, locked)?;
            // A file is locked for all workers at once.
            let at_a_time = if locked.is_on_file { 1.0 } else { f64::from(*workers) };
            Some(turns.with_turns_of(seen, at_a_time))
        }
        Found::Guess(Limit::InsideApp { .. }) => doing::turns_in_a_pool(seen),
        _ => None,
    }
}

/// The same where one at a time gets through, and threads wait for that.
fn turns_at(seen: &WatchEvidence, locked: &LockWaiters) -> Option<doing::TurnTimes> {
    if is_beside_the_pool(locked) {
        return doing::TurnTimes::of_one_beside(seen, locked.waiting);
    }
    let lends = if locked.is_on_file { "the file's lock" } else { "the lock or the pool" };
    let having = f64::from(locked.busy) - locked.waiting;
    doing::TurnTimes::of(seen, lends, locked.waiting, having)
}

/// How long a request has a thread, where all are in use and only the kernel counts.
fn held_by_kernel(seen: &WatchEvidence, found: &Found) -> Option<Nanos> {
    let limit = match found {
        Found::Known(limit) | Found::Guess(limit) if seen.busy().is_none() => limit,
        _ => return None,
    };
    let out = seen.out?;
    let in_threads = match limit {
        Limit::InsideApp { locked: Some(locked), .. } => f64::from(locked.busy),
        // While connections wait to be accepted no thread is free, and of some requests it is not clear
        // at a look whether they are answered.
        _ if seen.in_kernel() > Some(0) => {
            out.max(seen.out_most.unwrap_or(out).min(f64::from(seen.slots()?)))
        }
        _ => out - f64::from(seen.inside_by_kernel()?),
    };
    Some(Nanos::from_secs_f64(in_threads / seen.answered_rate()?))
}

/// Connections that wait to be accepted and then send several requests, of which only the first has
/// waited there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AcceptWait {
    /// How long a connection waits, by Little's law: connections that wait / those that are accepted a
    /// second. In a steady state as many are closed.
    pub each: Nanos,
    /// Connections that are accepted a second; where Puma serves ten requests of each in a row, a tenth of
    /// the requests.
    pub accepted_per_s: f64,
    /// How many requests a connection sends: one of so many waits.
    pub requests: f64,
}

impl AcceptWait {
    /// `None` if requests wait elsewhere too, about each has a connection of its own, or too few were
    /// closed to tell.
    fn of(seen: &WatchEvidence) -> Option<AcceptWait> {
        const SEVERAL: f64 = 1.5;
        /// Ten in the seconds that the mean is of.
        const ENOUGH_PER_S: f64 = 2.0;
        let closed_per_s = seen.closed.filter(|closed| *closed >= ENOUGH_PER_S)?;
        let waiting = seen.in_kernel().filter(|queue| *queue > 0 && *queue == seen.waiting())?;
        let rate = seen.rate_now()?;
        // Where it is Puma that closes them, their number is known better than by some seconds' count.
        let is_in_a_row = is_served_in_a_row(seen, rate / closed_per_s);
        let accepted_per_s = if is_in_a_row { rate / IN_A_ROW } else { closed_per_s };
        let requests = rate / accepted_per_s;
        let each = Nanos::from_secs_f64(f64::from(waiting) / accepted_per_s);
        (requests >= SEVERAL).then_some(AcceptWait { each, accepted_per_s, requests })
    }

    /// `About 1 in 10 requests waits to be accepted, for 4.85 s.`
    pub fn in_short(&self) -> String {
        let requests = number::fixed(self.requests, 0);
        let each = brief(self.each);
        format!("About 1 in {requests} requests waits to be accepted, for about {each}.")
    }

    /// The same, and why. `in_thread`: how long a request has a thread.
    fn sentence(&self, in_thread: Option<Nanos>) -> String {
        let requests = number::fixed(self.requests, 0);
        let others = in_thread.map(|time| format!("; the others take about {}", brief(time)));
        format!(
            "Only about 1 in {requests} requests waits to be accepted, for about {} (a connection waits \
             once, and then sends about {requests}){}.",
            brief(self.each),
            others.unwrap_or_default()
        )
    }
}

/// How long a request takes, of a wait and the time in which it has a thread: as written, the parts add
/// up.
fn wait_and_held(wait: Nanos, for_what: &str, held: Nanos) -> String {
    let [wait, held] = [wait, held].map(|time| doing::to_digits(time, time, 3));
    format!(
        "A request takes about {}, on average: it waits {} {for_what}, and then has a thread for {}.",
        brief(wait + held),
        brief(wait),
        brief(held)
    )
}

/// How long a request waits for a thread, if it does, in a Puma before 7 that has accepted all
/// connections, of which each has a request under way: it serves ten of a connection in a row while others
/// wait. `mean`: how long a request waits on average.
fn turn_wait(seen: &WatchEvidence, mean: Nanos) -> Option<Nanos> {
    /// So many connections may be without a request.
    const FEW: f64 = 0.1;
    let is_old = seen.major().is_some_and(|major| major <= 6);
    let do_wait_inside = seen.in_kernel() == Some(0) && seen.waiting() > 0;
    let out = f64::from(seen.requests_out()?);
    let are_kept = seen.closed? * IN_A_ROW < seen.rate_now()?;
    let do_send_at_once = seen.connections.is_some_and(|open| open - out <= FEW * open);
    let is_even = uneven::where_most_wait(seen).is_none();
    let are_turns = is_old && do_wait_inside && are_kept && do_send_at_once && is_even;
    are_turns.then(|| mean * IN_A_ROW as u64)
}

/// The same in words. `in_thread`: how long a request has a thread.
fn in_turns(each: Nanos, in_thread: Option<Nanos>) -> String {
    let others = in_thread.map(|time| format!(", and the others take about {}", brief(time)));
    format!(
        "Probably only about 1 in 10 requests waits for a thread, for about {}{}: Puma before 7 serves ten \
         of a connection in a row.",
        brief(each),
        others.unwrap_or_default()
    )
}

/// What spreads the wait of some over all requests, with a Puma that serves several of a connection in a
/// row. `mean`: how long a request waits on average. `each`: how long those wait that do.
fn newer_puma(mean: Nanos, each: Nanos) -> String {
    format!(
        "Puma 7 or later: it lets requests take turns, so that each waits about {} for a thread, and none \
         {}; Puma before it serves ten of a connection in a row.",
        brief(mean),
        brief(each)
    )
}

/// `max_fast_inline`, which Puma 7 has no more.
const IN_A_ROW: f64 = 10.0;

/// Whether it is Puma that ends connections, after ten requests in a row. `requests`: about how many
/// each sends.
fn is_served_in_a_row(seen: &WatchEvidence, requests: f64) -> bool {
    /// So far from it, clients or a proxy close the connections.
    const APART: f64 = 0.3;
    let is_about_ten = (requests / IN_A_ROW - 1.0).abs() <= APART;
    is_about_ten && seen.major().is_some_and(|major| major <= 6)
}
