//! What a server with known workers, threads and sleep can have done.

use super::counts::KEPT_UP;
use super::{CheckOutcome, judged, unchecked};
use crate::claim::Claim;
use crate::evidence::{ClaimEvidence, Staircase};

/// A sleep may be cut short by a timer's tick.
const TICK: f64 = 0.005;
/// With this many connections a slot, one service time more or less does not matter.
const MANY: u64 = 4;
/// This many times away from the mean, on both sides.
const FAR: f64 = 2.0;
/// A prediction this near is the explanation, and so much of the rate lost to imbalance is worth a word.
const NEAR: f64 = 0.03;

/// No answer is faster than the server's own sleep.
pub(super) fn floor(claim: &Claim) -> Option<CheckOutcome> {
    let delay_s = claim.delay_s?;
    let percentiles = claim.percentiles.iter().map(|p| p.time_s);
    let answers = claim.answers.iter().filter(|answer| answer.status.is_some()).map(|answer| answer.time_s);
    let times = claim.min_s.into_iter().chain(percentiles).chain(answers);
    let shortest = times.min_by(|a, b| a.value.total_cmp(&b.value))?;
    let is_faster = shortest.range().high < delay_s * (1.0 - TICK);
    judged(ClaimEvidence::Floor { shortest_s: shortest.value, delay_s }, is_faster, false)
}

/// The closed form of a server that only sleeps, in a closed loop of N connections on c slots: rate = min(N, c) / sleep,
/// mean = N / rate, exactly, for any order of service.
pub(super) fn maximum(claim: &Claim) -> Option<CheckOutcome> {
    let delay = claim.delay_s.filter(|delay| *delay > 0.0)?;
    let (server, rate) = (claim.server?, claim.rate_per_s?);
    let (Some(at_once), Some(cycle)) = (claim.at_once(), claim.cycle_s()) else {
        return unchecked("connections are not stated");
    };
    let maximum_per_s = at_once.min(server.slots()) as f64 / delay;
    let ideal_s = at_once as f64 / maximum_per_s;
    let evidence = ClaimEvidence::Ideal { rate_per_s: rate.value, maximum_per_s, cycle_s: cycle.middle(), ideal_s };
    judged(evidence, rate.range().low > maximum_per_s * (1.0 + TICK), false)
}

/// With many more connections than slots, first come, first served gives everybody about the same: N / rate. Where half
/// get far less and a tenth far more, either the server prefers some connections or the samples are not of requests.
pub(super) fn first_come_first_served(claim: &Claim) -> Option<CheckOutcome> {
    let (slots, connections) = (claim.server?.slots(), claim.at_once()?);
    if connections < slots.saturating_mul(MANY) {
        return None;
    }
    let cycle = claim.cycle_s()?;
    let (median, p90) = (claim.percentile(0.5)?, claim.percentile(0.9)?);
    let evidence = ClaimEvidence::Fairness {
        cycle_s: cycle.middle(),
        median_s: median.value,
        p90_s: p90.value,
        connections,
        slots,
    };
    judged(evidence, false, median.range().high < cycle.low / FAR && p90.range().low > cycle.high * FAR)
}

/// A fixed number of requests is done when the fullest worker is done. With largest share m of the requests, t threads a
/// worker, and a request that occupies a thread for s: rate = t / (s m), whatever the others do.
pub(super) fn fullest_worker(claim: &Claim) -> Option<CheckOutcome> {
    let shares = claim.shares.as_ref()?;
    let (Some(server), Some(unloaded)) = (claim.server, shares.unloaded_s) else {
        return unchecked("no row of the table has as few connections as the server has slots");
    };
    if claim.connections? < server.slots() {
        return None;
    }
    let largest = shares.deviations.iter().map(|deviation| deviation.value).fold(0.0, f64::max);
    let largest_share = (1.0 + largest) / shares.deviations.len() as f64;
    let unloaded = unloaded.middle();
    let predicted_per_s = server.threads as f64 / (unloaded * largest_share);
    let printed_per_s = claim.rate_per_s?.value;
    let even_per_s = server.slots() as f64 / unloaded;
    let evidence = ClaimEvidence::FullestWorker { largest_share, predicted_per_s, printed_per_s, even_per_s };
    let is_near = (predicted_per_s / printed_per_s - 1.0).abs() < NEAR;
    if is_near && predicted_per_s < even_per_s * (1.0 - NEAR) {
        return Some(CheckOutcome::Explains { evidence });
    }
    // Faster than the fullest worker can have been: then its threads were not all, or the shares are of another run.
    judged(evidence, false, !is_near && printed_per_s >= predicted_per_s)
}

/// Which standard deviation the column shows: of the shares in percentage points of all requests, as a population.
pub(super) fn shares_deviation(claim: &Claim) -> Option<CheckOutcome> {
    let shares = claim.shares.as_ref()?;
    let printed = shares.stdev_points?;
    let workers = shares.deviations.len() as f64;
    // A share deviates by the even share times the printed deviation, of which rounding hides up to its half width.
    let hidden = shares.deviations.iter().map(|deviation| deviation.half_width).fold(0.0, f64::max) * 100.0 / workers;
    let squares: f64 = shares.deviations.iter().map(|deviation| (deviation.value * 100.0 / workers).powi(2)).sum();
    let population_points = (squares / workers).sqrt();
    let sample_points = (squares / (workers - 1.0).max(1.0)).sqrt();
    let evidence = ClaimEvidence::SharesDeviation { printed_points: printed.value, population_points, sample_points };
    let is_near = |points: f64| (points - printed.value).abs() <= hidden + printed.half_width;
    let is_population = is_near(population_points);
    judged(evidence, !is_population && !is_near(sample_points), !is_population)
}

/// Paced requests, δ apart, to c slots that hold each for s, with c δ < s: the k-th answer takes
/// s + ⌊(k − 1) / c⌋ (s − c δ). The step's length tells δ, and so the rate that was really sent: δ = (s − step) / c. With
/// a hold that is known to be s at the least, δ is at least that.
///
/// The first answer of each step is left out of its mean: a slow first request shifts one slot's phase for ever.
pub(super) fn staircase(claim: &Claim) -> Option<CheckOutcome> {
    if claim.answers.is_empty() {
        return None;
    }
    if claim.answers.windows(2).any(|pair| pair[0].number.checked_add(1) != Some(pair[1].number)) {
        return unchecked("the lines are not of successive requests");
    }
    let times: Vec<f64> = claim.answers.iter().map(|answer| answer.time_s.value).collect();
    let Some((slots, first)) = steps(&times) else {
        return unchecked(
            "answers do not rise in steps: the server kept up, and the lines do not say when they were sent",
        );
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
        return unchecked("answers rise by more than a request takes");
    }
    let sent_at_most_per_s = 1.0 / spacing(hold_s);
    let offered_per_s = claim.offered_per_s.map(|offered| offered.value);
    let evidence = Staircase {
        slots: slots as u64,
        steps: steps as u64,
        step_s,
        step_expected_s: offered_per_s.map(|offered| hold_s - slots as f64 / offered),
        first_excess_s,
        hold_s,
        hold_is_known: claim.delay_s.is_some(),
        hold_measured_s,
        spacing_least_s: spacing(hold_s),
        sent_at_most_per_s,
        sent_estimate_per_s: 1.0 / spacing(hold_measured_s),
        offered_per_s,
        missing_least: offered_per_s.map(|offered| 1.0 - sent_at_most_per_s / offered),
    };
    let is_late = offered_per_s.is_some_and(|offered| sent_at_most_per_s < offered * KEPT_UP);
    judged(ClaimEvidence::Staircase(evidence), is_late && claim.delay_s.is_some(), is_late)
}

/// How many answers make a step, and where the first whole step starts: answers rise sharply at every such distance,
/// at least twice, and nowhere else.
fn steps(times: &[f64]) -> Option<(usize, usize)> {
    let rises: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let largest = rises.iter().copied().fold(0.0, f64::max);
    // Less is the noise of a single answer.
    if largest < 0.05 * times.iter().copied().fold(0.0, f64::max) {
        return None;
    }
    let is_jump = |(_, rise): &(usize, &f64)| **rise > 0.5 * largest;
    let jumps: Vec<usize> = rises.iter().enumerate().filter(is_jump).map(|(at, _)| at + 1).collect();
    let slots = jumps.get(1)? - jumps[0];
    let even = jumps.windows(2).all(|pair| pair[1] - pair[0] == slots);
    // Of the answers before the first jump, the last `slots` are a step, if there are as many.
    let first = if jumps[0] >= slots { jumps[0] - slots } else { jumps[0] };
    (even && slots >= 2 && (times.len() - first) / slots >= 2).then_some((slots, first))
}
