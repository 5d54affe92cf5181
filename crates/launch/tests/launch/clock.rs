//! A clock of real time for tests with real processes. It bounds their waits; no test asserts what it says.

use model::{Clock, Nanos};
use rustix::time::{ClockId, Timespec};

pub(crate) struct SteadyClock;

impl Clock for SteadyClock {
    fn now(&self) -> Nanos {
        let now = rustix::time::clock_gettime(ClockId::Monotonic);
        Nanos::from_secs(now.tv_sec.cast_unsigned()) + Nanos(now.tv_nsec.cast_unsigned())
    }

    fn sleep(&self, duration: Nanos) {
        let nanos = duration.0.cast_signed();
        let _ = rustix::thread::nanosleep(&Timespec { tv_sec: nanos / 1_000_000_000, tv_nsec: nanos % 1_000_000_000 });
    }
}
