//! What is watched: each quantity with its name, its unit and its words.

use std::fmt;

/// One quantity; of the whole server, and most of each process too. In the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Quantity {
    AcceptQueue,
    Open,
    Accepted,
    Unread,
    Elsewhere,
    Busy,
    Backlog,
    Cpu,
    BusyCpus,
    RunQueueWait,
    Voluntary,
    Involuntary,
    Threads,
    Memory,
    Overflows,
    Drops,
    SynRetransmits,
    Connect,
}

/// How a quantity is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    /// A number of things.
    Count,
    /// Things a second.
    PerSecond,
    /// CPUs, in percent of one.
    Percent,
    Bytes,
    Milliseconds,
}

/// The words for a quantity.
struct QuantityWords {
    /// For people.
    label: &'static str,
    /// In JSON.
    name: &'static str,
    /// In JSON.
    unit: &'static str,
    notation: Notation,
    /// Who says it; empty where the sampler knows.
    source: &'static str,
}

impl Quantity {
    /// Those of the whole server, in the order of the table.
    pub(crate) const OF_SERVER: [Quantity; 17] = [
        Quantity::Connect,
        Quantity::AcceptQueue,
        Quantity::Open,
        Quantity::Accepted,
        Quantity::Unread,
        Quantity::Elsewhere,
        Quantity::Busy,
        Quantity::Backlog,
        Quantity::Cpu,
        Quantity::BusyCpus,
        Quantity::RunQueueWait,
        Quantity::Voluntary,
        Quantity::Involuntary,
        Quantity::Threads,
        Quantity::Overflows,
        Quantity::Drops,
        Quantity::SynRetransmits,
    ];

    /// Those of each process.
    pub(crate) const OF_PROCESS: [Quantity; 9] = [
        Quantity::Accepted,
        Quantity::Busy,
        Quantity::Backlog,
        Quantity::Cpu,
        Quantity::RunQueueWait,
        Quantity::Voluntary,
        Quantity::Involuntary,
        Quantity::Threads,
        Quantity::Memory,
    ];

    fn words(self) -> QuantityWords {
        use Notation::{Bytes, Count, Milliseconds, PerSecond, Percent};
        const SCHEDSTAT: &str = "/proc/PID/task/TID/schedstat";
        const STATUS: &str = "/proc/PID/task/TID/status";
        const NETSTAT: &str = "/proc/net/netstat, all servers";
        let (label, name, unit, notation, source) = match self {
            Quantity::AcceptQueue => ("accept queue", "accept_queue", "connections", Count, ""),
            Quantity::Open => ("open connections", "open_connections", "connections", Count, ""),
            Quantity::Accepted => {
                ("accepted connections", "accepted_connections", "connections", Count, "/proc/PID/fd")
            }
            Quantity::Unread => ("unread connections", "unread_connections", "connections", Count, ""),
            Quantity::Elsewhere => {
                ("held by nobody seen", "unplaced_connections", "connections", Count, "/proc/PID/fd")
            }
            Quantity::Busy => ("busy threads", "busy_threads", "threads", Count, "puma stats"),
            Quantity::Backlog => ("backlog", "backlog", "requests", Count, "puma stats"),
            Quantity::Cpu => ("CPU, %", "cpu", "cpus", Percent, SCHEDSTAT),
            Quantity::BusyCpus => ("CPUs busy, anybody's, %", "busy_cpus", "cpus", Percent, "/proc/stat"),
            Quantity::RunQueueWait => ("run-queue wait, %", "run_queue_wait", "threads_waiting", Percent, SCHEDSTAT),
            Quantity::Voluntary => ("voluntary switches/s", "voluntary_switches", "switches_per_s", PerSecond, STATUS),
            Quantity::Involuntary => {
                ("involuntary switches/s", "involuntary_switches", "switches_per_s", PerSecond, STATUS)
            }
            Quantity::Threads => ("threads", "threads", "threads", Count, SCHEDSTAT),
            Quantity::Memory => ("resident memory", "resident_memory", "bytes", Bytes, "/proc/PID/statm"),
            Quantity::Overflows => ("queue overflows/s", "listen_overflows", "connects_per_s", PerSecond, NETSTAT),
            Quantity::Drops => ("dropped connects/s", "listen_drops", "connects_per_s", PerSecond, NETSTAT),
            Quantity::SynRetransmits => {
                ("repeated connects/s", "syn_retransmits", "connects_per_s", PerSecond, NETSTAT)
            }
            Quantity::Connect => ("connect time, ms", "connect_time", "ms", Milliseconds, ""),
        };
        QuantityWords { label, name, unit, notation, source }
    }

    /// Whether it comes of a counter, as what it counted a second.
    pub(crate) fn is_rate(self) -> bool {
        matches!(self.words().notation, Notation::PerSecond | Notation::Percent)
    }

    /// Its name in JSON.
    pub(crate) fn name(self) -> &'static str {
        self.words().name
    }

    /// Its unit in JSON.
    pub(crate) fn unit(self) -> &'static str {
        self.words().unit
    }

    /// Who says it; `sockets` is where the sockets are looked at.
    pub(crate) fn source(self, sockets: &'static str) -> &'static str {
        let source = self.words().source;
        if source.is_empty() { sockets } else { source }
    }

    /// A number of it, as it is written.
    pub(crate) fn written(self, value: Option<f64>) -> String {
        use report::number;
        number::or_none(value, |value| match self.words().notation {
            // What was counted is whole; its mean may not be.
            Notation::Count if value.fract() == 0.0 => number::fixed(value, 0),
            Notation::Count | Notation::PerSecond => number::or_zero(value, number::significant),
            Notation::Percent => number::or_zero(value, number::percent),
            Notation::Bytes => number::bytes(value),
            Notation::Milliseconds => number::significant(value),
        })
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.words().label)
    }
}
