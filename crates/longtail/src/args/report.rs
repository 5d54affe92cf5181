//! Flags of `longtail report`.

use std::path::PathBuf;

use clap::Args;

use super::OutputArgs;

const REPORT_EXAMPLES: &str = "\
Examples:
  longtail report                              the last study
  longtail report --full                      everything that is known of the last study
  longtail report --markdown                  the last study, for a pull request
  longtail report x.study.json --style puma   a kept one, in Puma's own columns
  longtail report -o page.html -o table.csv   a page with plots, and a line a run

Studies are kept in $XDG_DATA_HOME/longtail/studies (~/.local/share/longtail/studies).";

/// Flags of `longtail report`.
#[derive(Debug, Args)]
#[command(after_help = REPORT_EXAMPLES)]
pub(crate) struct ReportArgs {
    /// Saved studies [default: the last one]
    #[arg(value_name = "FILE")]
    pub(crate) studies: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
