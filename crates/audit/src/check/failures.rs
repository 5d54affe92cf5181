//! Requests that failed, and are in the figures nevertheless: a refused connection is a fast answer.

use super::{Check, Evidence, Finding};
use crate::claim::Claim;

/// Fewer than this change no percentile that is printed.
const FEW: f64 = 0.001;

pub(super) fn counted(claim: &Claim) -> Option<Finding> {
    let requests = claim.ended()?;
    let (bad_answers, lost, timeouts) = (claim.bad(), claim.lost(), claim.timeouts.unwrap_or(0));
    let failed = bad_answers.saturating_add(lost).saturating_add(timeouts);
    let counted = !claim.statuses.is_empty() || claim.errors.is_some() || claim.bad_answers.is_some();
    if !counted {
        return None;
    }
    // Only errors that the rate counts, and bad answers, make it larger than what came back good.
    let in_rate = if claim.tool.rates_errors() { bad_answers.saturating_add(lost) } else { bad_answers };
    let good = 1.0 - in_rate.min(requests) as f64 / requests.max(1) as f64;
    let evidence = Evidence::Failures {
        failed,
        requests,
        good_per_s: claim.rate_per_s.filter(|_| in_rate > 0).map(|rate| rate.value * good),
        timeouts,
        as_status_zero: claim.statuses.get("0").is_some_and(|n| *n > 0),
    };
    Some(if failed as f64 > FEW * requests as f64 {
        Finding::doubtful(Check::Failures, evidence)
    } else {
        Finding::holds(Check::Failures, evidence)
    })
}
