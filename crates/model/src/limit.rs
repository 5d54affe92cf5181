//! What kept a run from doing more: the limit, by its name and with its evidence.
//!
//! A verdict says whether the server was measured; the limit says what would have to give for more. What the evidence does not show
//! is not known, and then it is said what was seen.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Gate, Nanos};

/// What limited a run. A run that was offered less than the server can do, or whose figures are void, has none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "limit", rename_all = "snake_case")]
pub enum Limit {
    /// The server's threads: all are taken, by requests that wait.
    Threads {
        /// Requests that it can process at a time.
        slots: u32,
        /// Connections that wanted one.
        connections: u32,
        /// The rate over slots / service time.
        of_maximum: f64,
    },
    /// The CPUs that the server may use.
    Cpu(CpuUse),
    /// Ruby runs one thread of a process at a time, and each process did.
    RubyLock {
        /// Processes that serve.
        processes: u32,
        /// What the least busy of them had or waited for, in CPUs.
        each: f64,
        /// The server beside its CPUs.
        cpu: CpuUse,
    },
    /// Connections that the kernel dropped for a full accept queue, and tried again a second later or more.
    AcceptQueue {
        /// Dropped by full accept queues, on this machine.
        dropped: u64,
        /// Connects that the kernel tried again, on this machine.
        retried: u64,
        /// The longest connect of a good answer.
        #[serde(rename = "longest_ns")]
        longest: Nanos,
    },
    /// Segments that were lost on the way.
    Network {
        /// Answers that are slow.
        slow: u64,
        /// Of those: with a segment that was sent again meanwhile.
        retransmitted: u64,
    },
    /// The generator, by this gate.
    Generator {
        /// The gate that failed.
        gate: Gate,
    },
    /// The CPUs that server and generator share.
    SharedCpus(CpuUse),
    /// Not known.
    NotKnown {
        /// The server beside its CPUs, where that could be read.
        cpu: Option<CpuUse>,
    },
}

/// Who had the CPUs during a run, in CPUs on average: 1.5 is one and a half.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuUse {
    /// The server.
    pub server: f64,
    /// The generator, without what it was awake for want of work.
    pub generator: f64,
    /// Everybody else; `None` where the kernel does not tell.
    pub others: Option<f64>,
    /// As many as the server may use at once, by its affinity and the quota of its control groups.
    pub of: f64,
}

impl Limit {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Limit::Threads { .. } => "threads",
            Limit::Cpu(_) => "CPU",
            Limit::RubyLock { .. } => "Ruby's lock",
            Limit::AcceptQueue { .. } => "accept queue",
            Limit::Network { .. } => "network",
            Limit::Generator { .. } => "generator",
            Limit::SharedCpus(_) => "shared CPUs",
            Limit::NotKnown { .. } => "not known",
        }
    }
}

/// Its name and the evidence.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name())?;
        match self {
            Limit::Threads { slots, connections, of_maximum } => write!(
                f,
                "{connections} connections want {slots} threads, and these do {:.0} % of what they can",
                of_maximum * 100.0
            ),
            Limit::Cpu(cpu) | Limit::SharedCpus(cpu) | Limit::NotKnown { cpu: Some(cpu) } => cpu.fmt(f),
            Limit::RubyLock { processes: 1, cpu, .. } => {
                write!(f, "one thread of the process runs at a time, and one did; {cpu}")
            }
            Limit::RubyLock { processes, cpu, .. } => {
                write!(f, "one thread of a process runs at a time, and in each of the {processes} one did; {cpu}")
            }
            Limit::AcceptQueue { dropped, retried, longest } => write!(
                f,
                "{dropped} connects dropped, {retried} tried again, the longest {:.2} s",
                longest.as_secs_f64()
            ),
            Limit::Network { slow, retransmitted } => {
                write!(f, "{retransmitted} of {slow} slow answers had a segment that was sent again")
            }
            Limit::Generator { gate } => f.write_str(&gate.text()),
            Limit::NotKnown { cpu: None } => f.write_str("nothing was read of the server"),
        }
    }
}

impl fmt::Display for CpuUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CpuUse { server, generator, others, of } = self;
        write!(f, "the server used {server:.2} of {of} CPUs, the generator {generator:.2}")?;
        others.map_or(Ok(()), |others| write!(f, ", others {others:.2}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_said_with_its_evidence_and_survives_its_file() {
        let cpu = CpuUse { server: 1.92, generator: 0.06, others: Some(0.01), of: 2.0 };
        for (limit, said) in [
            (
                Limit::Threads { slots: 10, connections: 40, of_maximum: 0.994 },
                "threads: 40 connections want 10 threads, and these do 99 % of what they can",
            ),
            (Limit::Cpu(cpu), "CPU: the server used 1.92 of 2 CPUs, the generator 0.06, others 0.01"),
            (
                Limit::RubyLock { processes: 1, each: 0.98, cpu: CpuUse { server: 0.98, others: None, ..cpu } },
                "Ruby's lock: one thread of the process runs at a time, and one did; the server used 0.98 of 2 CPUs, the generator 0.06",
            ),
            (
                Limit::AcceptQueue { dropped: 7, retried: 5, longest: Nanos::from_millis(3020) },
                "accept queue: 7 connects dropped, 5 tried again, the longest 3.02 s",
            ),
            (
                Limit::Network { slow: 20, retransmitted: 19 },
                "network: 19 of 20 slow answers had a segment that was sent again",
            ),
            (Limit::Generator { gate: Gate::LaneCpu { share: 0.95 } }, "generator: lane CPU 95.0 %"),
            (Limit::NotKnown { cpu: None }, "not known: nothing was read of the server"),
        ] {
            assert_eq!(limit.to_string(), said);
            let file = serde_json::to_string(&limit).unwrap();
            assert_eq!(serde_json::from_str::<Limit>(&file).unwrap(), limit, "{file}");
        }
    }
}
