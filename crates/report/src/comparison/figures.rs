//! What a comparison came to, as its summary has it: figures in the units in which they are printed.

use model::ComparisonStudy;
use model::comparison::{ArmRanking, ComparedMetric, ComparisonFindings, ComparisonQuestion, Metric};
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
    pub metrics: Vec<ComparedMetric>,
    /// Whether an arm is worse in what decides, or fails more requests.
    pub worse: bool,
    /// Whether some of what decides cannot be told.
    pub cannot_tell: bool,
    /// Which is best, where that was asked.
    pub ranking: Option<ArmRanking>,
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

impl SummaryComparison {
    /// Of a study; what else must be known is not said yet.
    pub(super) fn of(study: &ComparisonStudy) -> SummaryComparison {
        let plan = &study.plan;
        let found = ComparisonFindings::of(plan, &study.runs);
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
            worse: found.is_worse(),
            cannot_tell: found.cannot_tell(),
            metrics: found.metrics,
            ranking,
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

    pub(crate) fn metric(&self, metric: Metric) -> Option<&ComparedMetric> {
        self.metrics.iter().find(|row| row.metric == metric)
    }

    pub(crate) fn deciding(&self) -> impl Iterator<Item = &ComparedMetric> {
        self.metrics.iter().filter(|row| row.decides)
    }
}
