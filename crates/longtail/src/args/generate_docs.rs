//! Flags of `longtail generate-docs`.

use std::path::PathBuf;

use clap::Args;

/// Flags of `longtail generate-docs`.
#[derive(Debug, Args)]
pub(crate) struct GenerateDocsArgs {
    /// Where man pages and completions belong, such as ~/.local/share
    #[arg(value_name = "DIR")]
    pub(crate) into: PathBuf,
}
