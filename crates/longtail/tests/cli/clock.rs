//! Real time for tests with real processes and sockets. It bounds their waits; no test asserts what it says.

use model::{Clock as _, Nanos};
pub(crate) use testkit::clock::REAL_CLOCK;

/// Waits until there is something; a test that waits longer than `patience` fails with what `seen` says.
pub(crate) fn eventually<T>(patience: Nanos, seen: impl Fn() -> String, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = REAL_CLOCK.now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(REAL_CLOCK.now() - begun < patience, "waited in vain: {}", seen());
        REAL_CLOCK.sleep(Nanos::from_millis(5));
    }
}
