//! Where a study was made: the machine, and the server under test.

use crate::{Nanos, Placement};
use serde::{Deserialize, Serialize};

/// The machine and our own version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of longtail.
    pub longtail_version: String,
    /// Operating system, as it names itself.
    pub os: String,
    /// Kernel release.
    pub kernel: String,
    /// Processor model.
    pub cpu: String,
    /// Processors this process may run on.
    pub cores: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
}

/// The server under test, as it was started and as it described itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// `Puma`, `built-in server`, or the command's name.
    pub name: String,
    /// Its version, where it says.
    pub version: Option<String>,
    /// Its language runtime, where it says: `ruby 3.1.2p20 …`.
    pub runtime: Option<String>,
    /// `branch commit` of the checkout it runs in, where it is one.
    pub git: Option<String>,
    /// The exact command line, as a shell would take it.
    pub command_line: String,
    /// Where the load goes.
    pub url: String,
    /// Worker processes; 1 in single mode.
    pub workers: u32,
    /// Threads a worker, at the most.
    pub threads: u32,
    /// Whether it runs worker processes (Puma's cluster mode).
    pub cluster: bool,
    /// Where its processes may run, and where the lanes do; `None` where the kernel does not say, and of older files.
    pub placement: Option<Placement>,
    /// What a Puma's config file and environment say of who waits for whom; `None` where that is not known.
    pub settings: Option<PumaSettings>,
}

/// What a Puma's own configuration comes to, as far as it decides who waits for whom. What is `None` is as this version of Puma has
/// it by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PumaSettings {
    /// `max_fast_inline`, of Puma up to 6: requests of one connection in a row while others wait.
    pub max_fast_inline: Option<u32>,
    /// `queue_requests`: without it there is no keep-alive.
    pub queue_requests: Option<bool>,
    /// `enable_keep_alives`, of Puma from 6.5.
    pub enable_keep_alives: Option<bool>,
    /// `wait_for_less_busy_worker`: the longest delay before an accept.
    #[serde(rename = "wait_for_less_busy_worker_ns")]
    pub wait_for_less_busy_worker: Option<Nanos>,
    /// Whether its thread pool can wait with an accept until a thread is free (`wait_until_not_full`).
    pub waits_until_not_full: Option<bool>,
}

impl ServerFacts {
    /// What it can process at once: workers x threads.
    pub fn slots(&self) -> u32 {
        self.workers * self.threads
    }
}
