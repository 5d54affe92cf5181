//! Workers that share connections: opened before the fork, and used by each as if it were its own.

use super::evidence::{SharedConnections, WatchEvidence};
use crate::words::{count_of, listed};

/// What they share, and what that does.
pub(super) fn sentence(seen: &WatchEvidence) -> Option<String> {
    let most = seen.shared.iter().map(|one| one.workers).max()?;
    let workers = match most as usize {
        2 if seen.workers.len() == 2 => "Both workers".to_owned(),
        all if all == seen.workers.len() => format!("All {all} workers"),
        _ => count_of(most, "worker"),
    };
    let shared = seen.shared.iter().map(|SharedConnections { place, connections, .. }| {
        format!("{} to {place}", count_of(*connections, "connection"))
    });
    Some(format!(
        "{workers} share {}, probably opened before the fork: they wait for each other there, and can \
         read each other's answers.",
        listed(&shared.collect::<Vec<_>>())
    ))
}

/// How each gets its own.
pub(super) fn attempt(seen: &WatchEvidence) -> Option<String> {
    /// The first Puma that calls the hook so.
    const RENAMED: u32 = 7;
    let hook = match seen.major() {
        Some(RENAMED..) => "before_worker_boot",
        Some(_) => "on_worker_boot",
        None => return (!seen.shared.is_empty()).then(|| "connect after the fork.".to_owned()),
    };
    (!seen.shared.is_empty())
        .then(|| format!("connect in each worker, in `{hook} {{ … }}` of config/puma.rb."))
}
