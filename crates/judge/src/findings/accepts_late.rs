//! The server accepts late: requests wait in the accept queue while threads are free.

use model::{Nanos, Run, ServiceTime, SweepStudy};
use serde::{Deserialize, Serialize};

use super::Finding;
use crate::sweep_points::SweepPoint;
use crate::words::{brief, load, tenths};

/// The server accepts late: requests wait in the accept queue while threads are free.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AcceptsLate {
    /// At which load.
    pub multiple: f64,
    /// Requests inside the server, by Little's law: throughput x the time after the accept queue.
    pub inside: f64,
    /// Requests that it can process at a time.
    pub slots: u32,
    /// The mean time after the accept queue.
    #[serde(rename = "after_queue_ns")]
    pub after_queue: Nanos,
    /// What one request takes alone.
    #[serde(rename = "alone_ns")]
    pub alone: Nanos,
    /// It is a Puma 6, which waits before it accepts.
    pub is_puma_6: bool,
}

/// Requests inside that are fewer than this part of the threads leave some free.
const FEWER: f64 = 0.95;
/// The accept queue is worth a word from this part of the response time on.
const QUEUE_PART: f64 = 0.1;
/// A request that takes less than so many times what it takes alone is held up by nothing inside.
const AS_ALONE: f64 = 1.1;

/// The mean time after the accept queue, where requests wait in that, and take inside what they take
/// alone: then nothing inside the app holds them up.
fn time_inside(run: &Run, alone: &ServiceTime) -> Option<Nanos> {
    let mean = run.tally.response_time.mean()?;
    let queue = run.accept_queue_wait()?;
    let inside = mean.saturating_sub(queue);
    let waits = queue.0 as f64 >= QUEUE_PART * mean.0 as f64;
    let is_as_alone = inside.0 as f64 <= AS_ALONE * alone.mean.0 as f64;
    (waits && is_as_alone && inside > Nanos::ZERO).then_some(inside)
}

/// How many requests are inside, where these are fewer than the threads though requests wait in the
/// accept queue: by the time inside, and by the time alone.
pub(crate) fn inside_of_free_threads(run: &Run, alone: &ServiceTime, slots: u32) -> Option<f64> {
    let rate = run.completed_rate();
    let inside = rate * time_inside(run, alone)?.as_secs_f64();
    let most = inside.max(rate * alone.mean.as_secs_f64());
    (run.connections > slots && most < FEWER * f64::from(slots)).then_some(inside)
}

/// At one load with more connections than threads.
pub(super) fn of(study: &SweepStudy, point: &SweepPoint<'_>) -> Option<Finding> {
    let alone = study.service_time?;
    let slots = study.server.slots();
    let inside = inside_of_free_threads(point.run, &alone, slots)?;
    let after_queue = time_inside(point.run, &alone)?;
    let version = study.server.version.as_deref().unwrap_or_default();
    let is_puma_6 = study.server.name == "Puma" && version.starts_with("6.");
    Some(
        AcceptsLate {
            multiple: point.multiple,
            inside,
            slots,
            after_queue,
            alone: alone.mean,
            is_puma_6,
        }
        .into(),
    )
}

impl AcceptsLate {
    pub(super) fn sentence(&self) -> String {
        let at = load(self.multiple);
        let [after_queue, alone] = [self.after_queue, self.alone].map(brief);
        let why = if self.is_puma_6 {
            "; Puma 6 waits up to 5 ms before it accepts (wait_for_less_busy_worker)"
        } else {
            ""
        };
        format!(
            "At {at} the server probably accepts late: {} requests are inside, by Little's law, and \
             it has {} threads; once accepted, one takes {after_queue} ({alone} alone){why}.",
            tenths(self.inside),
            self.slots
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_accepts_late_has_free_threads() {
        let late = AcceptsLate {
            multiple: 4.0,
            inside: 4.54,
            slots: 5,
            after_queue: Nanos::from_millis(51),
            alone: Nanos::from_micros(50_800),
            is_puma_6: true,
        };
        assert_eq!(
            late.sentence(),
            "At 4x the server probably accepts late: 4.5 requests are inside, by Little's law, and it \
             has 5 threads; once accepted, one takes 51.0 ms (50.8 ms alone); Puma 6 waits up to 5 \
             ms before it accepts (wait_for_less_busy_worker)."
        );
    }

    #[test]
    fn a_run_whose_accept_queue_is_not_known_says_nothing() {
        let run = testkit::study::canonical().runs.remove(0);
        let alone = ServiceTime { mean: Nanos::from_millis(100), ..ServiceTime::default() };
        assert_eq!(time_inside(&Run { watch: None, ..run }, &alone), None);
    }
}
