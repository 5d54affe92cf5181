//! Flags of `longtail audit`.

use std::path::PathBuf;

use clap::Args;

use super::format::FormatArgs;

const AUDIT_EXAMPLES: &str = "\
Examples:
  longtail audit wrk.txt
  wrk -t2 -c64 -d10s --latency http://127.0.0.1:9292/ | longtail audit -
  longtail audit wrk.txt --json         the claims and what was found, for a program

Reads what wrk, wrk2, hey, oha, ab, h2load, bombardier and vegeta print, and the tables of Puma's scripts, and holds
their figures against each other: Little's law, what percentiles force the mean to be, counts, bytes.
Exit code: 1 where a claim is impossible.";

/// Flags of `longtail audit`.
#[derive(Debug, Args)]
#[command(after_help = AUDIT_EXAMPLES)]
pub(crate) struct AuditArgs {
    /// The output, with whatever stands around it; - is stdin
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}
