//! A rate that was asked for, against the one that the tool itself says it reached.

use super::{Check, Evidence, Finding};
use crate::claim::Claim;

/// Less than this of what was asked for was not kept up.
const KEPT_UP: f64 = 0.995;

pub(super) fn offered(claim: &Claim) -> Option<Finding> {
    let offered = claim.offered_per_s?;
    let achieved = claim.rate_per_s?;
    let evidence = Evidence::Delivery {
        offered_per_s: offered.value,
        achieved_per_s: achieved.value,
        missing: 1.0 - achieved.value / offered.value,
        in_flight: claim.mean_s.map(|mean| achieved.value * mean.value),
    };
    Some(if achieved.range().high < offered.value * KEPT_UP {
        Finding::doubtful(Check::OfferedRate, evidence)
    } else {
        Finding::holds(Check::OfferedRate, evidence)
    })
}
