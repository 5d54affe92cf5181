//! The server accepts late: requests wait in the accept queue while threads are free.

use model::{Nanos, SweepStudy};
use serde::{Deserialize, Serialize};

use super::Finding;
use crate::free_threads;
use crate::sweep_points::SweepPoint;
use crate::words::{brief, load, tenths};

/// The server accepts late: requests wait in the accept queue while threads are free.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AcceptsLate {
    /// The load.
    pub multiple: f64,
    /// Requests inside the server, by Little's law: throughput x the time spent after the accept
    /// queue.
    pub inside: f64,
    /// Requests that the server can process at a time.
    pub slots: u32,
    /// The mean time after the accept queue.
    #[serde(rename = "after_queue_ns")]
    pub after_queue: Nanos,
    /// What one request takes alone.
    #[serde(rename = "alone_ns")]
    pub alone: Nanos,
    /// Whether it is a Puma 6, which waits before it accepts.
    pub is_puma_6: bool,
}

/// Judges one load with more connections than threads.
pub(super) fn of(study: &SweepStudy, point: &SweepPoint<'_>) -> Option<Finding> {
    let alone = study.service_time?;
    let slots = study.server.slots();
    let inside = free_threads::inside(point.run, &alone, slots)?;
    let after_queue = free_threads::time_inside(point.run, &alone)?;
    let is_puma_6 = study.server.puma_major() == Some(6);
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
            "At {at} the server probably accepts late: by Little's law {} requests are inside, and \
             it has {} threads; once accepted, a request takes {after_queue} ({alone} alone){why}.",
            tenths(self.inside),
            self.slots
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_names_requests_inside_and_threads() {
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
            "At 4x the server probably accepts late: by Little's law 4.5 requests are inside, and it \
             has 5 threads; once accepted, a request takes 51.0 ms (50.8 ms alone); Puma 6 waits up to 5 \
             ms before it accepts (wait_for_less_busy_worker)."
        );
    }
}
