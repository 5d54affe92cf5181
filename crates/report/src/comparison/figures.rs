//! What a comparison came to, as its summary has it: figures in the units in which they are printed.

use std::collections::BTreeMap;

use model::ComparisonStudy;
use model::comparison::{
    ComparedMetric, ComparisonDoubt, ComparisonFindings, ComparisonQuestion, ComparisonVerdict, Difference, Metric,
};
use serde::Serialize;

use crate::in_words;

/// What a comparison came to.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryComparison {
    /// `change` from the base, or which is `best`.
    pub question: ComparisonQuestion,
    /// What is compared, the base first; the control last.
    pub arms: Vec<SummaryArm>,
    /// Blocks that were begun.
    pub blocks: u32,
    /// A difference up to this does not matter: a part of the base's figure.
    pub margin: f64,
    /// A row a metric.
    pub metrics: Vec<SummaryMetric>,
    /// Whether an arm is worse in what decides, or fails more requests.
    pub worse: bool,
    /// Whether some of what decides cannot be told.
    pub cannot_tell: bool,
    /// Which is best, where that was asked.
    pub ranking: Option<SummaryRanking>,
    /// What else must be known, in sentences.
    pub reasons: Vec<String>,
}

/// One arm.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryArm {
    /// A letter; `A'` is the control.
    pub letter: String,
    /// What it is called.
    pub name: String,
    /// The settings in which it differs.
    pub settings: Vec<String>,
    /// The server, its version and revision; `null` where it never started.
    pub server: Option<String>,
    /// Runs that count.
    pub runs: u32,
}

/// A metric and what the arms have of it.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryMetric {
    /// As `--metric` takes it.
    pub metric: Metric,
    /// `ms`, `/s`, `MB` or `%`.
    pub unit: &'static str,
    /// Whether it decides.
    pub decides: bool,
    /// The medians of the runs, by arm.
    pub medians: BTreeMap<String, Option<f64>>,
    /// How the arms differ; none where it is only shown.
    pub differences: Vec<SummaryDifference>,
    /// How far the control is from the base.
    pub control: Option<SummaryDifference>,
    /// By how much the first run of a block is above the others, where it is; it was taken out.
    pub first_run: Option<f64>,
}

/// How far an arm is from another: a part of the base's figure, of shares a share.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryDifference {
    /// What it is measured against.
    pub base: String,
    /// Which arm.
    pub arm: String,
    /// Blocks that have both.
    pub blocks: u32,
    /// Hodges and Lehmann's estimate.
    pub estimate: Option<f64>,
    /// Its interval.
    pub interval: Option<[f64; 2]>,
    /// The chance that the interval leaves the difference out.
    pub level: f64,
    /// What it is.
    pub verdict: ComparisonVerdict,
    /// Why it cannot be told.
    pub doubt: Option<ComparisonDoubt>,
    /// Where it cannot be told: the smallest difference that these blocks could have shown.
    pub smallest: Option<f64>,
    /// Where it cannot be told: about how many blocks would tell.
    pub blocks_needed: Option<u32>,
}

/// Which arm is best in the metric that decides.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryRanking {
    /// The best.
    pub best: String,
    /// Within the margin of it.
    pub level_with: Vec<String>,
    /// Worse.
    pub ahead_of: Vec<String>,
    /// Cannot be told from it.
    pub unclear: Vec<String>,
}

impl SummaryRanking {
    /// Whether anything is known of the others: else the best is the best by chance.
    pub(super) fn is_decided(&self) -> bool {
        self.unclear.is_empty() || !self.level_with.is_empty() || !self.ahead_of.is_empty()
    }
}

impl SummaryComparison {
    /// Of a study; what else must be known is not said yet.
    pub(super) fn of(study: &ComparisonStudy) -> SummaryComparison {
        let plan = &study.plan;
        let found = ComparisonFindings::of(plan, &study.runs);
        let letters = |arms: &[usize]| arms.iter().map(|arm| plan.letter(*arm)).collect();
        let ranking = (plan.question == ComparisonQuestion::Best).then(|| found.ranking(plan)).flatten();
        let arm = |at: usize| {
            let counts = |block| study.counted(block, at).is_some();
            SummaryArm {
                letter: plan.letter(at),
                name: plan.arm(at).name.clone(),
                settings: plan.arm(at).settings.clone(),
                server: study.server(at).map(in_words::server),
                runs: (1..=found.blocks).filter(|block| counts(*block)).count() as u32,
            }
        };
        SummaryComparison {
            question: plan.question,
            arms: (0..plan.arms_of_a_block()).map(arm).collect(),
            blocks: found.blocks,
            margin: plan.margin,
            metrics: found.metrics.iter().map(|row| metric(study, row)).collect(),
            worse: found.is_worse(),
            cannot_tell: found.cannot_tell(),
            ranking: ranking.map(|ranking| SummaryRanking {
                best: plan.letter(ranking.best),
                level_with: letters(&ranking.level_with),
                ahead_of: letters(&ranking.ahead_of),
                unclear: letters(&ranking.unclear),
            }),
            reasons: Vec::new(),
        }
    }

    /// The arms without the control.
    pub(crate) fn compared(&self) -> impl Iterator<Item = &SummaryArm> {
        self.arms.iter().filter(|arm| !arm.letter.ends_with('\''))
    }

    pub(crate) fn arm(&self, letter: &str) -> Option<&SummaryArm> {
        self.arms.iter().find(|arm| arm.letter == letter)
    }

    pub(crate) fn metric(&self, metric: Metric) -> Option<&SummaryMetric> {
        self.metrics.iter().find(|row| row.metric == metric)
    }

    pub(crate) fn deciding(&self) -> impl Iterator<Item = &SummaryMetric> {
        self.metrics.iter().filter(|row| row.decides)
    }
}

impl SummaryMetric {
    /// The difference of these two; of a pair that was taken the other way round, none.
    pub(crate) fn difference(&self, base: &str, arm: &str) -> Option<&SummaryDifference> {
        self.differences.iter().find(|it| it.base == base && it.arm == arm)
    }

    pub(crate) fn median(&self, letter: &str) -> Option<f64> {
        self.medians.get(letter).copied().flatten()
    }
}

fn metric(study: &ComparisonStudy, row: &ComparedMetric) -> SummaryMetric {
    let plan = &study.plan;
    let (unit, scale) = match row.metric {
        Metric::Throughput => ("/s", 1.0),
        Metric::Memory => ("MB", 1e-6),
        Metric::Failed | Metric::Slow | Metric::Workers => ("%", 100.0),
        _ => ("ms", 1e3),
    };
    let rounded = |value: f64| (value * scale * 1e4).round() / 1e4;
    let difference = |it: &Difference| SummaryDifference {
        base: plan.letter(it.base),
        arm: plan.letter(it.arm),
        blocks: it.blocks,
        estimate: it.estimate.map(share),
        interval: it.interval.map(|ends| ends.map(share)),
        level: share(it.level),
        verdict: it.verdict,
        doubt: it.doubt,
        smallest: it.smallest.map(share),
        blocks_needed: it.blocks_needed,
    };
    SummaryMetric {
        metric: row.metric,
        unit,
        decides: row.decides,
        medians: row.arms.iter().map(|arm| (plan.letter(arm.arm), arm.median.map(rounded))).collect(),
        differences: row.differences.iter().map(difference).collect(),
        control: row.control.as_ref().map(difference),
        first_run: row.first_run.map(share),
    }
}

fn share(value: f64) -> f64 {
    (value * 1e5).round() / 1e5
}
