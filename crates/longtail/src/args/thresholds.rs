//! What is expected of each run: `--expect` and `--fail-if` of every command that measures.

use clap::Args;
use model::{Objective, Threshold};

use super::ADVANCED;

/// What is expected of each run.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ThresholdArgs {
    /// Exit with 1 where a run misses this: 'p99 < 200ms', 'failed < 0.1%'
    #[arg(long, value_name = "LIMIT", help_heading = "Output")]
    expect: Vec<Objective>,
    /// The reverse of --expect: exit with 1 where this holds, 'p99 > 200ms'
    #[arg(long, value_name = "LIMIT", help_heading = ADVANCED)]
    fail_if: Vec<Objective>,
}

impl ThresholdArgs {
    /// Both in one list.
    pub(crate) fn all(&self) -> Vec<Threshold> {
        let of = |conditions: &[Objective], is_expected| {
            conditions.iter().map(|condition| Threshold { condition: *condition, is_expected }).collect::<Vec<_>>()
        };
        [of(&self.expect, true), of(&self.fail_if, false)].concat()
    }
}
