//! Flags of `longtail doctor`.

use clap::Args;

use super::format::Format;

const EXAMPLES: &str = "\
Examples:
  longtail doctor                   before a study
  longtail doctor --format json     for a script

Needs no privilege, changes nothing, takes about three seconds.
Exit code: 0 fit, with or without doubts; 1 not fit.";

/// Flags of `longtail doctor`.
#[derive(Clone, Copy, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// What to write; JSON has every check with its figures
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}
