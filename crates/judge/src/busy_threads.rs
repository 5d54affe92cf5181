//! Threads that the server itself says are busy.

use model::Run;

/// How many of all its workers, on average over the reports that were made within the run; `None`
/// where a worker made none.
pub fn of(run: &Run) -> Option<f64> {
    run.reported("busy_threads")
}
