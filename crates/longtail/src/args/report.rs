//! Flags of `longtail report`.

use std::path::PathBuf;

use clap::Args;

use super::OutputArgs;

const REPORT_EXAMPLES: &str = "\
Examples:
  longtail report                              the last study
  longtail report --format markdown            the last study, for a pull request
  longtail report study.json --style puma    a kept one, in Puma's own columns
  longtail report --width 0                    all columns, on a narrow terminal too

Studies are kept in $XDG_DATA_HOME/longtail/studies (~/.local/share/longtail/studies).";

/// Flags of `longtail report`.
#[derive(Debug, Args)]
#[command(after_help = REPORT_EXAMPLES)]
pub(crate) struct ReportArgs {
    /// A saved study [default: the last one]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
