//! Checks against the server: the most that the known workers, threads and sleep allow.

use std::fmt::Write as _;

use model::ClaimGrade;
use report::number::fixed;

use super::counts::KEPT_UP;
use super::{ABSENT, CheckOutcome, judged, unchecked};
use crate::claim::Claim;
use crate::figure::{exact_time, percent, printed_rate, printed_time, rate, time};

/// A sleep may be cut short by a timer's tick.
const TICK: f64 = 0.005;
/// With this many connections a slot, one service time more or less does not matter.
const MANY: u64 = 4;
/// How far from the mean, as a factor, both the fast half and the slow tenth must be.
const FAR: f64 = 2.0;
/// A prediction this close to the printed rate counts as its explanation, if imbalance costs more
/// than this part of the rate.
const NEAR: f64 = 0.03;

/// No response is faster than the server's own sleep.
pub(super) fn floor(claim: &Claim) -> Option<CheckOutcome> {
    let delay_s = claim.delay_s?;
    let percentiles = claim.percentiles.iter().map(|p| p.time_s);
    let answers =
        claim.answers.iter().filter(|answer| answer.status.is_some()).map(|answer| answer.time_s);
    let times = claim.min_s.into_iter().chain(percentiles).chain(answers);
    let shortest = times.min_by(|a, b| a.value.total_cmp(&b.value))?;
    let is_faster = shortest.range().high < delay_s * (1.0 - TICK);
    let figures = [("shortest_s", shortest.value), ("delay_s", delay_s)];
    let [shortest, delay] = figures.map(|(_, time)| printed_time(time));
    judged(is_faster, false, &figures, || {
        format!("{shortest} is printed, and the server sleeps {delay} over each request.")
    })
}

/// The closed form of a server that only sleeps, in a closed loop of N connections on c slots: rate
/// = min(N, c) / sleep, mean = N / rate, exactly, for any order of service.
pub(super) fn maximum(claim: &Claim) -> Option<CheckOutcome> {
    let delay = claim.delay_s.filter(|delay| *delay > 0.0)?;
    let server = claim.server?;
    let printed = claim.rate_per_s?;
    let (Some(at_once), Some(cycle)) = (claim.at_once(), claim.cycle_s()) else {
        return unchecked("connections are not stated");
    };
    let maximum_per_s = at_once.min(server.slots()) as f64 / delay;
    let ideal_s = at_once as f64 / maximum_per_s;
    let figures = [
        ("rate_per_s", printed.value),
        ("maximum_per_s", maximum_per_s),
        ("cycle_s", cycle.middle()),
        ("ideal_s", ideal_s),
    ];
    judged(printed.range().low > maximum_per_s * (1.0 + TICK), false, &figures, || {
        let mean = time(cycle.middle());
        let ideal = time(ideal_s);
        let part = percent(printed.value / maximum_per_s);
        let printed = printed_rate(printed.value);
        let maximum = rate(maximum_per_s);
        format!(
            "{printed} is {part} of the {maximum} that the slots allow; the mean is {mean}, and \
             {ideal} if nothing but the sleep took time."
        )
    })
}

/// With many more connections than slots, first come, first served gives all requests about the
/// same time: N / rate. If half take far less and a tenth far more, either the server prefers some
/// connections or some samples are not real requests (wrk's phantoms).
pub(super) fn first_come_first_served(claim: &Claim) -> Option<CheckOutcome> {
    let slots = claim.server?.slots();
    let connections = claim.at_once()?;
    if connections < slots.saturating_mul(MANY) {
        return None;
    }
    let cycle = claim.cycle_s()?;
    let median = claim.percentile(0.5)?;
    let p90 = claim.percentile(0.9)?;
    let figures = [
        ("cycle_s", cycle.middle()),
        ("median_s", median.value),
        ("p90_s", p90.value),
        ("connections", connections as f64),
        ("slots", slots as f64),
    ];
    let is_unfair = median.range().high < cycle.low / FAR && p90.range().low > cycle.high * FAR;
    judged(false, is_unfair, &figures, || {
        let median = printed_time(median.value);
        let p90 = printed_time(p90.value);
        let everybody = time(cycle.middle());
        let cause = if claim.tool.is_corrected_by_wrk() {
            " (Puma up to 6 does, with keep-alive), or the slow samples are wrk's own, or both"
        } else {
            ""
        };
        format!(
            "first come, first served gives everybody about {everybody} with {connections} \
             connections on {slots} slots; here half took {median} or less and a tenth {p90} or \
             more. The server serves some connections many times in a row while others \
             wait{cause}."
        )
    })
}

/// A fixed number of requests is done when the fullest worker is done. With largest share m of the
/// requests, t threads a worker, and a request that occupies a thread for s: rate = t / (s m),
/// whatever the others do.
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
    let figures = [
        ("largest_share", largest_share),
        ("predicted_per_s", predicted_per_s),
        ("printed_per_s", printed_per_s),
        ("even_per_s", even_per_s),
    ];
    let text = || {
        let [predicted, even] = [predicted_per_s, even_per_s].map(rate);
        let share = percent(largest_share);
        let printed = printed_rate(printed_per_s);
        format!(
            "one worker got {share} of a fixed number of requests, and the run ends with it: that \
             alone gives {predicted} instead of {even}, and {printed} is printed. The dip is \
             imbalance, and not capacity."
        )
    };
    let is_near = (predicted_per_s / printed_per_s - 1.0).abs() < NEAR;
    if is_near && predicted_per_s < even_per_s * (1.0 - NEAR) {
        return Some(CheckOutcome::new(ClaimGrade::Explains, &figures, text()));
    }
    // Faster than the fullest worker can have been: then it had more threads, or the shares belong
    // to another run.
    judged(false, !is_near && printed_per_s >= predicted_per_s, &figures, text)
}

/// The column must show the population standard deviation of the shares, in percentage points of
/// all requests.
pub(super) fn shares_deviation(claim: &Claim) -> Option<CheckOutcome> {
    let shares = claim.shares.as_ref()?;
    let printed = shares.stdev_points?;
    let workers = shares.deviations.len() as f64;
    // A share differs from the even share by the printed deviation times the even share. Rounding
    // hides up to `half_width` of the deviation.
    let hidden = shares.deviations.iter().map(|deviation| deviation.half_width).fold(0.0, f64::max)
        * 100.0
        / workers;
    let squares: f64 =
        shares.deviations.iter().map(|deviation| (deviation.value * 100.0 / workers).powi(2)).sum();
    let population_points = (squares / workers).sqrt();
    let sample_points = (squares / (workers - 1.0).max(1.0)).sqrt();
    let is_near = |points: f64| (points - printed.value).abs() <= hidden + printed.half_width;
    let is_population = is_near(population_points);
    let figures = [
        ("printed_points", printed.value),
        ("population_points", population_points),
        ("sample_points", sample_points),
    ];
    let [shown, population, sample] = figures.map(|(_, value)| fixed(value, 3));
    judged(!is_population && !is_near(sample_points), !is_population, &figures, || {
        format!(
            "{shown} is printed; the printed shares have {population} (as a population) or \
             {sample} (as a sample)."
        )
    })
}

/// Paced requests, δ apart, to c slots that hold each for s, with c δ < s: the k-th response takes
/// s + ⌊(k − 1) / c⌋ (s − c δ). The step's length tells δ, and so the rate that was really sent: δ
/// = (s − step) / c. If s is only a lower bound, so is δ.
///
/// The first response of each step is left out of its mean: a slow first request shifts one slot's
/// phase for ever.
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
            "responses do not rise in steps: the server kept up, and the lines do not say when \
             they were sent",
        );
    };
    let staircase = Staircase::of(&times[first..], slots);
    let hold_s = claim.delay_s.unwrap_or(staircase.hold_s);
    let spacing_s = staircase.spacing_s(hold_s);
    if spacing_s <= 0.0 {
        return unchecked("responses rise by more than a request takes");
    }
    let sent_at_most = 1.0 / spacing_s;
    let sent_estimate = 1.0 / staircase.spacing_s(staircase.hold_s);
    let offered = claim.offered_per_s.map(|offered| offered.value);
    let expected_s = offered.map(|offered| hold_s - slots as f64 / offered);
    let missing = offered.map(|offered| 1.0 - sent_at_most / offered);
    let figures = [
        ("slots", slots as f64),
        ("steps", staircase.steps as f64),
        ("step_s", staircase.step_s),
        ("step_expected_s", expected_s.unwrap_or(ABSENT)),
        ("first_excess_s", staircase.first_excess_s),
        ("hold_s", hold_s),
        ("hold_measured_s", staircase.hold_s),
        ("spacing_least_s", spacing_s),
        ("sent_at_most_per_s", sent_at_most),
        ("sent_estimate_per_s", sent_estimate),
        ("offered_per_s", offered.unwrap_or(ABSENT)),
        ("missing_least", missing.unwrap_or(ABSENT)),
    ];
    let is_late = offered.is_some_and(|offered| sent_at_most < offered * KEPT_UP);
    judged(is_late && claim.delay_s.is_some(), is_late, &figures, || {
        staircase.in_words(hold_s, claim.delay_s.is_some(), offered)
    })
}

/// What successive response times show if they rise in steps.
struct Staircase {
    slots: usize,
    /// Whole steps.
    steps: usize,
    /// By how much each step is longer than the one before.
    step_s: f64,
    /// How much longer the first response of a step takes than the others, in the mean.
    first_excess_s: f64,
    /// The mean of the first step: how long a request holds a slot.
    hold_s: f64,
}

impl Staircase {
    /// `times` begins with the first response of a step of `slots` responses.
    fn of(times: &[f64], slots: usize) -> Staircase {
        let whole: Vec<&[f64]> = times.chunks_exact(slots).collect();
        let without_first = |step: &[f64]| step[1..].iter().sum::<f64>() / (step.len() - 1) as f64;
        let means: Vec<f64> = whole.iter().map(|step| without_first(step)).collect();
        let steps = means.len();
        let excesses = whole.iter().zip(&means).map(|(step, mean)| step[0] - mean);
        Staircase {
            slots,
            steps,
            step_s: (means[steps - 1] - means[0]) / (steps - 1) as f64,
            first_excess_s: excesses.sum::<f64>() / steps as f64,
            hold_s: means[0],
        }
    }

    /// Describes it, with the offered rate if that is known. `is_stated`: `hold_s` is the sleep
    /// that the claim states, not a measured time.
    fn in_words(&self, hold_s: f64, is_stated: bool, offered: Option<f64>) -> String {
        let slots = self.slots;
        let expected = offered.map_or_else(String::new, |offered| {
            format!(" ({} at the offered rate)", time(hold_s - slots as f64 / offered))
        });
        let spacing_s = self.spacing_s(hold_s);
        let sent_at_most = 1.0 / spacing_s;
        let mut text = format!(
            "every {slots} responses take {} longer{expected}, {} times: {slots} are processed at \
             once. As each {} {} at the least, requests were {} or more apart: at most {} were \
             sent",
            exact_time(self.step_s),
            self.steps - 1,
            if is_stated { "sleeps" } else { "takes" },
            printed_time(hold_s),
            exact_time(spacing_s),
            rate(sent_at_most)
        );
        if let Some(offered) = offered
            && sent_at_most < offered
        {
            _ = write!(
                text,
                ", not {}: {} or more is missing (with the {} measured, {} was sent). The delay \
                 grows with every request, as when a generator sleeps after each send",
                printed_rate(offered),
                percent(1.0 - sent_at_most / offered),
                exact_time(self.hold_s),
                rate(1.0 / self.spacing_s(self.hold_s))
            );
        }
        text.push('.');
        if self.first_excess_s > 0.02 * hold_s {
            let excess = time(self.first_excess_s);
            _ = write!(
                text,
                " The first of every {slots} takes {excess} more than the others: one slow start \
                 is never forgotten."
            );
        }
        text
    }

    /// The time between two sends, if a request holds a slot for `hold_s`.
    fn spacing_s(&self, hold_s: f64) -> f64 {
        (hold_s - self.step_s) / self.slots as f64
    }
}

/// How many responses make a step, and where the first whole step starts. `None` unless response
/// times jump at equal distances, at least twice, and nowhere else.
fn steps(times: &[f64]) -> Option<(usize, usize)> {
    let rises: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let largest = rises.iter().copied().fold(0.0, f64::max);
    // A smaller rise may be the noise of a single response.
    if largest < 0.05 * times.iter().copied().fold(0.0, f64::max) {
        return None;
    }
    let is_jump = |(_, rise): &(usize, &f64)| **rise > 0.5 * largest;
    let jumps: Vec<usize> =
        rises.iter().enumerate().filter(is_jump).map(|(at, _)| at + 1).collect();
    let slots = jumps.get(1)? - jumps[0];
    let even = jumps.windows(2).all(|pair| pair[1] - pair[0] == slots);
    // The last `slots` responses before the first jump are a whole step, if there are that many.
    let first = if jumps[0] >= slots { jumps[0] - slots } else { jumps[0] };
    (even && slots >= 2 && (times.len() - first) / slots >= 2).then_some((slots, first))
}
