//! Requests wait in the kernel's accept queue.

use model::{Nanos, Run};
use serde::{Deserialize, Serialize};

use super::Finding;
use crate::sweep_points::SweepPoint;
use crate::words::{brief, load};

/// Requests wait in the kernel's accept queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitInAcceptQueue {
    /// The load.
    pub multiple: f64,
    /// The mean wait there, by the queue's length (Little's law).
    #[serde(rename = "wait_ns")]
    pub wait: Nanos,
    /// The mean response time.
    #[serde(rename = "mean_ns")]
    pub mean: Nanos,
}

/// The wait is reported from this share of the response time on.
const QUEUE_PART: f64 = 0.1;

/// Judges a run whose accept queue was sampled.
pub(super) fn of(point: &SweepPoint<'_>) -> Option<Finding> {
    let (wait, mean) = of_run(point.run)?;
    Some(WaitInAcceptQueue { multiple: point.multiple, wait, mean }.into())
}

/// The mean wait of a run's requests there, and their mean response time, if the wait is a notable
/// part of it.
pub(super) fn of_run(run: &Run) -> Option<(Nanos, Nanos)> {
    let wait = run.accept_queue_wait()?;
    let mean = run.tally.response_time.mean()?;
    let is_much = wait <= mean && wait.0 as f64 >= QUEUE_PART * mean.0 as f64;
    is_much.then_some((wait, mean))
}

impl WaitInAcceptQueue {
    pub(super) fn sentence(&self) -> String {
        let WaitInAcceptQueue { multiple, wait, mean } = self;

        let at = load(*multiple);
        let [wait, mean] = [*wait, *mean].map(brief);
        format!(
            "At {at} a request waits {wait} of {mean} in the kernel's accept queue, on average."
        )
    }
}
