//! The workers do not have equal parts.

use serde::{Deserialize, Serialize};

use super::Finding;
use crate::sweep_points::SweepPoint;
use crate::words::load;
use model::number;

/// The workers do not have equal parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnevenWorkers {
    /// At which load.
    pub multiple: f64,
    /// The furthest from an even share, as a part of it.
    pub deviation: f64,
}

/// A worker's part differs from an even share by more than this, and by more than chance.
const UNEVEN: f64 = 0.10;
/// Standard errors: beyond chance.
const BEYOND_CHANCE: f64 = 5.0;

/// Of a run whose workers are known apart.
pub(super) fn of(point: &SweepPoint<'_>) -> Option<Finding> {
    let (workers, deviations) = (&point.run.workers, point.run.worker_deviations());
    let deviation = *deviations.iter().max_by(|a, b| a.abs().total_cmp(&b.abs()))?;
    let even =
        workers.iter().map(|worker| worker.requests).sum::<u64>() as f64 / workers.len() as f64;
    // Of requests that choose their worker by chance a share varies by its square root.
    let is_uneven = deviation.abs() > UNEVEN && deviation.abs() * even.sqrt() > BEYOND_CHANCE;
    (workers.len() > 1 && is_uneven)
        .then(|| UnevenWorkers { multiple: point.multiple, deviation }.into())
}

impl UnevenWorkers {
    pub(super) fn sentence(&self) -> String {
        let UnevenWorkers { multiple, deviation } = self;

        let (at, percent) = (load(*multiple), number::fixed(deviation.abs() * 100.0, 0));
        let more = if *deviation > 0.0 { "more" } else { "less" };
        format!(
            "The workers' parts are uneven: at {at} one has {percent} % {more} than an even share."
        )
    }
}
