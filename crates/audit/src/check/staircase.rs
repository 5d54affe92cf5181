//! Paced requests, δ apart, to c slots that hold each for s, with c δ < s: the k-th answer takes
//! s + ⌊(k − 1) / c⌋ (s − c δ). The step's length tells δ, and so the rate that was really sent: δ = (s − step) / c. With
//! a hold that is known to be s at the least, δ is at least that.
//!
//! The first answer of each step is left out of its mean: a slow first request shifts one slot's phase for ever.

use super::{Check, Evidence, Finding};
use crate::claim::Claim;

/// Less than this of what was asked for was not kept up.
const KEPT_UP: f64 = 0.995;

pub(super) fn steps(claim: &Claim) -> Option<Finding> {
    if claim.answers.is_empty() {
        return None;
    }
    let check = Check::Staircase;
    let gap = claim.answers.windows(2).any(|pair| pair[0].number.checked_add(1) != Some(pair[1].number));
    if gap {
        return Some(Finding::unchecked(check, "the lines are not of successive requests"));
    }
    let times: Vec<f64> = claim.answers.iter().map(|answer| answer.time_s.value).collect();
    let Some((slots, first)) = structure(&times) else {
        return Some(Finding::unchecked(
            check,
            "answers do not rise in steps: the server kept up, and the lines do not say when they were sent",
        ));
    };
    let whole: Vec<&[f64]> = times[first..].chunks_exact(slots).collect();
    let rest = |step: &[f64]| step[1..].iter().sum::<f64>() / (step.len() - 1) as f64;
    let means: Vec<f64> = whole.iter().map(|step| rest(step)).collect();
    let steps = means.len();
    let step_s = (means[steps - 1] - means[0]) / (steps - 1) as f64;
    let first_excess_s = whole.iter().zip(&means).map(|(step, mean)| step[0] - mean).sum::<f64>() / whole.len() as f64;
    let hold_measured_s = means[0];
    let hold_s = claim.delay_s.unwrap_or(hold_measured_s);
    let spacing = |hold: f64| (hold - step_s) / slots as f64;
    if spacing(hold_s) <= 0.0 {
        return Some(Finding::unchecked(check, "answers rise by more than a request takes"));
    }
    let sent_at_most_per_s = 1.0 / spacing(hold_s);
    let offered_per_s = claim.offered_per_s.map(|offered| offered.value);
    let evidence = Evidence::Staircase {
        slots: slots as u64,
        steps: steps as u64,
        step_s,
        step_expected_s: offered_per_s.map(|offered| hold_s - slots as f64 / offered),
        first_excess_s,
        hold_s,
        hold_told: claim.delay_s.is_some(),
        hold_measured_s,
        spacing_least_s: spacing(hold_s),
        sent_at_most_per_s,
        sent_estimate_per_s: 1.0 / spacing(hold_measured_s),
        offered_per_s,
        missing_least: offered_per_s.map(|offered| 1.0 - sent_at_most_per_s / offered),
    };
    let Some(offered) = offered_per_s else { return Some(Finding::holds(check, evidence)) };
    Some(if sent_at_most_per_s >= offered * KEPT_UP {
        Finding::holds(check, evidence)
    } else if claim.delay_s.is_some() {
        Finding::fails(check, evidence)
    } else {
        Finding::doubtful(check, evidence)
    })
}

/// How many answers make a step, and where the first whole step starts: answers rise sharply at every such distance,
/// at least twice, and nowhere else.
fn structure(times: &[f64]) -> Option<(usize, usize)> {
    let rises: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let largest = rises.iter().copied().fold(0.0, f64::max);
    // Less is the noise of a single answer.
    if largest < 0.05 * times.iter().copied().fold(0.0, f64::max) {
        return None;
    }
    let jumps: Vec<usize> =
        rises.iter().enumerate().filter(|(_, rise)| **rise > 0.5 * largest).map(|(at, _)| at + 1).collect();
    let slots = jumps.get(1)? - jumps[0];
    let even = jumps.windows(2).all(|pair| pair[1] - pair[0] == slots);
    // Of the answers before the first jump, the last `slots` are a step, if there are as many.
    let first = if jumps[0] >= slots { jumps[0] - slots } else { jumps[0] };
    (even && slots >= 2 && (times.len() - first) / slots >= 2).then_some((slots, first))
}
