//! Flags of `longtail generate`.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;

use super::value_parsers::from_1_to;

/// Flags of `longtail generate`; none if a conductor controls it over standard input.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct GenerateArgs {
    /// Which generator of the load this is, from 0
    #[arg(long, value_name = "K", env = "JOB_COMPLETION_INDEX", hide_env_values = true)]
    pub(crate) index: Option<u32>,
    /// Generators of the load
    #[arg(long, value_name = "N", requires = "words", value_parser = from_1_to(10_000))]
    pub(crate) of: Option<u32>,
    /// When all of them start, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", requires = "words")]
    pub(crate) start_at: Option<Timestamp>,
    /// Where its part is written; `longtail merge` makes one result of all
    #[arg(short, value_name = "FILE", requires = "words")]
    pub(crate) out: Option<PathBuf>,
    /// The words of `longtail load`, the same for all of them
    #[arg(
        last = true,
        value_name = "LOAD",
        requires = "of",
        requires = "start_at",
        requires = "out"
    )]
    pub(crate) words: Vec<String>,
}
