//! The one place where time is read.

use std::time::{SystemTime, UNIX_EPOCH};

use model::{Clock, Nanos};
use rustix::event::poll;
use rustix::thread::{NanosleepRelativeResult, clock_nanosleep_relative};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// The system's monotonic clock, from the moment this one was made. Copies agree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemClock {
    /// `CLOCK_MONOTONIC` then.
    origin: Nanos,
}

impl SystemClock {
    /// A clock that shows 0 now.
    pub(crate) fn start() -> SystemClock {
        SystemClock { origin: monotonic() }
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Nanos {
        monotonic() - self.origin
    }

    fn sleep(&self, duration: Nanos) {
        let until = self.now().saturating_add(duration);
        loop {
            let left = until.saturating_sub(self.now());
            if left == Nanos::ZERO {
                return;
            }
            let seconds = i64::try_from(left.0 / 1_000_000_000).unwrap_or(i64::MAX);
            let time = Timespec { tv_sec: seconds, tv_nsec: (left.0 % 1_000_000_000).cast_signed() };
            // Not the standard library's, which panics where a sandbox refuses `clock_nanosleep`.
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

    fn shared(&self) -> Nanos {
        monotonic()
    }
}

/// `CLOCK_MONOTONIC`, which `Instant` reads too; in two words and not in three steps.
#[inline]
fn monotonic() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    Nanos(time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned())
}

/// The wall clock's time as RFC 3339 in UTC, to the second: when a study was made.
pub(crate) fn wall_time() -> String {
    let now = jiff::Timestamp::now();
    now.round(jiff::Unit::Second).unwrap_or(now).to_string()
}
