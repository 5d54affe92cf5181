//! `--format` of the commands whose findings are no study: text or JSON. What a study can be printed as: `output.rs`.

use clap::ValueEnum;

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
