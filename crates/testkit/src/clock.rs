//! A clock whose time is what the test says. Nothing here waits: a sleep is a step.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use model::{Clock, Nanos};

/// A clock that stands still until it is stepped. Clones show the same time, also to another thread.
#[derive(Clone, Debug, Default)]
pub struct Stepped {
    now: Arc<AtomicU64>,
}

impl Stepped {
    /// A clock that shows `now`.
    pub fn at(now: Nanos) -> Stepped {
        Stepped { now: Arc::new(AtomicU64::new(now.0)) }
    }

    /// Sets the time.
    ///
    /// # Panics
    /// Where that would be a step back: a [`Clock`] never falls.
    pub fn set(&self, now: Nanos) {
        let before = self.now.swap(now.0, Ordering::SeqCst);
        assert!(before <= now.0, "the clock would fall from {before} ns to {} ns", now.0);
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_a_step_that_every_clone_sees() {
        let clock = Stepped::at(Nanos::from_secs(1));
        let other = clock.clone();
        clock.sleep(Nanos::from_millis(500));
        assert_eq!(other.now(), Nanos::from_millis(1500));
        other.set(Nanos::from_secs(9));
        assert_eq!(clock.now(), Nanos::from_secs(9));
    }

    #[test]
    #[should_panic(expected = "would fall")]
    fn the_clock_never_falls() {
        Stepped::at(Nanos::from_secs(2)).set(Nanos::from_secs(1));
    }
}
