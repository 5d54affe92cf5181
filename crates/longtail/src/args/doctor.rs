//! Flags of `longtail doctor`.

use clap::Args;

use super::format::FormatArgs;

const EXAMPLES: &str = "\
Examples:
  longtail doctor                   before a study
  longtail doctor --json     for a script

Needs no privilege, changes nothing, takes about three seconds.
Exit code: 0 fit, with or without warnings; 1 not fit.";

/// Flags of `longtail doctor`.
#[derive(Clone, Copy, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}
