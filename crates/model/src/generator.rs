//! What a generator's lanes and machine did during a run, by the kernel's account, for the checks of [`crate::check`].

use serde::{Deserialize, Serialize};

use crate::{Nanos, ServerCpu};

/// What a generator's lanes and machine did during a run, for the checks. What could not be read is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorFacts {
    /// Each lane's use of the CPU.
    pub lanes: Vec<LaneFacts>,
    /// How often the wall clock, by which the kernel stamps arrivals, was set meanwhile; `None` where no stamps were taken.
    pub clock_steps: Option<u32>,
    /// What the same settings reach against a server that takes no time.
    pub ceiling: Option<Ceiling>,
    /// Share of all processors' time that the hypervisor gave to others, 0 to 1.
    pub steal: Option<f64>,
    /// Connects dropped by full accept queues in this network namespace.
    pub listen_overflows: Option<u64>,
    /// Connects that the kernel tried again for want of an answer, in this network namespace (`TCPSynRetrans`).
    pub syn_retransmits: Option<u64>,
    /// What the server's processes had of the CPU at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerCpu>,
}

/// One lane's use of the CPU, by the kernel's account (`/proc/thread-self/schedstat`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneFacts {
    /// Time on a CPU.
    #[serde(rename = "cpu_ns")]
    pub cpu: Nanos,
    /// Time on a run queue, waiting for one.
    #[serde(rename = "run_queue_ns")]
    pub run_queue: Nanos,
    /// Time that passed.
    #[serde(rename = "elapsed_ns")]
    pub elapsed: Nanos,
    /// Of the time on a CPU: awake without work, for answers that were to come soon.
    #[serde(rename = "spun_ns")]
    pub spun: Nanos,
    /// Time in the measured window in which it did not run for 10 ms or longer, and neither its wait nor its work explains it.
    #[serde(rename = "stood_still_ns")]
    pub stood_still: Nanos,
    /// The longest such stretch.
    #[serde(rename = "longest_standstill_ns")]
    pub longest_standstill: Nanos,
}

impl LaneFacts {
    /// Time on a CPU that was work.
    pub fn work(&self) -> Nanos {
        self.cpu.saturating_sub(self.spun)
    }
}

/// What a generator with certain settings reaches against a server that takes no time, on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// Requests per second.
    pub rate_per_s: f64,
    /// Median service time there: the floor of what can be measured.
    #[serde(rename = "floor_p50_ns")]
    pub floor_p50: Nanos,
    /// 99th percentile there.
    #[serde(rename = "floor_p99_ns")]
    pub floor_p99: Nanos,
    /// The lanes' CPU time a request.
    #[serde(rename = "cpu_per_request_ns")]
    pub cpu_per_request: Nanos,
}
