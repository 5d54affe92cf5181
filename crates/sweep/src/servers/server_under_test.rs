//! What differs between the kinds of server, as a trait: how each is started, when it has failed to
//! boot, what it counts, and in which order it serves.

use std::path::{Path, PathBuf};

use launch::puma::PumaConfig;
use launch::{LaunchSpec, ServerBind, ServerOutput};
use model::{ControlServer, Nanos, ServerFacts};
use probe::puma_stats::PumaStats;
use queueing::discipline::{ConnectionDealing, ServiceOrder};
use queueing::puma::TURN;

use crate::block::Block;
use crate::context::{Context, SweepError};

/// What to start, and where it will answer.
pub(crate) struct Preparation {
    pub(crate) spec: LaunchSpec,
    pub(crate) name: String,
    /// Without the path, unless the URL was given with one.
    pub(crate) url: String,
    pub(crate) reached: ServerAddress,
}

/// Where a server answers.
pub(crate) struct ServerAddress {
    pub(crate) bind: ServerBind,
    /// For the Host header.
    pub(crate) authority: String,
    /// What is requested unless the stream says something else.
    pub(crate) path: String,
    /// Puma's control server.
    pub(crate) control: Option<ControlServer>,
}

/// Workers, 0 for none beside the first process, and threads of each.
pub(crate) struct PlannedSize {
    pub(crate) workers: u32,
    pub(crate) threads: u32,
}

/// A load, as far as it decides in which order a server serves it.
pub(crate) struct ServedLoad {
    pub(crate) keep_alive: bool,
    pub(crate) connections: u32,
    /// The mean time that a request holds a slot.
    pub(crate) service_time: Nanos,
}

impl ServedLoad {
    /// The order of a server of which nothing is known.
    pub(crate) fn unknown_order(&self) -> ServiceOrder {
        ServiceOrder {
            discipline: None,
            is_kept: self.keep_alive,
            dealing: ConnectionDealing::ByChance,
            turn: TURN,
        }
    }
}

/// One kind of server. What most kinds do not have is absent by default.
pub(crate) trait ServerUnderTest {
    /// What to start, and where it will answer.
    ///
    /// # Errors
    /// If the user asked for what cannot be started.
    fn prepare(&self, block: &Block, context: &Context<'_>) -> Result<Preparation, SweepError>;

    /// Workers and threads, as far as they were planned.
    fn planned_size(&self) -> PlannedSize;

    /// Reads its configuration before it is started.
    ///
    /// # Errors
    /// If the configuration cannot be read.
    fn read_config(&self, _: &LaunchSpec, _: &Context<'_>) -> Result<PumaConfig, SweepError> {
        Ok(PumaConfig::default())
    }

    /// Why it will never be ready, as far as its output says so.
    fn boot_failure(&self, _: &ServerOutput) -> Option<SweepError> {
        None
    }

    /// The names by which its workers call themselves in the response header; empty if they are not
    /// known from the start.
    fn worker_names(&self, _: &ServerFacts, _: Option<&PumaStats>, _: u32) -> Vec<String> {
        Vec::new()
    }

    /// The checkout whose revision is measured when it runs in `dir`.
    fn checkout(&self, _dir: &Path) -> Option<PathBuf> {
        None
    }

    /// The requests that it has counted in a ledger of its own; `None` if it has none that can be
    /// read. Puma's count is in its statistics.
    fn ledger(&self, _: &ServerAddress) -> Option<Result<u64, String>> {
        None
    }

    /// The order in which it serves the requests of this load.
    fn service_order(&self, server: &ServerFacts, load: &ServedLoad) -> ServiceOrder;
}
