//! Flags of the commands that read what there is already: `longtail report` and `longtail audit`.

use std::path::PathBuf;

use clap::Args;

use super::output::{FormatArgs, OutputArgs};

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

const AUDIT_EXAMPLES: &str = "\
Examples:
  longtail audit wrk.txt
  wrk -t2 -c64 -d10s --latency http://127.0.0.1:9292/ | longtail audit -
  longtail audit wrk.txt --json    claims and findings, for a script

Reads the output of wrk, wrk2, hey, oha, ab, h2load, bombardier, vegeta and Puma's scripts, and checks whether its
figures can all be true: Little's law, what the percentiles say about the mean, counts, bytes.
Exit code: 1 where a claim is impossible.";

/// Flags of `longtail audit`.
#[derive(Debug, Args)]
#[command(after_help = AUDIT_EXAMPLES)]
pub(crate) struct AuditArgs {
    /// A file with the tool's output, whatever stands around it; - is stdin
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}
