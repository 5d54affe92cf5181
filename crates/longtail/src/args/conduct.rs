//! How runs are made and what lies between them, whatever is sent: the flags that `sweep` and `bodies` share.

use clap::Args;
use model::{LaneCountReason, Nanos};

/// How runs are made.
#[derive(Debug, Args)]
#[command(next_help_heading = "Stream of requests")]
pub(crate) struct ConductArgs {
    /// Wait until the server is idle between runs (this is the default)
    #[arg(long, overrides_with = "no_cool_down")]
    cool_down: bool,
    /// Start each run on what the one before has left
    #[arg(long)]
    no_cool_down: bool,
    /// Do not measure the generator's own limit first (it is measured once a day)
    #[arg(long)]
    no_calibrate: bool,
    /// An answer that takes longer counts as timed out
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub(super) timeout: Nanos,
    /// Threads of the generator [default: 1]
    #[arg(long, alias = "lanes", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    generator_threads: Option<u32>,
    /// Response header in which a worker names itself
    #[arg(long, value_name = "NAME", default_value = "x-worker-pid")]
    pub(super) worker_header: String,
}

impl ConductArgs {
    /// Why there are so many threads of the generator: one unless asked for more, as no Puma is as fast as one of them.
    pub(crate) fn lanes_by(&self) -> LaneCountReason {
        if self.generator_threads.is_some() { LaneCountReason::Asked } else { LaneCountReason::One }
    }

    /// Threads of the generator.
    pub(super) fn lanes(&self) -> u32 {
        self.generator_threads.unwrap_or(1)
    }

    /// Whether the server is idle before each run.
    pub(super) fn cools_down(&self) -> bool {
        !self.no_cool_down
    }

    /// Whether the generator's own limit is measured.
    pub(super) fn calibrates(&self) -> bool {
        !self.no_calibrate
    }
}
