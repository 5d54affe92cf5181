//! Connects that the kernel had to retry.

use model::{Nanos, Outcome, Tally};

/// The kernel retries an unanswered connect after a second (RFC 6298, 2.1), so a shorter one was
/// answered at once.
const RETRY: Nanos = Nanos::from_millis(900);

/// Whether one of our connects was retried.
pub(crate) fn has_stalled(tally: &Tally) -> bool {
    is_retry(tally, longest(tally))
}

/// Whether a connect in the measured window was retried: retries in the warm-up don't limit what
/// comes later.
pub(crate) fn has_measured_stall(tally: &Tally) -> bool {
    is_retry(tally, longest_measured(tally))
}

fn is_retry(tally: &Tally, longest: Nanos) -> bool {
    longest >= RETRY || tally.counts.of(Outcome::ConnectTimedOut) > 0
}

/// The longest connect, in the warm-up or later; zero if there was none.
pub(crate) fn longest(tally: &Tally) -> Nanos {
    longest_measured(tally).max(tally.longest_unmeasured_connect)
}

/// The longest connect of a good response in the measured window; zero if there was none.
pub(crate) fn longest_measured(tally: &Tally) -> Nanos {
    if tally.phases.connect.count > 0 { tally.phases.connect.max } else { Nanos::ZERO }
}
