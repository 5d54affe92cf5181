//! What to type or to set next: what would confirm a guess, or help against a limit.

use model::{CpuUsage, Limit, Nanos, number};

use super::doing::TurnTimes;
use super::evidence::{Backend, WatchEvidence, WatchedWorker};
use super::idle::{self, Held};
use super::limit::{Found, Unseen};
use super::{doing, locks, other_server, shared, turns_at, uneven};
use crate::limits::inside_app::is_beside_the_pool;
use crate::next::cpus_in_words;
use crate::words::{brief, capitalised, count_of, listed, round_rate, tenths};

/// One line each.
pub(super) fn of(seen: &WatchEvidence, found: &Found) -> Vec<String> {
    let lines = shared::attempt(seen).into_iter().chain(of_found(seen, found));
    lines.map(|line| capitalised(&line)).collect()
}

fn of_found(seen: &WatchEvidence, found: &Found) -> Vec<String> {
    let longer = || vec!["the same with --for 30s.".to_owned()];
    match found {
        Found::Full if doing::wait_elsewhere(seen) => elsewhere(seen),
        Found::NoneSeen | Found::NotKnown(Unseen::Threads) => {
            other_server::attempt(seen).into_iter().collect()
        }
        Found::Full | Found::NotKnown(Unseen::Cpu) => Vec::new(),
        Found::Idle(held) => for_idle(seen, held),
        Found::Uneven => vec![uneven::attempt(seen, true)],
        Found::Standstill => vec![stacks(seen)],
        Found::NotKnown(Unseen::Brief) => {
            vec!["the same with --for 15s: it takes some seconds of this load.".to_owned()]
        }
        Found::NotKnown(Unseen::FreeThreads | Unseen::OneReport | Unseen::OldReports) => longer(),
        Found::Guess(_) => settle(seen),
        Found::Known(limit) if uneven::is_so(seen) && others_would_do_more(seen, limit) => {
            let mut lines = against(seen, limit);
            // One at a time stays one at a time on however many threads, so what helps against that is
            // first.
            let is_inside = matches!(limit, Limit::InsideApp { .. });
            let first = if is_inside { 1.min(lines.len()) } else { 0 };
            lines.insert(first, uneven::attempt(seen, !is_inside));
            lines
        }
        Found::Known(limit) => against(seen, limit),
    }
}

/// Whether workers with free threads would do more if they had more of the requests: they have a CPU or
/// a lock of their own, and nobody waits for it there.
fn others_would_do_more(seen: &WatchEvidence, limit: &Limit) -> bool {
    match limit {
        Limit::RubyLock { .. } | Limit::OneCpuEach { .. } => true,
        Limit::InsideApp { workers, .. } => (*workers as usize) < seen.workers.len(),
        Limit::Cpu(_)
        | Limit::SharedCpus(_)
        | Limit::Threads { .. }
        | Limit::MoreThanStated { .. }
        | Limit::Refusals { .. }
        | Limit::AcceptQueue { .. }
        | Limit::Network { .. }
        | Limit::Generator { .. }
        | Limit::NotKnown { .. } => false,
    }
}

/// What would help requests that are slow although threads are free.
fn for_idle(seen: &WatchEvidence, held: &Held) -> Vec<String> {
    match held {
        Held::Locks(_) => {
            idle::guess(seen, held).map(|limit| against(seen, &limit)).unwrap_or_default()
        }
        Held::Elsewhere(_) => elsewhere(seen),
        Held::Timed(_) => vec![stacks(seen)],
        Held::Computing(_) => {
            vec![format!("less work a request. {}", code_that_computes(seen))]
        }
    }
}

/// The remedy for a pool: `5 connections in each worker, as many as threads`.
fn as_many_connections(seen: &WatchEvidence) -> String {
    let threads = seen.workers.first().and_then(|worker| worker.threads);
    let is_even = seen.workers.iter().all(|worker| worker.threads == threads);
    let connections = match threads.filter(|_| is_even) {
        Some(threads) => {
            let each = if seen.workers.len() > 1 { " in each worker" } else { "" };
            format!("{}{each}, as many as threads", count_of(threads, "connection"))
        }
        None => "as many connections as threads".to_owned(),
    };
    format!("{connections} (of a database: `pool:` in database.yml)")
}

/// The same, with its condition where it is seen whom those ask that have a connection.
fn larger_pool(seen: &WatchEvidence) -> String {
    let pool = as_many_connections(seen);
    match doing::places_of_pool(seen).zip(seen.slots()) {
        Some((places, slots)) => format!("{pool}, if {places} can take {slots} at once"),
        None => pool,
    }
}

/// What would show whether the threads are the limit.
fn settle(seen: &WatchEvidence) -> Vec<String> {
    let pool = doing::likely_pool(seen);
    if pool.is_some_and(|pool| pool.is_probable) {
        let condition =
            doing::places_of_pool(seen).map_or(", if what is behind it can take as many", |_| "");
        let pool = larger_pool(seen) + condition;
        let gain = without_turns(seen, doing::turns_in_a_pool(seen));
        let remedy = format!("{pool}{gain}. More threads alone would only wait, too.");
        return std::iter::once(remedy).chain(printed_stacks(seen)).collect();
    }
    let mut lines = Vec::new();
    // A backend that may be full is named with the remedy.
    let slow = doing::most_wait_for_one_place(seen)
        .filter(|_| !doing::wait_elsewhere(seen) && doing::own_waits(seen).is_none())
        .map(|asks| format!("{asks}: find out why it is slow."));
    // Where it may be a pool that lets few ask it, what tells the two apart comes first.
    if pool.is_none() {
        lines.extend(slow.clone());
    }
    let is_logged = pool.is_some_and(|pool| pool.runs_out());
    if is_logged {
        lines.push(
            "look in the app's log for ConnectionTimeoutError, or responses with status 500: then \
             it is the pool."
                .to_owned(),
        );
    }
    if let Some(held) = seen.held_by_count().map(brief) {
        lines.push(format!(
            "`longtail load -c 1 -n 50 URL` while there is no other load: if it also takes {held}, the threads \
             are the limit; if less, something inside the app is."
        ));
    }
    let are_waits_seen = seen.workers.iter().all(|worker| worker.waits.is_some());
    if are_waits_seen || seen.may_see_all || seen.is_elsewhere {
        // What settles which it is, then the remedies in the order of the reasons.
        if doing::wait_elsewhere(seen) {
            lines.extend(elsewhere(seen));
        } else if doing::own_waits(seen).is_some() {
            // They wait for nothing that another thread has, so their stacks settle nothing.
            lines.insert(0, more_threads(seen));
        } else if let Some(printed) = printed_stacks(seen) {
            lines.push(printed);
        }
        match pool {
            Some(_) => lines.push(format!(
                "if it is a pool: {}; more threads would only wait, too. If requests sleep: more \
                 threads (`-t`).",
                larger_pool(seen)
            )),
            None if doing::own_waits(seen).is_some() => {}
            None if doing::others_end_them(seen) && !doing::may_have_results(seen) => {
                lines.push(format!(
                    "if it is a pool: {}; more threads would only wait, too. Else more threads \
                     (`-t`).",
                    larger_pool(seen)
                ));
            }
            None if doing::others_end_them(seen) => lines.push(format!(
                "if it is a pool: {}; more threads would only wait, too. If it is the result of \
                 another thread: more threads (`-t`), if that one can do more.",
                larger_pool(seen)
            )),
            None if doing::sleep(seen) && locks::may_be_rubys(seen).is_some() => lines.push(
                "more threads (`-t`): one that sleeps costs no CPU. They do more, though less and \
                 less, as Ruby's lock lets one of a process compute at a time."
                    .to_owned(),
            ),
            None if doing::sleep(seen) && !doing::wait_for_a_lock(seen) => {
                lines.push("more threads (`-t`): one that sleeps costs no CPU.".to_owned());
            }
            None if doing::wait_with_a_limit(seen) => lines.push(format!(
                "if requests sleep: more threads (`-t`), since they cost no CPU meanwhile. If it is \
                 a pool: {}.",
                larger_pool(seen)
            )),
            None => {}
        }
        lines.extend(slow.filter(|_| pool.is_some()));
        lines.extend(prediction(seen));
    } else {
        lines.push(format!(
            "`sudo {} watch {}`: root sees what the threads wait for.",
            if seen.command.is_empty() { "longtail" } else { &seen.command },
            seen.place
        ));
    }
    lines
}

/// More threads, and what it means if they bring nothing, where the threads do not wait for each other.
fn more_threads(seen: &WatchEvidence) -> String {
    let Some(places) = doing::asked_places(seen) else {
        let twice = with_twice_the_threads(seen).unwrap_or_default();
        return format!("more threads (`-t`): one that sleeps costs no CPU.{twice}");
    };
    format!(
        "more threads (`-t`): one that waits costs no CPU. If no more requests are answered then{}, \
         {places} is full.{}",
        rate_now_in_words(seen),
        watch_what_is_asked(seen)
    )
}

/// How to watch what the threads wait for, if that is on this machine.
fn watch_what_is_asked(seen: &WatchEvidence) -> String {
    doing::asked_port_here(seen).map_or_else(String::new, |port| {
        format!(" `longtail watch {port}` says what it does meanwhile.")
    })
}

/// ` Twice as many answer at most 198 requests per second (now 99).`: no more than there are requests for
/// them, each as long as now, nor than the CPUs allow; `None` if a limit is not known, or if it is no
/// more.
fn with_twice_the_threads(seen: &WatchEvidence) -> Option<String> {
    let slots = f64::from(seen.slots().filter(|slots| *slots > 0)?);
    let in_flight = f64::from(seen.busy_or_taken()? + seen.waiting());
    let for_each = in_flight / slots;
    let at_most = times_by_cpus(seen, for_each.min(2.0))?;
    // So many threads that each of the requests has one.
    let is_enough_for_all = for_each > 2.0 && times_by_cpus(seen, for_each) == Some(for_each);
    let for_all = is_enough_for_all.then(|| {
        format!("; with {in_flight:.0} none of the requests that are here now would wait")
    });
    let rate = seen.rate_now()?;
    Some(format!(
        " Twice as many answer at most {} requests per second (now {}){}.",
        number::rate_in_words(rate * at_most),
        number::rate_in_words(rate),
        for_all.unwrap_or_default()
    ))
}

/// `: at most about 140 requests per second then (now 78.4), which is what the threads can do`: if none had to wait for its turn, and the
/// rest took as long as now, which looks at the threads tell to two digits. Empty where that is not known,
/// or no more.
fn without_turns(seen: &WatchEvidence, turns: Option<TurnTimes>) -> String {
    let at_most = || {
        let turns = turns.filter(|turns| turns.has > Nanos::ZERO && seen.waiting() > 0)?;
        let rate = seen.rate_now()?;
        // Of uneven workers some threads are free now.
        let threads = seen.slots()?.min(seen.busy_or_taken()? + seen.waiting());
        let times = f64::from(threads) / turns.has.as_secs_f64() / rate;
        let at_most = round_rate(rate * times_by_cpus(seen, times)?);
        let now = number::rate_in_words(rate);
        Some(format!(
            ": at most about {at_most} requests per second then (now {now}), which is what the threads \
             can do"
        ))
    };
    at_most().unwrap_or_default()
}

/// So many times the requests, or as many as the CPUs allow; `None` if a limit is not known, as where
/// other programs use the CPUs up, or if it is not clearly more than now.
fn times_by_cpus(seen: &WatchEvidence, times: f64) -> Option<f64> {
    const WORTH_IT: f64 = 1.1;
    const USED_UP: f64 = 0.9;
    /// So many CPUs used by others matter.
    const NOTABLE: f64 = 0.5;
    let cpu = seen.cpu.filter(|cpu| *cpu > 0.0)?;
    let others = seen.busy_cpus.map_or(0.0, |busy| (busy - cpu).max(0.0));
    // How much of them the server would get then is the kernel's to share out.
    if others >= NOTABLE && others + cpu > USED_UP * seen.cpus? {
        return None;
    }
    let processes = if seen.is_ruby { seen.workers.len() as f64 } else { f64::INFINITY };
    let cpus = (seen.cpus? - others).min(processes);
    Some(times.min(cpus / cpu)).filter(|times| *times >= WORTH_IT)
}

/// ` (now about 25 ms a request)`: how long each has a lock that is always in use, in as many workers as
/// have requests, each with its own. Empty where the rate is not known.
fn time_under_lock(seen: &WatchEvidence, limit: &Limit) -> String {
    let Limit::InsideApp { workers, .. } = limit else { return String::new() };
    let Some(rate) = seen.rate_now().filter(|_| seen.waiting() > 0) else { return String::new() };
    let each = doing::rounded(Nanos::from_secs_f64(f64::from(*workers) / rate));
    format!(" (now about {} a request)", doing::roughly(each))
}

/// The command that applies queueing theory to this service time, CPU time and load.
fn prediction(seen: &WatchEvidence) -> Option<String> {
    let rate = seen.settled_rate()?;
    let threads = seen.workers.first()?.threads?;
    // Threads that Puma has added for waiting requests can't be configured.
    let is_other =
        |worker: &WatchedWorker| worker.threads != Some(threads) || worker.io_threads > Some(0);
    if seen.workers.iter().any(is_other) {
        return None;
    }
    let busy = seen.busy()?;
    let service = f64::from(busy) / rate;
    let cpu = seen.cpu? / rate;
    let cpus = seen.cpus.map(|cpus| format!(" --cpus {}", cpus_in_words(cpus)));
    let written = |seconds: f64| format!("{}ms", number::significant(seconds * 1e3));
    Some(format!(
        "If the threads are the limit, theory says what other settings would do: `longtail predict \
         -w{} -t{threads}:{threads} --service {} --cpu {}{} -c {}`",
        seen.workers.len(),
        written(service),
        written(cpu.min(service)),
        cpus.unwrap_or_default(),
        busy + seen.waiting()
    ))
}

/// How to see what takes the time where threads wait for an answer from elsewhere, or for a command;
/// and what asks for it, where Puma tells.
fn elsewhere(seen: &WatchEvidence) -> Vec<String> {
    let (commands, places): (Vec<&Backend>, Vec<&Backend>) =
        doing::most_waited_for(seen).partition(|one| one.is_command);
    let pids = living_pids(seen);
    let mut lines = Vec::new();
    if !places.is_empty() {
        let places: Vec<String> = places.iter().map(|one| one.place.clone()).collect();
        let places = listed(&places);
        lines.push(format!(
            "see at {places} what takes so long: its load, its log, its slow queries.{}",
            watch_what_is_asked(seen)
        ));
        lines.extend(whether_full(seen, &places));
    }
    if !commands.is_empty() {
        lines.push(format!("`ps -o args --ppid {}`: which commands run.", pids.join(",")));
    }
    if lines.is_empty() && !pids.is_empty() {
        lines.push(format!(
            "`ss -tnp | grep -E 'pid=({}),'`: where their connections lead.",
            pids.join("|")
        ));
    }
    lines.extend(printed_stacks(seen));
    lines
}

/// ` (now 99 per second)`, if it is known.
fn rate_now_in_words(seen: &WatchEvidence) -> String {
    seen.rate_now().map_or_else(String::new, |rate| {
        format!(" (now {} per second)", number::rate_in_words(rate))
    })
}

/// What would show whether what the threads ask is full: the kernel tells how many ask it from here and
/// how long they wait, but not who else does, nor how long one takes alone.
fn whether_full(seen: &WatchEvidence, places: &str) -> Option<String> {
    let slots = seen.slots()?;
    let rate = rate_now_in_words(seen);
    (seen.waiting() > 0).then(|| {
        format!(
            "to see whether {places} is full: twice the threads (`-t`, now {slots} in all) for a minute. \
             If no more requests are answered then{rate}, it is."
        )
    })
}

/// The processes of the workers that have not ended.
fn living_pids(seen: &WatchEvidence) -> Vec<String> {
    let living = seen.workers.iter().filter(|worker| !worker.is_gone);
    living.filter_map(|worker| Some(worker.pid?.to_string())).collect()
}

/// The first Puma that traps SIGPWR; it ends an older one.
const TRAPS_PWR: u32 = 8;

/// How to see what each thread of each worker is doing, if this Puma tells as it is.
fn printed_stacks(seen: &WatchEvidence) -> Option<String> {
    /// The first Puma whose control server tells the threads' stacks: those of the process that was
    /// asked, which in a cluster is not a worker.
    const TELLS_STACKS: u32 = 5;
    let pids = living_pids(seen);
    let is_asked = seen.no_statistics.is_none() && !seen.is_cluster;
    match seen.major()? {
        TRAPS_PWR.. if seen.output_is_lost => None,
        TRAPS_PWR.. if !pids.is_empty() => Some(format!(
            "`kill -PWR {}`: Puma writes what each thread is doing to its output.",
            pids.join(" ")
        )),
        TELLS_STACKS.. if is_asked => Some(
            "`pumactl -S STATE_FILE thread-backtraces`: shows what each thread is doing."
                .to_owned(),
        ),
        _ => None,
    }
}

/// How to see what each thread of each worker is doing. `rbspy dump` shows only the one that runs,
/// and `strace` of a thread that waits for another not whom for; on Linux no signal makes a Puma older
/// than 8 tell.
fn stacks(seen: &WatchEvidence) -> String {
    let pids = living_pids(seen).join(" ");
    if let Some(line) = printed_stacks(seen) {
        return line;
    }
    match seen.major() {
        _ if pids.is_empty() => "see the app's log: which requests began last?".to_owned(),
        Some(_) => "see in the app's log which requests have begun and not ended.".to_owned(),
        None => format!("see what each thread is doing, by a stack dump of: {pids}."),
    }
}

/// Whether each worker uses about all that Ruby's lock lets one process use, so that CPUs alone would
/// not help.
fn each_worker_uses_a_cpu(seen: &WatchEvidence) -> bool {
    /// So much of a CPU is nearly one.
    const NEARLY_ONE: f64 = 0.9;
    let is_full = |worker: &WatchedWorker| worker.cpu.is_some_and(|cpu| cpu >= NEARLY_ONE);
    seen.is_ruby && !seen.workers.is_empty() && seen.workers.iter().all(is_full)
}

/// More processes, each of which can use one CPU; where others leave no CPU idle, that comes first.
fn more_processes(more: &str, each: &str, cpu: &CpuUsage) -> String {
    /// With less than this share of the CPUs idle, another process has none for itself.
    const IDLE: f64 = 0.1;
    let others = cpu.others.unwrap_or(0.0);
    if cpu.of - cpu.server - others >= IDLE * cpu.of {
        return format!("{more}: {each} can use one CPU.");
    }
    format!(
        "CPUs that other processes leave to it: they use {} of {} now, and none is idle. More \
         processes of the server would only take turns with them. With a CPU idle: {more}.",
        tenths(others),
        cpus_in_words(cpu.of)
    )
}

/// What would help against a limit.
fn against(seen: &WatchEvidence, limit: &Limit) -> Vec<String> {
    let each = || {
        let rate = seen.settled_rate()?;
        Some(number::time(Nanos::from_secs_f64(seen.cpu? / rate)))
    };
    let line = match limit {
        Limit::Cpu(_) => {
            let less = each().map_or_else(
                || " a request.".to_owned(),
                |each| format!(": a request takes {each} of CPU now."),
            );
            let cpus = if each_worker_uses_a_cpu(seen) {
                "more CPUs with more workers (each uses nearly one, and Ruby's lock allows it no \
                 more)"
            } else {
                "more CPUs"
            };
            format!("{cpus}, or less work{less} {}", code_that_computes(seen))
        }
        Limit::SharedCpus(_) => {
            "CPUs for this server alone: a machine or cpuset without the other processes."
                .to_owned()
        }
        Limit::RubyLock { processes, cpu, .. } => {
            // Some may be there that have nothing to do.
            let workers = (*processes).max(seen.workers.len() as u32);
            let more = format!("`workers {}` or more in config/puma.rb", workers + 1);
            more_processes(&more, "a worker", cpu)
        }
        Limit::OneCpuEach { processes, cpu, .. } => {
            more_processes(&format!("{} processes or more", processes + 1), "each", cpu)
        }
        Limit::InsideApp { locked: Some(locked), .. } if locked.is_on_file => {
            let remedy = "hold the lock for less time. More threads or workers only wait for the file, \
                          too, unless one that has the lock does the work of all that wait (a group \
                          commit).";
            return std::iter::once(remedy.to_owned()).chain(printed_stacks(seen)).collect();
        }
        Limit::InsideApp { locked: Some(locked), .. } if is_beside_the_pool(locked) => {
            let remedy = "let that thread do more: several that work off the queue, or less time for \
                          each. More threads of Puma would only wait, too; more workers help if each \
                          has such a thread of its own.";
            return std::iter::once(remedy.to_owned()).chain(printed_stacks(seen)).collect();
        }
        Limit::InsideApp { locked, .. } => {
            let called = locked.as_ref().and_then(|locked| doing::called_inside(seen, locked)).map(
                |place| {
                    format!(
                        "release the lock, or what the pool lends, before the app asks {place}, \
                         unless the call needs it."
                    )
                },
            );
            let turns = locked.as_ref().and_then(|locked| turns_at(seen, locked));
            let pool = as_many_connections(seen);
            let of_pool = format!("if it is a pool: {pool}{}.", without_turns(seen, turns));
            let of_lock = format!(
                "if it is a lock: hold it for less time{}; more workers help if each has a lock of its own \
                 (a Mutex). More threads alone would only wait, too.",
                time_under_lock(seen, limit)
            );
            let remedies = called.into_iter().chain([of_pool, of_lock]);
            return remedies.chain(printed_stacks(seen)).collect();
        }
        Limit::Threads { .. }
        | Limit::MoreThanStated { .. }
        | Limit::Refusals { .. }
        | Limit::AcceptQueue { .. }
        | Limit::Network { .. }
        | Limit::Generator { .. }
        | Limit::NotKnown { .. } => return Vec::new(),
    };
    let is_of_code = matches!(limit, Limit::RubyLock { .. } | Limit::OneCpuEach { .. });
    let code = is_of_code.then(|| format!("less work a request. {}", code_that_computes(seen)));
    std::iter::once(line).chain(code).collect()
}

/// How to see which code uses the CPU.
fn code_that_computes(seen: &WatchEvidence) -> String {
    let pids = living_pids(seen);
    match pids.first() {
        Some(_) if seen.major() >= Some(TRAPS_PWR) && !seen.output_is_lost => format!(
            "`kill -PWR {}`, a few times: Puma writes to its output which code each thread is in.",
            pids.join(" ")
        ),
        Some(pid) if seen.is_ruby => format!(
            "A profiler shows which code computes: `rbspy record --pid {pid}`, or stackprof in the \
             app."
        ),
        _ => "A profiler in the app shows which code computes.".to_owned(),
    }
}
