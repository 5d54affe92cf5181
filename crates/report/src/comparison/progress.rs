//! What is known of a comparison while it goes on.

use model::ComparisonStudy;
use model::comparison::{ComparedMetric, ComparisonFindings, Difference};

use crate::number;

/// What is known of the deciding metrics after a block: how far each arm is from the base, or from
/// the best so far, with intervals once there are enough blocks; for the terminal, while it goes on.
pub fn progress(study: &ComparisonStudy, block: usize) -> String {
    let plan = &study.plan;
    let found = ComparisonFindings::of(plan, &study.runs);
    let best = found.ranking.as_ref().map(|ranking| ranking.best.clone());
    let base = best.unwrap_or_else(|| plan.letter(0));
    let percent = number::deviation;
    let distance = |arm: usize, difference: &Difference| {
        let interval = difference
            .interval
            .map(|[low, high]| format!(" [{}, {}]", percent(low), percent(high)))
            .unwrap_or_default();
        Some(format!("{} {} %{interval}", plan.called(arm), percent(difference.estimate?)))
    };
    let of_metric = |row: &ComparedMetric| {
        let arms = (0..plan.arms.len())
            .filter_map(|arm| distance(arm, &row.seen_from(&base, &plan.letter(arm))?));
        let arms: Vec<String> = arms.collect();
        let base = plan.called_by_letter(&base);
        (!arms.is_empty()).then(|| format!("{} against {base}: {}", row.metric, arms.join(", ")))
    };
    let deciding = found.metrics.iter().filter(|row| row.decides);
    let known: Vec<String> = deciding.filter_map(of_metric).collect();
    let colon = if known.is_empty() { "" } else { ": " };
    format!("block {block} of at most {}{colon}{}", plan.blocks.most(), known.join("; "))
}
