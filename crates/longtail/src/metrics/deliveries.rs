//! What became of what was sent to a receiver of metrics.

use std::fmt::Display;

/// What became of all that was sent to one receiver.
#[derive(Default)]
pub(super) struct Deliveries {
    pub(super) tried: u64,
    pub(super) failed: u64,
    /// Why the first failed.
    pub(super) why: Option<String>,
}

impl Deliveries {
    /// Counts a delivery; returns what the receiver answered, if it arrived.
    pub(super) fn note<T>(&mut self, delivered: Result<T, impl Display>) -> Option<T> {
        self.tried += 1;
        delivered
            .map_err(|why| {
                self.failed += 1;
                self.why.get_or_insert_with(|| why.to_string());
            })
            .ok()
    }
}
