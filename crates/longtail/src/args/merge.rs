//! Flags of `longtail merge`.

use std::path::PathBuf;

use clap::Args;

use super::OutputArgs;

const EXAMPLES: &str = "\
Examples:
  longtail merge *.tally                     one result of all parts that generators of a cluster wrote
  longtail merge *.tally -o x.study.json     and keep it there";

/// Flags of `longtail merge`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MergeArgs {
    /// Files that generators wrote, all of one load
    #[arg(value_name = "FILE", required = true)]
    pub(crate) parts: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
