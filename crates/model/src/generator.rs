//! What the kernel says about the generator's lanes, the machine and the server's processes during
//! a run: the evidence for the checks of [`crate::diagnostic`].

use serde::{Deserialize, Serialize};

use crate::{Nanos, Tally};

/// What a generator's lanes and machine did during a run, for the checks. Values that could not be
/// read are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorFacts {
    /// Each lane's use of the CPU.
    pub lanes: Vec<LaneFacts>,
    /// How often the wall clock, with which the kernel stamps arrivals, was set meanwhile; `None`
    /// without kernel stamps.
    pub clock_steps: Option<u32>,
    /// The rate of the same settings against a server that takes no time.
    pub ceiling: Option<Ceiling>,
    /// Share of all CPU time that the hypervisor gave to other machines, 0 to 1.
    pub steal: Option<f64>,
    /// Connects dropped by full accept queues in this network namespace.
    pub listen_overflows: Option<u64>,
    /// Connects that the kernel retried because nobody answered, in this network namespace
    /// (`TCPSynRetrans`).
    pub syn_retransmits: Option<u64>,
    /// Connections of others on which the server received something during the load, if it is on this
    /// machine; `None` if nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_clients: Option<u64>,
    /// The CPU use of the server's processes at the same time.
    pub server: Option<ServerCpu>,
    /// The generators on other machines, if any.
    pub far: Vec<FarGenerator>,
}

impl GeneratorFacts {
    /// The facts of a load from other machines: the connects that their kernels retried, and the
    /// largest steal of any machine, this one included.
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
    /// Elapsed time.
    #[serde(rename = "elapsed_ns")]
    pub elapsed: Nanos,
    /// The part of the CPU time that was busy polling for responses that were due soon.
    #[serde(rename = "spun_ns")]
    pub spun: Nanos,
    /// Time in the measured window in stretches of 10 ms or more in which it did not run, and
    /// neither waiting for events nor its work explains that.
    #[serde(rename = "stood_still_ns")]
    pub stood_still: Nanos,
    /// The longest such stretch.
    #[serde(rename = "longest_standstill_ns")]
    pub longest_standstill: Nanos,
}

impl LaneFacts {
    /// CPU time without busy polling.
    pub fn work(&self) -> Nanos {
        self.cpu.saturating_sub(self.spun)
    }
}

/// The rate of a generator with certain settings against a server that takes no time, on this
/// machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// Requests per second.
    pub rate_per_s: f64,
}

/// The CPU use of a server's processes during a run, warm-up included. Absent if the processes are
/// unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerCpu {
    /// The processes that were alive at the end.
    pub processes: Vec<ProcessCpu>,
    /// CPU time of processes that they started and that ended meanwhile, such as shell commands.
    #[serde(rename = "children_ns", default)]
    pub children: Nanos,
    /// Elapsed time.
    #[serde(rename = "elapsed_ns")]
    pub elapsed: Nanos,
    /// Requests that ended in that time, with any outcome.
    pub requests: u64,
    /// How many CPUs they may use at once, by affinity and the quota of their control groups.
    pub of: f64,
    /// Whether a quota sets this number.
    #[serde(default)]
    pub by_quota: bool,
    /// Whether the generator may run on the same CPUs.
    pub is_shared: bool,
    /// How many of these CPUs were busy, on average, with any process; `None` if the kernel doesn't
    /// say.
    pub busy: Option<f64>,
    /// How many of them were idle, on average; `None` if the kernel doesn't say. On a virtual
    /// machine busy + idle may be less than all: the host took the rest without showing it.
    pub idle: Option<f64>,
    /// Whether the processes run Ruby, which lets one thread of a process compute at a time.
    pub is_ruby: bool,
    /// How many threads of theirs serve requests, by the names that Puma gives them from 5.6 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
}

/// One process, by the kernel's account of its threads (`/proc/PID/task/TID/schedstat`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessCpu {
    /// Its id.
    pub pid: u32,
    /// On a CPU.
    #[serde(rename = "cpu_ns")]
    pub cpu: Nanos,
    /// Ready to run, but waiting for a CPU.
    #[serde(rename = "run_queue_ns")]
    pub run_queue: Nanos,
}

/// How many CPUs a process that serves requests used during a run, on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServingProcess {
    /// On a CPU.
    pub used: f64,
    /// On a CPU or ready to run, its threads together.
    pub wanted: f64,
}

/// A process with less than this share of the busiest one's CPU time doesn't serve requests; it
/// waits for those that do.
const SERVES: f64 = 0.2;

impl ServerCpu {
    fn per_elapsed(&self, time: Nanos) -> f64 {
        time.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// CPU time of its processes, without that of `children`.
    fn own(&self) -> Nanos {
        self.processes.iter().map(|process| process.cpu).sum()
    }

    /// CPUs that the server used, on average, with processes that it started.
    pub fn cpus(&self) -> f64 {
        self.per_elapsed(self.own() + self.children)
    }

    /// CPU time per request, with that of processes that the server started; `None` without
    /// requests.
    pub fn per_request(&self) -> Option<Nanos> {
        (self.requests > 0).then(|| (self.own() + self.children) / self.requests)
    }

    /// How long threads were ready to run but waited for a CPU, per request; `None` without
    /// requests.
    pub fn waited_per_request(&self) -> Option<Nanos> {
        let all: Nanos = self.processes.iter().map(|process| process.run_queue).sum();
        (self.requests > 0).then(|| all / self.requests)
    }

    /// The CPU use of each process that serves requests.
    pub fn serving(&self) -> Vec<ServingProcess> {
        let most = self
            .processes
            .iter()
            .map(|process| process.cpu)
            .max()
            .unwrap_or_default()
            .as_secs_f64();
        let serves = |process: &&ProcessCpu| process.cpu.as_secs_f64() >= SERVES * most;
        let of = |process: &ProcessCpu| ServingProcess {
            used: self.per_elapsed(process.cpu),
            wanted: self.per_elapsed(process.cpu + process.run_queue),
        };
        self.processes.iter().filter(serves).map(of).collect()
    }

    /// The highest rate, in requests per second, that its CPUs allow with this run's CPU time per
    /// request. Ruby allows one CPU for each of the `workers`, unless a process was seen to use
    /// more.
    pub fn maximum_rate(&self, workers: u32) -> Option<f64> {
        let per_request = self.per_request().filter(|time| *time > Nanos::ZERO)?;
        let serving = self.serving();
        let idle = f64::from(workers) - serving.len() as f64;
        let at_once: f64 =
            serving.iter().map(|process| process.used.max(1.0)).sum::<f64>() + idle.max(0.0);
        let by_cpus = self.of / per_request.as_secs_f64();
        // Commands that it starts do not need the lock of its own processes.
        let own_per_request = self.own().as_secs_f64() / self.requests as f64;
        let by_lock = at_once / own_per_request.max(1e-9);
        Some(if self.is_ruby { by_cpus.min(by_lock) } else { by_cpus })
    }
}

/// One of a run's generators on other machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FarGenerator {
    /// The command that reaches it (`--from`), or the file that it wrote.
    pub name: String,
    /// Measured requests that it sent.
    pub requests: u64,
    /// Good responses among them.
    pub good: u64,
    /// The median of their response times; `None` without responses.
    #[serde(rename = "p50_ns")]
    pub p50: Option<Nanos>,
    /// Their 99th percentile.
    #[serde(rename = "p99_ns")]
    pub p99: Option<Nanos>,
    /// How far its clock may be off from the local one, drift during the run included; `None` if
    /// they were not compared.
    #[serde(rename = "clock_error_ns")]
    pub clock_error: Option<Nanos>,
    /// How long after the common start it started.
    #[serde(rename = "started_late_ns")]
    pub started_late: Nanos,
    /// Share of its machine's CPU time that a hypervisor gave to other machines.
    pub steal: Option<f64>,
    /// Connects that its kernel retried.
    pub syn_retransmits: Option<u64>,
    /// Why it was lost; `None` if it wasn't.
    pub lost: Option<String>,
}

impl FarGenerator {
    /// A generator of which only the records of its lanes are known.
    pub fn recorded(name: String, tally: &Tally) -> FarGenerator {
        let requests = tally.due();
        let good = tally.counts.good();
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

    /// A generator that ended in the middle of a run, or did not start.
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
    fn cpu_time_per_request_gives_the_highest_rate() {
        // A waiting parent and two workers that compute 10 ms for each of 1900 requests.
        let ruby = server(&[20, 9500, 9480], 1900, true);
        assert_eq!((ruby.per_request(), ruby.serving().len()), (Some(Nanos::from_millis(10)), 2));
        assert!((ruby.cpus() - 1.9).abs() < 1e-9);
        assert!((ruby.maximum_rate(2).unwrap() - 200.0).abs() < 1e-9, "one CPU a worker");
        assert!(
            (server(&[19_000], 1900, false).maximum_rate(2).unwrap() - 400.0).abs() < 1e-9,
            "all CPUs"
        );
        // Commands that it starts use CPU time, too, but need no lock of its own.
        let starts = ServerCpu { children: Nanos::from_secs(19), ..ruby.clone() };
        assert_eq!(starts.per_request(), Some(Nanos::from_millis(20)));
        assert!((starts.cpus() - 3.8).abs() < 1e-9);
        assert!((starts.maximum_rate(2).unwrap() - 200.0).abs() < 1e-9);
        // A process that used more than one CPU can do so.
        assert!((server(&[13_000], 1300, true).maximum_rate(1).unwrap() - 130.0).abs() < 1e-9);
        assert_eq!(
            (server(&[1], 0, true).maximum_rate(1), ServerCpu::default().per_request()),
            (None, None)
        );
    }
}
