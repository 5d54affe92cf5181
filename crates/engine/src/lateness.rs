//! How late a lane is woken from its sleeps. A precise lane aims them early by that much, and is awake for what is then left.
//!
//! A timer's interrupt, the way out of the processor's idle state and the scheduler take a few microseconds on bare metal and some twenty
//! on a virtual machine, and they take them nearly each time: as the time is known beforehand, no request needs to be late by it. What it costs is
//! the difference between one wake-up and the next, awake.

use model::Nanos;

/// The most that sleeps are aimed early: a lane that waits for a processor for longer would be awake in vain.
pub(crate) const MOST: Nanos = Nanos::from_micros(50);
/// How far one sleep moves the estimate.
const STEP: Nanos = Nanos(250);

/// The median of how late sleeps end, as it follows from those so far: each one moves it a step, up or down.
#[derive(Debug, Default)]
pub(crate) struct WakeDelay {
    median: Nanos,
}

impl WakeDelay {
    /// How late the next sleep will end, probably.
    #[inline]
    pub(crate) fn expected(&self) -> Nanos {
        self.median
    }

    /// A sleep that was to end at `until`, and that no news ended before, ended at `now`.
    #[inline]
    pub(crate) fn woke(&mut self, until: Nanos, now: Nanos) {
        self.median = if now.saturating_sub(until) > self.median {
            (self.median + STEP).min(MOST)
        } else {
            self.median.saturating_sub(STEP)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(sleeps: impl Iterator<Item = u64>) -> Nanos {
        let mut lateness = WakeDelay::default();
        sleeps.for_each(|late| lateness.woke(Nanos(1_000_000), Nanos(1_000_000 + late)));
        lateness.expected()
    }

    #[test]
    fn it_comes_to_the_median_and_an_outlier_moves_it_one_step() {
        let usual = |n: u64| [18_000, 20_000, 22_000][n as usize % 3];
        let settled = after((0..1000).map(usual));
        assert!((18_000..=22_000).contains(&settled.0), "{settled}");
        // Every twentieth is late by two milliseconds: a mean would be 120 µs.
        let disturbed = after((0..1000).map(|n| if n % 20 == 0 { 2_000_000 } else { usual(n) }));
        assert!((18_000..=22_500).contains(&disturbed.0), "{disturbed}");
    }

    #[test]
    fn it_has_an_end_and_goes_back() {
        assert_eq!(after((0..1000).map(|_| 1_000_000)), MOST);
        assert_eq!(after((0..2000).map(|n| if n < 1000 { 1_000_000 } else { 0 })), Nanos::ZERO);
    }
}
