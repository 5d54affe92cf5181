//! The analysis of a comparison: for each metric, the figures of each arm, how far they are from
//! the base, and whether that is a real difference.
//!
//! Runs of the same block are compared: d = ln(B / A), or B - A for shares. The deciding metrics
//! share the chance of a false alarm of each look (Holm, Scandinavian Journal of Statistics 6,
//! 1979). So do the other metrics, which are tested once, at the end: all of them where a control
//! runs, and the 99th percentile where the best arm at a rate is asked for. One of them that is chosen to
//! decide after the runs stays among them: its figures were known. Each interval belongs to its test: it
//! excludes 0 exactly if the test does.
//!
//! An overloaded run has no response times, as they grow for as long as it lasts. They are longer than
//! any that were measured, and that is enough for a test by ranks: where runs of only one of two arms
//! are overloaded, each counts as infinitely slow. What is infinite then is not printed.

use std::collections::BTreeMap;

use serde::Serialize;
use strum::VariantArray as _;

use super::plan::LEVEL;
use super::ranks::{RankTest, least_blocks, median};
use super::{ArmPair, ComparisonPlan, ComparisonQuestion, ComparisonRun, Decision, Metric};
use super::{MissingFigure, TwoValues, counted};
use crate::steadiness::mean;

/// What a comparison concludes about a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonVerdict {
    /// It is worse than the base, by more than the margin.
    Worse,
    /// It is better than the base, by more than the margin.
    Better,
    /// Whatever the difference is, it is within the margin.
    Same,
    /// None of these can be concluded.
    CannotTell,
}

impl ComparisonVerdict {
    /// The conclusion about a difference of `metric` with this interval and estimate, if one up to
    /// `margin` does not matter.
    pub fn of(metric: Metric, interval: [f64; 2], estimate: f64, margin: f64) -> ComparisonVerdict {
        /// A change that is printed as the margin does not exceed it: by logarithms 380 of 400 responses
        /// are a little more than 5 % fewer.
        const PRINTED: f64 = 1e-5;
        if interval.into_iter().all(|end| end.abs() < margin) {
            ComparisonVerdict::Same
        } else if !excludes_zero(interval) || estimate.abs() < margin + PRINTED {
            ComparisonVerdict::CannotTell
        } else if (estimate < 0.0) == metric.is_worse_when_less() {
            ComparisonVerdict::Worse
        } else {
            ComparisonVerdict::Better
        }
    }
}

/// Whether all of an interval is on one side of 0: there is a difference.
pub fn excludes_zero([low, high]: [f64; 2]) -> bool {
    low > 0.0 || high < 0.0
}

/// Why a difference cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum ComparisonDoubt {
    /// This number of blocks can't show anything; `least` could.
    FewBlocks {
        /// The fewest blocks that could.
        least: u32,
    },
    /// Runs that count have no figure.
    Missing {
        /// Why.
        figure: MissingFigure,
        /// How many runs of both arms.
        runs: u32,
    },
    /// The control, which is the same as the base, may differ from it as much.
    Control,
    /// The mean response times do not fit the throughput (Little's law): the runs are short against
    /// the longest requests.
    ShortRuns,
    /// The runs differ too much from block to block.
    Noise,
}

/// How far one arm is from another in a metric, relative to the base's figure (.05 is 5 % more);
/// differences of shares are shares. Arms are letters; the control is the base's letter with a
/// prime.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The arm that it is compared with.
    pub base: String,
    /// Which arm.
    pub arm: String,
    /// Blocks that have both.
    pub blocks: u32,
    /// Hodges and Lehmann's estimate; `None` without blocks.
    pub estimate: Option<f64>,
    /// If the changes of the blocks are of two kinds, both of them, as shares of the base's figure: the
    /// estimate may then be a change that no block had.
    #[serde(skip)]
    pub two_changes: Option<TwoValues>,
    /// Whether every run of one arm is beyond every run of the other.
    #[serde(skip)]
    pub is_in_every_run: bool,
    /// In how many blocks it is beyond the margin, in the direction of the estimate.
    #[serde(skip)]
    pub blocks_beyond_margin: u32,
    /// The ends of its interval; `None` if there are too few blocks for its level.
    pub interval: Option<[f64; 2]>,
    /// If runs of one arm are overloaded, so that the interval has only one end, and that end is on one
    /// side of 0: that end. The difference is at least as large.
    #[serde(skip)]
    pub at_least: Option<f64>,
    /// The chance that the interval misses the difference.
    pub level: f64,
    /// If the interval was visibly widened to what the throughputs show of a difference of means, by
    /// more than a fifth of the margin: of what it was made.
    #[serde(skip)]
    pub widened: Option<WidenedInterval>,
    /// Whether it is certain that there is a difference, though the control may show as much: every
    /// block has it in the same direction, and the control does not certainly differ from the base.
    #[serde(skip)]
    pub is_in_every_block: bool,
    /// A difference up to this does not matter.
    #[serde(skip)]
    pub margin: f64,
    /// The conclusion.
    pub verdict: ComparisonVerdict,
    /// Why it cannot be told; `None` if it can.
    pub doubt: Option<ComparisonDoubt>,
    /// If it cannot be told, the smallest difference that these blocks could have shown.
    pub smallest: Option<f64>,
    /// If it cannot be told, about how many blocks would show a difference of the margin, or that a
    /// small difference is within the margin; `None` if more than a thousand.
    pub blocks_needed: Option<u32>,
}

/// The two intervals of a difference of means that one which has both was made of, as shares of the
/// base's figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WidenedInterval {
    /// By the means that were measured.
    pub by_means: [f64; 2],
    /// By the throughputs, of which the means follow by Little's law: as wide as the other.
    pub by_throughputs: [f64; 2],
}

/// A metric and the arms' figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedMetric {
    /// Which, as `--metric` takes it.
    pub metric: Metric,
    /// The unit of the medians: `ms`, `/s`, `MB` or `%`.
    pub unit: &'static str,
    /// Whether it is one of those that decide.
    pub decides: bool,
    /// The medians of the runs, by arm.
    pub medians: BTreeMap<String, Option<f64>>,
    /// The differences from the base, or between all pairs; empty if the metric is not tested.
    pub differences: Vec<Difference>,
    /// In how many runs of an arm, by its letter, ever more requests waited, so that there is no
    /// figure; arms without such runs are left out.
    #[serde(skip)]
    pub overloaded: BTreeMap<String, u32>,
    /// If it is not tested, or has too few blocks for that, the pairs of which every run of one arm is
    /// beyond every run of the other: the letters of base and arm.
    #[serde(skip)]
    pub apart: Vec<[String; 2]>,
    /// How far the control is from the base.
    pub control: Option<Difference>,
    /// How far the first run of each block was above the others, if it was; this was subtracted.
    pub first_run: Option<f64>,
}

/// Which arm is best in the deciding metric.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ArmRanking {
    /// The arm whose median is best.
    pub best: String,
    /// Arms within the margin of it.
    pub level_with: Vec<String>,
    /// Arms that are worse.
    pub ahead_of: Vec<String>,
    /// Arms that cannot be told from it.
    pub unclear: Vec<String>,
}

impl ArmRanking {
    /// By the medians of this metric and the differences from the best of them; `None` if it has no
    /// figures.
    fn of(row: &ComparedMetric) -> Option<ArmRanking> {
        let sign = if row.metric.is_worse_when_less() { -1.0 } else { 1.0 };
        let known =
            row.medians.iter().filter_map(|(arm, median)| Some((arm.clone(), (*median)? * sign)));
        let (best, _) = known.min_by(|a, b| a.1.total_cmp(&b.1))?;
        let mut ranking = ArmRanking { best, ..ArmRanking::default() };
        for Difference { base, arm, verdict, .. } in &row.differences {
            let other = match &ranking.best {
                best if best == base => arm.clone(),
                best if best == arm => base.clone(),
                _ => continue,
            };
            match verdict {
                ComparisonVerdict::Worse | ComparisonVerdict::Better => {
                    ranking.ahead_of.push(other);
                }
                ComparisonVerdict::Same => ranking.level_with.push(other),
                ComparisonVerdict::CannotTell => ranking.unclear.push(other),
            }
        }
        Some(ranking)
    }

    /// Whether anything is known about the other arms; otherwise the best may be best by chance.
    pub fn is_decided(&self) -> bool {
        self.unclear.is_empty() || !self.level_with.is_empty() || !self.ahead_of.is_empty()
    }
}

impl ComparedMetric {
    /// The difference of this pair in this direction, if it was tested.
    pub fn difference(&self, base: &str, arm: &str) -> Option<&Difference> {
        self.differences.iter().find(|it| it.base == base && it.arm == arm)
    }

    /// Whether a pair has enough blocks for a test.
    pub fn is_tested(&self) -> bool {
        !self.differences.iter().all(Difference::has_few_blocks)
    }

    /// The difference of an arm from `base`, turned round if it was tested in the other direction.
    pub fn seen_from(&self, base: &str, arm: &str) -> Option<Difference> {
        if let Some(difference) = self.difference(base, arm) {
            return Some(difference.clone());
        }
        let turned = self.difference(arm, base)?;
        let turn = |part: f64| self.metric.turned(part);
        Some(Difference {
            base: base.to_owned(),
            arm: arm.to_owned(),
            estimate: turned.estimate.map(turn),
            two_changes: turned.two_changes.map(|it| TwoValues {
                low: turn(it.high),
                high: turn(it.low),
                low_count: it.count - it.low_count,
                ..it
            }),
            interval: turned.interval.map(|[low, high]| [turn(high), turn(low)]),
            at_least: turned.at_least.map(turn),
            verdict: match turned.verdict {
                ComparisonVerdict::Worse => ComparisonVerdict::Better,
                ComparisonVerdict::Better => ComparisonVerdict::Worse,
                other => other,
            },
            ..turned.clone()
        })
    }

    /// The median of an arm's runs.
    pub fn median(&self, letter: &str) -> Option<f64> {
        self.medians.get(letter).copied().flatten()
    }
}

/// All results of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonFindings {
    /// The question that they answer.
    question: ComparisonQuestion,
    /// The letter of the base.
    base: String,
    /// Blocks that were begun.
    pub blocks: u32,
    /// One row for each metric, in the order of [`Metric`].
    pub metrics: Vec<ComparedMetric>,
    /// Which arm is best, if that is the question and the deciding metric has figures.
    pub ranking: Option<ArmRanking>,
}

/// The figure of the run that counts; `None` if there is none.
type Figures<'a> = dyn Fn(Metric, u32, usize) -> Option<Result<f64, MissingFigure>> + 'a;

/// Whether another block is worth running.
pub fn decision(plan: &ComparisonPlan, runs: &[ComparisonRun]) -> Decision {
    let done = blocks_of(runs);
    if plan.looks().contains(&done) && ComparisonFindings::of(plan, runs).is_decided() {
        Decision::Decided
    } else if done >= plan.blocks.most() {
        Decision::NoBlocksLeft
    } else {
        Decision::GoOn
    }
}

fn blocks_of(runs: &[ComparisonRun]) -> u32 {
    runs.iter().map(|run| run.block).max().unwrap_or(0)
}

impl ComparisonFindings {
    /// The analysis of these runs.
    pub fn of(plan: &ComparisonPlan, runs: &[ComparisonRun]) -> ComparisonFindings {
        let figures =
            |metric: Metric, block, arm| counted(runs, block, arm).map(|run| metric.of(run));
        ComparisonFindings::of_figures(plan, blocks_of(runs), &figures)
    }

    pub(super) fn of_figures(
        plan: &ComparisonPlan,
        blocks: u32,
        figures: &Figures<'_>,
    ) -> ComparisonFindings {
        let samples: Vec<ArmSamples> = shown(plan, blocks, figures)
            .into_iter()
            .map(|metric| ArmSamples::of(plan, metric, blocks, figures))
            .collect();
        let mut metrics: Vec<ComparedMetric> =
            samples.iter().map(|samples| samples.compared(plan)).collect();
        let of_control = ArmPair { base: 0, arm: plan.arms.len() };
        let all = &samples;
        let families =
            [TestFamily::Deciding, TestFamily::Failed, TestFamily::Tail, TestFamily::Others];
        for family in families {
            let members: Vec<(usize, &ArmSamples)> = samples
                .iter()
                .enumerate()
                .filter(|(_, it)| TestFamily::of(plan, it.metric) == Some(family))
                .collect();
            let level = family.level(plan);
            let count = members.len() * plan.pairs().len();
            let by = family.compared_by(blocks, level / count.max(1) as f64);
            let tests = members.into_iter().flat_map(|(row, samples)| {
                plan.pairs().into_iter().map(move |pair| (row, samples, pair))
            });
            let tests = tests.map(|(row, samples, pair)| FamilyTest {
                row,
                pair,
                p: samples.p_value(pair, by),
                level: 0.0,
            });
            for FamilyTest { row, pair, level, .. } in shared_by_holm(tests.collect(), level) {
                let samples = &samples[row];
                let row = &mut metrics[row];
                let margin = samples.metric.margin(plan.margin);
                row.control =
                    plan.control.then(|| samples.difference(of_control, by, level, margin));
                let difference = samples.difference(pair, by, level, margin);
                let unexplained = unexplained_by_throughput(plan, all, samples.metric, pair);
                let difference = difference.checked_by_littles_law(unexplained, margin);
                let difference = difference.checked_against_control(
                    samples.metric,
                    row.control.as_ref(),
                    margin,
                );
                row.differences.push(difference.without_endless());
                row.control = row.control.take().map(Difference::without_endless);
            }
        }
        let tests = (plan.pairs().len() * metrics.len()).max(1) as f64;
        for (row, samples) in metrics.iter_mut().zip(&samples) {
            let is_certain = chance_of_being_apart(blocks) <= LEVEL / tests;
            let is_apart = |pair: &ArmPair| is_certain && samples.are_apart(*pair);
            if !row.is_tested() {
                let pairs = plan.pairs().into_iter().filter(is_apart);
                row.apart =
                    pairs.map(|pair| [plan.letter(pair.base), plan.letter(pair.arm)]).collect();
            }
        }
        let deciding = metrics.iter().find(|row| plan.deciding().first() == Some(&row.metric));
        let is_asked = plan.question == ComparisonQuestion::Best;
        let ranking = deciding.filter(|_| is_asked).and_then(ArmRanking::of);
        ComparisonFindings {
            question: plan.question,
            base: plan.letter(plan.base),
            blocks,
            metrics,
            ranking,
        }
    }

    /// The results for a metric.
    pub fn metric(&self, metric: Metric) -> Option<&ComparedMetric> {
        self.metrics.iter().find(|row| row.metric == metric)
    }

    fn deciding(&self) -> impl Iterator<Item = &Difference> {
        self.metrics.iter().filter(|row| row.decides).flat_map(|row| &row.differences)
    }

    /// Whether all that was asked is known: the deciding differences between any two arms that are
    /// compared, or, where the best arm is asked for, between it and each other.
    pub(crate) fn is_decided(&self) -> bool {
        let is_told = |difference: &Difference| difference.verdict != ComparisonVerdict::CannotTell;
        match self.question {
            ComparisonQuestion::Change
            | ComparisonQuestion::Settings
            | ComparisonQuestion::Pairs => {
                self.deciding().count() > 0 && self.deciding().all(is_told)
            }
            ComparisonQuestion::Best => self.is_best_known(),
        }
    }

    /// Whether each arm is known to be level with the best, or worse.
    fn is_best_known(&self) -> bool {
        self.ranking.as_ref().is_some_and(|ranking| ranking.unclear.is_empty())
    }

    /// Whether some deciding difference cannot be told: of those from the base, or from the best arm
    /// where that is asked for.
    pub fn cannot_tell(&self) -> bool {
        match self.question {
            ComparisonQuestion::Change
            | ComparisonQuestion::Settings
            | ComparisonQuestion::Pairs => self
                .deciding()
                .filter(|difference| difference.base == self.base)
                .any(|difference| difference.verdict == ComparisonVerdict::CannotTell),
            ComparisonQuestion::Best => !self.is_best_known(),
        }
    }

    /// Whether an arm is worse than the base in a deciding metric, or fails more requests. Where
    /// the best arm is asked for, there is no base, and some arm is always worse than another.
    pub fn is_worse(&self) -> bool {
        let failed = self.metric(Metric::Failed).into_iter().flat_map(|row| &row.differences);
        self.question != ComparisonQuestion::Best
            && self
                .deciding()
                .chain(failed)
                .filter(|difference| difference.base == self.base)
                .any(|difference| difference.verdict == ComparisonVerdict::Worse)
    }
}

/// How much of the difference of two means their throughputs do not show, as a logarithm; 0 where
/// the throughputs say nothing about it. In a closed loop the mean response time is connections /
/// throughput (Little's law), and the arms have equally many connections. If a run is short against
/// its longest requests, the mean of those that ended in it does not fit its throughput.
fn unexplained_by_throughput(
    plan: &ComparisonPlan,
    samples: &[ArmSamples],
    metric: Metric,
    ArmPair { base, arm }: ArmPair,
) -> f64 {
    let has_a_length = plan.arms.iter().all(|arm| matches!(arm.stream.stop, crate::Stop::After(_)));
    // Both figures are of good responses alone: failures that take long would show in one of them.
    let has_failures = samples.iter().any(|samples| samples.metric == Metric::Failed);
    if metric != Metric::Mean
        || !plan.is_closed_loop()
        || !has_a_length
        || plan.has_events()
        || has_failures
    {
        return 0.0;
    }
    let of = |metric: Metric| samples.iter().find(|samples| samples.metric == metric);
    let (Some(means), Some(rates)) = (of(Metric::Mean), of(Metric::Throughput)) else {
        return 0.0;
    };
    let in_flight =
        |block: usize, arm: usize| Some(means.value(block, arm)? + rates.value(block, arm)?);
    let blocks = 0..means.blocks.len();
    median(blocks.filter_map(|block| Some(in_flight(block, arm)? - in_flight(block, base)?)))
        .unwrap_or(0.0)
}

/// A group of metrics whose tests share a chance of a false alarm.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TestFamily {
    /// The deciding metrics.
    Deciding,
    /// Failures, which are not noise.
    Failed,
    /// The slowest requests, where a mean decides which arm is best and may hide them.
    Tail,
    /// The others.
    Others,
}

impl TestFamily {
    /// The family of a metric; `None` if it is only shown.
    fn of(plan: &ComparisonPlan, metric: Metric) -> Option<TestFamily> {
        // Without a control, that many tests would raise false alarms; and only one metric decides which
        // arm is best.
        let tests_others = plan.control && plan.question != ComparisonQuestion::Best;
        // A metric that was chosen when its figures were known is as certain as it was among the others.
        let deciding = if tests_others { plan.planned_to_decide() } else { plan.deciding() };
        let is_chosen = plan.deciding().contains(&metric);
        match metric {
            _ if deciding.contains(&metric) => Some(TestFamily::Deciding),
            Metric::Failed => Some(TestFamily::Failed),
            // In a closed loop the connections decide how long the slowest wait.
            Metric::P99 if plan.question == ComparisonQuestion::Best && !plan.is_closed_loop() => {
                Some(TestFamily::Tail)
            }
            _ if !tests_others => None,
            _ if is_chosen => Some(TestFamily::Others),
            // In an open loop, throughput is the offered rate.
            Metric::Throughput if !plan.is_closed_loop() => None,
            Metric::Slow | Metric::Workers => None,
            _ => Some(TestFamily::Others),
        }
    }

    /// Which runs its tests compare, if each has at least this chance of a false alarm.
    fn compared_by(self, blocks: u32, level: f64) -> RunsCompared {
        match self {
            TestFamily::Others if blocks < least_blocks(level) => RunsCompared::All,
            _ => RunsCompared::OfEachBlock,
        }
    }

    /// The chance of a false alarm that its tests share.
    fn level(self, plan: &ComparisonPlan) -> f64 {
        match self {
            // When the blocks end is decided by the looks, and means and tails go together.
            TestFamily::Deciding | TestFamily::Tail => plan.level_of_a_look(),
            TestFamily::Failed | TestFamily::Others => LEVEL,
        }
    }
}

/// Which runs of one arm are compared with which of the other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunsCompared {
    /// Those of the same block, by signed ranks: what changes from block to block does not matter.
    OfEachBlock,
    /// All with all, by the rank sum, where the blocks are too few for signed ranks to tell anything.
    /// What changes from block to block makes differences harder to see, and no false alarms: each
    /// block has a run of both arms.
    All,
}

impl RunsCompared {
    /// The fewest blocks that can tell anything with this chance of a false alarm.
    fn fewest_blocks(self, level: f64) -> u32 {
        match self {
            RunsCompared::OfEachBlock => least_blocks(level),
            RunsCompared::All => {
                (1..64).find(|runs| chance_of_being_apart(*runs) <= level).unwrap_or(64)
            }
        }
    }
}

/// The chance that every run of one arm is beyond every run of the other, of so many runs each, if the
/// arms are equal: 2 of all ways in which the runs can be ordered, `(2n)! / n!²` (Mann and Whitney).
fn chance_of_being_apart(runs: u32) -> f64 {
    let orders: f64 = (1..=runs).map(|n| f64::from(runs + n) / f64::from(n)).product();
    2.0 / orders
}

/// The metrics to show: the deciding ones, and others with any figures.
fn shown(plan: &ComparisonPlan, blocks: u32, figures: &Figures<'_>) -> Vec<Metric> {
    let known = |metric: Metric| {
        let runs =
            (1..=blocks).flat_map(|block| (0..plan.arms_of_a_block()).map(move |arm| (block, arm)));
        runs.filter_map(move |(block, arm)| figures(metric, block, arm)?.ok()).collect::<Vec<f64>>()
    };
    let is_shown = |metric: &Metric| match metric {
        _ if plan.deciding().contains(metric) => true,
        Metric::Failed | Metric::Slow => known(*metric).iter().any(|share| *share > 0.0),
        Metric::GeneratorCpu => plan.differs_in_instruments() && !known(*metric).is_empty(),
        _ => !known(*metric).is_empty(),
    };
    Metric::VARIANTS.iter().copied().filter(is_shown).collect()
}

/// One test of a family.
struct FamilyTest {
    /// The metric's place among those that are shown.
    row: usize,
    pair: ArmPair,
    p: f64,
    /// Its share of the family's chance of a false alarm.
    level: f64,
}

/// Assigns the tests their shares of a false-alarm chance of `level` (Holm), and sorts them by
/// metric and arm.
fn shared_by_holm(mut tests: Vec<FamilyTest>, level: f64) -> Vec<FamilyTest> {
    tests.sort_by(|a, b| a.p.total_cmp(&b.p));
    let mut left = tests.len();
    for test in &mut tests {
        test.level = level / left.max(1) as f64;
        // All tests after the first one that is not significant have the same level as that one.
        if test.p <= test.level + 1e-12 {
            left -= 1;
        }
    }
    tests.sort_by_key(|test| (test.row, test.pair));
    tests
}

/// The figures of a metric by block, as logarithms or shares, ready for subtraction.
struct ArmSamples {
    metric: Metric,
    /// What the arms are called.
    letters: Vec<String>,
    /// By block, then by arm.
    blocks: Vec<Vec<Option<Result<f64, MissingFigure>>>>,
    /// The median of each arm's runs, as they were measured.
    medians: Vec<Option<f64>>,
    /// How far the first run of a block was above the others; this was subtracted in `blocks`.
    first_run: Option<f64>,
}

impl ArmSamples {
    fn of(plan: &ComparisonPlan, metric: Metric, blocks: u32, figures: &Figures<'_>) -> ArmSamples {
        let figure = |block: u32, arm: usize| {
            let figure = figures(metric, block, arm)?;
            let in_logarithms = |value: f64| match value {
                value if metric.is_share() => Ok(value),
                value if value > 0.0 => Ok(value.ln()),
                _ => Err(MissingFigure::NotKnown),
            };
            Some(figure.and_then(in_logarithms))
        };
        let arms = plan.arms_of_a_block();
        let row = |block: u32| (0..arms).map(|arm| figure(block, arm)).collect();
        let letters = (0..arms).map(|arm| plan.letter(arm)).collect();
        let mut samples = ArmSamples {
            metric,
            letters,
            blocks: (1..=blocks).map(row).collect(),
            medians: Vec::new(),
            first_run: None,
        };
        samples.medians = (0..arms).map(|arm| samples.median(arm)).collect();
        let first: Vec<usize> = (1..=blocks).map(|block| plan.order(block)[0]).collect();
        samples.first_run = samples.first_run_effect(&first);
        if let Some(shift) = samples.first_run {
            for (block, first) in samples.blocks.iter_mut().zip(first) {
                if let Some(Ok(value)) = &mut block[first] {
                    *value -= shift;
                }
            }
        }
        samples
    }

    fn value(&self, block: usize, arm: usize) -> Option<f64> {
        self.blocks[block].get(arm)?.as_ref()?.ok()
    }

    /// How far the first run of a block is above the others, if that isn't noise. Differences
    /// between arms are removed first, by their medians over the blocks.
    fn first_run_effect(&self, first: &[usize]) -> Option<f64> {
        let arms = self.blocks.first()?.len();
        // Each complete block, minus its mean.
        let centred = |block: usize| -> Option<Vec<f64>> {
            let values =
                (0..arms).map(|arm| self.value(block, arm)).collect::<Option<Vec<f64>>>()?;
            let mean = mean(&values);
            Some(values.iter().map(|value| value - mean).collect())
        };
        let rows: Vec<(usize, Vec<f64>)> = first
            .iter()
            .enumerate()
            .filter_map(|(block, first)| Some((*first, centred(block)?)))
            .collect();
        let own: Vec<f64> =
            (0..arms).filter_map(|arm| median(rows.iter().map(|(_, row)| row[arm]))).collect();
        let above = |(first, row): &(usize, Vec<f64>)| {
            let rest: f64 =
                (0..arms).filter(|arm| arm != first).map(|arm| row[arm] - own[arm]).sum();
            row[*first] - own[*first] - rest / (arms - 1).max(1) as f64
        };
        let ranks = RankTest::of_pairs(&rows.iter().map(above).collect::<Vec<f64>>());
        ranks.estimate().filter(|_| ranks.p_value() <= LEVEL)
    }

    /// The arms' figures, before any test.
    fn compared(&self, plan: &ComparisonPlan) -> ComparedMetric {
        ComparedMetric {
            metric: self.metric,
            unit: self.metric.unit().0,
            decides: plan.deciding().contains(&self.metric),
            medians: self.letters.iter().cloned().zip(self.medians.iter().copied()).collect(),
            differences: Vec::new(),
            overloaded: (self.letters.iter().cloned())
                .zip((0..self.letters.len()).map(|arm| self.overloaded_runs(arm)))
                .filter(|(_, runs)| *runs > 0)
                .collect(),
            apart: Vec::new(),
            control: None,
            first_run: self.first_run.map(|shift| rounded(self.metric.relative(shift), 1e5)),
        }
    }

    /// In the unit of the metric; `None` if so many runs are overloaded that it is not known.
    fn median(&self, arm: usize) -> Option<f64> {
        let values = (0..self.blocks.len()).filter_map(|block| self.value_or_endless(block, arm));
        let middle = median(values).filter(|middle| middle.is_finite())?;
        let value = if self.metric.is_share() { middle } else { middle.exp() };
        Some(rounded(value * self.metric.unit().1, 1e4))
    }

    fn is_overloaded(&self, block: usize, arm: usize) -> bool {
        self.blocks[block].get(arm) == Some(&Some(Err(MissingFigure::Overloaded)))
    }

    fn overloaded_runs(&self, arm: usize) -> u32 {
        (0..self.blocks.len()).filter(|block| self.is_overloaded(*block, arm)).count() as u32
    }

    /// The figure, which is endless for an overloaded run.
    fn value_or_endless(&self, block: usize, arm: usize) -> Option<f64> {
        if self.is_overloaded(block, arm) { Some(f64::INFINITY) } else { self.value(block, arm) }
    }

    /// Whether runs of both arms are overloaded: how they compare is not known.
    fn are_both_overloaded(&self, ArmPair { base, arm }: ArmPair) -> bool {
        [base, arm].into_iter().all(|arm| self.overloaded_runs(arm) > 0)
    }

    /// A run's figure where this pair is compared: overloaded runs of only one of two arms are
    /// infinitely slow.
    fn value_in_pair(&self, block: usize, arm: usize, pair: ArmPair) -> Option<f64> {
        if self.are_both_overloaded(pair) {
            self.value(block, arm)
        } else {
            self.value_or_endless(block, arm)
        }
    }

    /// The values of the base and of the arm, of each block that has both.
    fn values(&self, pair: ArmPair) -> [Vec<f64>; 2] {
        let value = |block: usize, arm: usize| self.value_in_pair(block, arm, pair);
        let both = |block: usize| Some((value(block, pair.base)?, value(block, pair.arm)?));
        let (base, arm) = (0..self.blocks.len()).filter_map(both).unzip();
        [base, arm]
    }

    fn changes(&self, pair: ArmPair) -> Vec<f64> {
        let [base, arm] = self.values(pair);
        base.iter().zip(&arm).map(|(base, arm)| arm - base).collect()
    }

    fn ranks(&self, pair: ArmPair, by: RunsCompared) -> RankTest {
        match by {
            RunsCompared::OfEachBlock => RankTest::of_pairs(&self.changes(pair)),
            RunsCompared::All => {
                let [base, arm] = self.values(pair);
                RankTest::of_sets(&base, &arm)
            }
        }
    }

    /// Both kinds of changes, if there are two. Shares differ by numbers of requests, which are apart
    /// in any case.
    fn two_changes(&self, pair: ArmPair, margin: f64) -> Option<TwoValues> {
        let changes = Some(self.changes(pair)).filter(|changes| {
            !self.metric.is_share() && changes.iter().all(|change| change.is_finite())
        })?;
        let found = TwoValues::of(changes, margin.ln_1p())?;
        let found = found.map(|change| rounded(self.metric.relative(change), 1e5));
        // Two changes of the same size, as shares of the base's figure, are one.
        (found.high - found.low > margin).then_some(found)
    }

    /// In how many blocks the change is beyond the margin, in the direction of the estimate.
    fn blocks_beyond(&self, pair: ArmPair, estimate: Option<f64>, margin: f64) -> u32 {
        let direction = estimate.unwrap_or_default().signum();
        let changes = self.changes(pair).into_iter().map(|change| self.metric.relative(change));
        changes.filter(|change| change * direction > margin).count() as u32
    }

    /// Whether the change has the same direction in every block.
    fn is_in_every_block(&self, pair: ArmPair) -> bool {
        let changes = self.changes(pair);
        changes.iter().all(|change| *change > 0.0) || changes.iter().all(|change| *change < 0.0)
    }

    /// The p-value of the difference; 1 if a run has no figure.
    fn p_value(&self, pair: ArmPair, by: RunsCompared) -> f64 {
        if self.missing(pair).is_some() { 1.0 } else { self.ranks(pair, by).p_value() }
    }

    /// Whether every run of one arm is beyond every run of the other.
    fn are_apart(&self, pair: ArmPair) -> bool {
        let blocks = 0..self.blocks.len();
        let values = |arm: usize| {
            blocks.clone().map(|block| self.value(block, arm)).collect::<Option<Vec<f64>>>()
        };
        let Some((base, arm)) = values(pair.base).zip(values(pair.arm)) else { return false };
        let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        most(&base) < least(&arm) || most(&arm) < least(&base)
    }

    /// Why runs of either arm have no figure, and how many. Overloaded ones of only one arm are known
    /// to be slower.
    fn missing(&self, pair @ ArmPair { base, arm }: ArmPair) -> Option<ComparisonDoubt> {
        let is_in_order = !self.are_both_overloaded(pair);
        let runs = self
            .blocks
            .iter()
            .flat_map(|block| [block.get(arm), block.get(base)])
            .flatten()
            .flatten();
        let is_missing =
            |figure: &MissingFigure| !(is_in_order && *figure == MissingFigure::Overloaded);
        let missing: Vec<MissingFigure> =
            runs.filter_map(|run| run.err()).filter(is_missing).collect();
        missing
            .first()
            .map(|figure| ComparisonDoubt::Missing { figure: *figure, runs: missing.len() as u32 })
    }

    fn difference(&self, pair: ArmPair, by: RunsCompared, level: f64, margin: f64) -> Difference {
        let metric = self.metric;
        let ranks = self.ranks(pair, by);
        let relative = |value: f64| metric.relative(value);
        let interval = ranks.interval(level).map(|ends| ends.map(relative));
        let estimate = ranks.estimate().map(relative);
        let part = |value: f64| rounded(value, 1e5);
        let difference = Difference {
            base: self.letters[pair.base].clone(),
            arm: self.letters[pair.arm].clone(),
            blocks: ranks.runs(),
            estimate: estimate.map(part),
            two_changes: self.two_changes(pair, margin),
            is_in_every_run: self.are_apart(pair),
            blocks_beyond_margin: self.blocks_beyond(pair, estimate, margin),
            interval: interval.map(|ends| ends.map(part)),
            at_least: None,
            level: part(level),
            widened: None,
            is_in_every_block: self.is_in_every_block(pair),
            margin,
            verdict: ComparisonVerdict::CannotTell,
            doubt: Some(ComparisonDoubt::Noise),
            smallest: None,
            blocks_needed: None,
        };
        if let Some(missing) = self.missing(pair) {
            return Difference { doubt: Some(missing), ..difference };
        }
        let Some(([low, high], estimate)) = interval.zip(estimate) else {
            return Difference {
                doubt: Some(ComparisonDoubt::FewBlocks { least: by.fewest_blocks(level) }),
                ..difference
            };
        };
        let verdict = ComparisonVerdict::of(metric, [low, high], estimate, margin);
        if verdict != ComparisonVerdict::CannotTell {
            return Difference { verdict, doubt: None, ..difference };
        }
        let half = (high - estimate).max(estimate - low);
        if [low, estimate, high].into_iter().any(is_endless) {
            return difference;
        }
        // A small but real difference counts as the same if its interval ends within the margin.
        let narrow = if excludes_zero([low, high]) { margin - estimate.abs() } else { margin };
        let blocks = f64::from(ranks.runs()) * (half / narrow.max(1e-9)).powi(2);
        Difference {
            smallest: Some(part(half.max(margin))),
            blocks_needed: (blocks < 1e3).then(|| (blocks.ceil() as u32).max(ranks.runs() + 1)),
            ..difference
        }
    }
}

/// Whether a relative difference is that of an overloaded run, which is infinitely slow: from a run
/// with a figure, or the other way round.
fn is_endless(part: f64) -> bool {
    part.is_infinite() || part <= -1.0
}

/// Rounds to the nearest multiple of 1 / `parts`.
fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

impl Difference {
    /// Whether there are too few blocks to test it.
    pub fn has_few_blocks(&self) -> bool {
        matches!(self.doubt, Some(ComparisonDoubt::FewBlocks { .. }))
    }

    /// Without an estimate or an end of its interval that overloaded runs make infinite.
    fn without_endless(self) -> Difference {
        let ends = self.interval.unwrap_or_default();
        let at_least = match ends.map(is_endless) {
            [false, true] if excludes_zero(ends) => Some(ends[0]),
            [true, false] if excludes_zero(ends) => Some(ends[1]),
            _ => None,
        };
        Difference {
            estimate: self.estimate.filter(|part| !is_endless(*part)),
            interval: self.interval.filter(|ends| !ends.iter().copied().any(is_endless)),
            at_least,
            ..self
        }
    }

    /// Takes into account what the throughputs show of a difference of means: if they disagree by
    /// more than half of the interval, it is widened to what they show, and the conclusion must hold
    /// for both. `unexplained`: the logarithm of what they do not show.
    fn checked_by_littles_law(self, unexplained: f64, margin: f64) -> Difference {
        if matches!(self.doubt, Some(ComparisonDoubt::Missing { .. })) {
            return self;
        }
        let Some(([low, high], estimate)) = self.interval.zip(self.estimate) else { return self };
        let by_throughput = |part: f64| (part.ln_1p() - unexplained).exp_m1();
        if unexplained == 0.0 || (by_throughput(estimate) - estimate).abs() <= (high - low) / 2.0 {
            return self;
        }
        let interval = [low.min(by_throughput(low)), high.max(by_throughput(high))];
        let [verdict, other] = [estimate, by_throughput(estimate)]
            .map(|estimate| ComparisonVerdict::of(Metric::Mean, interval, estimate, margin));
        let is_told = verdict == other && verdict != ComparisonVerdict::CannotTell;
        let is_visible = (low - interval[0]).max(interval[1] - high) > margin / 5.0;
        Difference {
            interval: Some(interval.map(|end| rounded(end, 1e5))),
            widened: is_visible.then_some(WidenedInterval {
                by_means: [low, high],
                by_throughputs: [low, high].map(by_throughput),
            }),
            verdict: if is_told { verdict } else { ComparisonVerdict::CannotTell },
            doubt: (!is_told).then_some(ComparisonDoubt::ShortRuns),
            smallest: None,
            blocks_needed: None,
            ..self
        }
    }

    /// Takes the control into account: a difference that the control also shows is not real.
    fn checked_against_control(
        self,
        metric: Metric,
        control: Option<&Difference>,
        margin: f64,
    ) -> Difference {
        let Some([low, high]) = control.and_then(|control| control.interval) else { return self };
        let is_shown_by = |[low, high]: [f64; 2]| {
            let overlaps =
                self.interval.is_some_and(|[own_low, own_high]| own_low <= high && low <= own_high);
            self.estimate.is_some_and(|estimate| low <= estimate && estimate <= high)
                || excludes_zero([low, high]) && overlaps
        };
        let is_shown_too = match self.verdict {
            ComparisonVerdict::Worse | ComparisonVerdict::Better => {
                // Which of the two is called the control is arbitrary, which matters where they differ
                // by more than the margin.
                let [other_high, other_low] = [low, high].map(|part| metric.turned(part));
                let seems_different = control
                    .and_then(|control| control.estimate)
                    .is_some_and(|estimate| estimate.abs() > margin);
                is_shown_by([low, high]) || seems_different && is_shown_by([other_low, other_high])
            }
            // If equal arms seem different, no arms can be called equal.
            ComparisonVerdict::Same => low > margin || high < -margin,
            ComparisonVerdict::CannotTell => false,
        };
        if !is_shown_too {
            return self;
        }
        let doubt = Some(ComparisonDoubt::Control);
        let smallest = Some(low.abs().max(high.abs()));
        let is_in_every_block = self.is_in_every_block && !excludes_zero([low, high]);
        let verdict = ComparisonVerdict::CannotTell;
        Difference { is_in_every_block, verdict, doubt, smallest, ..self }
    }
}
