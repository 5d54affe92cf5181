//! Counts that must add up.

use super::{Check, Evidence, Finding};
use crate::claim::{Claim, Tool};
use crate::range::Range;

/// More than rounding explains, and yet possibly another clock or another end of the run.
const SLIGHT: f64 = 0.01;
/// hey keeps no more times than this.
pub(super) const HEY_KEEPS: u64 = 1_000_000;

pub(super) fn rate_times_duration(claim: &Claim) -> Option<Finding> {
    let check = Check::RateTimesDuration;
    let (rate, duration) = (claim.rate_per_s?, claim.duration_s?);
    let Some(requests) = claim.ended() else { return Some(Finding::unchecked(check, "requests are not counted")) };
    // bombardier's rate is a mean of samples; any other is a quotient.
    let slight = if claim.tool == Tool::Bombardier { 0.05 } else { SLIGHT };
    let allowed = rate.range().times(duration.range()).widened_by(1.0);
    let expected = rate.value * duration.value;
    let evidence = Evidence::Equal { printed: requests as f64, expected, allowed };
    let requests = Range::exactly(requests as f64);
    Some(if allowed.meets(requests) {
        Finding::holds(check, evidence)
    } else if allowed.widened(slight).meets(requests) {
        Finding::doubtful(check, evidence)
    } else {
        Finding::fails(check, evidence)
    })
}

/// Where requests are counted, and statuses as well.
pub(super) fn outcomes(claim: &Claim) -> Option<Finding> {
    let (requests, answered) = (claim.requests?, claim.answered()?);
    let expected = answered.saturating_add(claim.errors.unwrap_or(0));
    let evidence = Evidence::Equal {
        printed: requests as f64,
        expected: expected as f64,
        allowed: Range::exactly(expected as f64),
    };
    Some(if requests == expected {
        Finding::holds(Check::OutcomesAddUp, evidence)
    } else {
        Finding::fails(Check::OutcomesAddUp, evidence)
    })
}

pub(super) fn bins(claim: &Claim) -> Option<Finding> {
    let answered = claim.answered()?;
    if claim.bins.is_empty() {
        return None;
    }
    let sum = claim.bins.iter().fold(0_u64, |sum, bin| sum.saturating_add(bin.count));
    let expected = if claim.tool == Tool::Hey { answered.min(HEY_KEEPS) } else { answered };
    let evidence =
        Evidence::Equal { printed: sum as f64, expected: expected as f64, allowed: Range::exactly(expected as f64) };
    Some(if sum == expected {
        Finding::holds(Check::HistogramAddsUp, evidence)
    } else {
        Finding::fails(Check::HistogramAddsUp, evidence)
    })
}
