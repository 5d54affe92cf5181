//! Checks of times: the mean against the rate (Little's law), the percentiles against both, the
//! bins against the mean, the order of all of them, and the standard deviation.

use report::number::{percentile, significant, times};

use super::{ABSENT, CheckOutcome, judged, unchecked};
use crate::claim::Claim;
use crate::figure::{FigureRange, PrintedFigure};
use crate::figure::{printed_rate, printed_time, time};
use crate::load_tool::LoadTool;

/// A ratio up to this far above 1 may come from requests in flight at the two ends of the run.
const EDGE: f64 = 0.01;
/// A ratio further above 1 than this is impossible: the ends of the run cannot explain it.
const IMPOSSIBLE: f64 = 0.05;
/// If it is this far below 1, connections that should have been busy were not.
const OWN_TIME: f64 = 0.05;
/// If rounding leaves a wider range than this, the check says nothing.
const COARSE: f64 = 0.25;

/// Little's law: in a closed loop without think time, rate x mean = requests at once.
///
/// It is strict on one side. Each connection is busy with one request at a time, so the times of
/// all requests add up to at most connections x duration: more is impossible. It is less if the
/// generator itself took time between a response and the next request, or if a connection that had
/// sent its part of a fixed count was idle. (J. D. C. Little, 1961.)
pub(super) fn littles_law(claim: &Claim) -> Option<CheckOutcome> {
    if claim.answers.is_empty() && claim.mean_s.is_none() && claim.rate_per_s.is_none() {
        return None;
    }
    if !claim.tool.is_closed_loop() {
        return unchecked(match claim.tool {
            LoadTool::Wrk2 | LoadTool::Longtail => {
                "times run from when a request was due: more may be under way than connections"
            }
            _ => "open loop: how many requests are under way is not limited",
        });
    }
    let Some(mean) = claim.mean_s else { return unchecked("no mean") };
    let Some(at_once) = claim.at_once() else { return unchecked("connections are not stated") };
    let Some(rate) = claim.timed_rate() else { return unchecked("no rate of responses") };
    let allowed = rate.times(mean.range()).scaled(1.0 / at_once as f64);
    let under_way = rate.middle() * mean.value;
    let ratio = under_way / at_once as f64;
    let cycle_s = FigureRange::exactly(at_once as f64).over(rate)?.middle();
    let is_impossible = allowed.low > 1.0 + IMPOSSIBLE;
    let is_doubtful = allowed.low > 1.0 + EDGE || is_idle(claim, allowed.high);
    if !is_impossible && !is_doubtful && allowed.high - allowed.low > COARSE * allowed.middle() {
        return unchecked("the mean has too few digits");
    }
    let figures = [
        ("rate_per_s", rate.middle()),
        ("mean_s", mean.value),
        ("at_once", at_once as f64),
        ("in_flight", under_way),
        ("ratio", ratio),
        ("ratio_least", allowed.low),
        ("ratio_most", allowed.high),
        ("cycle_s", cycle_s),
    ];
    judged(is_impossible, is_doubtful, &figures, || {
        let rate = printed_rate(rate.middle());
        let mean = printed_time(mean.value);
        let product = format!("{rate} x {mean} is {} requests at once", significant(under_way));
        let [low, high] = [allowed.low, allowed.high].map(times);
        let rounded = if low == high {
            "however it was rounded".to_owned()
        } else {
            format!("{low} to {high} as rounded")
        };
        let shown = times(ratio);
        let cycle = time(cycle_s);
        if ratio >= 1.0 {
            return format!(
                "{product}, and there can be {at_once}: {shown} times too many ({rounded}). At \
                 that rate the true mean is {cycle} at the most."
            );
        }
        let otherwise = if claim.asked.is_some() {
            "connects, waits for the generator, or has sent its part and is done"
        } else {
            "connects or waits for the generator"
        };
        format!(
            "{product}, of {at_once} that there should be: {shown} times ({rounded}). A \
             connection sends every {cycle} on average; for the rest of that it {otherwise}."
        )
    })
}

/// Whether connections that should have been busy were not. Those of a paced load may idle.
fn is_idle(claim: &Claim, busy_at_most: f64) -> bool {
    claim.offered_per_s.is_none() && busy_at_most < 1.0 - OWN_TIME
}

/// The range of means that a distribution allows; the upper end is unknown without the longest
/// time.
struct ForcedMean {
    by: &'static str,
    least_s: f64,
    most_s: Option<f64>,
}

impl ForcedMean {
    /// Compares it with a mean, which `said` describes.
    fn against(
        &self,
        mean_s: f64,
        said: &str,
        is_impossible: bool,
        is_doubtful: bool,
    ) -> Option<CheckOutcome> {
        let ForcedMean { by, least_s, most_s } = *self;
        let figures =
            [("least_s", least_s), ("most_s", most_s.unwrap_or(ABSENT)), ("mean_s", mean_s)];
        judged(is_impossible, is_doubtful, &figures, || {
            let most =
                most_s.map_or_else(String::new, |most| format!(" and {} at the most", time(most)));
            format!("{by} force a mean of {} at the least{most}; {said}.", time(least_s))
        })
    }

    fn against_printed(&self, printed: PrintedFigure) -> Option<CheckOutcome> {
        let mean = printed.range();
        let is_outside =
            mean.high < self.least_s || self.most_s.is_some_and(|most| mean.low > most);
        let said = format!("the printed mean is {}", printed_time(printed.value));
        self.against(printed.value, &said, is_outside, false)
    }
}

/// What is above p90 took at least p90's time, and what is below it at most that.
///
/// With percentiles t₁ ≤ t₂ ≤ … at q₁ < q₂ < …, shortest t₀ and longest tₙ₊₁: Σ tᵢ (qᵢ₊₁ − qᵢ) ≤
/// mean ≤ Σ tᵢ₊₁ (qᵢ₊₁ − qᵢ), with one sample's worth of slack in each q, because tools differ in
/// how they count ranks.
fn forced_by_percentiles(claim: &Claim) -> Option<ForcedMean> {
    if claim.percentiles.is_empty() {
        return None;
    }
    let slack = claim.samples.or(claim.ended()).filter(|n| *n > 0).map_or(0.0, |n| 1.0 / n as f64);
    let mut least = 0.0;
    let mut from = 0.0_f64;
    let mut time = claim.min_s.map_or(0.0, |min| min.range().low);
    for (quantile, range) in claim.percentile_ranges() {
        let to = (quantile + slack).clamp(from, 1.0);
        least += time * (to - from);
        from = to;
        time = time.max(range.low);
    }
    least += time * (1.0 - from);
    let most = claim.max_s.map(|max| {
        let mut to = 1.0_f64;
        let mut time = max.range().high;
        let mut most = 0.0;
        for (quantile, range) in claim.percentile_ranges().rev() {
            let from = (quantile - slack).clamp(0.0, to);
            most += time * (to - from);
            to = from;
            time = time.min(range.high);
        }
        most + time * to
    });
    Some(ForcedMean { by: "its percentiles", least_s: least, most_s: most })
}

pub(super) fn percentiles_against_rate(claim: &Claim) -> Option<CheckOutcome> {
    let forced = forced_by_percentiles(claim)?;
    if !claim.tool.is_closed_loop() {
        return None;
    }
    let Some(cycle) = claim.cycle_s() else { return unchecked("connections are not stated") };
    let is_below = forced.most_s.is_some_and(|most| is_idle(claim, most / cycle.low));
    let said = format!("connections / rate leaves {}", time(cycle.middle()));
    forced.against(cycle.middle(), &said, forced.least_s > cycle.high * (1.0 + EDGE), is_below)
}

pub(super) fn percentiles_against_mean(claim: &Claim) -> Option<CheckOutcome> {
    forced_by_percentiles(claim)?.against_printed(claim.mean_s?)
}

/// Bins bound the mean as percentiles do. hey's first bin has only the fastest request.
pub(super) fn histogram_against_mean(claim: &Claim) -> Option<CheckOutcome> {
    let total = claim.counted_in_bins();
    if total == 0 {
        return None;
    }
    let mut low = claim.min_s.map_or(0.0, |min| min.range().low);
    let mut least = 0.0;
    let mut most = 0.0;
    for bin in &claim.bins {
        let share = bin.count as f64 / total as f64;
        let edge = bin.up_to_s.range();
        least += share * low.min(edge.high);
        most += share * edge.high;
        low = edge.low;
    }
    ForcedMean { by: "its bins", least_s: least, most_s: Some(most) }.against_printed(claim.mean_s?)
}

/// Percentiles rise; they and the mean lie between the shortest and the longest.
pub(super) fn order(claim: &Claim) -> Option<CheckOutcome> {
    let named =
        |name: &str, figure: Option<PrintedFigure>| figure.map(|figure| (name.to_owned(), figure));
    let shortest = named("shortest", claim.min_s);
    let mean = named("mean", claim.mean_s);
    let longest = named("longest", claim.max_s);
    let percentiles = claim.percentiles.iter().map(|p| (percentile(p.quantile), p.time_s));
    let ladder: Vec<_> =
        shortest.clone().into_iter().chain(percentiles).chain(longest.clone()).collect();
    let mut pairs: Vec<_> =
        ladder.windows(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    pairs.extend(shortest.zip(mean.clone()));
    pairs.extend(mean.zip(longest));
    if pairs.is_empty() {
        return None;
    }
    let error = claim.tool.percentile_error();
    let wrong = pairs.iter().find(|((_, lower), (_, upper))| {
        lower.range().widened(error).low > upper.range().widened(error).high
    });
    let Some(((lower, lower_s), (upper, upper_s))) = wrong else {
        return judged(false, false, &[("figures", pairs.len() as f64 + 1.0)], String::new);
    };
    let figures = [("lower_s", lower_s.value), ("upper_s", upper_s.value)];
    let [low, high] = figures.map(|(_, time)| printed_time(time));
    judged(true, false, &figures, || format!("the {lower} is {low} and yet the {upper} is {high}."))
}

/// The largest standard deviation that a mean between two ends allows: √((longest − mean)(mean −
/// shortest)), reached if each time is one of the two ends (Bhatia and Davis, 2000).
pub(super) fn spread(claim: &Claim) -> Option<CheckOutcome> {
    let stdev = claim.stdev_s?;
    let (Some(mean), Some(max)) = (claim.mean_s, claim.max_s) else {
        return unchecked("mean or longest is missing");
    };
    let mean = mean.range();
    let max = max.range();
    let min = claim.min_s.map_or(0.0, |min| min.range().low);
    // The product is largest where the mean is in the middle; if the range of the mean excludes the
    // middle, at the end that is nearer to it.
    let middle = f64::midpoint(min, max.high).clamp(mean.low, mean.high);
    let largest = ((max.high - middle).max(0.0) * (middle - min).max(0.0)).sqrt();
    // Some tools divide by n − 1 instead of n.
    let correction = claim
        .samples
        .or(claim.ended())
        .filter(|n| *n > 1)
        .map_or(1.0, |n| n as f64 / (n - 1) as f64);
    let most_s = largest * correction.sqrt();
    judged(
        stdev.range().low > most_s,
        false,
        &[("stdev_s", stdev.value), ("most_s", most_s)],
        || {
            let stdev = printed_time(stdev.value);
            let most = time(most_s);
            format!("{stdev} is printed; with this mean and longest it is at most {most}.")
        },
    )
}
