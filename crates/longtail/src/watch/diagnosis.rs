//! Concludes from the evidence of a watch: who waits, where, how long, what the limit is, and what
//! to try. A sentence is said only where its evidence is there.

use model::Nanos;
use report::number;
use serde::Serialize;

use super::{WatchEvidence, WatchedWorker};

/// Of the CPUs that a server may use, this part is all: the kernel counts in ticks, and nobody gets
/// the last of them.
const ALL_CPUS: f64 = 0.92;
/// Of a Ruby process one thread computes at a time: where one runs or waits for a CPU for this part
/// of the time, computing is what holds up the others.
const COMPUTING: f64 = 0.85;
/// Of a server without such a lock, this part of the CPUs; of all that is used, less than this is
/// the smaller part.
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
pub(super) enum WatchLimit {
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

/// What is concluded, in words.
pub(super) struct Diagnosis {
    pub(super) limit: WatchLimit,
    /// How long a request waits on average, by Little's law: those that wait by the rate at which
    /// they begin.
    pub(super) wait: Option<Nanos>,
    /// A line each: who waits, where and how long, which threads are busy, how much CPU is used.
    pub(super) answer: Vec<String>,
    /// Since when, and where it goes; `None` where nobody waits, or nobody did a moment ago.
    pub(super) since: Option<String>,
    /// Why it is so.
    pub(super) why: Option<String>,
    /// What to try, a line each: something to type, or a setting.
    pub(super) tries: Vec<String>,
}

impl Diagnosis {
    pub(super) fn of(seen: &WatchEvidence) -> Diagnosis {
        let limit = limit(seen);
        let rate = seen.rate.filter(|rate| rate.per_second > 0.0);
        // Where a worker with free threads is beside one with a backlog, it matters to whom one
        // comes.
        let is_one_queue = !matches!(limit, WatchLimit::Imbalance | WatchLimit::Standstill);
        let waiting = Some(seen.waiting()).filter(|waiting| *waiting > 0 && is_one_queue);
        let estimate = waiting.zip(rate).map(|(waiting, rate)| {
            let wait = Nanos::from_secs_f64(f64::from(waiting) / rate.per_second);
            let (length, rate) = (number::length(wait), rate.in_words());
            (
                wait,
                format!("A request waits about {length} on average (estimate: {waiting} waiting / {rate} a second)."),
            )
        });
        let (wait, estimate) = estimate.unzip();
        let ended = seen.ended.map(number::length);
        let ended = ended
            .map(|after| format!("The server ended {after} after the watch began. Before that:"));
        let now: Vec<String> = threads(seen).into_iter().chain(who_waits(seen)).collect();
        let now = Some(now.join(" ")).filter(|now| !now.is_empty());
        let answer = [ended, now, estimate, full_queue(seen)].into_iter().flatten();
        let answer = answer.chain(absent_workers(seen)).chain(cpu(seen, limit)).collect();
        let (why, tries) = why(seen, limit);
        let why = Some(why).filter(|why| !why.is_empty());
        Diagnosis { limit, wait, answer, since: since(seen), why, tries }
    }
}

/// What holds up those that wait: the first that is so.
fn limit(seen: &WatchEvidence) -> WatchLimit {
    let is_full =
        seen.slots().zip(seen.busy()).is_some_and(|(slots, busy)| slots > 0 && busy >= slots);
    let waits = seen.waiting() > 0 || is_full;
    let is_computing = is_computing(seen);
    // Other processes may use up the CPUs while this server's threads sleep.
    let is_starved = cpus_are_used_up(seen) && is_computing;
    let reported: Vec<&WatchedWorker> =
        seen.workers.iter().filter(|worker| worker.busy_threads.is_some()).collect();
    let is_behind =
        |worker: &&WatchedWorker| worker.backlog > Some(0) && worker.full_reports >= ENOUGH_REPORTS;
    let has_room = |worker: &&WatchedWorker| worker.backlog == Some(0) && worker.free() > Some(0);
    let is_uneven = reported.iter().any(is_behind) && reported.iter().any(has_room);
    let limits = [
        (!waits && is_starved && seen.cpu_wait_share() >= Some(LONG_CPU_WAIT), WatchLimit::Cpus),
        (!waits, WatchLimit::Nothing),
        (is_full && seen.still >= Some(STANDSTILL), WatchLimit::Standstill),
        (is_starved, WatchLimit::Cpus),
        (reported.is_empty(), WatchLimit::UnknownWithoutStatistics),
        (!is_full && is_uneven, WatchLimit::Imbalance),
        (!is_full, WatchLimit::UnknownWithFreeThreads),
        (
            reported.iter().any(|worker| worker.full_reports < ENOUGH_REPORTS),
            WatchLimit::UnknownAfterOneReport,
        ),
        (seen.cpu.is_none() || seen.cpus.is_none(), WatchLimit::UnknownWithoutCpu),
        (seen.is_ruby && is_computing, WatchLimit::RubyLock),
    ];
    limits.into_iter().find(|(is_so, _)| *is_so).map_or(WatchLimit::Threads, |(_, limit)| limit)
}

/// Whether all CPUs that the server may use are busy; under a quota that others do not take from,
/// with its own work.
fn cpus_are_used_up(seen: &WatchEvidence) -> bool {
    let used = seen.busy_cpus.or(seen.cpu);
    used.zip(seen.cpus).is_some_and(|(used, cpus)| used >= ALL_CPUS * cpus)
}

/// Whether what holds up the server is that it computes, or wants to.
fn is_computing(seen: &WatchEvidence) -> bool {
    if seen.is_ruby {
        let mut busy = seen
            .workers
            .iter()
            .filter(|worker| worker.busy_threads != Some(0) && worker.pid.is_some())
            .peekable();
        let computes = |worker: &WatchedWorker| {
            worker.cpu.zip(worker.cpu_wait).is_some_and(|(cpu, wait)| cpu + wait >= COMPUTING)
        };
        return busy.peek().is_some() && busy.all(computes);
    }
    seen.runnable().zip(seen.cpus).is_some_and(|(runnable, cpus)| runnable >= HALF * cpus)
}

fn threads(seen: &WatchEvidence) -> Option<String> {
    let (slots, busy) = (seen.slots()?, seen.busy()?);
    // Puma reports each 5 s: what it said may be over.
    let oldest = seen.workers.iter().filter_map(|worker| worker.staleness_ns).max();
    let threads = number::count_of(slots, "thread");
    if let Some(age) =
        oldest.filter(|_| busy >= slots && seen.connections.is_some_and(|open| open < 0.5))
    {
        let age = number::length(age);
        return Some(format!(
            "No connection is open now; in Puma's last report, {age} old, {busy} of {threads} were busy."
        ));
    }
    Some(match busy {
        0 => format!("None of {threads} is busy."),
        _ if busy >= slots && slots == 1 => "The only thread is busy.".to_owned(),
        _ if busy >= slots => format!("All {slots} threads are busy."),
        1 => format!("1 of {slots} threads is busy."),
        _ => format!("{busy} of {slots} threads are busy."),
    })
}

fn who_waits(seen: &WatchEvidence) -> Option<String> {
    let place = if seen.is_cluster { "inside the workers" } else { "inside Puma" };
    let hidden = if seen.is_puma {
        "Whether requests wait inside Puma is not visible."
    } else {
        "What waits inside the server is not visible."
    };
    let requests = |n: u32| match n {
        0 => format!("No request waits {place}"),
        1 => format!("1 request waits {place}"),
        _ => format!("{n} requests wait {place}"),
    };
    let connections = |n: u32| match n {
        0 => "Nobody waits in the accept queue".to_owned(),
        1 => "1 connection waits in the accept queue".to_owned(),
        _ => format!("{n} connections wait in the accept queue"),
    };
    Some(match (seen.inside(), seen.in_kernel()) {
        (Some(0), Some(0)) => "Nobody waits.".to_owned(),
        (Some(inside), Some(0)) => format!("{}, none in the accept queue.", requests(inside)),
        (Some(0), Some(kernel)) => format!("{}, no request {place}.", connections(kernel)),
        (Some(inside), Some(kernel)) => {
            format!(
                "{}, and {} in the accept queue.",
                requests(inside),
                number::count_of(kernel, "connection")
            )
        }
        (Some(inside), None) => {
            format!("{}; the accept queue is not visible from here.", requests(inside))
        }
        (None, Some(kernel)) => format!("{}. {hidden}", connections(kernel)),
        (None, None) => return None,
    })
}

fn full_queue(seen: &WatchEvidence) -> Option<String> {
    let (queue, limit) =
        seen.queue.zip(seen.queue_limit).filter(|(queue, limit)| *queue >= f64::from(*limit))?;
    let queue = number::fixed(queue, 0);
    Some(format!(
        "The accept queue is full ({queue} of {limit}): the kernel drops more connects, and clients try again after 1, 3 and 7 s."
    ))
}

/// Workers that are not there, do not answer, or have not begun.
fn absent_workers(seen: &WatchEvidence) -> impl Iterator<Item = String> {
    let youngest =
        seen.workers.iter().filter_map(|worker| worker.staleness_ns).min().unwrap_or(Nanos::ZERO);
    let line = move |worker: &WatchedWorker| {
        let what = if worker.is_gone {
            "has ended: its threads are not there".to_owned()
        } else if worker.is_booting {
            "has not booted yet".to_owned()
        } else {
            let age = worker.staleness_ns.filter(|age| *age > SILENCE && *age > youngest * 3)?;
            format!("has not reported for {}: it may hang", number::length(age))
        };
        Some(format!("{}{} {what}.", worker.name[..1].to_uppercase(), &worker.name[1..]))
    };
    seen.workers.iter().filter_map(line).take(2)
}

/// `CPU 1.40 of 2`; what others use, where that is worth a word, and the wait for a CPU.
fn cpu(seen: &WatchEvidence, limit: WatchLimit) -> Option<String> {
    let (cpu, cpus) = (seen.cpu?, seen.cpus?);
    let all = seen.busy_cpus.map(|all| all.min(cpus)).filter(|all| all - cpu > OTHERS * cpus);
    let all = all.map(|all| {
        format!(" (with other processes {})", number::or_zero(all, number::significant))
    });
    let of = if cpus.fract() == 0.0 { number::fixed(cpus, 0) } else { number::significant(cpus) };
    let wait =
        seen.cpu_wait_share().filter(|wait| *wait >= LONG_CPU_WAIT && limit == WatchLimit::Cpus);
    let wait = wait.map(|wait| {
        format!(
            " Threads that could run wait for a CPU {} % of that time.",
            number::fixed(wait * 100.0, 0)
        )
    });
    let cpu = number::or_zero(cpu, number::significant);
    Some(format!("CPU {cpu} of {of}{}.{}", all.unwrap_or_default(), wait.unwrap_or_default()))
}

fn since(seen: &WatchEvidence) -> Option<String> {
    let span = seen.span.filter(|span| span.length >= LEAST_SPAN)?;
    let length = number::length(span.length);
    let since = if span.is_from_start {
        format!("the watch began, {length} ago")
    } else {
        format!("{length} ago")
    };
    let trend = match span.trend {
        None => "too short to say whether it grows".to_owned(),
        Some(0.0) => "steady".to_owned(),
        Some(by) => {
            let change = if by > 0.0 { "more" } else { "fewer" };
            format!("{} {change} each second", number::rate_in_words(by.abs()))
        }
    };
    Some(format!("{since}; {trend}"))
}

/// Why it is so, and what to try.
#[expect(clippy::too_many_lines, reason = "one arm for each limit")]
fn why(seen: &WatchEvidence, limit: WatchLimit) -> (String, Vec<String>) {
    let load = seen.connections.zip(seen.slots()).map(|(connections, slots)| {
        format!(
            "{}, {}: ",
            number::count_of(connections as u32, "connection"),
            number::count_of(slots, "thread")
        )
    });
    let load = load.unwrap_or_default();
    let is_old = seen.major().is_some_and(|major| major <= 6);
    let said = |why: &str, attempt: &str| (why.to_owned(), attempt.to_owned());
    let (why, attempt) = match limit {
        WatchLimit::Nothing => said("", ""),
        WatchLimit::Threads if seen.waiting() == 0 => {
            said("Every thread is taken; who comes now waits.", "")
        }
        WatchLimit::Threads => {
            let of_old = match seen.inside().filter(|_| is_old) {
                Some(0) => {
                    " (Puma 6 and older count a thread as busy that waits for a client's next request.)"
                }
                Some(_) => {
                    " Puma 6 and older serve up to ten requests of a connection in a row, so some wait far longer."
                }
                None => "",
            };
            let share =
                seen.runnable().zip(seen.busy()).map(|(runnable, busy)| runnable / f64::from(busy));
            let share = number::or_none(share, |share| number::fixed(share * 100.0, 0));
            let why = format!(
                "{load}saturated. Threads, not CPUs, are the limit: a busy one runs or waits for a CPU {share} % of its time.{of_old}"
            );
            let idle = seen
                .busy_cpus
                .or(seen.cpu)
                .zip(seen.cpus)
                .map(|(used, cpus)| (1.0 - used / cpus).max(0.0));
            let idle = idle.filter(|idle| *idle >= OTHERS);
            let idle = idle
                .map(|idle| format!(" (the CPUs are {} % idle)", number::fixed(idle * 100.0, 0)));
            let prediction = prediction(seen);
            let end = if prediction.is_some() { "; theory says what they are worth:" } else { "." };
            let first = format!("more threads or workers{}{end}", idle.unwrap_or_default());
            return (why, std::iter::once(first).chain(prediction).collect());
        }
        WatchLimit::Cpus => match seen.busy_cpus.zip(seen.cpu) {
            // Of the CPU time that is used most is other processes'.
            Some((all, own)) if own < HALF * all => {
                let (others, own) =
                    (number::significant(all - own), number::or_zero(own, number::significant));
                said(
                    &format!(
                        "Other processes use {others} CPUs, this server {own}: together they are used up."
                    ),
                    "CPUs for this server alone: a machine or cpuset without the other processes.",
                )
            }
            _ => {
                let each = seen
                    .cpu
                    .zip(settled_rate(seen))
                    .map(|(cpu, rate)| Nanos::from_secs_f64(cpu / rate));
                let less = each.map_or_else(
                    || " a request.".to_owned(),
                    |each| format!(": a request takes {} of CPU now.", number::time(each)),
                );
                said(
                    "The CPUs are used up: they are the limit. More threads make it no faster.",
                    &format!("more CPUs, or less work{less}"),
                )
            }
        },
        WatchLimit::RubyLock => said(
            "Each worker uses a whole CPU: Ruby's lock lets one of its threads compute at a time. CPUs are left.",
            &format!(
                "`workers {}` or more in config/puma.rb: a worker can use one CPU. More threads do not help.",
                seen.workers.len() + 1
            ),
        ),
        WatchLimit::Imbalance => {
            let free = number::count_of(
                seen.workers.iter().filter_map(WatchedWorker::free).sum::<u32>(),
                "thread",
            );
            let attempt = if seen.major() == Some(5) {
                "`wait_for_less_busy_worker 0.005` in config/puma.rb (not measured here)."
            } else {
                "fewer workers with more threads each, or connections that are kept less long (not measured here)."
            };
            let why = format!(
                "Requests wait in one worker while {free} of others are free: Puma does not move them."
            );
            said(&why, attempt)
        }
        WatchLimit::Standstill => {
            let seconds = number::or_none(seen.still, |still| number::fixed(still, 0));
            let attempt = seen.workers.iter().find_map(|worker| worker.pid).map_or_else(
                || "the app's log: which requests began last?".to_owned(),
                |pid| format!("`rbspy dump --pid {pid}` (where rbspy is installed): what each of its threads does."),
            );
            (
                format!(
                    "No request has begun for {seconds} s: requests hold every thread that long."
                ),
                attempt,
            )
        }
        WatchLimit::UnknownWithoutStatistics if is_old => said(
            "Not visible without statistics; Puma 6 and older leave connections there while all threads are busy.",
            "",
        ),
        WatchLimit::UnknownWithoutStatistics => said("Not visible without statistics.", ""),
        WatchLimit::UnknownWithFreeThreads => said(
            "Not clear: by the workers' last reports threads are free. Watch longer.",
            "the same with --for 30s.",
        ),
        WatchLimit::UnknownAfterOneReport => said(
            "Not clear yet: one report may be a moment's peak. Workers report every 5 s.",
            "the same with --for 30s.",
        ),
        WatchLimit::UnknownWithoutCpu => said(
            &format!(
                "{load}saturated. Whether threads or CPUs are the limit is not visible from here."
            ),
            "",
        ),
    };
    (why, Some(attempt).filter(|attempt| !attempt.is_empty()).into_iter().collect())
}

/// Requests a second that another figure of the last seconds may be divided by: not where they
/// reach back before the watch.
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

#[cfg(test)]
pub(super) mod tests {
    use std::fmt::Write as _;
    use std::path::Path;

    use serde_json::{Map, Value};

    use super::*;

    /// `to` with what differs in `from`; what is said of workers at once is of each.
    fn change(to: &mut Value, from: &Value) {
        match (to, from) {
            (Value::Object(to), Value::Object(from)) => {
                from.iter()
                    .for_each(|(name, value)| change(to.entry(name).or_insert(Value::Null), value));
            }
            (Value::Array(to), Value::Array(from)) => {
                to.truncate(from.len());
                to.iter_mut().zip(from).for_each(|(to, from)| change(to, from));
            }
            (Value::Array(to), from) => to.iter_mut().for_each(|to| change(to, from)),
            (to, from) => to.clone_from(from),
        }
    }

    /// What is seen in each situation of `tests/watch_situations.json`: as in the one that it is
    /// like, the first where none is named, but for what differs.
    pub(in crate::watch) fn situations() -> Vec<(String, WatchEvidence)> {
        let text = include_str!("../../tests/watch_situations.json");
        let differences: Vec<Map<String, Value>> = serde_json::from_str(text).unwrap();
        let mut all: Vec<(String, Value)> = Vec::new();
        for mut differs in differences {
            let [name, like] = ["name", "like"]
                .map(|key| differs.remove(key).and_then(|name| Some(name.as_str()?.to_owned())));
            let like =
                like.map_or(0, |like| all.iter().position(|(name, _)| *name == like).unwrap());
            let mut seen =
                all.get(like).map_or_else(|| Value::Object(Map::new()), |(_, seen)| seen.clone());
            change(&mut seen, &Value::Object(differs));
            all.push((name.unwrap(), seen));
        }
        all.into_iter().map(|(name, seen)| (name, serde_json::from_value(seen).unwrap())).collect()
    }

    /// In `tests/golden/watch_conclusions.txt` each sentence stands where it is true, where it is
    /// not, and where it is not decidable.
    #[test]
    fn each_situation_has_its_conclusion() {
        let mut text = String::new();
        for (name, seen) in situations() {
            let Diagnosis { limit, answer, since, why, tries, .. } = Diagnosis::of(&seen);
            let _ = writeln!(text, "{name}: {limit:?}");
            let all = [
                ("", answer),
                ("Since: ", since.into_iter().collect()),
                ("Why: ", why.into_iter().collect()),
                ("Try: ", tries),
            ];
            for (label, line) in
                all.iter().flat_map(|(label, lines)| lines.iter().map(move |line| (label, line)))
            {
                let _ = writeln!(text, "  {label}{line}");
            }
            text.push('\n');
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/watch_conclusions.txt");
        testkit::golden::expect(&path, &text);
    }
}
