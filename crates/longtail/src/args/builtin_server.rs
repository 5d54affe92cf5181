//! Flags of the hidden command that `--server builtin` starts.

use std::net::SocketAddr;

use clap::Args;
use model::Nanos;

/// Flags of the built-in server's process.
#[derive(Debug, Args)]
pub(crate) struct BuiltinServerArgs {
    #[arg(long)]
    pub(crate) listen: SocketAddr,
    #[arg(long)]
    pub(crate) workers: u32,
    #[arg(long)]
    pub(crate) threads: u32,
    #[arg(long)]
    pub(crate) delay: Nanos,
    #[arg(long)]
    pub(crate) worker_header: String,
}
