//! Where a study was made: the machine, and the server under test.

use crate::Placement;
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
}

impl ServerFacts {
    /// What it can process at once: workers x threads.
    pub fn slots(&self) -> u32 {
        self.workers * self.threads
    }
}
