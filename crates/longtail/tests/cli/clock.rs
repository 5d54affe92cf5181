//! Real time for tests with real processes and sockets. It bounds their waits; no test asserts what it says.

use model::{Clock, Nanos};
use rustix::time::{ClockId, Timespec};

/// The system's monotonic clock.
#[derive(Clone, Copy, Debug)]
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

/// Waits until there is something; a test that waits longer than `patience` fails with what `seen` says.
pub(crate) fn eventually<T>(patience: Nanos, seen: impl Fn() -> String, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = SteadyClock.now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(SteadyClock.now() - begun < patience, "waited in vain: {}", seen());
        SteadyClock.sleep(Nanos::from_millis(5));
    }
}
