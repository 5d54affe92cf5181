//! The conclusion of a watch: who waits, where, how long, and what the limit is. A pure function of what was seen; each sentence is said
//! only where the evidence for it is there.

use model::Nanos;
use report::number;
use serde::Serialize;

use super::evidence::{WatchEvidence, WatchedWorker};
use super::waiting::WaitingTrend;

/// Of the CPUs that a server may use, this part is all: the kernel counts in ticks, and nobody gets the last of them.
const ALL_CPUS: f64 = 0.92;
/// Of a Ruby process one thread computes at a time: where one runs or waits for a CPU for this part of the time, computing is what
/// holds up the others.
const COMPUTING: f64 = 0.85;
/// Of a server without such a lock, this part of the CPUs; of all that is used, less than this is the smaller part.
const HALF: f64 = 0.5;
/// Threads that wait for a CPU for this part of the time in which they could run wait long.
const LONG_CPU_WAIT: f64 = 0.2;
/// Other processes that use this part of the CPUs are worth a word.
const OTHERS: f64 = 0.1;
/// No request in this many seconds is a standstill.
const STANDSTILL: f64 = 5.0;
/// One report may be a moment's; so many in a row are not.
const ENOUGH_REPORTS: usize = 2;
/// Waiting for a shorter time has no since.
const LEAST_SPAN: Nanos = Nanos::from_secs(1);
/// A worker that has not reported for so long, while another has, hangs perhaps.
const SILENCE: Nanos = Nanos::from_secs(15);

/// What holds up those that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WatchLimit {
    /// Nobody waits, and threads are free, as far as is seen.
    Nothing,
    /// All threads are busy, the CPUs are not.
    Threads,
    /// The CPUs that the server may use are used up.
    Cpus,
    /// Each worker has a whole CPU, and CPUs are left.
    RubyLock,
    /// Some worker holds requests back while another has free threads.
    Imbalance,
    /// All threads are busy, and no request has begun for a while.
    Standstill,
    /// Nobody knows what its threads do.
    UnknownWithoutStatistics,
    /// Connections wait though threads are free, by reports that are older than the queue.
    UnknownWithFreeThreads,
    /// All threads were busy in the only report of a worker.
    UnknownAfterOneReport,
    /// All threads are busy; whether the CPUs are is not seen.
    UnknownWithoutCpu,
}

impl WatchLimit {
    /// By what was seen.
    pub(crate) fn of(seen: &WatchEvidence) -> WatchLimit {
        let is_full = seen.slots().zip(seen.busy()).is_some_and(|(slots, busy)| slots > 0 && busy >= slots);
        let waiting = seen.waiting();
        // Other processes may use up the CPUs while this server's threads sleep.
        let is_starved = cpus_are_used_up(seen) && is_computing(seen);
        if waiting == 0 && !is_full {
            let waits_long = seen.cpu_wait_share() >= Some(LONG_CPU_WAIT);
            return if is_starved && waits_long { WatchLimit::Cpus } else { WatchLimit::Nothing };
        }
        let reported: Vec<&WatchedWorker> = seen.workers.iter().filter(|worker| worker.busy.is_some()).collect();
        if is_full && seen.still >= Some(STANDSTILL) {
            return WatchLimit::Standstill;
        }
        if is_starved {
            return WatchLimit::Cpus;
        }
        if reported.is_empty() {
            return WatchLimit::UnknownWithoutStatistics;
        }
        if !is_full {
            let is_behind = |worker: &&WatchedWorker| worker.backlog > Some(0) && worker.full_reports >= ENOUGH_REPORTS;
            let has_room = |worker: &&WatchedWorker| worker.backlog == Some(0) && worker.free() > Some(0);
            return if reported.iter().any(is_behind) && reported.iter().any(has_room) {
                WatchLimit::Imbalance
            } else {
                WatchLimit::UnknownWithFreeThreads
            };
        }
        if reported.iter().any(|worker| worker.full_reports < ENOUGH_REPORTS) {
            return WatchLimit::UnknownAfterOneReport;
        }
        if seen.cpu.is_none() || seen.cpus.is_none() {
            return WatchLimit::UnknownWithoutCpu;
        }
        if seen.is_ruby && is_computing(seen) {
            return WatchLimit::RubyLock;
        }
        WatchLimit::Threads
    }
}

/// Whether all CPUs that the server may use are busy; under a quota that others do not take from, with its own work.
fn cpus_are_used_up(seen: &WatchEvidence) -> bool {
    let used = seen.busy_cpus.or(seen.cpu);
    used.zip(seen.cpus).is_some_and(|(used, cpus)| used >= ALL_CPUS * cpus)
}

/// Whether most of the CPU time that is used is other processes'.
fn others_use_most(seen: &WatchEvidence) -> bool {
    seen.busy_cpus.zip(seen.cpu).is_some_and(|(all, own)| own < HALF * all)
}

/// Whether what holds up the server is that it computes, or wants to.
fn is_computing(seen: &WatchEvidence) -> bool {
    if seen.is_ruby {
        let busy = || seen.workers.iter().filter(|worker| worker.busy != Some(0) && worker.pid.is_some());
        return busy().count() > 0 && busy().all(|worker| worker.runnable() >= Some(COMPUTING));
    }
    seen.runnable().zip(seen.cpus).is_some_and(|(runnable, cpus)| runnable >= HALF * cpus)
}

/// How long a request waits on average, by Little's law: those that wait by the rate at which they begin.
pub(crate) fn wait_estimate(seen: &WatchEvidence) -> Option<Nanos> {
    let rate = seen.rate.filter(|rate| rate.per_second > 0.0)?.per_second;
    let waiting = seen.waiting();
    // Where a worker with free threads is beside one with a backlog, it matters to whom one comes.
    let is_one_queue = !matches!(WatchLimit::of(seen), WatchLimit::Imbalance | WatchLimit::Standstill);
    (waiting > 0 && is_one_queue).then(|| Nanos::from_secs_f64(f64::from(waiting) / rate))
}

/// The answer, a line each: who waits, where and how long, which threads are busy, how much CPU is used.
pub(crate) fn answer(seen: &WatchEvidence) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(after) = seen.ended {
        said.push(format!("The server ended {} after the watch began. Before that:", number::length(after)));
    }
    let now: Vec<String> = threads(seen).into_iter().chain(who_waits(seen)).collect();
    said.extend((!now.is_empty()).then(|| now.join(" ")));
    if let (Some(wait), Some(rate)) = (wait_estimate(seen), seen.rate) {
        let (wait, waiting, rate) = (number::length(wait), seen.waiting(), rate.in_words());
        said.push(format!("A request waits about {wait} on average (estimate: {waiting} waiting / {rate} a second)."));
    }
    if let Some((queue, limit)) = seen.queue.zip(seen.queue_limit).filter(|(queue, limit)| *queue >= f64::from(*limit))
    {
        let queue = number::fixed(queue, 0);
        said.push(format!(
            "The accept queue is full ({queue} of {limit}): the kernel drops more connects, and clients try again after 1, 3 and 7 s."
        ));
    }
    said.extend(absent_workers(seen));
    said.extend(cpu(seen));
    said
}

fn threads(seen: &WatchEvidence) -> Option<String> {
    let (slots, busy) = (seen.slots()?, seen.busy()?);
    // Puma reports each 5 s: what it said may be over.
    let oldest = seen.workers.iter().filter_map(|worker| worker.age).max();
    if let Some(age) = oldest.filter(|_| busy >= slots && seen.connections.is_some_and(|open| open < 0.5)) {
        let threads = number::count_of(slots, "thread");
        return Some(format!(
            "No connection is open now; in Puma's last report, {} old, {busy} of {threads} were busy.",
            number::length(age)
        ));
    }
    Some(match busy {
        0 => format!("None of {} is busy.", number::count_of(slots, "thread")),
        _ if busy >= slots && slots == 1 => "The only thread is busy.".to_owned(),
        _ if busy >= slots => format!("All {slots} threads are busy."),
        1 => format!("1 of {slots} threads is busy."),
        _ => format!("{busy} of {slots} threads are busy."),
    })
}

fn who_waits(seen: &WatchEvidence) -> Option<String> {
    let place = if seen.is_cluster { "inside the workers" } else { "inside Puma" };
    let requests = |n: u32| if n == 1 { "1 request waits".to_owned() } else { format!("{n} requests wait") };
    let connections = |n: u32| number::count_of(n, "connection");
    let wait = |n: u32| if n == 1 { "waits" } else { "wait" };
    let hidden = if seen.is_puma {
        "Whether requests wait inside Puma is not visible."
    } else {
        "What waits inside the server is not visible."
    };
    Some(match (seen.inside(), seen.in_kernel()) {
        (Some(0), Some(0)) => "Nobody waits.".to_owned(),
        (Some(inside), Some(0)) => format!("{} {place}, none in the accept queue.", requests(inside)),
        (Some(0), Some(kernel)) => {
            format!("{} {} in the accept queue, no request {place}.", connections(kernel), wait(kernel))
        }
        (Some(inside), Some(kernel)) => {
            format!("{} {place}, and {} in the accept queue.", requests(inside), connections(kernel))
        }
        (Some(0), None) => format!("No request waits {place}; the accept queue is not visible from here."),
        (Some(inside), None) => format!("{} {place}; the accept queue is not visible from here.", requests(inside)),
        (None, Some(0)) => format!("Nobody waits in the accept queue. {hidden}"),
        (None, Some(kernel)) => format!("{} {} in the accept queue. {hidden}", connections(kernel), wait(kernel)),
        (None, None) => return None,
    })
}

/// Workers that are not there, do not answer, or have not begun.
fn absent_workers(seen: &WatchEvidence) -> Vec<String> {
    let youngest = seen.workers.iter().filter_map(|worker| worker.age).min().unwrap_or(Nanos::ZERO);
    let line = |worker: &WatchedWorker| {
        let WatchedWorker { name, .. } = worker;
        if worker.is_gone {
            return Some(format!("{} has ended: its threads are not there.", capital(name)));
        }
        if worker.is_booting {
            return Some(format!("{} has not booted yet.", capital(name)));
        }
        let age = worker.age.filter(|age| *age > SILENCE && *age > youngest * 3)?;
        Some(format!("{} has not reported for {}: it may hang.", capital(name), number::length(age)))
    };
    seen.workers.iter().filter_map(line).take(2).collect()
}

fn capital(name: &str) -> String {
    name.chars().take(1).flat_map(char::to_uppercase).chain(name.chars().skip(1)).collect()
}

/// `CPU 1.40 of 2`; what others use, where that is worth a word, and the wait for a CPU.
fn cpu(seen: &WatchEvidence) -> Option<String> {
    let (cpu, cpus) = (seen.cpu?, seen.cpus?);
    let all = seen.busy_cpus.map(|all| all.min(cpus)).filter(|all| all - cpu > OTHERS * cpus);
    let all = all.map(|all| format!(" (with other processes {})", number::or_zero(all, number::significant)));
    let of = if cpus.fract() == 0.0 { number::fixed(cpus, 0) } else { number::significant(cpus) };
    let wait = seen.cpu_wait_share().filter(|wait| *wait >= LONG_CPU_WAIT && WatchLimit::of(seen) == WatchLimit::Cpus);
    let wait = wait.map(|wait| {
        format!(" Threads that could run wait for a CPU {} % of that time.", number::fixed(wait * 100.0, 0))
    });
    let cpu = number::or_zero(cpu, number::significant);
    Some(format!("CPU {cpu} of {of}{}.{}", all.unwrap_or_default(), wait.unwrap_or_default()))
}

/// Since when, and where it goes; `None` where nobody waits, or nobody did a moment ago.
pub(crate) fn since(seen: &WatchEvidence) -> Option<String> {
    let span = seen.span.filter(|span| span.length >= LEAST_SPAN)?;
    let length = number::length(span.length);
    let since = if span.is_from_start { format!("the watch began, {length} ago") } else { format!("{length} ago") };
    let per_second = |n: f64| number::rate_in_words(n);
    let trend = match seen.trend {
        Some(WaitingTrend::Steady) => "; steady".to_owned(),
        Some(WaitingTrend::Grows(by)) => format!("; {} more each second", per_second(by)),
        Some(WaitingTrend::Shrinks(by)) => format!("; {} fewer each second", per_second(by)),
        None => "; too short to say whether it grows".to_owned(),
    };
    Some(format!("{since}{trend}"))
}

/// Why it is so.
pub(crate) fn why(seen: &WatchEvidence, limit: WatchLimit) -> Option<String> {
    let load = seen.connections.zip(seen.slots()).map(|(connections, slots)| {
        let connections = connections as u32;
        format!("{}, {}: ", number::count_of(connections, "connection"), number::count_of(slots, "thread"))
    });
    let load = load.unwrap_or_default();
    Some(match limit {
        WatchLimit::Nothing => return None,
        WatchLimit::Threads if seen.waiting() == 0 => "Every thread is taken; who comes now waits.".to_owned(),
        WatchLimit::Threads => {
            let of_old = match seen.inside().filter(|_| seen.is_old()) {
                Some(0) => " (Puma 6 and older count a thread as busy that waits for a client's next request.)",
                Some(_) => {
                    " Puma 6 and older serve up to ten requests of a connection in a row, so some wait far longer."
                }
                None => "",
            };
            let share = seen.runnable().zip(seen.busy()).map(|(runnable, busy)| runnable / f64::from(busy));
            let share = number::or_none(share, |share| number::fixed(share * 100.0, 0));
            format!(
                "{load}saturated. Threads, not CPUs, are the limit: a busy one runs or waits for a CPU {share} % of its time.{of_old}"
            )
        }
        WatchLimit::Cpus if others_use_most(seen) => {
            let others = seen.busy_cpus.zip(seen.cpu).map(|(all, own)| number::significant((all - own).max(0.0)));
            format!(
                "Other processes use {} CPUs, this server {}: together they are used up.",
                number::or_none(others, |others| others),
                number::or_none(seen.cpu, |own| number::or_zero(own, number::significant))
            )
        }
        WatchLimit::Cpus => "The CPUs are used up: they are the limit. More threads make it no faster.".to_owned(),
        WatchLimit::RubyLock => {
            "Each worker uses a whole CPU: Ruby's lock lets one of its threads compute at a time. CPUs are left."
                .to_owned()
        }
        WatchLimit::Imbalance => {
            let free: u32 = seen.workers.iter().filter_map(WatchedWorker::free).sum();
            format!(
                "Requests wait in one worker while {} of others are free: Puma does not move them.",
                number::count_of(free, "thread")
            )
        }
        WatchLimit::Standstill => {
            let seconds = number::or_none(seen.still, |still| number::fixed(still, 0));
            format!("No request has begun for {seconds} s: requests hold every thread that long.")
        }
        WatchLimit::UnknownWithoutStatistics if seen.is_old() => {
            "Not visible without statistics; Puma 6 and older leave connections there while all threads are busy."
                .to_owned()
        }
        WatchLimit::UnknownWithoutStatistics => "Not visible without statistics.".to_owned(),
        WatchLimit::UnknownWithFreeThreads => {
            "Not clear: by the workers' last reports threads are free. Watch longer.".to_owned()
        }
        WatchLimit::UnknownAfterOneReport => {
            "Not clear yet: one report may be a moment's peak. Workers report every 5 s.".to_owned()
        }
        WatchLimit::UnknownWithoutCpu => {
            format!("{load}saturated. Whether threads or CPUs are the limit is not visible from here.")
        }
    })
}

/// What to try, a line each: something to type, or a setting.
pub(crate) fn attempts(seen: &WatchEvidence, limit: WatchLimit) -> Vec<String> {
    let line = |text: &str| vec![text.to_owned()];
    match limit {
        WatchLimit::Threads if seen.waiting() == 0 => Vec::new(),
        WatchLimit::Threads => {
            let idle = seen.busy_cpus.or(seen.cpu).zip(seen.cpus).map(|(used, cpus)| (1.0 - used / cpus).max(0.0));
            let idle = idle.filter(|idle| *idle >= OTHERS);
            let idle = idle.map(|idle| format!(" (the CPUs are {} % idle)", number::fixed(idle * 100.0, 0)));
            let prediction = prediction(seen);
            let end = if prediction.is_some() { "; theory says what they are worth:" } else { "." };
            let first = format!("more threads or workers{}{end}", idle.unwrap_or_default());
            [first].into_iter().chain(prediction).collect()
        }
        WatchLimit::Cpus if others_use_most(seen) => {
            line("CPUs for this server alone: a machine or cpuset without the other processes.")
        }
        WatchLimit::Cpus => match seen.cpu.zip(settled_rate(seen)) {
            Some((cpu, rate)) => {
                let each = number::time(Nanos::from_secs_f64(cpu / rate));
                line(&format!("more CPUs, or less work: a request takes {each} of CPU now."))
            }
            None => line("more CPUs, or less work a request."),
        },
        WatchLimit::RubyLock => {
            let more = seen.workers.len() + 1;
            line(&format!(
                "`workers {more}` or more in config/puma.rb: a worker can use one CPU. More threads do not help."
            ))
        }
        WatchLimit::Imbalance if seen.major() == Some(5) => {
            line("`wait_for_less_busy_worker 0.005` in config/puma.rb (not measured here).")
        }
        WatchLimit::Imbalance => {
            line("fewer workers with more threads each, or connections that are kept less long (not measured here).")
        }
        WatchLimit::Standstill => match seen.workers.iter().find_map(|worker| worker.pid) {
            Some(pid) => {
                line(&format!("`rbspy dump --pid {pid}` (where rbspy is installed): what each of its threads does."))
            }
            None => line("the app's log: which requests began last?"),
        },
        WatchLimit::UnknownAfterOneReport | WatchLimit::UnknownWithFreeThreads => line("the same with --for 30s."),
        WatchLimit::Nothing | WatchLimit::UnknownWithoutStatistics | WatchLimit::UnknownWithoutCpu => Vec::new(),
    }
}

/// Requests a second that another figure of the last seconds may be divided by: not where they reach back before the watch.
fn settled_rate(seen: &WatchEvidence) -> Option<f64> {
    Some(seen.rate.filter(|rate| rate.per_second > 0.0 && !rate.reaches_back)?.per_second)
}

/// What queueing theory says of this service time, CPU time and load: a command.
fn prediction(seen: &WatchEvidence) -> Option<String> {
    let rate = settled_rate(seen)?;
    let threads = seen.workers.first()?.threads?;
    if seen.workers.iter().any(|worker| worker.threads != Some(threads)) {
        return None;
    }
    let busy = seen.busy()?;
    let (service, cpu) = (f64::from(busy) / rate, seen.cpu? / rate);
    let written = |seconds: f64| format!("{}ms", number::significant(seconds * 1e3));
    Some(format!(
        "longtail predict -w{} -t{threads}:{threads} --service {} --cpu {} -c {}",
        seen.workers.len(),
        written(service),
        written(cpu.min(service)),
        busy + seen.waiting()
    ))
}
