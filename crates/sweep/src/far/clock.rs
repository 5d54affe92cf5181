//! The conductor's clock on another machine, and how it is found.

use model::Nanos;
use serde::{Deserialize, Serialize};

/// What is added to a generator's own clock to have the conductor's. Both are monotonic clocks of their hosts, with origins of their own, so either may be ahead:
/// sums go round (two's complement).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ClockShift {
    /// From the generator's `now` to the conductor's.
    pub(super) ahead: u64,
    /// The conductor's [`model::Clock::shared_ahead`].
    pub(super) shared_ahead: Nanos,
}

/// One question for the other's clock: asked and answered by the conductor's clock, and what the other's showed in between.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockExchange {
    pub(super) asked: Nanos,
    pub(super) there: Nanos,
    pub(super) answered: Nanos,
}

impl ClockExchange {
    pub(super) fn round_trip(&self) -> Nanos {
        self.answered.saturating_sub(self.asked)
    }

    /// How far the conductor's clock is ahead, if the other's was read in the middle; at most half of the round trip off.
    pub(super) fn ahead(&self) -> u64 {
        let middle = self.asked.0 + self.round_trip().0 / 2;
        middle.wrapping_sub(self.there.0)
    }

    /// The most that this may be off where `later` was the best exchange at the end of the run: half of the longer round trip, and
    /// what the clocks drifted apart meanwhile.
    pub(super) fn error(&self, later: &ClockExchange) -> Nanos {
        let drift = self.ahead().wrapping_sub(later.ahead()).cast_signed().unsigned_abs();
        Nanos(self.round_trip().max(later.round_trip()).0.div_ceil(2) + drift)
    }
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
