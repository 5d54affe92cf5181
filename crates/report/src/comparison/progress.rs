//! What is known of a comparison while it goes on, in a line for each block.

use model::ComparisonStudy;
use model::comparison::{
    ComparedMetric, ComparisonFindings, ComparisonPlan, ComparisonQuestion, Decision, Difference,
    decision,
};

use crate::number;

/// What is known of the deciding metrics after a block: how far each arm is from the base, with intervals once there are enough blocks; for the terminal, while it goes on.
pub fn progress(study: &ComparisonStudy, block: usize) -> String {
    let plan = &study.plan;
    let found = ComparisonFindings::of(plan, &study.runs);
    let begin = format!("block {block} of at most {}{}", plan.blocks.most(), end(study, block));
    if plan.question == ComparisonQuestion::Best {
        return format!("{begin}{}", figures_of_arms(plan, &found));
    }
    let base = plan.letter(0);
    let percent = number::deviation;
    let distance = |name: String, difference: &Difference| {
        let interval = difference
            .interval
            .map(|[low, high]| format!(" [{}, {}]", percent(low), percent(high)))
            .unwrap_or_default();
        Some(format!("{name} {} %{interval}", percent(difference.estimate?)))
    };
    let of_pairs = |row: &ComparedMetric| {
        let pairs = row.differences.iter().filter_map(|difference| {
            let [base, arm] =
                [&difference.base, &difference.arm].map(|it| plan.called_by_letter(it));
            distance(format!("{arm} against {base}"), difference)
        });
        let pairs: Vec<String> = pairs.collect();
        (!pairs.is_empty()).then(|| format!("{}: {}", row.metric, pairs.join(", ")))
    };
    let of_metric = |row: &ComparedMetric| {
        if plan.question == ComparisonQuestion::Settings {
            return of_pairs(row);
        }
        let arms = (0..plan.arms.len()).filter_map(|arm| {
            distance(plan.called(arm), &row.seen_from(&base, &plan.letter(arm))?)
        });
        let arms: Vec<String> = arms.collect();
        let base = plan.called_by_letter(&base);
        (!arms.is_empty()).then(|| format!("{} against {base}: {}", row.metric, arms.join(", ")))
    };
    let deciding = found.metrics.iter().filter(|row| row.decides);
    let known: Vec<String> = deciding.filter_map(of_metric).collect();
    let colon = if known.is_empty() { "" } else { ": " };
    format!("{begin}{colon}{}", known.join("; "))
}

/// After which block it may end, or that it ends at this one, before the last.
fn end(study: &ComparisonStudy, block: usize) -> String {
    let plan = &study.plan;
    let done = block as u32;
    let most = plan.blocks.most();
    if done < most && decision(plan, &study.runs) == Decision::Decided {
        return ", done as all is clear".to_owned();
    }
    let next = plan.looks().into_iter().find(|look| *look > done && *look < most);
    next.map(|look| format!(", may end after block {look}")).unwrap_or_default()
}

/// `: throughput so far, /s (median of the runs), 2 x 1: 44.0, 2 x 3: 76.5`: the medians so far of the metric that decides which arm
/// is best. Figures can be compared from block to block, whichever arm is ahead.
fn figures_of_arms(plan: &ComparisonPlan, found: &ComparisonFindings) -> String {
    let Some(row) = found.metrics.iter().find(|row| row.decides) else { return String::new() };
    let figure = |arm: usize| {
        let median = row.median(&plan.letter(arm))?;
        Some(format!("{}: {}", plan.called(arm), number::significant(median)))
    };
    let figures: Vec<String> = (0..plan.arms.len()).filter_map(figure).collect();
    if figures.is_empty() {
        return String::new();
    }
    format!(": {} so far, {} (median of the runs), {}", row.metric, row.unit, figures.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::comparison::ComparisonBlocks;

    #[test]
    fn at_a_rate_the_best_arm_has_the_shortest_mean_so_far() {
        let said = progress(&testkit::comparison::searched_threads(), 5);
        assert!(said.contains(": mean so far, ms (median of the runs), 2 x 2: "), "{said}");
    }

    #[test]
    fn the_next_block_that_may_be_the_last_is_named() {
        let mut study = testkit::comparison::slower();
        let begin = |study: &ComparisonStudy, block| {
            let mut study = study.clone();
            study.runs.retain(|run| run.block <= block);
            study.runs.last_mut().unwrap().block = block;
            let said = progress(&study, block as usize);
            said.split(": ").next().unwrap_or_default().to_owned()
        };
        study.plan.blocks = ComparisonBlocks::UntilDecided;
        assert_eq!(begin(&study, 2), "block 2 of at most 20, may end after block 8");
        assert_eq!(begin(&study, 8), "block 8 of at most 20, done as all is clear");
        assert_eq!(begin(&study, 9), "block 9 of at most 20, may end after block 12");
        assert_eq!(begin(&study, 17), "block 17 of at most 20");
        study.plan.blocks = ComparisonBlocks::Fixed(12);
        assert_eq!(begin(&study, 2), "block 2 of at most 12");
    }

    #[test]
    fn where_arms_combine_settings_each_pair_is_told() {
        let mut study = testkit::comparison::combinations();
        study.plan.question = ComparisonQuestion::Settings;
        let said = progress(&study, 9);
        let first = said.split(": ").nth(2).unwrap_or_default();
        assert!(
            said.starts_with("block 9 of at most 9: mean: 6.6.1 -k against 6.6.1 +10.5 % ["),
            "{said}"
        );
        assert_eq!(first.matches(" against ").count(), 4, "{said}");
        assert!(first.contains(", 8.0.2 -k against 8.0.2 +19.4 %"), "{said}");
    }
}
