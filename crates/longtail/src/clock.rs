//! The time of day, as people write it.

/// The wall clock's time as RFC 3339 in UTC, to the second: when a study was made.
pub(crate) fn wall_time() -> String {
    let now = jiff::Timestamp::now();
    now.round(jiff::Unit::Second).unwrap_or(now).to_string()
}
