//! Clocks for tests: one that the test sets, and the system's for tests with real processes and
//! sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use model::{Clock, Nanos, SystemClock};

/// The system's clock. It bounds the waits of tests with real processes and sockets; no test
/// asserts what it shows.
pub const REAL_CLOCK: SystemClock = SystemClock::SINCE_BOOT;

/// Between two looks. A look reads the kernel's tables or a server's response: where many tests
/// wait at once, more looks than this would slow down what they wait for.
const BETWEEN_LOOKS: Nanos = Nanos::from_millis(20);

/// Waits until `look` returns something. After `patience` the test fails with the message of
/// `seen`.
///
/// # Panics
/// If that never happens.
pub fn eventually<T>(
    patience: Nanos,
    seen: impl Fn() -> String,
    mut look: impl FnMut() -> Option<T>,
) -> T {
    let begun = REAL_CLOCK.now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(REAL_CLOCK.now() - begun < patience, "waited in vain: {}", seen());
        REAL_CLOCK.sleep(BETWEEN_LOOKS);
    }
}

/// The wall clock when a [`Stepped`] clock shows 0: some day in 2001.
const WALL: u64 = 1_000_000_000_000_000_000;

/// A clock that stands still until it is stepped. Clones, even in other threads, show the same
/// time.
#[derive(Clone, Debug, Default)]
pub struct Stepped {
    now: Arc<AtomicU64>,
    /// How far the wall clock was set ahead.
    set: Arc<AtomicI64>,
}

impl Stepped {
    /// A clock that shows `now`.
    pub fn at(now: Nanos) -> Stepped {
        Stepped { now: Arc::new(AtomicU64::new(now.0)), set: Arc::default() }
    }

    /// Sets the time.
    ///
    /// # Panics
    /// If that would be a step back: a [`Clock`] never runs backwards.
    pub fn set(&self, now: Nanos) {
        let before = self.now.swap(now.0, Ordering::SeqCst);
        assert!(before <= now.0, "the clock would run backwards from {before} ns to {} ns", now.0);
    }

    /// Sets the wall clock forward or back by this many nanoseconds, as an administrator might.
    pub fn set_wall(&self, by: i64) {
        self.set.fetch_add(by, Ordering::SeqCst);
    }

    /// Steps the time forward.
    pub fn advance(&self, span: Nanos) {
        self.now.fetch_add(span.0, Ordering::SeqCst);
    }
}

impl Clock for Stepped {
    fn now(&self) -> Nanos {
        Nanos(self.now.load(Ordering::SeqCst))
    }

    fn sleep(&self, duration: Nanos) {
        self.advance(duration);
    }

    fn wall(&self) -> Nanos {
        Nanos((WALL + self.now().0).saturating_add_signed(self.set.load(Ordering::SeqCst)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_steps_the_clock_for_every_clone() {
        let clock = Stepped::at(Nanos::from_secs(1));
        let other = clock.clone();
        clock.sleep(Nanos::from_millis(500));
        assert_eq!(other.now(), Nanos::from_millis(1500));
        other.set(Nanos::from_secs(9));
        assert_eq!(clock.now(), Nanos::from_secs(9));
    }

    #[test]
    #[should_panic(expected = "would run backwards")]
    fn the_clock_never_runs_backwards() {
        Stepped::at(Nanos::from_secs(2)).set(Nanos::from_secs(1));
    }
}
