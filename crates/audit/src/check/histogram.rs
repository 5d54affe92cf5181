//! The histogram against the percentiles of the same output. Both were made from the same samples,
//! so the bins up to a percentile must hold as many samples as its rank says.

use report::number::percentile;

use super::{CheckOutcome, judged};
use crate::claim::Claim;
use crate::figure::{FigureRange, printed_time};
use crate::load_tool::LoadTool;

/// How many ranks tools may be apart in what they call a percentile: some round up, some down, some
/// count from 0.
const RANKS: f64 = 2.0;

/// How many samples of a histogram are at most a printed time; inexact, because bins are not split.
struct CountRange {
    /// Samples that certainly are: those in bins that end below it.
    least: u64,
    /// Samples that may be: also those in bins that begin below it.
    most: u64,
}

/// Each percentile against the bins: about `q n` of `n` samples are at most the percentile at `q`.
pub(super) fn against_percentiles(claim: &Claim) -> Option<CheckOutcome> {
    let total = claim.counted_in_bins();
    if total == 0 || claim.percentiles.is_empty() {
        return None;
    }
    let slack = slack(claim, total);
    let ranks = claim
        .percentile_ranges()
        .map(|(quantile, time)| (quantile, quantile * total as f64, not_above(claim, time)));
    let wrong = ranks.zip(&claim.percentiles).find(|((_, rank, count), _)| {
        (count.most as f64) < rank - slack || count.least as f64 > rank + slack
    });
    let Some(((quantile, rank, count), printed)) = wrong else {
        return judged(
            false,
            false,
            &[("percentiles", claim.percentiles.len() as f64)],
            String::new,
        );
    };
    let figures = [
        ("quantile", quantile),
        ("time_s", printed.time_s.value),
        ("rank", rank),
        ("count_least", count.least as f64),
        ("count_most", count.most as f64),
        ("times", total as f64),
    ];
    judged(true, false, &figures, || {
        let name = percentile(quantile);
        let time = printed_time(printed.time_s.value);
        let counted = match (count.least, count.most) {
            (least, most) if least == most => least.to_string(),
            (least, most) => format!("{least} to {most}"),
        };
        format!(
            "{name} is {time}: about {rank:.0} of {total} times are at most that, and by the \
             histogram {counted} are."
        )
    })
}

/// How many ranks a percentile may be off. hey goes through its sorted times and takes at most one
/// percentile from each, so with few times its percentiles are too high.
fn slack(claim: &Claim, total: u64) -> f64 {
    let few = claim.tool == LoadTool::Hey && total < 100;
    RANKS + if few { claim.percentiles.len() as f64 } else { 0.0 }
}

/// How many samples of the histogram are at most `time`, which is a range, as are the rounded edges
/// of the bins. The edge that oha prints may be the lower or the upper end of its bin.
fn not_above(claim: &Claim, time: FigureRange) -> CountRange {
    let spread = usize::from(claim.tool == LoadTool::Oha);
    let ends: Vec<FigureRange> = claim.bins.iter().map(|bin| bin.up_to_s.range()).collect();
    let mut least = 0_u64;
    let mut most = 0_u64;
    for (at, bin) in claim.bins.iter().enumerate() {
        let end = ends[(at + spread).min(ends.len() - 1)];
        let begin = at.checked_sub(1 + spread).map_or(0.0, |before| ends[before].low);
        if end.high < time.low {
            least = least.saturating_add(bin.count);
        }
        if begin <= time.high {
            most = most.saturating_add(bin.count);
        }
    }
    CountRange { least, most }
}
