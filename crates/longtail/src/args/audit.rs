//! Flags of `longtail audit`.

use std::path::PathBuf;

use clap::Args;

use super::output::FormatArgs;

const EXAMPLES: &str = "\
Examples:
  longtail audit wrk.txt
  wrk -t2 -c64 -d10s --latency http://127.0.0.1:9292/ | longtail audit -
  longtail audit wrk.txt --json    claims and findings, for a script

Reads the output of wrk, wrk2, hey, oha, ab, h2load, bombardier, vegeta and Puma's scripts, and checks whether its
figures can all be true: Little's law, what the percentiles say about the mean, counts, bytes.
Exit code: 1 if a claim is impossible.";

/// Flags of `longtail audit`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AuditArgs {
    /// A file with the tool's output; other text is ignored; - is stdin
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}
