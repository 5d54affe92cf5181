//! wrk's phantom samples: after every run its `stats_correct` (wrk 4, src/stats.c) takes E =
//! runtime / (requests / connections), and for each sample n ≥ 2E adds n − E, n − 2E, … as long as
//! they are above E. Nobody sent those.
//!
//! What it did can be undone. With c(x) the printed and r(x) the real number of samples of length
//! x, every phantom above E comes from one sample E longer, phantom or real: r(x) = c(x) − c(x + E)
//! for x > E, and r(x) = c(x) for x ≤ E. Summed up, with F(2E) the share of the printed samples up
//! to 2E, and S what they contribute to the printed mean:
//!
//!   real samples / printed samples = F(2E),   real mean = (S + E (1 − F(2E))) / F(2E).
//!
//! Percentiles bound F(2E) and S, and so both.

use model::ClaimGrade;
use report::number;

use super::counts::FEW;
use super::{ABSENT, CheckOutcome, judged, times, unchecked};
use crate::claim::Claim;
use crate::figure::FigureRange;
use crate::figure::{percent, time};

/// How close the mean without phantoms must be to Little's law to explain a failure. Close, because
/// the mean's own limits are wide already.
const NEAR: f64 = 0.05;

/// One corner of the distribution: quantile, and the least and most that its time may be.
struct Corner {
    quantile: f64,
    time: FigureRange,
}

pub(super) fn samples(claim: &Claim) -> Option<CheckOutcome> {
    if !claim.tool.is_corrected_by_wrk() {
        return None;
    }
    if claim.percentiles.is_empty() {
        return unchecked(
            "wrk adds some after every run; without --latency there are no percentiles to tell \
             how many",
        );
    }
    let Some(interval) = interval_s(claim) else {
        return unchecked("connections or rate are not stated");
    };
    let Some(max) = claim.max_s else { return unchecked("the longest is not stated") };
    let cycle = claim.cycle_s()?;
    let shortest = FigureRange::exactly(claim.min_s.map_or(0.0, |min| min.value));
    let corners = corners(claim, shortest, max.range());
    let RealSamples { phantoms, mean_s: allowed_s } = real_samples(&corners, interval);
    let (part, mean_without_s) = interpolated(&corners, interval.middle())?;
    let mean_ratios =
        claim.mean_s.map(|mean| (mean.value / mean_without_s, mean.value / cycle.middle()));
    let (predicted, printed) = mean_ratios.unwrap_or((ABSENT, ABSENT));
    let figures = [
        ("interval_s", interval.middle()),
        ("share_least", phantoms.low),
        ("share_most", phantoms.high),
        ("share_estimate", 1.0 - part),
        ("mean_without_s", mean_without_s),
        ("mean_without_least_s", allowed_s.low),
        ("mean_without_most_s", allowed_s.high),
        ("predicted_ratio", predicted),
        ("printed_ratio", printed),
    ];
    let text = || {
        let limit = match phantoms.low {
            low if low > 0.0 => format!("at least {}", percent(low)),
            _ => format!("up to {}", percent(phantoms.high)),
        };
        let found = mean_ratios.map(|(predicted, printed)| {
            let predicted = number::times(predicted);
            let printed = number::times(printed);
            format!(": they make it {predicted} times too large, and {printed} is found")
        });
        format!(
            "after the run wrk adds a sample for every {} (connections / rate) that a longer one \
             lasted. Of its samples {limit}, and about {}, were never sent. Without them the mean \
             is about {}{}.",
            time(interval.middle()),
            percent(1.0 - part),
            time(mean_without_s),
            found.unwrap_or_default()
        )
    };
    let mut against =
        [times::littles_law(claim), times::percentiles_against_rate(claim)].into_iter().flatten();
    let has_failed = against.any(|outcome| outcome.is == ClaimGrade::Fails);
    if has_failed && allowed_s.widened(NEAR).meets(interval) && phantoms.high > FEW {
        return Some(CheckOutcome::new(ClaimGrade::Explains, &figures, text()));
    }
    judged(false, phantoms.low > FEW, &figures, text)
}

/// The corners of the printed distribution, from the shortest to the longest time.
fn corners(claim: &Claim, shortest: FigureRange, longest: FigureRange) -> Vec<Corner> {
    let printed =
        claim.percentiles.iter().map(|p| Corner { quantile: p.quantile, time: p.time_s.range() });
    let mut corners = vec![Corner { quantile: 0.0, time: shortest }];
    corners.extend(printed);
    corners.push(Corner { quantile: 1.0, time: longest });
    corners
}

/// wrk's E: it divides by the connections that were asked for, opened or not.
fn interval_s(claim: &Claim) -> Option<FigureRange> {
    FigureRange::exactly(claim.connections? as f64)
        .over(claim.rate_per_s?.range())
        .filter(|interval| interval.low > 0.0)
}

/// What is certain of a run without its phantoms.
struct RealSamples {
    /// The part of the printed samples that was never sent.
    phantoms: FigureRange,
    /// The mean of the others.
    mean_s: FigureRange,
}

fn real_samples(corners: &[Corner], interval: FigureRange) -> RealSamples {
    let twice = interval.scaled(2.0);
    // The last corner that is certainly up to 2E, and the first that is certainly beyond it.
    let inside = corners.iter().rposition(|corner| corner.time.high <= twice.low).unwrap_or(0);
    let outside = corners.iter().position(|corner| corner.time.low > twice.high);
    let part_low = corners[inside].quantile;
    let part_high = outside.map_or(1.0, |at| corners[at].quantile);
    // The mean's part up to the corner `inside`, and from there on up to 2E, at the least and at
    // the most.
    let mut least = 0.0;
    let mut most = 0.0;
    for pair in corners[..=inside].windows(2) {
        let width = pair[1].quantile - pair[0].quantile;
        least += width * pair[0].time.low;
        most += width * pair[1].time.high;
    }
    let mean_at = |part: f64, sum: f64, rest_s: f64, interval: f64| {
        (sum + (part - part_low) * rest_s + interval * (1.0 - part)) / part
    };
    let least_s = [part_low, part_high].map(|part| {
        mean_at(part.max(1e-9), least, corners[inside].time.low.min(twice.high), interval.low)
    });
    let most_s =
        [part_low, part_high].map(|part| mean_at(part.max(1e-9), most, twice.high, interval.high));
    RealSamples {
        phantoms: FigureRange { low: 1.0 - part_high, high: 1.0 - part_low },
        mean_s: FigureRange { low: least_s[0].min(least_s[1]), high: most_s[0].max(most_s[1]) },
    }
}

/// F(2E) and the real mean, if the distribution is linear between its corners.
fn interpolated(corners: &[Corner], interval: f64) -> Option<(f64, f64)> {
    let twice = 2.0 * interval;
    let mut part = 0.0;
    let mut sum = 0.0;
    for pair in corners.windows(2) {
        let from = pair[0].time.middle();
        let to = pair[1].time.middle();
        let width = pair[1].quantile - pair[0].quantile;
        if to <= twice {
            part += width;
            sum += width * f64::midpoint(from, to);
        } else {
            let reached = ((twice - from) / (to - from)).clamp(0.0, 1.0);
            part += width * reached;
            sum += width * reached * f64::midpoint(from, twice);
            break;
        }
    }
    (part > 0.0).then(|| (part, (sum + interval * (1.0 - part)) / part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::PrintedPercentile;
    use crate::figure::PrintedFigure;
    use crate::load_tool::LoadTool;
    use proptest::prelude::*;

    /// As wrk does it, on whole microseconds.
    fn corrected(real: &[u64], interval: u64) -> Vec<u64> {
        let mut all = real.to_vec();
        for n in real.iter().filter(|n| **n >= 2 * interval) {
            let mut m = n - interval;
            while m > interval {
                all.push(m);
                m -= interval;
            }
        }
        all.sort_unstable();
        all
    }

    proptest! {
        #[test]
        fn what_wrk_added_is_taken_away_again(mut real in proptest::collection::vec(1_u64..100_000, 50..500)) {
            real.sort_unstable();
            let sum: u64 = real.iter().sum();
            // One connection that is never idle: E is the mean, cut off.
            let interval = (sum / real.len() as u64).max(1);
            let all = corrected(&real, interval);
            let exact = |us: u64| PrintedFigure { value: us as f64 / 1e6, half_width: 1e-9, decimals: 6 };
            let mut claim = Claim::new(LoadTool::Wrk, 1);
            claim.connections = Some(1);
            claim.rate_per_s = Some(PrintedFigure { value: 1e6 / interval as f64, half_width: 1e-9, decimals: 6 });
            claim.max_s = Some(exact(*all.last().unwrap()));
            let n = all.len();
            claim.percentiles = (1..n)
                .map(|k| PrintedPercentile { quantile: k as f64 / n as f64, time_s: exact(all[k - 1]) })
                .collect();
            let corners_end = real.len() as f64 / n as f64;
            let figures = samples(&claim).unwrap().figures;
            let step = 2.0 / n as f64;
            let added = 1.0 - corners_end;
            prop_assert!(
                figures["share_least"] - step <= added && added <= figures["share_most"] + step,
                "{figures:?} {added}"
            );
        }
    }
}
