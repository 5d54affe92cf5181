//! No answer is faster than the server's own sleep.

use super::{Check, Evidence, Finding};
use crate::claim::Claim;

/// A sleep may be cut short by a timer's tick.
const TICK: f64 = 0.005;

pub(super) fn sleep(claim: &Claim) -> Option<Finding> {
    let delay_s = claim.delay_s?;
    let percentiles = claim.percentiles.iter().map(|p| p.time_s);
    let answers = claim.answers.iter().filter(|answer| answer.status.is_some()).map(|answer| answer.time_s);
    let shortest =
        claim.min_s.into_iter().chain(percentiles).chain(answers).min_by(|a, b| a.value.total_cmp(&b.value))?;
    let evidence = Evidence::Floor { shortest_s: shortest.value, delay_s };
    Some(if shortest.range().high < delay_s * (1.0 - TICK) {
        Finding::fails(Check::Floor, evidence)
    } else {
        Finding::holds(Check::Floor, evidence)
    })
}
