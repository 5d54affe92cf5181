//! The one place where the bench reads time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use model::{Clock, Nanos};

/// The system's monotonic clock, from the moment this one was made. Copies agree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// A clock that shows 0 now.
    #[expect(clippy::disallowed_methods, reason = "this is the one place where time is read")]
    pub(crate) fn start() -> SystemClock {
        SystemClock { origin: Instant::now() }
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place where time is read")]
    fn now(&self) -> Nanos {
        Instant::now().duration_since(self.origin).into()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place where time passes")]
    fn sleep(&self, duration: Nanos) {
        std::thread::sleep(Duration::from(duration));
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place where time is read")]
    fn wall(&self) -> Nanos {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().into()
    }
}
