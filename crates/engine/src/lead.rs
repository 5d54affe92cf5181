//! How far another clock is ahead of the lane's, by the best of several comparisons.

use model::{Clock, Nanos};

/// How often the shared clock is compared.
const COMPARISONS: u32 = 32;

/// By how much [`Clock::shared`] is ahead of [`Clock::now`]. Both are `CLOCK_MONOTONIC` at bottom, so it stays.
pub fn shared_lead<C: Clock>(clock: &C) -> Nanos {
    Nanos(ClockOffset::now(clock, C::shared, COMPARISONS).nanos)
}

/// A clock's lead over the lane's, in ns, and how far off that may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockOffset {
    pub(crate) nanos: u64,
    pub(crate) within: u64,
}

impl ClockOffset {
    /// The best of `times` comparisons: the one that took least time, in the middle of which `other` was read. The other
    /// clock shows more than the lane's.
    ///
    /// # Panics
    /// Where `times` is 0: our bug.
    pub(crate) fn now<C: Clock>(clock: &C, other: impl Fn(&C) -> Nanos, times: u32) -> ClockOffset {
        let compare = |_| {
            let (before, there, after) = (clock.now(), other(clock), clock.now());
            let within = after.saturating_sub(before).0.div_ceil(2);
            ClockOffset { nanos: there.saturating_sub(before).0.saturating_sub(within), within }
        };
        (0..times).map(compare).min_by_key(|lead| lead.within).expect("they are compared more than once")
    }

    /// An instant of the other clock on the lane's.
    #[inline]
    pub(crate) fn here(self, there: Nanos) -> Nanos {
        Nanos(there.0.saturating_sub(self.nanos))
    }
}
