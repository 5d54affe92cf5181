//! With many more connections than slots, first come, first served gives everybody about the same: N / rate. Where half
//! get far less and a tenth far more, either the server prefers some connections or the samples are not of requests.

use super::{Check, Evidence, Finding};
use crate::claim::Claim;

/// From here on the queue is so long that one service time more or less does not matter.
const MANY: u64 = 4;
/// This many times away from the mean, on both sides.
const FAR: f64 = 2.0;

pub(super) fn served(claim: &Claim) -> Option<Finding> {
    let slots = claim.server?.slots();
    let connections = claim.at_once()?;
    if connections < slots.saturating_mul(MANY) {
        return None;
    }
    let cycle = claim.cycle_s()?;
    let at = |quantile: f64| claim.percentiles.iter().find(|p| (p.quantile - quantile).abs() < 1e-9).map(|p| p.time_s);
    let (median, p90) = (at(0.5)?, at(0.9)?);
    let check = Check::FirstComeFirstServed;
    let evidence =
        Evidence::Fairness { cycle_s: cycle.middle(), median_s: median.value, p90_s: p90.value, connections, slots };
    Some(if median.range().high < cycle.low / FAR && p90.range().low > cycle.high * FAR {
        Finding::doubtful(check, evidence)
    } else {
        Finding::holds(check, evidence)
    })
}
