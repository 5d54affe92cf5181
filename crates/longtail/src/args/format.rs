//! `--format` of the commands whose findings are no study: text or JSON. What a study can be printed as: `output.rs`.

use clap::{Args, ValueEnum};

/// How findings are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// For programs: all figures
    Json,
}

impl Format {
    /// Whether it is for a program.
    pub(crate) fn is_json(self) -> bool {
        self == Format::Json
    }
}

/// `--format` of the commands that had `--json` before, which says the same.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct FormatArgs {
    /// What to write
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// The same as --format json
    #[arg(long, hide = true, conflicts_with = "format")]
    json: bool,
}

impl FormatArgs {
    /// Whether it is for a program.
    pub(crate) fn is_json(self) -> bool {
        self.json || self.format.is_json()
    }
}
