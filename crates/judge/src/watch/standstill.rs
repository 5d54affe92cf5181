//! No request has begun for a while although all threads are busy: their requests have been running
//! for that long.

use model::number;

use super::evidence::WatchEvidence;

/// No request in this many seconds is a standstill.
const STANDSTILL: f64 = 5.0;

/// Whether none has begun.
pub(super) fn is_so(seen: &WatchEvidence) -> bool {
    seen.still >= Some(STANDSTILL)
}

pub(super) fn in_short(seen: &WatchEvidence) -> String {
    format!("No request has begun for {}.", how_long(seen))
}

pub(super) fn sentence(seen: &WatchEvidence) -> String {
    format!("No request has begun for {}: requests hold every thread that long.", how_long(seen))
}

fn how_long(seen: &WatchEvidence) -> String {
    format!("{} s", number::or_none(seen.still, |still| number::fixed(still, 0)))
}
