//! Whether the lane stood still: was stopped (Ctrl-Z, a debugger, a frozen cgroup), had no processor, or its machine had none.
//!
//! A turn ends when its wait does, or later by what its work takes. What lies between the longest that it could wait and its end, and no
//! time on a processor explains, is a stretch in which the lane did not run, whatever the cause; a shorter one that ends with news cannot be told from
//! the server's silence. One comparison a turn finds it; the thread's processor time is read ten times a second, and where a turn was that long.

use model::{Nanos, Window};
use rustix::time::{ClockId, clock_gettime};

/// Shorter stretches are the scheduler's (they are in the lane's wait for a CPU).
pub(crate) const NOTABLE: Nanos = Nanos::from_millis(10);

/// What is known of it so far, within the measured window.
#[derive(Debug)]
pub(crate) struct Standstill {
    window: Window,
    /// This thread's processor time when it was last read.
    cpu: Nanos,
    /// In all.
    pub(crate) sum: Nanos,
    /// At once.
    pub(crate) longest: Nanos,
}

impl Standstill {
    /// None yet; to be made by the lane's thread.
    pub(crate) fn new(window: Window) -> Standstill {
        Standstill { window, cpu: Nanos::ZERO, sum: Nanos::ZERO, longest: Nanos::ZERO }
    }

    /// Reads the processor time: what was used before explains nothing that comes.
    pub(crate) fn look(&mut self) -> Nanos {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let now = Nanos::from_secs(time.tv_sec.cast_unsigned()) + Nanos(time.tv_nsec.cast_unsigned());
        let used = now.saturating_sub(self.cpu);
        self.cpu = now;
        used
    }

    /// A turn that should have ended at `expected` ended at `now`.
    #[cold]
    pub(crate) fn was_late(&mut self, expected: Nanos, now: Nanos) {
        let used = self.look();
        self.note(expected + used, now);
    }

    /// Nothing ran from `since` until `now`.
    fn note(&mut self, since: Nanos, now: Nanos) {
        let (since, until) = (since.max(self.window.from), now.min(self.window.until));
        let stretch = until.saturating_sub(since);
        if stretch > NOTABLE {
            self.sum += stretch;
            self.longest = self.longest.max(stretch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_within_the_window_are_summed_up() {
        let ms = Nanos::from_millis;
        let mut still = Standstill::new(Window { from: ms(1000), until: ms(3000) });
        for (since, until) in [(100, 900), (950, 1050), (2000, 2005), (2100, 2400), (2980, 3500), (3100, 3500)] {
            still.note(ms(since), ms(until));
        }
        assert_eq!((still.sum, still.longest), (ms(50 + 300 + 20), ms(300)));
    }

    #[test]
    fn work_explains_a_long_turn() {
        let mut still = Standstill::new(Window { from: Nanos::ZERO, until: Nanos::MAX });
        still.look();
        let worked = std::iter::repeat_with(|| still.look()).scan(Nanos::ZERO, |sum, used| {
            *sum += used;
            Some(*sum)
        });
        let worked = worked.take_while(|sum| *sum < Nanos::from_millis(20)).last().unwrap_or_default();
        assert!(worked > Nanos::ZERO, "the thread's own time passes");
        still.was_late(Nanos::from_secs(1), Nanos::from_secs(1) + NOTABLE);
        assert_eq!(still.sum, Nanos::ZERO);
        still.was_late(Nanos::from_secs(1), Nanos::from_secs(3));
        assert!(still.longest > Nanos::from_millis(1900), "{still:?}");
    }
}
