//! Requests wait in one worker while another has free threads.

use model::Nanos;

use super::evidence::{ENOUGH_REPORTS, WatchEvidence, WatchedWorker};
use crate::words::{brief, count_of};

/// Whether requests wait in one worker while another has room, and not just for a moment.
pub(super) fn is_so(seen: &WatchEvidence) -> bool {
    // The kernel's figures are averages over some seconds; a report shows one moment.
    let is_settled =
        |worker: &WatchedWorker| worker.backlog.is_none() || worker.full_reports >= ENOUGH_REPORTS;
    let is_behind = |worker: &WatchedWorker| worker.inside() > Some(0) && is_settled(worker);
    let has_room = |worker: &WatchedWorker| worker.inside() == Some(0) && worker.free() > Some(0);
    // A worker with a free thread accepts: by the kernel's account alone, what waits to be accepted
    // shows that none is free.
    let none_is_free = seen.in_kernel() > Some(0) && seen.busy().is_none();
    !none_is_free && seen.workers.iter().any(is_behind) && seen.workers.iter().any(has_room)
}

/// `19 of them in worker 0 with its 5 threads: probably 14 wait there, while 4 threads of others are
/// free`
pub(super) fn where_they_wait(seen: &WatchEvidence) -> String {
    let behind = || seen.workers.iter().filter(|worker| worker.inside() > Some(0));
    let requests: f64 = behind().filter_map(|worker| worker.requests_out).sum();
    let threads: u32 = behind().filter_map(|worker| worker.threads).sum();
    let waiting: u32 = behind().filter_map(WatchedWorker::inside).sum();
    let place = match behind().collect::<Vec<_>>().as_slice() {
        [one] => one.name.clone(),
        several => count_of(several.len() as u32, "worker"),
    };
    let wait = if waiting == 1 { "waits" } else { "wait" };
    let all = seen.requests_out().map(f64::from) == Some(requests.round());
    let requests = if all { "all".to_owned() } else { format!("{requests:.0}") };
    format!(
        "{requests} of them in {place} with {}: probably {waiting} {wait} there, while {}",
        count_of(threads, "thread"),
        free(seen)
    )
}

/// Where all workers are busy, but nearly all that wait do so in one of them, so that the mean wait is
/// that of hardly any request: `13 of the 14 wait in worker 1`.
pub(super) fn where_most_wait(seen: &WatchEvidence) -> Option<String> {
    const FEWEST: u32 = 4;
    const MOST_OF_THEM: f64 = 0.8;
    let inside: Option<Vec<u32>> = seen.workers.iter().map(WatchedWorker::inside).collect();
    let inside = inside.filter(|inside| inside.len() > 1)?;
    let all: u32 = inside.iter().sum();
    let (worker, most) = seen.workers.iter().zip(&inside).max_by_key(|(_, inside)| **inside)?;
    let is_uneven =
        all >= FEWEST && f64::from(*most) >= MOST_OF_THEM * f64::from(all) && all == seen.waiting();
    let most = if *most == all { format!("All {all}") } else { format!("{most} of the {all}") };
    let others = if inside.len() == 2 { "the other" } else { "the others" };
    is_uneven.then(|| {
        format!(
            "{most} that wait for a thread are in {}; the requests of {others} hardly wait for one.",
            worker.name
        )
    })
}

/// How long a request waits on average over all workers, of which only some have requests that wait.
pub(super) fn mean_wait(seen: &WatchEvidence) -> Option<String> {
    let waiting = Some(seen.waiting()).filter(|waiting| *waiting > 0)?;
    let rate = seen.rate_now()?;
    let mean = Nanos::from_secs_f64(f64::from(waiting) / rate);
    Some(format!(
        "A request waits about {} for a thread, on average over all workers: longer where they wait, not \
         at all elsewhere",
        brief(mean)
    ))
}

/// `4 threads of others are free`
fn free(seen: &WatchEvidence) -> String {
    let free: u32 = seen.workers.iter().filter_map(WatchedWorker::free).sum();
    let are = if free == 1 { "is" } else { "are" };
    format!("{} of others {are} free", count_of(free, "thread"))
}

pub(super) fn sentence(seen: &WatchEvidence) -> String {
    format!(
        "Requests wait in one worker while {}: a connection stays with the worker that accepted \
         it{}.",
        free(seen),
        spread(seen)
    )
}

/// `; they are spread 19 : 1`, where each worker's are known.
fn spread(seen: &WatchEvidence) -> String {
    /// The numbers of more workers are not read.
    const MOST: usize = 8;
    let each = seen.workers.iter().map(|worker| worker.connections.map(|n| format!("{n:.0}")));
    let each: Option<Vec<String>> = each.collect();
    let is_uneven = |each: &Vec<String>| each.iter().any(|count| *count != each[0]);
    let each = each.filter(|each| each.len() <= MOST && is_uneven(each));
    each.map_or(String::new(), |each| format!("; they are spread {}", each.join(" : ")))
}

/// What spreads the connections. `may_add_threads`: whether more threads in a worker would do more.
pub(super) fn attempt(seen: &WatchEvidence, may_add_threads: bool) -> String {
    let new =
        "`wait_for_less_busy_worker 0.005` in config/puma.rb, for new connections; for kept ones, ";
    let new = if seen.major() == Some(5) { new } else { "" };
    let also = if may_add_threads { ", or fewer workers with more threads each" } else { "" };
    format!(
        "to spread the connections over the workers: {new}a shorter keep-alive of the clients or the \
         proxy{also} (not measured here)."
    )
}
