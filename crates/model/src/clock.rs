//! Time as a parameter. The real clock is read in one file of the `longtail` crate; tests step theirs.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::Nanos;

/// How soon a sleeper notices that it is over.
const GLANCE: Nanos = Nanos::from_millis(20);

/// A monotonic clock. On Linux the real one is `CLOCK_MONOTONIC`, which every process of the host shares.
pub trait Clock {
    /// Nanoseconds since a fixed, arbitrary origin. Never falls.
    fn now(&self) -> Nanos;

    /// Waits until `duration` has passed on this clock.
    fn sleep(&self, duration: Nanos);

    /// Waits until `instant`, and says `true`; gives up within 20 ms where it is `over`: `false`. Never used by a lane.
    fn sleep_until(&self, instant: Nanos, over: &AtomicBool) -> bool {
        loop {
            if over.load(Ordering::Relaxed) {
                return false;
            }
            let left = instant.saturating_sub(self.now());
            if left == Nanos::ZERO {
                return true;
            }
            self.sleep(left.min(GLANCE));
        }
    }

    /// The wall clock (`CLOCK_REALTIME`): since 1970 in UTC. It may be set, and fall. Only for what others have stamped by it.
    fn wall(&self) -> Nanos;

    /// `CLOCK_MONOTONIC` as it is to other processes of the host. It runs as [`Clock::now`] does, from another origin.
    fn shared(&self) -> Nanos {
        self.now()
    }
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now(&self) -> Nanos {
        (**self).now()
    }

    fn sleep(&self, duration: Nanos) {
        (**self).sleep(duration);
    }

    fn wall(&self) -> Nanos {
        (**self).wall()
    }

    fn shared(&self) -> Nanos {
        (**self).shared()
    }
}
