//! The wall clock beside the lane's: how far it is ahead, by the best of several comparisons.

use model::{Clock, Nanos};

/// Comparisons the first time.
const COMPARISONS: u32 = 32;

/// The wall clock's lead over the lane's, in ns, and how far off that may be.
#[derive(Clone, Copy, Debug)]
struct ClockOffset {
    nanos: u64,
    within: u64,
}

impl ClockOffset {
    /// The best of `times` comparisons: the one that took least time, in the middle of which the wall clock was read. It shows more than
    /// the lane's.
    ///
    /// # Panics
    /// Where `times` is 0: our bug.
    fn measure(clock: &impl Clock, times: u32) -> ClockOffset {
        let compare = |_| {
            let (before, there, after) = (clock.now(), clock.wall(), clock.now());
            let within = after.saturating_sub(before).0.div_ceil(2);
            ClockOffset { nanos: there.saturating_sub(before).0.saturating_sub(within), within }
        };
        (0..times).map(compare).min_by_key(|offset| offset.within).expect("they are compared more than once")
    }
}

/// Comparisons with the wall clock after the first time.
const LATER: u32 = 8;
/// How often it is compared.
const BETWEEN: Nanos = Nanos::from_secs(1);
/// Clocks this much further apart than before: the wall clock was set.
const STEP: u64 = 20_000;

/// The wall clock as seen from the lane's clock. The two run at the same speed (`timekeeping.c` slews both alike), so
/// their distance changes only when the wall clock is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WallClock {
    offset: ClockOffset,
    next_check: Nanos,
    steps: u32,
}

impl WallClock {
    /// Compares the two clocks.
    pub(crate) fn new(clock: &impl Clock) -> WallClock {
        WallClock { offset: ClockOffset::measure(clock, COMPARISONS), next_check: clock.now() + BETWEEN, steps: 0 }
    }

    /// Compares them again, once a second.
    #[inline]
    pub(crate) fn check(&mut self, clock: &impl Clock, now: Nanos) {
        if now >= self.next_check {
            self.check_now(clock);
            self.next_check = now + BETWEEN;
        }
    }

    /// Compares them again: whether the wall clock was set in between.
    #[cold]
    pub(crate) fn check_now(&mut self, clock: &impl Clock) {
        let offset = ClockOffset::measure(clock, LATER);
        if offset.nanos.abs_diff(self.offset.nanos) > STEP + offset.within + self.offset.within {
            self.steps += 1;
            self.offset = offset;
        }
    }

    /// How often the wall clock was found to have been set.
    pub(crate) fn steps(&self) -> u32 {
        self.steps
    }

    /// A stamp on the lane's clock.
    #[inline]
    pub(crate) fn map(&self, stamp: Nanos) -> Nanos {
        Nanos(stamp.0.saturating_sub(self.offset.nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::clock::Stepped;

    #[test]
    fn a_stamp_is_the_instant_of_its_arrival() {
        let clock = Stepped::at(Nanos::from_secs(5));
        let wall = WallClock::new(&clock);
        let stamp = clock.wall();
        clock.advance(Nanos::from_millis(3));
        assert_eq!(wall.map(stamp), Nanos::from_secs(5));
    }

    #[test]
    fn a_clock_that_is_set_is_found_out_and_one_that_is_not_is_not() {
        let clock = Stepped::default();
        let mut wall = WallClock::new(&clock);
        for second in 1..=5 {
            clock.set(Nanos::from_secs(second));
            wall.check(&clock, clock.now());
        }
        assert_eq!(wall.steps(), 0);
        for by in [1_000_000, -3_600_000_000_000] {
            clock.set_wall(by);
            clock.advance(BETWEEN);
            wall.check(&clock, clock.now());
        }
        assert_eq!(wall.steps(), 2);
        assert_eq!(wall.map(clock.wall()), clock.now());
    }
}
