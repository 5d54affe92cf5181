//! Threads that the server itself says are busy.

use model::{Nanos, Run};

/// How many of all its workers, on average over the reports that were made within the run; `None`
/// where a worker made none.
///
/// Puma's workers report every five seconds, and each report is read several times: one is counted
/// as often as it was read, and those from before the run not at all.
pub(crate) fn of(run: &Run) -> Option<f64> {
    let mut workers = 0;
    let mut busy = 0.0;
    for (track, curve) in run.watch.as_ref()?.curves("busy_threads") {
        let mut sum = 0;
        let mut reports = 0;
        for (number, (at, value)) in track.at.iter().zip(&curve.values).enumerate() {
            let staleness = curve.staleness.get(number).copied().flatten().unwrap_or(Nanos::ZERO);
            let is_of_this_run = staleness <= *at && *at <= run.measured;
            if let Some(value) = value.filter(|_| is_of_this_run) {
                sum += value;
                reports += 1;
            }
        }
        if reports == 0 {
            return None;
        }
        busy += sum as f64 / f64::from(reports);
        workers += 1;
    }
    (workers > 0).then_some(busy)
}
