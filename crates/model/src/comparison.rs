//! A comparison: two or more ways to run a server, measured in blocks. In each block every arm runs
//! once on a fresh server, and only runs of the same block are compared, so slow changes of the
//! machine affect all arms alike.

mod analysis;
mod metric;
mod plan;
mod ranks;
#[cfg(test)]
mod simulated_tests;
mod two_values;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::secret::MaskedText;
use crate::{Diagnostic, Environment, Nanos, Run, ServerFacts, ServerUse};

pub use self::analysis::{
    ArmRanking, ComparedMetric, ComparisonDoubt, ComparisonFindings, ComparisonVerdict, Difference,
    WidenedInterval, decision, excludes_zero,
};
pub use self::metric::{Metric, MissingFigure};
pub use self::plan::{
    ArmPair, ArmPlan, ComparisonBlocks, ComparisonLoad, ComparisonPlan, ComparisonQuestion,
    Decision, Infeasible, RateLook, SizeLook,
};
pub use self::ranks::{RankTest, median};
pub use self::two_values::TwoValues;

/// What `longtail compare` found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparisonStudy {
    /// Version of the file format.
    pub schema: u32,
    /// When it began, as RFC 3339 in UTC.
    pub started_at: String,
    /// The command line that would repeat it.
    pub command_line: MaskedText,
    /// What was asked for.
    pub plan: ComparisonPlan,
    /// The machine.
    pub environment: Environment,
    /// The server of each arm of the plan, as it was last started; `None` if it never was. The
    /// control has the base's.
    pub servers: Vec<Option<ServerFacts>>,
    /// The maximum of each arm, in requests per second, measured before the first block; empty
    /// unless the load is a share of it.
    pub maxima_per_s: Vec<f64>,
    /// The finished runs, in order.
    pub runs: Vec<ComparisonRun>,
    /// The failed runs.
    pub lost: Vec<LostRun>,
    /// What is doubtful about the study as a whole.
    pub warnings: Vec<Diagnostic>,
    /// From the start of the first server to the end of the last.
    #[serde(rename = "total_time_ns")]
    pub total_time: Nanos,
    /// Whether the user ended it early.
    pub interrupted: bool,
}

/// One run of one arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparisonRun {
    /// Which block, from 1.
    pub block: u32,
    /// The arm's place in the plan; the control is the one after the last.
    pub arm: usize,
    /// 1, or 2 if the first one failed its checks and was repeated.
    pub attempt: u32,
    /// What happened. Its `repeat` is the block.
    pub run: Run,
    /// The server's resources.
    pub server: ServerUse,
    /// CPU time of longtail's own process, including what `--inspect` costs.
    #[serde(rename = "generator_cpu_ns")]
    pub generator_cpu: Option<Nanos>,
}

/// A failed run: the server did not start, or died.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostRun {
    /// Which block, from 1.
    pub block: u32,
    /// The arm, as in [`ComparisonRun`].
    pub arm: usize,
    /// 1 or 2.
    pub attempt: u32,
    /// Why, in words.
    pub reason: String,
}

impl ComparisonRun {
    /// A first attempt without figures of server and generator resources.
    pub fn of(block: u32, arm: usize, run: Run) -> ComparisonRun {
        ComparisonRun {
            block,
            arm,
            attempt: 1,
            run,
            server: ServerUse::default(),
            generator_cpu: None,
        }
    }

    /// Whether its figures are the server's. A run that is not sound is repeated once, and never
    /// counts.
    pub fn is_sound(&self) -> bool {
        self.run.is_evidence()
            || self.run.judgement.as_ref().is_some_and(|judgement| judgement.forced)
    }
}

impl ComparisonStudy {
    /// The run that counts for an arm in a block: its last sound attempt.
    pub fn counted(&self, block: u32, arm: usize) -> Option<&ComparisonRun> {
        counted(&self.runs, block, arm)
    }

    /// Blocks in which every arm ran. If the user interrupts, the last one is not whole.
    pub fn whole_blocks(&self) -> u32 {
        let ran: BTreeSet<(u32, usize)> =
            self.runs.iter().map(|run| (run.block, run.arm)).collect();
        let last = ran.last().map_or(0, |(block, _)| *block);
        let has_all =
            |block: &u32| (0..self.plan.arms_of_a_block()).all(|arm| ran.contains(&(*block, arm)));
        (1..=last).filter(has_all).count() as u32
    }

    /// The rate offered to every arm; `None` for a closed loop, or if the maximum is unknown.
    pub fn rate_per_s(&self) -> Option<f64> {
        match self.plan.load {
            ComparisonLoad::Closed { .. } => None,
            ComparisonLoad::Rate { per_s } => Some(per_s),
            ComparisonLoad::Share { of_maximum } => self
                .maxima_per_s
                .iter()
                .copied()
                .min_by(f64::total_cmp)
                .map(|slower| slower * of_maximum),
        }
    }

    /// The server of an arm, or of the control.
    pub fn server(&self, arm: usize) -> Option<&ServerFacts> {
        let arm = if arm == self.plan.arms.len() { 0 } else { arm };
        self.servers.get(arm)?.as_ref()
    }
}

fn counted(runs: &[ComparisonRun], block: u32, arm: usize) -> Option<&ComparisonRun> {
    let of_both = |run: &&ComparisonRun| run.block == block && run.arm == arm && run.is_sound();
    runs.iter().filter(of_both).max_by_key(|run| run.attempt)
}
