//! Flags of `longtail doctor`.

use clap::{Args, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  longtail doctor                   before a study
  longtail doctor --format json     for a script

Needs no privilege, changes nothing, takes about three seconds.
Exit code: 0 fit, with or without doubts; 1 not fit.";

/// How the findings are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum)]
pub(crate) enum DoctorFormat {
    /// For a terminal
    #[default]
    Text,
    /// Every check with its figures
    Json,
}

/// Flags of `longtail doctor`.
#[derive(Clone, Copy, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// What to write
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: DoctorFormat,
}
