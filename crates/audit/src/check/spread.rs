//! The largest standard deviation that a mean between two ends allows: √((longest − mean)(mean − shortest)), for a
//! distribution of nothing but the two ends (Bhatia and Davis, 2000).

use super::{Check, Evidence, Finding};
use crate::claim::Claim;

pub(super) fn possible(claim: &Claim) -> Option<Finding> {
    let stdev = claim.stdev_s?;
    let check = Check::Spread;
    let (Some(mean), Some(max)) = (claim.mean_s, claim.max_s) else {
        return Some(Finding::unchecked(check, "mean or longest is missing"));
    };
    let (mean, max) = (mean.range(), max.range());
    let min = claim.min_s.map_or(0.0, |min| min.range().low);
    // The product is largest where the mean is in the middle; over its range, at whichever end is nearer to that.
    let middle = f64::midpoint(min, max.high).clamp(mean.low, mean.high);
    let largest = ((max.high - middle).max(0.0) * (middle - min).max(0.0)).sqrt();
    // Some divide by n − 1.
    let n = claim.samples.or(claim.ended()).filter(|n| *n > 1).map_or(1.0, |n| n as f64 / (n - 1) as f64);
    let most_s = largest * n.sqrt();
    let evidence = Evidence::Spread { stdev_s: stdev.value, most_s };
    Some(if stdev.range().low > most_s { Finding::fails(check, evidence) } else { Finding::holds(check, evidence) })
}
