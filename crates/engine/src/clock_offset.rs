//! A clock beside another one: how far it is ahead, by the best of several comparisons. So the wall clock beside the lane's, and the
//! conductor's beside that of a generator elsewhere.

use model::{Clock, Nanos};

/// One question for another clock: asked and answered by ours, and what the other showed in between. Their origins differ, so either may
/// be ahead: sums go round (two's complement).
#[derive(Clone, Copy, Debug)]
pub struct ClockExchange {
    /// When it was asked.
    pub asked: Nanos,
    /// What the other clock showed.
    pub there: Nanos,
    /// When the answer was there.
    pub answered: Nanos,
}

impl ClockExchange {
    /// How long it took.
    pub fn round_trip(&self) -> Nanos {
        self.answered.saturating_sub(self.asked)
    }

    /// How far our clock is ahead, if the other was read in the middle; at most half of the round trip off.
    pub fn ahead(&self) -> u64 {
        let middle = self.asked.0 + self.round_trip().0 / 2;
        middle.wrapping_sub(self.there.0)
    }

    /// How far the clocks went apart until `later`.
    fn drift(&self, later: &ClockExchange) -> u64 {
        self.ahead().wrapping_sub(later.ahead()).cast_signed().unsigned_abs()
    }

    /// The most that this may be off where `later` was the best exchange at the end of the run: half of the longer round trip, and
    /// what the clocks drifted apart meanwhile.
    pub fn error(&self, later: &ClockExchange) -> Nanos {
        Nanos(self.round_trip().max(later.round_trip()).0.div_ceil(2) + self.drift(later))
    }
}

/// Comparisons the first time, and after it.
const FIRST: u32 = 32;
const LATER: u32 = 8;
/// How often it is compared.
const BETWEEN: Nanos = Nanos::from_secs(1);
/// Clocks this much further apart than before: the wall clock was set.
const STEP: u64 = 20_000;

/// The wall clock as seen from the lane's clock. The two run at the same speed (`timekeeping.c` slews both alike), so
/// their distance changes only when the wall clock is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WallClock {
    best: ClockExchange,
    ahead: u64,
    next_check: Nanos,
    steps: u32,
}

impl WallClock {
    /// Compares the two clocks.
    pub(crate) fn new(clock: &impl Clock) -> WallClock {
        let best = compare(clock, FIRST);
        WallClock { best, ahead: best.ahead(), next_check: clock.now() + BETWEEN, steps: 0 }
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
        let best = compare(clock, LATER);
        if self.best.drift(&best) > STEP + (self.best.round_trip() + best.round_trip()).0 / 2 {
            (self.best, self.ahead) = (best, best.ahead());
            self.steps += 1;
        }
    }

    /// How often the wall clock was found to have been set.
    pub(crate) fn steps(&self) -> u32 {
        self.steps
    }

    /// A stamp on the lane's clock.
    #[inline]
    pub(crate) fn map(&self, stamp: Nanos) -> Nanos {
        Nanos(stamp.0.wrapping_add(self.ahead))
    }
}

/// The quickest of several comparisons with the wall clock.
fn compare(clock: &impl Clock, times: u32) -> ClockExchange {
    let exchanges =
        (0..times).map(|_| ClockExchange { asked: clock.now(), there: clock.wall(), answered: clock.now() });
    exchanges.min_by_key(ClockExchange::round_trip).expect("they are compared more than once")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whichever clock is ahead, and however long the way is: the error is known, and the truth within it.
    #[test]
    fn a_clock_is_known_to_half_a_round_trip() {
        for (here, there) in [(5_000_000, 305_000_000_u64), (305_000_000, 5_000_000), (1 << 40, 7)] {
            for (to, back) in [(40_000, 40_000), (0, 90_000), (90_000, 0), (20_000_000, 21_000_000)] {
                let (asked, answered) = (Nanos(here), Nanos(here + to + back));
                let exchange = ClockExchange { asked, there: Nanos(there + to), answered };
                let off = exchange.ahead().wrapping_sub(here.wrapping_sub(there)).cast_signed().unsigned_abs();
                assert!(off <= exchange.error(&exchange).0, "{here} {there} {to} {back}: {off}");
            }
        }
    }

    #[test]
    fn a_clock_that_runs_away_during_the_run_is_less_well_known() {
        let exchange = |there| ClockExchange { asked: Nanos(1000), there: Nanos(there), answered: Nanos(1100) };
        assert_eq!(exchange(500).error(&exchange(500)), Nanos(50));
        assert_eq!(exchange(500).error(&exchange(700)), Nanos(250));
        assert_eq!(exchange(700).error(&exchange(500)), Nanos(250));
    }
}
