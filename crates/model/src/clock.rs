//! Time as a parameter ([`Clock`]). The system's clock is read only here; tests step a clock of
//! their own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::event::poll;
use rustix::thread::{NanosleepRelativeResult, clock_nanosleep_relative};
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::Nanos;

/// How soon [`Clock::sleep_until`] notices that it should stop.
const POLL_INTERVAL: Nanos = Nanos::from_millis(20);

/// A monotonic clock. On Linux the real one is `CLOCK_MONOTONIC`, which every process of the host
/// shares.
pub trait Clock {
    /// Nanoseconds since a fixed, arbitrary origin. Never falls.
    fn now(&self) -> Nanos;

    /// Waits until `duration` has passed on this clock.
    fn sleep(&self, duration: Nanos);

    /// Waits until `instant` and returns `true`; gives up within 20 ms after `over` was set and
    /// returns `false`. Lanes never use it.
    fn sleep_until(&self, instant: Nanos, over: &AtomicBool) -> bool {
        loop {
            if over.load(Ordering::Relaxed) {
                return false;
            }
            let left = instant.saturating_sub(self.now());
            if left == Nanos::ZERO {
                return true;
            }
            self.sleep(left.min(POLL_INTERVAL));
        }
    }

    /// The wall clock (`CLOCK_REALTIME`): time since 1970 in UTC. It may be set, and so run
    /// backwards. Use it only to compare with time stamps made with it.
    fn wall(&self) -> Nanos;

    /// How far the server's clock is ahead of [`Clock::now`]. The server's processes put the
    /// `CLOCK_MONOTONIC` of their host into their time stamps.
    fn shared_ahead(&self) -> Nanos {
        Nanos::ZERO
    }
}

/// The system's monotonic clock, `CLOCK_MONOTONIC`, with its own origin. Copies show the same time.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    /// The value of `CLOCK_MONOTONIC` at which it shows 0. Differences wrap around.
    origin: u64,
    shared_ahead: Nanos,
}

impl SystemClock {
    /// `CLOCK_MONOTONIC` itself: 0 was when the machine started.
    pub const SINCE_BOOT: SystemClock = SystemClock { origin: 0, shared_ahead: Nanos::ZERO };

    /// A clock that shows 0 now.
    pub fn start() -> SystemClock {
        let origin = monotonic();
        SystemClock { origin, shared_ahead: Nanos(origin) }
    }

    /// A clock that is `ahead` of this one (sums wrap around). The server's processes use a clock
    /// that is `shared_ahead` of the new one.
    #[must_use]
    pub fn shifted(self, ahead: u64, shared_ahead: Nanos) -> SystemClock {
        SystemClock { origin: self.origin.wrapping_sub(ahead), shared_ahead }
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Nanos {
        Nanos(monotonic().wrapping_sub(self.origin))
    }

    fn sleep(&self, duration: Nanos) {
        let until = self.now().saturating_add(duration);
        loop {
            let left = until.saturating_sub(self.now());
            if left == Nanos::ZERO {
                return;
            }
            let seconds = i64::try_from(left.0 / 1_000_000_000).unwrap_or(i64::MAX);
            let time =
                Timespec { tv_sec: seconds, tv_nsec: (left.0 % 1_000_000_000).cast_signed() };
            // Not `std::thread::sleep`, which panics if a sandbox refuses `clock_nanosleep`.
            match clock_nanosleep_relative(ClockId::Monotonic, &time) {
                NanosleepRelativeResult::Ok | NanosleepRelativeResult::Interrupted(_) => {}
                NanosleepRelativeResult::Err(_) => drop(poll(&mut [], Some(&time))),
            }
        }
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place where time is read")]
    fn wall(&self) -> Nanos {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().into()
    }

    fn shared_ahead(&self) -> Nanos {
        self.shared_ahead
    }
}

/// `CLOCK_MONOTONIC` in ns, with less arithmetic than `Instant`.
#[inline]
fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shifted_clock_shows_the_other_clocks_time_ahead_or_behind() {
        for own in [SystemClock::SINCE_BOOT, SystemClock::start()] {
            for ahead in [0, 3_600_000_000_000, 3_600_000_000_000_u64.wrapping_neg()] {
                // An hour after the origin, so that a clock that is an hour behind doesn't show
                // less than 0.
                let own = own.shifted(3_600_000_000_000, Nanos::ZERO);
                let other = own.shifted(ahead, Nanos(7));
                let before = own.now();
                let shown = other.now();
                let after = own.now();
                assert!(
                    before.0.wrapping_add(ahead) <= shown.0
                        && shown.0 <= after.0.wrapping_add(ahead)
                );
                assert_eq!(other.shared_ahead(), Nanos(7));
            }
        }
    }

    #[test]
    fn a_process_stamp_converts_to_this_clock() {
        let clock = SystemClock::start();
        let before = clock.now();
        let stamp = SystemClock::SINCE_BOOT.now();
        let after = clock.now();
        let here = stamp.saturating_sub(clock.shared_ahead());
        assert!(before <= here && here <= after);
    }
}
