//! How long the parts of a run are that are counted by themselves: batches of responses, or samples of
//! the backlog. There are at most 128 of them, and half as many or more at any time, so that a run
//! that is interrupted shows as much as one that was planned to be so short.

use serde::{Deserialize, Serialize};

use crate::{Nanos, Window};

/// The most parts. When they are full, pairs of them become one.
pub(crate) const MOST: usize = 128;
/// The length of the first parts of a run whose length is not known.
const SHORTEST: Nanos = Nanos::from_millis(1);
/// So often do the parts of a run double whose length is known: an eighth is as long at first.
const DOUBLINGS: u32 = 3;

/// The length of a part, which doubles as the run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BatchWidth {
    now: Nanos,
    /// The last one, with which the planned window has its most parts; [`Nanos::MAX`] if the length of
    /// the run is not known.
    widest: Nanos,
}

impl BatchWidth {
    /// For a run with this measured window.
    pub(crate) fn new(window: Window) -> BatchWidth {
        if window.until == Nanos::MAX {
            return BatchWidth { now: SHORTEST, widest: Nanos::MAX };
        }
        let length = window.until.saturating_sub(window.from).0;
        let first = Nanos(length.div_ceil((MOST as u64) << DOUBLINGS).max(1));
        BatchWidth { now: first, widest: Nanos(first.0 << DOUBLINGS) }
    }

    /// The length of a part.
    #[inline]
    pub(crate) fn now(self) -> Nanos {
        self.now
    }

    /// Whether it may double: otherwise what comes after the last part is outside of the window.
    pub(crate) fn can_double(self) -> bool {
        self.now < self.widest
    }

    /// Doubles it.
    pub(crate) fn double(&mut self) {
        self.now = self.now * 2;
    }

    /// Whether it fits a run with this measured window; another process may have written anything.
    pub(crate) fn is_of(self, window: Window) -> bool {
        let new = BatchWidth::new(window);
        let doublings = (self.now.0 / new.now.0).max(1);
        doublings.is_power_of_two()
            && new.now.0.checked_mul(doublings) == Some(self.now.0)
            && self.now <= self.widest
            && self.widest == new.widest
    }
}
