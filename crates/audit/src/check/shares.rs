//! A fixed number of requests is done when the fullest worker is done. With largest share m of the requests, t threads a
//! worker, and a request that occupies a thread for s: rate = t / (s m), whatever the others do.

use super::{Check, Evidence, Finding};
use crate::claim::Claim;

/// A prediction this near is the explanation.
const NEAR: f64 = 0.03;
/// So much of the rate lost to the imbalance is worth a word.
const WORTH: f64 = 0.03;

pub(super) fn fullest(claim: &Claim) -> Option<Finding> {
    let shares = claim.shares.as_ref()?;
    let check = Check::WorkerShares;
    let (Some(server), Some(unloaded)) = (claim.server, shares.unloaded_s) else {
        return Some(Finding::unchecked(check, "no row of the table has as few connections as the server has slots"));
    };
    if claim.connections? < server.slots() {
        return None;
    }
    let largest = shares.deviations.iter().map(|deviation| deviation.value).fold(0.0, f64::max);
    let even = 1.0 / shares.deviations.len() as f64;
    let largest_share = even * (1.0 + largest);
    let unloaded = unloaded.middle();
    let predicted_per_s = server.threads as f64 / (unloaded * largest_share);
    let printed_per_s = claim.rate_per_s?.value;
    let even_per_s = server.slots() as f64 / unloaded;
    let evidence = Evidence::FullestWorker { largest_share, predicted_per_s, printed_per_s, even_per_s };
    let near = (predicted_per_s / printed_per_s - 1.0).abs() < NEAR;
    Some(if near && predicted_per_s < even_per_s * (1.0 - WORTH) {
        Finding::explains(check, evidence)
    } else if near || printed_per_s < predicted_per_s {
        Finding::holds(check, evidence)
    } else {
        // Faster than the fullest worker can have been: then its threads were not all, or the shares are of another run.
        Finding::doubtful(check, evidence)
    })
}

/// Which standard deviation the column shows: of the shares in percentage points of all requests, as a population.
pub(super) fn deviation(claim: &Claim) -> Option<Finding> {
    let shares = claim.shares.as_ref()?;
    let printed = shares.stdev_points?;
    let check = Check::SharesDeviation;
    let workers = shares.deviations.len() as f64;
    // A share deviates by the even share times the printed deviation, of which rounding hides up to its half width.
    let points: Vec<f64> = shares.deviations.iter().map(|deviation| deviation.value * 100.0 / workers).collect();
    let hidden = shares.deviations.iter().map(|deviation| deviation.half_width).fold(0.0, f64::max) * 100.0 / workers;
    let squares: f64 = points.iter().map(|point| point * point).sum();
    let evidence = Evidence::SharesDeviation {
        printed_points: printed.value,
        population_points: (squares / workers).sqrt(),
        sample_points: (squares / (workers - 1.0).max(1.0)).sqrt(),
    };
    let near = |points: f64| (points - printed.value).abs() <= hidden + printed.half_width;
    Some(if near((squares / workers).sqrt()) {
        Finding::holds(check, evidence)
    } else if near((squares / (workers - 1.0).max(1.0)).sqrt()) {
        Finding::doubtful(check, evidence)
    } else {
        Finding::fails(check, evidence)
    })
}
