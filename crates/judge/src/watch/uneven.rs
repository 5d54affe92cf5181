//! Requests wait in one worker while another has free threads.

use super::evidence::{ENOUGH_REPORTS, WatchEvidence, WatchedWorker};
use crate::words::count_of;

/// Whether requests wait in one worker while another has room, and not just for a moment.
pub(super) fn is_so(seen: &WatchEvidence) -> bool {
    // The kernel's figures are averages over some seconds; a report shows one moment.
    let is_settled =
        |worker: &WatchedWorker| worker.backlog.is_none() || worker.full_reports >= ENOUGH_REPORTS;
    let is_behind = |worker: &WatchedWorker| worker.inside() > Some(0) && is_settled(worker);
    let has_room = |worker: &WatchedWorker| worker.inside() == Some(0) && worker.free() > Some(0);
    seen.workers.iter().any(is_behind) && seen.workers.iter().any(has_room)
}

pub(super) fn sentence(seen: &WatchEvidence) -> String {
    let free: u32 = seen.workers.iter().filter_map(WatchedWorker::free).sum();
    let are = if free == 1 { "is" } else { "are" };
    let free = count_of(free, "thread");
    format!(
        "Requests wait in one worker while {free} of others {are} free: Puma does not move them."
    )
}

pub(super) fn attempt(seen: &WatchEvidence) -> String {
    let setting = if seen.major() == Some(5) {
        "`wait_for_less_busy_worker 0.005` in config/puma.rb"
    } else {
        "fewer workers with more threads each, or a shorter keep-alive"
    };
    format!("{setting} (not measured here).")
}
