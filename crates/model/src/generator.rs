//! What the generator's lanes, the machine and the server's processes did during a run, by the
//! kernel's account, for the checks of [`crate::diagnostic`].

use serde::{Deserialize, Serialize};

use crate::{Nanos, Tally};

/// What a generator's lanes and machine did during a run, for the checks. What could not be read is
/// absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorFacts {
    /// Each lane's use of the CPU.
    pub lanes: Vec<LaneFacts>,
    /// How often the wall clock, by which the kernel stamps arrivals, was set meanwhile; `None`
    /// where no stamps were taken.
    pub clock_steps: Option<u32>,
    /// What the same settings reach against a server that takes no time.
    pub ceiling: Option<Ceiling>,
    /// Share of all processors' time that the hypervisor gave to others, 0 to 1.
    pub steal: Option<f64>,
    /// Connects dropped by full accept queues in this network namespace.
    pub listen_overflows: Option<u64>,
    /// Connects that the kernel tried again for want of a response, in this network namespace
    /// (`TCPSynRetrans`).
    pub syn_retransmits: Option<u64>,
    /// What the server's processes had of the CPU at the same time.
    pub server: Option<ServerCpu>,
    /// The generators, where they were on other machines.
    pub far: Vec<FarGenerator>,
}

impl GeneratorFacts {
    /// The same where the load came from other machines: their kernels tried the connects, and the
    /// worst of the machines counts.
    #[must_use]
    pub fn from_far(mut self, far: Vec<FarGenerator>) -> GeneratorFacts {
        if !far.is_empty() {
            self.syn_retransmits = far.iter().map(|one| one.syn_retransmits).sum();
            self.steal = far.iter().filter_map(|one| one.steal).chain(self.steal).reduce(f64::max);
            self.far = far;
        }
        self
    }
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
    /// Of the time on a CPU: busy polling, for responses that were to come soon.
    #[serde(rename = "spun_ns")]
    pub spun: Nanos,
    /// Time in the measured window in which it did not run for 10 ms or longer, and neither its
    /// wait nor its work explains it.
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

/// What a generator with certain settings reaches against a server that takes no time, on this
/// machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// Requests per second.
    pub rate_per_s: f64,
}

/// What a server's processes had of the CPU during a run, warm-up included. Absent where they are
/// not known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerCpu {
    /// Each process that lived to the end.
    pub processes: Vec<ProcessCpu>,
    /// The time that passed.
    #[serde(rename = "elapsed_ns")]
    pub elapsed: Nanos,
    /// Requests that ended in that time, whatever became of them.
    pub requests: u64,
    /// As many CPUs as they may use at once, by affinity and the quota of their control groups.
    pub of: f64,
    /// Whether it is a quota that leaves them no more.
    #[serde(default)]
    pub by_quota: bool,
    /// Whether the generator may run on the same.
    pub is_shared: bool,
    /// How many of these CPUs were busy, on average, whoever it was with; `None` where the kernel
    /// does not tell.
    pub busy: Option<f64>,
    /// How many of them had nothing to run, on average; `None` where the kernel does not tell. On a
    /// virtual machine busy and idle may be less than all: the host took the rest, and did not say
    /// so.
    pub idle: Option<f64>,
    /// Whether the processes run Ruby, which lets one thread of a process compute at a time.
    pub is_ruby: bool,
}

/// One process, by the kernel's account of its threads (`/proc/PID/task/TID/schedstat`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessCpu {
    /// Its id.
    pub pid: u32,
    /// On a CPU.
    #[serde(rename = "cpu_ns")]
    pub cpu: Nanos,
    /// Ready to run, and waiting for a CPU.
    #[serde(rename = "run_queue_ns")]
    pub run_queue: Nanos,
}

/// A process with less than this of the busiest one's CPU time does not serve: it waits for those
/// that do.
const SERVES: f64 = 0.2;

impl ServerCpu {
    fn per_elapsed(&self, time: Nanos) -> f64 {
        time.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// CPUs that the server used, on average.
    pub fn cpus(&self) -> f64 {
        self.per_elapsed(self.processes.iter().map(|process| process.cpu).sum())
    }

    /// CPU time a request; `None` of none.
    pub fn per_request(&self) -> Option<Nanos> {
        let all: Nanos = self.processes.iter().map(|process| process.cpu).sum();
        (self.requests > 0).then(|| all / self.requests)
    }

    /// How long a request's threads were ready to run and waited for a CPU, on average; `None` of
    /// no request.
    pub fn waited_per_request(&self) -> Option<Nanos> {
        let all: Nanos = self.processes.iter().map(|process| process.run_queue).sum();
        (self.requests > 0).then(|| all / self.requests)
    }

    /// Those that serve: for each what it used, and what it used or waited for, in CPUs.
    pub fn serving(&self) -> Vec<(f64, f64)> {
        let most = self
            .processes
            .iter()
            .map(|process| process.cpu)
            .max()
            .unwrap_or_default()
            .as_secs_f64();
        let serves = |process: &&ProcessCpu| process.cpu.as_secs_f64() >= SERVES * most;
        let of = |process: &ProcessCpu| {
            (self.per_elapsed(process.cpu), self.per_elapsed(process.cpu + process.run_queue))
        };
        self.processes.iter().filter(serves).map(of).collect()
    }

    /// The highest rate that its CPUs allow at this run's CPU time a request, in requests per
    /// second: in Ruby no more than one CPU for each of `workers`, but for what a process was seen
    /// to use beside its lock.
    pub fn maximum_rate(&self, workers: u32) -> Option<f64> {
        let per_request = self.per_request().filter(|time| *time > Nanos::ZERO)?;
        let serving = self.serving();
        let idle = f64::from(workers) - serving.len() as f64;
        let at_once: f64 =
            serving.iter().map(|(cpus, _)| cpus.max(1.0)).sum::<f64>() + idle.max(0.0);
        let cpus = if self.is_ruby { self.of.min(at_once) } else { self.of };
        Some(cpus / per_request.as_secs_f64())
    }
}

/// One of a run's generators on other machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FarGenerator {
    /// The command that leads to it (`--from`), or the file that it wrote.
    pub name: String,
    /// Measured requests that it sent.
    pub requests: u64,
    /// Good responses among them.
    pub good: u64,
    /// The median of their response times; `None` of none.
    #[serde(rename = "p50_ns")]
    pub p50: Option<Nanos>,
    /// Their 99th percentile.
    #[serde(rename = "p99_ns")]
    pub p99: Option<Nanos>,
    /// The most that its clock may be off from the one here, drift during the run included; `None`
    /// where nobody compared them.
    #[serde(rename = "clock_error_ns")]
    pub clock_error: Option<Nanos>,
    /// How long after the common start it started.
    #[serde(rename = "started_late_ns")]
    pub started_late: Nanos,
    /// Share of its machine's CPU time that a hypervisor gave to others.
    pub steal: Option<f64>,
    /// Connects that its kernel tried again.
    pub syn_retransmits: Option<u64>,
    /// Why nothing is known of what it did; `None` where all is.
    pub lost: Option<String>,
}

impl FarGenerator {
    /// One of which only the records of its lanes are known.
    pub fn recorded(name: String, tally: &Tally) -> FarGenerator {
        let (requests, good) = (tally.due(), tally.counts.good());
        let at = |q| tally.response_time.quantile(q);
        FarGenerator {
            name,
            requests,
            good,
            p50: at(0.5),
            p99: at(0.99),
            ..FarGenerator::default()
        }
    }

    /// One that ended in the middle of a run, or did not start.
    pub fn lost(name: String, why: String) -> FarGenerator {
        FarGenerator { name, lost: Some(why), ..FarGenerator::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(cpu_ms: &[u64], requests: u64, is_ruby: bool) -> ServerCpu {
        let process =
            |ms: &u64| ProcessCpu { cpu: Nanos::from_millis(*ms), ..ProcessCpu::default() };
        let processes = cpu_ms.iter().map(process).collect();
        ServerCpu {
            processes,
            elapsed: Nanos::from_secs(10),
            requests,
            of: 4.0,
            is_ruby,
            ..ServerCpu::default()
        }
    }

    #[test]
    fn cpu_a_request_tells_how_many_a_second_there_can_be() {
        // A parent that waits, and two workers that compute 10 ms for each of 1900 requests.
        let ruby = server(&[20, 9500, 9480], 1900, true);
        assert_eq!((ruby.per_request(), ruby.serving().len()), (Some(Nanos::from_millis(10)), 2));
        assert!((ruby.cpus() - 1.9).abs() < 1e-9);
        assert!((ruby.maximum_rate(2).unwrap() - 200.0).abs() < 1e-9, "one CPU a worker");
        assert!(
            (server(&[19_000], 1900, false).maximum_rate(2).unwrap() - 400.0).abs() < 1e-9,
            "all CPUs"
        );
        // One that used more than one CPU has shown that it can.
        assert!((server(&[13_000], 1300, true).maximum_rate(1).unwrap() - 130.0).abs() < 1e-9);
        assert_eq!(
            (server(&[1], 0, true).maximum_rate(1), ServerCpu::default().per_request()),
            (None, None)
        );
    }
}
