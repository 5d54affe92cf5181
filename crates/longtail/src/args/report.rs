//! Flags of `longtail report`.

use std::path::PathBuf;

use clap::Args;
use model::Metric;

use super::{OutputArgs, ThresholdArgs};

const EXAMPLES: &str = "\
Examples:
  longtail report                              the last study
  longtail report --list                      what is kept: number, date, command, result
  longtail report 2                           the last but one; report sweep: the last sweep
  longtail report --full                      everything that is known of the last study
  longtail report --markdown                  the last study, for a pull request
  longtail report --repro                     the same for an issue, with app and command to run it
  longtail report x.study.json --style puma   a saved one, in Puma's own columns
  longtail report --expect 'p99 < 200ms'      hold the last study against a limit: exit code 1 where it is missed
  longtail report compare --pairs             the last comparison, each arm with each other
  longtail report -o page.html -o table.csv   a page with plots, and a line a run

Studies are kept in $XDG_DATA_HOME/longtail/studies (~/.local/share/longtail/studies).";

/// Flags of `longtail report`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArgs {
    /// Saved studies: files, numbers of --list, or a command for its last [default: the last one]
    #[arg(value_name = "STUDY")]
    pub(crate) studies: Vec<PathBuf>,
    /// List the newest N studies that are kept, with what each found [default N: 20]
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "20",
        conflicts_with_all = ["studies", "printed", "html", "files", "keep"]
    )]
    pub(crate) list: Option<usize>,
    /// Remove all kept studies except the newest N
    #[arg(long, value_name = "N", conflicts_with_all = ["studies", "printed", "html", "files"])]
    pub(crate) keep: Option<usize>,
    /// Print one block for an issue: what was seen, and the files and the command that show it again
    #[arg(long, conflicts_with_all = ["printed", "html", "files", "list", "keep"])]
    pub(crate) repro: bool,
    /// Of a comparison: compare each arm with each other
    #[arg(long, conflicts_with_all = ["list", "keep", "repro"])]
    pub(crate) pairs: bool,
    /// Of a comparison: the arm to compare the others with, in place of the first
    #[arg(long, value_name = "ARM", allow_hyphen_values = true, conflicts_with_all = ["list", "keep", "repro"])]
    pub(crate) base: Option<String>,
    /// Of a comparison: the metrics that decide, such as p99
    #[arg(long = "metric", value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["list", "keep", "repro"])]
    pub(crate) gates: Vec<Metric>,
    #[command(flatten)]
    pub(crate) thresholds: ThresholdArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
