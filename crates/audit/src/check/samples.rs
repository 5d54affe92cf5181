//! Requests whose times are in no figure. hey keeps the first 1,000,000 times, and divides the sum of all of them by as
//! many as it kept (requester/report.go), so that beyond a million its mean grows with the run. wrk2 forgets what it
//! measured while it calibrated.

use super::counts::HEY_KEEPS;
use super::{Check, Evidence, Finding};
use crate::claim::{Claim, Tool};

/// What may be under way when the run ends.
const EDGE: f64 = 0.01;

pub(super) fn kept(claim: &Claim) -> Option<Finding> {
    let check = Check::AllSamplesKept;
    let (requests, kept) = match claim.tool {
        Tool::Hey => claim.answered().map(|answered| (answered, answered.min(HEY_KEEPS)))?,
        Tool::LongTail => claim.requests.map(|requests| (requests, requests.min(HEY_KEEPS)))?,
        _ => (claim.ended()?, claim.samples?),
    };
    let mean_ratio = (claim.tool.is_heys() && kept > 0 && kept < requests).then(|| requests as f64 / kept as f64);
    let evidence = Evidence::SamplesLost { requests, kept, mean_ratio };
    Some(if kept as f64 >= requests as f64 * (1.0 - EDGE) && mean_ratio.is_none() {
        Finding::holds(check, evidence)
    } else {
        Finding::doubtful(check, evidence)
    })
}
