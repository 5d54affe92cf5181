//! The analysis of simulated studies whose true differences are known.

use std::collections::BTreeMap;

use super::plan::tests::plan;
use super::*;
use crate::pace::uniform;
use crate::test_fixtures;

/// How the figures of a simulated study are distributed.
#[derive(Clone, Copy)]
struct Law {
    /// Standard deviation of the logarithm from run to run.
    noise: f64,
    /// How much longer B takes.
    effect: f64,
    /// How much longer all runs take from one block to the next.
    drift: f64,
    /// How much longer the first run of a block takes.
    first: f64,
}

const EQUAL: Law = Law { noise: 0.1, effect: 0.0, drift: 0.0, first: 0.0 };

/// The figures of a study. The times share half of their noise variance; CPU and memory have their
/// own.
fn study(
    plan: &ComparisonPlan,
    law: Law,
    seed: u64,
) -> impl Fn(Metric, u32, usize) -> Option<Result<f64, MissingFigure>> + use<> {
    let orders: BTreeMap<u32, Vec<usize>> =
        (1..=plan.blocks.most()).map(|block| (block, plan.order(block))).collect();
    move |metric, block, arm| {
        let place = orders[&block].iter().position(|other| *other == arm)?;
        let normal = |stream: u64| {
            test_fixtures::normal(seed, stream << 32 | u64::from(block) << 8 | arm as u64)
        };
        let own = normal(1 + metric as u64);
        let noise = match metric {
            Metric::Cpu | Metric::Memory => own,
            // In a closed loop throughput follows from the mean.
            Metric::Throughput | Metric::Mean => normal(0),
            _ => (normal(0) + own) / 2f64.sqrt(),
        };
        let effect = if arm == 1 { law.effect } else { 0.0 };
        let first = if place == 0 { law.first } else { 0.0 };
        let time = (effect.ln_1p() + first.ln_1p() + law.noise * noise).exp()
            * (1.0 + law.drift * f64::from(block));
        match metric {
            Metric::Throughput => Some(Ok(1.0 / time)),
            Metric::Slow | Metric::Workers | Metric::GeneratorCpu => {
                Some(Err(MissingFigure::NotKnown))
            }
            Metric::Failed => Some(Ok(0.0)),
            _ => Some(Ok(time)),
        }
    }
}

/// Runs a comparison until it is decided.
fn conducted(plan: &ComparisonPlan, law: Law, seed: u64) -> ComparisonFindings {
    let figures = study(plan, law, seed);
    for look in plan.looks() {
        let found = ComparisonFindings::of_figures(plan, look, &figures);
        if found.is_decided() || look == plan.blocks.most() {
            return found;
        }
    }
    unreachable!("the last look decides")
}

fn has_alarm(found: &ComparisonFindings) -> bool {
    let is_alarm = |it: &Difference| {
        matches!(it.verdict, ComparisonVerdict::Worse | ComparisonVerdict::Better)
    };
    found.metrics.iter().flat_map(|row| &row.differences).any(is_alarm)
}

fn share(of: u64, holds: impl Fn(u64) -> bool) -> f64 {
    (1..=of).filter(|seed| holds(*seed)).count() as f64 / of as f64
}

fn fixed(blocks: u32) -> ComparisonPlan {
    ComparisonPlan { blocks: ComparisonBlocks::Fixed(blocks), ..plan() }
}

fn of_mean(found: &ComparisonFindings) -> ComparisonVerdict {
    found
        .metric(Metric::Mean)
        .map_or(ComparisonVerdict::CannotTell, |row| row.differences[0].verdict)
}

#[test]
fn equal_arms_are_rarely_called_different() {
    // Noise of twice the margin; below that, the margin alone prevents most false alarms.
    let without = ComparisonPlan { control: false, ..plan() };
    for (plan, law) in [
        (&plan(), EQUAL),
        (&fixed(8), EQUAL),
        (&without, EQUAL),
        (&plan(), Law { drift: 0.02, first: 0.1, ..EQUAL }),
    ] {
        let alarms = share(400, |seed| has_alarm(&conducted(plan, law, seed)));
        assert!(
            alarms <= 0.05,
            "{:?}, drift {}: {alarms} over all looks and metrics",
            plan.blocks,
            law.drift
        );
    }
}

#[test]
fn drift_and_order_change_no_verdict() {
    for (effect, verdict) in [(0.0, ComparisonVerdict::Same), (0.1, ComparisonVerdict::Worse)] {
        let law = Law { noise: 0.01, effect, drift: 0.02, first: 0.1 };
        for seed in 1..=50 {
            let found = conducted(&plan(), law, seed);
            assert_eq!(of_mean(&found), verdict, "seed {seed}");
            let first = found.metric(Metric::Mean).and_then(|row| row.first_run);
            assert!(
                first.is_some_and(|first| (0.08..0.13).contains(&first)),
                "seed {seed}: {first:?}"
            );
        }
    }
}

#[test]
fn the_figures_of_an_arm_are_those_of_its_runs() {
    // Half of its runs are the first of their block, and take a tenth longer.
    let plan = ComparisonPlan { control: false, ..fixed(8) };
    let law = Law { noise: 0.0, first: 0.1, ..EQUAL };
    let found = conducted(&plan, law, 1);
    let mean = found.metric(Metric::Mean).unwrap();
    assert!(mean.first_run.is_some_and(|first| (first - 0.1).abs() < 1e-4), "{mean:?}");
    let alike = conducted(&plan, Law { first: 0.0, ..law }, 1);
    let alike = alike.metric(Metric::Mean).unwrap();
    let longer = mean.medians["A"].unwrap() / alike.medians["A"].unwrap();
    assert!((longer - 1.1_f64.sqrt()).abs() < 1e-3, "{longer}");
}

/// Shares of "worse" by noise and by how much slower B is, as listed in docs/compare.md.
#[test]
fn slower_arms_are_found() {
    for (noise, effect, least) in [
        (0.01, 0.075, 0.99),
        (0.02, 0.075, 0.99),
        (0.03, 0.075, 0.95),
        (0.03, 0.1, 0.99),
        (0.05, 0.075, 0.85),
        (0.05, 0.1, 0.99),
    ] {
        let law = Law { noise, effect, ..EQUAL };
        let found =
            share(100, |seed| of_mean(&conducted(&plan(), law, seed)) == ComparisonVerdict::Worse);
        assert!(found >= least, "noise {noise}, {effect} slower: {found}");
    }
    // At the margin itself it may be "worse" or not be told, but rarely "same".
    let law = Law { noise: 0.02, effect: 0.05, ..EQUAL };
    assert!(
        share(100, |seed| of_mean(&conducted(&plan(), law, seed)) == ComparisonVerdict::Same)
            <= 0.05
    );
}

#[test]
fn an_undecided_difference_says_what_could_have_been_shown() {
    let found = conducted(&fixed(8), Law { noise: 0.1, effect: 0.05, ..EQUAL }, 3);
    let difference = &found.metric(Metric::Mean).unwrap().differences[0];
    assert_eq!(
        (difference.verdict, difference.doubt),
        (ComparisonVerdict::CannotTell, Some(ComparisonDoubt::Noise))
    );
    assert!(
        difference.smallest.is_some_and(|smallest| (0.05..0.3).contains(&smallest)),
        "{difference:?}"
    );
    assert!(
        difference.blocks_needed.is_some_and(|blocks| (20..200).contains(&blocks)),
        "{difference:?}"
    );
    // Three blocks can't show anything.
    let few = ComparisonFindings::of_figures(&fixed(3), 3, &study(&fixed(3), EQUAL, 1));
    assert_eq!(
        few.metric(Metric::Mean).unwrap().differences[0].doubt,
        Some(ComparisonDoubt::FewBlocks { least: 6 })
    );
}

#[test]
fn a_run_without_a_figure_is_not_left_out_silently() {
    let whole = study(&fixed(8), Law { noise: 0.01, effect: 0.3, ..EQUAL }, 1);
    let failing = |metric: Metric, block, arm| match (metric, block, arm) {
        (Metric::Mean, 5, 1) => Some(Err(MissingFigure::Failures)),
        // Half of the requests of B fail.
        (Metric::Failed, _, 1) => Some(Ok(0.5)),
        _ => whole(metric, block, arm),
    };
    let found = ComparisonFindings::of_figures(&fixed(8), 8, &failing);
    let mean = found.metric(Metric::Mean).unwrap();
    let doubt = ComparisonDoubt::Missing { figure: MissingFigure::Failures, runs: 1 };
    assert_eq!(
        (mean.differences[0].verdict, mean.differences[0].doubt),
        (ComparisonVerdict::CannotTell, Some(doubt))
    );
    let failed = &found.metric(Metric::Failed).unwrap().differences[0];
    assert_eq!((failed.verdict, failed.estimate), (ComparisonVerdict::Worse, Some(0.5)));
    assert!(found.is_worse() && found.cannot_tell() && !found.is_decided());
}

#[test]
fn an_overloaded_run_counts_as_slower_than_any_other() {
    // B is so much slower, and these runs of A, as of its control, and of B are overloaded.
    let found = |effect: f64, of_a: &'static [u32], of_b: &'static [u32]| {
        let whole = study(&fixed(8), Law { noise: 0.01, effect, ..EQUAL }, 1);
        let overloaded = move |metric: Metric, block: u32, arm: usize| {
            let is_overloaded =
                [of_a, of_b, of_a].get(arm).is_some_and(|runs| runs.contains(&block));
            if metric == Metric::Mean && is_overloaded {
                return Some(Err(MissingFigure::Overloaded));
            }
            whole(metric, block, arm)
        };
        let found = ComparisonFindings::of_figures(&fixed(8), 8, &overloaded);
        let mean = found.metric(Metric::Mean).unwrap();
        (mean.differences[0].clone(), mean.median("B"), mean.overloaded.clone())
    };
    let all = &[1, 2, 3, 4, 5, 6, 7, 8];
    let (worse, cannot_tell) = (ComparisonVerdict::Worse, ComparisonVerdict::CannotTell);

    let (difference, median, runs) = found(0.3, &[], &[5]);
    assert_eq!((difference.verdict, difference.doubt), (worse, None));
    assert!(difference.estimate.is_some_and(|part| (0.25..0.4).contains(&part)), "{difference:?}");
    assert_eq!((difference.interval, median.is_some()), (None, true), "no end above is known");
    assert_eq!(runs, [("B".to_owned(), 1)].into());

    let (difference, median, _) = found(0.0, &[], all);
    assert_eq!((difference.verdict, difference.estimate, median), (worse, None, None));
    let (difference, ..) = found(0.0, all, &[]);
    assert_eq!((difference.verdict, difference.estimate), (ComparisonVerdict::Better, None));

    let verdict = |effect, of_a, of_b| found(effect, of_a, of_b).0.verdict;
    assert_eq!(verdict(0.0, &[], &[5]), cannot_tell, "one run may be chance");
    assert_eq!(verdict(-0.3, &[], &[5]), cannot_tell, "it is faster but for one run");
    let (difference, ..) = found(0.3, &[2], &[5]);
    let doubt = ComparisonDoubt::Missing { figure: MissingFigure::Overloaded, runs: 2 };
    assert_eq!((difference.verdict, difference.doubt), (cannot_tell, Some(doubt)));
}

/// Whoever has seen the figures may choose what is clear by chance.
#[test]
fn a_metric_that_is_chosen_after_the_runs_is_no_more_certain_than_before() {
    let planned = fixed(8);
    let chosen = ComparisonPlan {
        gates: vec![Metric::P99],
        gates_chosen_later: true,
        gates_before_runs: planned.deciding(),
        ..planned.clone()
    };
    for seed in 1..=50 {
        let law = Law { noise: 0.05, effect: 0.08, ..EQUAL };
        let [before, after] = [&planned, &chosen].map(|plan| conducted(plan, law, seed));
        for metric in [Metric::Mean, Metric::P99, Metric::Cpu] {
            let [before, after] =
                [&before, &after].map(|found| found.metric(metric).unwrap().differences.clone());
            assert_eq!(before, after, "seed {seed}, {metric}");
        }
        assert!(after.metric(Metric::P99).unwrap().decides);
    }
}

/// It is certain that there is one where every block has it, and the control has none of its own.
#[test]
fn a_difference_within_the_noise_of_the_control_has_its_direction_in_every_block() {
    let found = |control: [f64; 8]| {
        let figures = move |metric: Metric, block: u32, arm: usize| {
            let base = 1.0 + 0.001 * f64::from(block);
            let of_metric = match arm {
                0 => base,
                1 => base * 1.1,
                _ => base * control[block as usize - 1],
            };
            Some(Ok(if metric == Metric::Mean { of_metric } else { 1.0 }))
        };
        let found = ComparisonFindings::of_figures(&fixed(8), 8, &figures);
        let mean = found.metric(Metric::Mean).unwrap().differences[0].clone();
        assert_eq!(mean.doubt, Some(ComparisonDoubt::Control), "{mean:?}");
        mean.is_in_every_block
    };
    assert!(found([0.7, 1.4, 0.8, 1.3, 0.75, 1.35, 0.9, 1.2]));
    assert!(!found([1.09, 1.12, 1.08, 1.11, 1.09, 1.1, 1.12, 1.1]), "something drifts");
}

#[test]
fn a_difference_that_the_control_also_shows_is_not_real() {
    // The control is as far from the base as B is.
    let law = Law { noise: 0.01, effect: 0.1, ..EQUAL };
    let whole = study(&fixed(8), law, 1);
    let shifted = |metric: Metric, block, arm: usize| {
        let shift = if arm == 2 && metric != Metric::Failed { 1.1 } else { 1.0 };
        whole(metric, block, arm).map(|figure| figure.map(|figure| figure * shift))
    };
    let found = ComparisonFindings::of_figures(&fixed(8), 8, &shifted);
    let row = found.metric(Metric::Mean).unwrap();
    assert_eq!(row.differences[0].doubt, Some(ComparisonDoubt::Control));
    let is_shown = |difference: &Difference| difference.interval.is_some_and(excludes_zero);
    assert!(is_shown(&row.differences[0]) && row.control.as_ref().is_some_and(is_shown));
}

#[test]
fn the_best_of_four_is_named_with_the_arms_that_may_be_as_good() {
    let arm = plan().arms[0].clone();
    let plan = ComparisonPlan {
        question: ComparisonQuestion::Best,
        arms: vec![arm; 4],
        control: false,
        blocks: ComparisonBlocks::Fixed(8),
        ..plan()
    };
    // Two at 100 requests per second, one at 80, one at 60.
    let figures = |metric: Metric, block: u32, arm: usize| {
        let noise = 1.0 + 0.02 * uniform(block.into(), arm as u64);
        let rate = [60.0, 100.0, 100.0, 80.0][arm] * noise;
        Some(if metric == Metric::Throughput { Ok(rate) } else { Err(MissingFigure::NotKnown) })
    };
    let found = ComparisonFindings::of_figures(&plan, 8, &figures);
    assert_eq!(found.metric(Metric::Throughput).unwrap().differences.len(), 6);
    let ranking = found.ranking.as_ref().unwrap();
    assert!(ranking.best == "B" || ranking.best == "C", "{ranking:?}");
    assert_eq!((ranking.level_with.len(), ranking.ahead_of.len()), (1, 2), "{ranking:?}");
}

/// Three arms, each compared with each other.
fn in_pairs(blocks: ComparisonBlocks) -> ComparisonPlan {
    let arm = plan().arms[0].clone();
    let question = ComparisonQuestion::Pairs;
    ComparisonPlan { question, arms: vec![arm; 3], blocks, ..plan() }
}

#[test]
fn all_pairs_of_equal_arms_together_are_rarely_called_different() {
    let plan = in_pairs(ComparisonBlocks::UntilDecided);
    let alarms = share(200, |seed| has_alarm(&conducted(&plan, EQUAL, seed)));
    assert!(alarms <= 0.05, "{alarms} over all pairs, looks and metrics");
}

#[test]
fn the_best_of_equal_arms_is_rarely_ahead_of_any() {
    let arms = vec![plan().arms[0].clone(); 4];
    let question = ComparisonQuestion::Best;
    let plan = ComparisonPlan { question, arms, control: false, ..plan() };
    assert_eq!(plan.looks(), [10, 12, 16, 20]);
    let alarms = share(400, |seed| has_alarm(&conducted(&plan, EQUAL, seed)));
    assert!(alarms <= 0.05, "{alarms} over all pairs and looks");
}

#[test]
fn too_few_blocks_tell_of_other_metrics_where_all_runs_are_apart() {
    // Eight blocks are too few for the signed ranks of so many metrics and pairs.
    let plan = in_pairs(ComparisonBlocks::Fixed(8));
    let verdict = |effect| {
        let found = conducted(&plan, Law { noise: 0.02, effect, ..EQUAL }, 1);
        let p99 = found.metric(Metric::P99).unwrap().difference("A", "B").unwrap().clone();
        (p99.verdict, p99.doubt.is_some())
    };
    assert_eq!(verdict(-0.5), (ComparisonVerdict::Better, false));
    assert_eq!(verdict(1.0), (ComparisonVerdict::Worse, false));
    assert_eq!(verdict(0.02), (ComparisonVerdict::CannotTell, true));
    let alarms = share(200, |seed| has_alarm(&conducted(&plan, EQUAL, seed)));
    assert!(alarms <= 0.05, "{alarms} of equal arms");
}

#[test]
fn among_pairs_only_those_with_the_base_decide_the_result() {
    // B is 20 % faster than A and C, so that C is worse than B, and as good as the base.
    let plan = in_pairs(ComparisonBlocks::Fixed(12));
    let found = conducted(&plan, Law { noise: 0.01, effect: -0.2, ..EQUAL }, 1);
    let row = found.metric(Metric::Mean).unwrap();
    let verdicts = [("A", "B"), ("A", "C"), ("B", "C")]
        .map(|(base, arm)| row.difference(base, arm).map(|difference| difference.verdict));
    let expected = [ComparisonVerdict::Better, ComparisonVerdict::Same, ComparisonVerdict::Worse];
    assert_eq!(verdicts, expected.map(Some));
    assert!(!found.is_worse());
    let slower = conducted(&plan, Law { noise: 0.01, effect: 0.2, ..EQUAL }, 1);
    assert!(slower.is_worse());
}

#[test]
fn where_the_best_is_asked_for_no_arm_counts_as_worse() {
    let best = ComparisonPlan {
        question: ComparisonQuestion::Best,
        control: false,
        ..in_pairs(ComparisonBlocks::Fixed(12))
    };
    let found = conducted(&best, Law { noise: 0.01, effect: 0.2, ..EQUAL }, 1);
    let row = found.metric(Metric::Throughput).unwrap();
    assert_eq!(row.difference("A", "B").unwrap().verdict, ComparisonVerdict::Worse);
    assert!(!found.is_worse());
}

#[test]
fn a_mean_that_the_throughput_does_not_show_is_no_difference() {
    let plan = ComparisonPlan { blocks: ComparisonBlocks::Fixed(10), ..plan() };
    // B's requests take 5 % less by their times, and 1 % by the throughput: A's runs were too short
    // for its longest ones.
    let law = Law { noise: 0.01, effect: -0.05, ..EQUAL };
    let figures = study(&plan, law, 1);
    let short = |metric, block, arm| match (metric, arm) {
        (Metric::Throughput, 1) => figures(metric, block, arm).map(|it| it.map(|it| it * 0.96)),
        _ => figures(metric, block, arm),
    };
    let verdict = |found: &ComparisonFindings| {
        let difference = found.metric(Metric::Mean).unwrap().difference("A", "B").unwrap();
        (difference.verdict, difference.doubt)
    };
    let fitting = ComparisonFindings::of_figures(&plan, 10, &figures);
    assert_eq!(verdict(&fitting), (ComparisonVerdict::Better, None));
    let found = ComparisonFindings::of_figures(&plan, 10, &short);
    let unclear = (ComparisonVerdict::CannotTell, Some(ComparisonDoubt::ShortRuns));
    assert_eq!(verdict(&found), unclear);
}
