//! Little's law: in a closed loop without think time, rate x mean = requests at once.
//!
//! It is strict on one side. Each connection is busy with one request at a time, so the times of all requests add up to
//! at most connections x duration: more is impossible. Less is what the generator itself took between an answer and the
//! next request, or what a connection idled that had sent its part of a fixed count. (J. D. C. Little, 1961.)

use super::{Check, Evidence, Finding};
use crate::claim::{Claim, Tool};
use crate::range::Range;

/// Above 1, and yet explained by requests under way at the run's two ends.
pub(super) const EDGE: f64 = 0.01;
/// Above 1 by more than any edge.
const IMPOSSIBLE: f64 = 0.05;
/// Below 1 by so much, connections that should have been busy were not.
const OWN_TIME: f64 = 0.05;
/// Rounding that leaves more than this says nothing.
const COARSE: f64 = 0.25;

pub(super) fn law(claim: &Claim) -> Option<Finding> {
    let check = Check::LittlesLaw;
    if claim.answers.is_empty() && claim.mean_s.is_none() && claim.rate_per_s.is_none() {
        return None;
    }
    if !claim.tool.is_closed_loop() {
        let why = match claim.tool {
            Tool::Wrk2 => "times run from when a request was due, and may add up to more than the connections",
            _ => "open loop: how many requests are under way is not limited",
        };
        return Some(Finding::unchecked(check, why));
    }
    let Some(mean) = claim.mean_s else { return Some(Finding::unchecked(check, "no mean")) };
    let Some(at_once) = claim.at_once() else { return Some(Finding::unchecked(check, "connections are not told")) };
    let Some(rate) = claim.timed_rate() else { return Some(Finding::unchecked(check, "no rate of answers")) };
    let ratio = rate.times(mean.range()).scaled(1.0 / at_once as f64);
    let in_flight = rate.middle() * mean.value;
    let evidence = Evidence::InFlight {
        rate_per_s: rate.middle(),
        mean_s: mean.value,
        at_once,
        in_flight,
        ratio: in_flight / at_once as f64,
        ratio_allowed: ratio,
        cycle_s: Range::exactly(at_once as f64).over(rate)?.middle(),
        fixed_count: claim.asked.is_some(),
    };
    Some(if ratio.low > 1.0 + IMPOSSIBLE {
        Finding::fails(check, evidence)
    } else if ratio.low > 1.0 + EDGE || is_idle(claim, ratio.high) {
        Finding::doubtful(check, evidence)
    } else if ratio.high - ratio.low > COARSE * ratio.middle() {
        Finding::unchecked(check, "the mean has too few digits")
    } else {
        Finding::holds(check, evidence)
    })
}

/// Whether connections that should have been busy were not; one that is paced should idle.
pub(super) fn is_idle(claim: &Claim, busy_at_most: f64) -> bool {
    claim.offered_per_s.is_none() && busy_at_most < 1.0 - OWN_TIME
}
