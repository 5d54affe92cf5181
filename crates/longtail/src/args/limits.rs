//! What no number, time or path can be, whatever command it is given to.

use clap::builder::RangedI64ValueParser;
use model::{Nanos, Threads};

use crate::mistake::{Mistake, wrong};

/// No run is meant to take longer.
const LONGEST_TIME: Nanos = Nanos::from_secs(30 * 86_400);
/// No machine has more connections, for all its addresses.
pub(super) const CONNECTIONS: u32 = 1_000_000;
/// No Puma has more.
const MOST_THREADS: u32 = 10_000;

/// Reads a whole number from 1 to `most`.
pub(super) fn from_1_to(most: u32) -> RangedI64ValueParser<u32> {
    RangedI64ValueParser::new().range(1..=i64::from(most))
}

/// Refuses times that nobody can mean.
///
/// # Errors
/// Where one of them is longer than 30 days.
pub(super) fn check_times(times: impl IntoIterator<Item = Option<Nanos>>) -> Result<(), Mistake> {
    if times.into_iter().flatten().any(|time| time > LONGEST_TIME) {
        return Err(wrong("a time of more than 30 days (720h) is a slip of the pen: give a shorter one"));
    }
    Ok(())
}

/// Refuses a time limit within which nothing can be answered.
///
/// # Errors
/// Where it is 0.
pub(super) fn check_timeout(timeout: Nanos) -> Result<(), Mistake> {
    if timeout == Nanos::ZERO { Err(wrong("--timeout wants a time above 0, such as 30s")) } else { Ok(()) }
}

/// Refuses more threads than any server has.
///
/// # Errors
/// Where there are more.
pub(super) fn check_threads(threads: Option<Threads>) -> Result<(), Mistake> {
    if threads.is_some_and(|threads| threads.max > MOST_THREADS) {
        return Err(wrong("-t wants at most 10000 threads"));
    }
    Ok(())
}

/// Refuses what cannot stand in a request's first line.
///
/// # Errors
/// Where it does not start with / or has a blank.
pub(super) fn check_path(path: &str) -> Result<(), Mistake> {
    if !path.starts_with('/') || path.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
        return Err(wrong("--path wants a path that starts with / and has no blanks, such as /posts?page=2"));
    }
    Ok(())
}
