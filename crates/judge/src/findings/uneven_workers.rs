//! The workers serve unequal shares of the requests.

use serde::{Deserialize, Serialize};

use super::Finding;
use crate::sweep_points::SweepPoint;
use crate::words::load;
use model::number;

/// The workers serve unequal shares of the requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnevenWorkers {
    /// The load.
    pub multiple: f64,
    /// The largest deviation from an even share, relative to it.
    pub deviation: f64,
    /// How many workers there are.
    #[serde(default)]
    pub workers: u32,
    /// One of them served all requests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_one: bool,
}

/// A worker's share is uneven if it differs from an even one by more than this, and by more than
/// chance.
const UNEVEN: f64 = 0.10;
/// More standard errors than this are beyond chance.
const BEYOND_CHANCE: f64 = 5.0;

/// Judges a run whose workers can be told apart.
pub(super) fn of(point: &SweepPoint<'_>) -> Option<Finding> {
    let workers = &point.run.workers;
    let deviations = point.run.worker_deviations();
    let deviation = *deviations.iter().max_by(|a, b| a.abs().total_cmp(&b.abs()))?;
    let even =
        workers.iter().map(|worker| worker.requests).sum::<u64>() as f64 / workers.len() as f64;
    // If each request reached a random worker, the count of a worker would vary by its square root.
    let is_uneven = deviation.abs() > UNEVEN && deviation.abs() * even.sqrt() > BEYOND_CHANCE;
    (workers.len() > 1 && is_uneven).then(|| {
        let serving = workers.iter().filter(|worker| worker.requests > 0).count();
        UnevenWorkers {
            multiple: point.multiple,
            deviation,
            workers: workers.len() as u32,
            only_one: serving == 1,
        }
        .into()
    })
}

impl UnevenWorkers {
    pub(super) fn sentence(&self) -> String {
        let UnevenWorkers { multiple, deviation, workers, only_one } = self;
        let at = load(*multiple);
        if *only_one {
            let others = if *workers == 2 { "the other" } else { "the others" };
            return format!(
                "At {at} one of the {workers} workers served all requests: the threads of {others} \
                 were idle."
            );
        }
        let percent = number::fixed(deviation.abs() * 100.0, 0);
        let more = if *deviation > 0.0 { "more" } else { "less" };
        format!(
            "The workers serve uneven shares: at {at} one has {percent} % {more} than an even share."
        )
    }
}
