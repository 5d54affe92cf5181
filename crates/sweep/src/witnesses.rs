//! Who looks on and listens while a run goes on, and what came of it.

use std::sync::{Arc, Mutex};

use engine::DriveResult;
use model::{EndedBy, KernelView, Nanos, Probe, ServerCpu, StatsdReport, Watch};

use crate::hear::Hearing;
use crate::watch::LiveReadings;

/// Who looks on while a run goes on.
pub(crate) struct Witnesses<'a> {
    /// What is looked at.
    pub(crate) probe: Probe,
    /// Where the last readings are shown.
    pub(crate) live: Arc<LiveReadings>,
    /// Who listens.
    pub(crate) statsd: Option<&'a Mutex<Hearing>>,
}

impl Witnesses<'_> {
    /// Nobody.
    pub(crate) fn none() -> Self {
        Witnesses { probe: Probe::None, live: Arc::default(), statsd: None }
    }
}

/// A run, and what they saw and heard.
pub(crate) struct Watched {
    pub(crate) done: DriveResult,
    /// Who ended it before its time.
    pub(crate) ended_by: Option<EndedBy>,
    pub(crate) watch: Option<Watch>,
    pub(crate) heard: Option<StatsdReport>,
    pub(crate) kernel: Option<KernelView>,
    /// What the server had of the CPU.
    pub(crate) server_cpu: Option<ServerCpu>,
    /// CPU time that it took to have the kernel tell, before the first request.
    pub(crate) setup_cpu: Nanos,
}
