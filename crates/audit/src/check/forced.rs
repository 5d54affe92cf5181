//! A distribution forces its mean between two limits: what is above p90 took at least p90's time, and what is below it
//! at most that.
//!
//! With percentiles t₁ ≤ t₂ ≤ … at q₁ < q₂ < …, shortest t₀ and longest tₙ₊₁:
//! Σ tᵢ (qᵢ₊₁ − qᵢ) ≤ mean ≤ Σ tᵢ₊₁ (qᵢ₊₁ − qᵢ), with one sample's worth of slack in each q, for tools differ in how
//! they count ranks.

use super::little::{EDGE, is_idle};
use super::{Check, Evidence, Finding};
use crate::claim::Claim;
use crate::range::Range;

/// What the percentiles force the mean to be.
struct Forced {
    least_s: f64,
    most_s: Option<f64>,
}

fn by_percentiles(claim: &Claim) -> Option<Forced> {
    if claim.percentiles.is_empty() {
        return None;
    }
    let slack = claim.samples.or(claim.ended()).filter(|n| *n > 0).map_or(0.0, |n| 1.0 / n as f64);
    let mut least = 0.0;
    let (mut from, mut time) = (0.0_f64, claim.min_s.map_or(0.0, |min| min.range().low));
    for (quantile, range) in claim.percentile_ranges() {
        let to = (quantile + slack).clamp(from, 1.0);
        least += time * (to - from);
        from = to;
        time = time.max(range.low);
    }
    least += time * (1.0 - from);
    let most = claim.max_s.map(|max| {
        let (mut to, mut time, mut most) = (1.0_f64, max.range().high, 0.0);
        for (quantile, range) in claim.percentile_ranges().rev() {
            let from = (quantile - slack).clamp(0.0, to);
            most += time * (to - from);
            to = from;
            time = time.min(range.high);
        }
        most + time * to
    });
    Some(Forced { least_s: least, most_s: most })
}

pub(super) fn against_rate(claim: &Claim) -> Option<Finding> {
    let check = Check::PercentilesAgainstRate;
    let forced = by_percentiles(claim)?;
    if !claim.tool.is_closed_loop() {
        return None;
    }
    let Some(cycle) = claim.cycle_s() else {
        return Some(Finding::unchecked(check, "connections are not told"));
    };
    let evidence = Evidence::ForcedMean { least_s: forced.least_s, most_s: forced.most_s, mean_s: cycle.middle() };
    let below = forced.most_s.is_some_and(|most| is_idle(claim, most / cycle.low));
    Some(if forced.least_s > cycle.high * (1.0 + EDGE) {
        Finding::fails(check, evidence)
    } else if below {
        Finding::doubtful(check, evidence)
    } else {
        Finding::holds(check, evidence)
    })
}

pub(super) fn against_mean(claim: &Claim) -> Option<Finding> {
    let forced = by_percentiles(claim)?;
    let mean = claim.mean_s?;
    Some(judge(Check::PercentilesAgainstMean, &forced, mean.range(), mean.value))
}

/// Bins bound the mean as percentiles do. hey's first is of the fastest alone.
pub(super) fn histogram(claim: &Claim) -> Option<Finding> {
    let mean = claim.mean_s?;
    let total: u64 = claim.bins.iter().fold(0, |sum, bin| sum.saturating_add(bin.count));
    if total == 0 {
        return None;
    }
    let mut low = claim.min_s.map_or(0.0, |min| min.range().low);
    let (mut least, mut most) = (0.0, 0.0);
    for bin in &claim.bins {
        let share = bin.count as f64 / total as f64;
        let edge = bin.up_to_s.range();
        least += share * low.min(edge.high);
        most += share * edge.high;
        low = edge.low;
    }
    Some(judge(Check::HistogramAgainstMean, &Forced { least_s: least, most_s: Some(most) }, mean.range(), mean.value))
}

fn judge(check: Check, forced: &Forced, mean: Range, printed: f64) -> Finding {
    let evidence = Evidence::ForcedMean { least_s: forced.least_s, most_s: forced.most_s, mean_s: printed };
    let outside = mean.high < forced.least_s || forced.most_s.is_some_and(|most| mean.low > most);
    if outside { Finding::fails(check, evidence) } else { Finding::holds(check, evidence) }
}
