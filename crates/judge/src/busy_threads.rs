//! Busy threads by the server's own count.

use model::Run;

/// The number over all workers, averaged over the reports made within the run; `None` if a worker
/// made no report.
pub fn of(run: &Run) -> Option<f64> {
    run.reported("busy_threads")
}
