//! `--json` of the commands whose findings are no study. What a study can be printed as: `output.rs`.

use clap::{Args, ValueEnum};

/// The words of `--format`, which was before `--json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FindingsFormat {
    Text,
    Json,
}

/// How findings are printed.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct FormatArgs {
    /// Print it as JSON, for scripts
    #[arg(long, help_heading = "Output")]
    json: bool,
    #[arg(long, value_enum, hide = true, conflicts_with = "json")]
    format: Option<FindingsFormat>,
}

impl FormatArgs {
    /// Whether it is for a program.
    pub(crate) fn is_json(self) -> bool {
        self.json || self.format == Some(FindingsFormat::Json)
    }
}
