//! What waits, where and since when; which threads are busy, and how much CPU is used.

use model::{Limit, Nanos, number};

use super::evidence::{EarlierWaits, WatchEvidence, WatchedWorker};
use super::limit::Found;
use super::uneven;
use crate::words::{brief, capitalised, count_at_looks, count_of};

/// What turns on Puma's control server, in config/puma.rb, where a watch finds it.
pub const TURN_IT_ON: &str = "`activate_control_app` and `state_path \"tmp/puma.state\"`";

/// Processes that the server starts are mentioned if they use at least this share of its CPU time.
const CHILDREN: f64 = 0.1;
/// Other processes are mentioned if they use at least this share of the CPUs.
const OTHERS: f64 = 0.1;
/// Other processes slow the server if they use at least this share of the CPUs.
const NEARLY_ALL: f64 = 0.8;
/// The wait for a CPU is mentioned if it takes at least this share of the time in which threads
/// could run, and this share of the time of the threads in use: threads that sleep nearly all the
/// time lose nothing by it, however long they wait when they wake.
const LONG_CPU_WAIT: f64 = 0.2;
const NOTABLE_CPU_WAIT: f64 = 0.05;
/// If requests have been waiting for less than this, the time is not mentioned.
const LEAST_SPAN: Nanos = Nanos::from_secs(1);
/// If there was a queue at the first look and at the last, not longer ago than this, there was one
/// all the time.
const LAST_LOOK: Nanos = Nanos::from_secs(2);
/// It takes so long at most until the first looks show what waits.
const FIRST_LOOKS: Nanos = Nanos::from_secs(3);
/// A worker that has not reported for this long, while another has, may hang.
const SILENCE: Nanos = Nanos::from_secs(15);
/// At most this many absent workers are named.
const MOST_ABSENT: usize = 2;

/// Which threads are busy, by the server's own count.
pub(super) fn threads(seen: &WatchEvidence) -> Option<String> {
    let slots = seen.slots()?;
    let busy = seen.busy()?;
    // Puma reports every 5 s, so the report may be out of date.
    let oldest = seen.workers.iter().filter_map(|worker| worker.staleness_ns).max();
    let is_over = busy >= slots && seen.connections.is_some_and(|open| open < 0.5);
    if let Some(age) = oldest.filter(|_| is_over) {
        return Some(format!(
            "No connection is open now; in Puma's last report, {} old, {busy} of {} were busy.",
            brief(age),
            count_of(slots, "thread")
        ));
    }
    let waits: u32 = seen.workers.iter().filter_map(|worker| worker.io_threads).sum();
    let waits = (waits > 0).then(|| {
        let waits = waits.min(busy);
        format!(
            " ({waits} of them with requests marked as waiting, for which Puma has added threads)"
        )
    });
    if let Some(remark) = for_next_requests(seen, busy).filter(|_| waits.is_none()) {
        return Some(remark);
    }
    let waits = waits.unwrap_or_default();
    Some(match busy {
        0 => format!("None of {} is busy.", count_of(slots, "thread")),
        _ if busy >= slots && slots == 1 => format!("The only thread is busy{waits}."),
        _ if busy >= slots => format!("All {slots} threads are busy{waits}."),
        1 => format!("1 of {slots} threads is busy{waits}."),
        _ => format!("{busy} of {slots} threads are busy{waits}."),
    })
}

/// The count of Puma 6 and older, if there are fewer requests in flight than busy threads by it.
fn for_next_requests(seen: &WatchEvidence, busy: u32) -> Option<String> {
    let out = seen.requests_out_at_most().filter(|out| *out < busy)?;
    let slots = seen.slots().filter(|_| seen.major().is_some_and(|major| major <= 6))?;
    let counted = match slots {
        1 => "its only thread".to_owned(),
        _ if busy >= slots => format!("all {slots} threads"),
        _ => format!("{busy} of {slots} threads"),
    };
    let in_flight = match out {
        0 => "no request is".to_owned(),
        _ => format!("only {}", are(out, "request")),
    };
    Some(format!(
        "Puma counts {counted} as busy, but {in_flight} in flight: Puma 6 and older also count a \
         thread that waits for a client's next request."
    ))
}

/// What waits, and where.
pub(super) fn who(seen: &WatchEvidence) -> Option<String> {
    let place = if seen.is_cluster { "inside the workers" } else { "inside Puma" };
    let requests = |n: u32| match n {
        0 => format!("No request waits {place}"),
        1 => format!("1 request waits {place}"),
        _ => format!("{n} requests wait {place}"),
    };
    Some(match (seen.inside(), seen.in_kernel()) {
        (Some(0), Some(0)) if is_used(seen) => "Hardly anything waits.".to_owned(),
        (Some(0), Some(0)) => "Nothing waits.".to_owned(),
        (Some(inside), Some(0)) => {
            let none = if is_used(seen) { "hardly any connection" } else { "none" };
            format!("{}, {none} in the accept queue.", requests(inside))
        }
        (Some(0), Some(kernel)) => {
            format!("{}, no request {place}.", in_accept_queue(seen, kernel))
        }
        (Some(inside), Some(kernel)) => {
            let kernel = count_of(kernel, "connection");
            format!("{}, and {kernel} in the accept queue.", requests(inside))
        }
        (Some(inside), None) => {
            format!("{}; the accept queue is not visible from here.", requests(inside))
        }
        (None, Some(kernel)) if are_out_of_step(seen, kernel) => out_of_step(seen, kernel),
        (None, Some(kernel)) if seen.is_on_average() && seen.out.is_some() => {
            format!("On average over the last seconds: {}", uncapitalised(&by_kernel(seen, kernel)))
        }
        (None, Some(kernel)) => by_kernel(seen, kernel),
        (None, None) => return None,
    })
}

/// Whether connections waited in the accept queue although few requests were in flight. The queue is
/// looked at many times a second and requests once, so both are true, of other moments.
fn are_out_of_step(seen: &WatchEvidence, queue: u32) -> bool {
    let in_flight = seen.requests_out_at_most().zip(seen.slots());
    queue > 0 && in_flight.is_some_and(|(out, slots)| 2 * out < slots)
}

/// The mean of each, with the looks that it is from.
fn out_of_step(seen: &WatchEvidence, queue: u32) -> String {
    let in_flight = match seen.requests_out_at_most().unwrap_or(0) {
        0 => "no request was".to_owned(),
        1 => "1 request was".to_owned(),
        out => format!("{out} requests were"),
    };
    let threads =
        seen.slots().map_or_else(String::new, |slots| format!(" on {}", count_of(slots, "thread")));
    format!(
        "{} waited in the accept queue, on average over the last seconds; at the looks at \
         requests, which are fewer, {in_flight} in flight{threads}.",
        count_of(queue, "connection")
    )
}

/// `Nothing waits` as it stands within a sentence.
fn uncapitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().into_iter().flat_map(char::to_lowercase).chain(letters).collect()
}

/// `Nothing waits in the accept queue`. `connections`: the mean, as a whole number.
fn in_accept_queue(seen: &WatchEvidence, connections: u32) -> String {
    match connections {
        0 if is_used(seen) => "Hardly anything waits in the accept queue".to_owned(),
        0 if seen.queue_most > Some(0.0) => "Nothing waits in the accept queue now".to_owned(),
        0 => "Nothing waits in the accept queue".to_owned(),
        1 => "1 connection waits in the accept queue".to_owned(),
        _ => format!("{connections} connections wait in the accept queue"),
    }
}

/// Whether a connection waited in the accept queue now and then in the last seconds.
fn is_used(seen: &WatchEvidence) -> bool {
    seen.queue > Some(0.0)
}

/// For a server that doesn't report how many requests wait inside it: by what the kernel knows
/// about its connections. `queue`: connections in the accept queue.
fn by_kernel(seen: &WatchEvidence, queue: u32) -> String {
    let in_queue = in_accept_queue(seen, queue);
    let (Some(out), Some(most)) = (seen.requests_out(), seen.requests_out_at_most()) else {
        let whether = if seen.is_puma {
            "Whether requests wait inside Puma"
        } else {
            "What waits inside the server"
        };
        return format!("{in_queue}. {whether} is not visible.");
    };
    let idle = seen.connections.map_or(0, |open| open.round() as u32).saturating_sub(most + queue);
    let idle = match idle {
        0 => String::new(),
        _ => format!(" ({} idle)", are(idle, "connection")),
    };
    if most == 0 && queue == 0 {
        return format!("Nothing waits: no request is in flight{idle}.");
    }
    let requests =
        if out == most { are(out, "request") } else { format!("{out} to {most} requests are") };
    let inside = seen.inside_by_kernel().unwrap_or(0);
    match seen.slots() {
        // Of others the reason says so.
        None if seen.is_puma => format!(
            "{requests} in flight{idle}; how many the server can serve at once is not visible. {in_queue}."
        ),
        None => format!("{requests} in flight{idle}. {in_queue}."),
        Some(_) if inside > 0 && uneven::is_so(seen) => {
            format!("{requests} in flight{idle}, {}. {in_queue}.", uneven::where_they_wait(seen))
        }
        Some(slots) if inside > 0 => format!(
            "{requests} in flight on {}{idle}: probably {} for a thread. {in_queue}.",
            count_of(slots, "thread"),
            wait(inside)
        ),
        Some(slots) if most > slots => format!(
            "{requests} in flight on {}{idle}: it is not clear whether any waits for a thread. {in_queue}.",
            count_of(slots, "thread")
        ),
        Some(slots) if queue == 0 => {
            let none = if is_used(seen) { "Hardly any" } else { "No" };
            format!(
                "{none} connection waits to be accepted; {requests} in flight on {}{idle}.",
                count_of(slots, "thread")
            )
        }
        Some(slots) => {
            format!("{in_queue}; {requests} in flight on {}{idle}.", count_of(slots, "thread"))
        }
    }
}

/// `1 request is`, `2 requests are`.
fn are(count: u32, one: &str) -> String {
    format!("{} {}", count_of(count, one), if count == 1 { "is" } else { "are" })
}

/// `1 waits`, `2 wait`.
fn wait(count: u32) -> String {
    if count == 1 { "1 waits".to_owned() } else { format!("{count} wait") }
}

pub(super) fn full_queue(seen: &WatchEvidence) -> Option<String> {
    let (queue, limit) = seen.queue.zip(seen.queue_limit)?;
    (queue >= f64::from(limit)).then(|| {
        let queue = number::fixed(queue, 0);
        format!(
            "The accept queue is full ({queue} of {limit}): the kernel drops more connects, and \
             clients try again after 1, 3 and 7 s."
        )
    })
}

/// Workers that have ended, may hang, or have not booted.
pub(super) fn absent_workers(seen: &WatchEvidence) -> impl Iterator<Item = String> {
    let youngest =
        seen.workers.iter().filter_map(|worker| worker.staleness_ns).min().unwrap_or(Nanos::ZERO);
    let line = move |worker: &WatchedWorker| {
        let what = if worker.is_gone {
            "has ended, and its threads with it".to_owned()
        } else if worker.is_booting {
            "has not booted yet".to_owned()
        } else {
            let age = worker.staleness_ns.filter(|age| *age > SILENCE && *age > youngest * 3)?;
            format!("has not reported for {}: it may hang", brief(age))
        };
        Some(format!("{} {what}.", capitalised(&worker.name)))
    };
    seen.workers.iter().filter_map(line).take(MOST_ABSENT)
}

/// `The server uses 1.40 of 2 CPUs`, with the use by other processes and the wait for a CPU if they are notable.
pub(super) fn cpu(seen: &WatchEvidence, found: &Found) -> Option<String> {
    let cpu = seen.cpu?;
    let cpus = seen.cpus?;
    let all = seen.busy_cpus.map(|all| all.min(cpus)).filter(|all| all - cpu > OTHERS * cpus);
    let are_cpus = matches!(found, Found::Known(Limit::Cpu(_) | Limit::SharedCpus(_)));
    let are_taken = !are_cpus && all.is_some_and(|all| all - cpu >= NEARLY_ALL * cpus);
    let written = |cpus| number::fixed(cpus, 2);
    let all = all.filter(|_| !are_taken);
    let all = all.map(|all| format!(" (with other processes {})", written(all)));
    let children = seen.children_cpu.filter(|children| *children >= CHILDREN * cpu.max(0.01));
    let children = children
        .map(|children| format!(", {} of it by processes that it starts", written(children)));
    let of = if cpus.fract() == 0.0 { number::fixed(cpus, 0) } else { number::significant(cpus) };
    let wait = long_cpu_wait(seen).filter(|_| are_cpus || are_taken).map(|waiting| {
        let count = count_at_looks(waiting);
        let wait = if count == "1" { "waits" } else { "wait" };
        format!(" On average {count} of its threads {wait} for a CPU.")
    });
    let slowed = match wait {
        _ if !are_taken => "",
        None if seen.cpu_wait.is_some() => {
            "; others use nearly all the rest, but it hardly waits for one"
        }
        Some(_) | None => "; others use nearly all the rest, so what it computes takes longer",
    };
    let [children, all, wait] = [children, all, wait].map(Option::unwrap_or_default);
    let noun = if of == "1" { "CPU" } else { "CPUs" };
    Some(format!("The server uses {} of {of} {noun}{children}{all}{slowed}.{wait}", written(cpu)))
}

/// How many threads wait for a CPU, on average, if that is notable.
fn long_cpu_wait(seen: &WatchEvidence) -> Option<f64> {
    let in_use = f64::from(seen.busy_or_taken().unwrap_or(0).max(1));
    let is_long = seen.cpu_wait_share()? >= LONG_CPU_WAIT;
    seen.cpu_wait.filter(|waiting| is_long && *waiting >= NOTABLE_CPU_WAIT * in_use)
}

/// Since when there is a queue; if nothing waits now, since when that is so. `wait`: how long a
/// request waits, where that is known. It is said elsewhere; where it is not known this must say so,
/// since how long there is a queue is easily taken for it.
pub(super) fn since(seen: &WatchEvidence, found: &Found, wait: Option<Nanos>) -> Option<String> {
    let Some(span) = seen.span else { return seen.earlier.and_then(before) };
    if span.length < LEAST_SPAN {
        return None;
    }
    let length = brief(span.length);
    // The first looks may not have shown yet what waited.
    let is_early = span.length <= seen.watched && seen.watched <= span.length + FIRST_LOOKS;
    let is_all_along = span.is_from_start && is_early;
    let since = if is_all_along {
        format!("requests waited at every look in the {} watched", brief(seen.watched))
    } else if span.is_from_start || is_early {
        // It takes some looks to see what waits, and nothing is known of the time before them.
        format!("requests have waited for {length} or longer")
    } else {
        format!("requests have waited for {length}")
    };
    let trend = match span.trend {
        None => "too short to say whether they grow in number".to_owned(),
        Some(0.0) => "their number is steady".to_owned(),
        Some(by) => {
            let change = if by > 0.0 { "more" } else { "fewer" };
            format!("{} {change} wait each second", number::rate_in_words(by.abs()))
        }
    };
    let each = match wait {
        Some(_) => String::new(),
        None if matches!(found, Found::Uneven) && seen.rate_now().is_some() => {
            uneven::mean_wait(seen).map(|mean| format!(". {mean}")).unwrap_or_default()
        }
        None if seen.no_statistics.is_none() => {
            format!(". How long each request waits is not known: {}", why_no_wait(seen, found))
        }
        None if seen.is_puma => format!(
            ". How long each request waits cannot be seen without Puma's control server ({TURN_IT_ON} \
             in config/puma.rb turn it on)"
        ),
        None => ". How long each request waits cannot be seen here".to_owned(),
    };
    Some(format!("{since}; {trend}{each}"))
}

/// Why it is not known how long a request waits, although the server's statistics are.
fn why_no_wait(seen: &WatchEvidence, found: &Found) -> &'static str {
    match (found, seen.rate) {
        (Found::Uneven, _) => "some workers have free threads, and others a backlog",
        (Found::Standstill, _) => "no request is begun any more",
        _ if seen.waiting() == 0 => "on average, fewer than one waits at a time",
        (_, None) if seen.major().is_some_and(|major| major < 5) => {
            "Puma before 5 does not count its requests"
        }
        (_, None) if seen.is_cluster => {
            "that takes two counts of its requests by each worker, which reports every 5 s"
        }
        (_, None) => "that takes two counts of its requests by Puma",
        (_, Some(rate)) if rate.reaches_back => {
            "Puma's counts of its requests reach back to before this watch; watch for 15 s or longer"
        }
        (_, Some(rate)) if rate.per_second <= 0.0 => "no request was begun in the last seconds",
        (_, Some(_)) => "Puma's last counts of its requests may be from before they waited",
    }
}

/// When the waits ended that were explained so long `ago`: that was at the look before.
pub(super) fn ended(seen: &WatchEvidence, ago: Nanos) -> Nanos {
    let ended = seen.earlier.map(|earlier| earlier.ago);
    ended.filter(|ended| *ended <= ago && ago <= *ended + LAST_LOOK).unwrap_or(ago)
}

/// What waited earlier, where nothing waits now.
fn before(earlier: EarlierWaits) -> Option<String> {
    let most = earlier.most.round() as u64;
    (earlier.length >= LEAST_SPAN && most > 0).then(|| {
        let now = if earlier.ago < LEAST_SPAN {
            "nothing waits any more".to_owned()
        } else {
            format!("nothing has waited for {}", brief(earlier.ago))
        };
        format!(
            "{now}; before that there was a queue of up to {}, for {} in all",
            count_of(most as u32, "request"),
            brief(earlier.length)
        )
    })
}
