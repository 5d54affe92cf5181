//! What is watched: each quantity with its name, its unit and its words.

use std::fmt;

/// One quantity; of the whole server, and most of each process too.
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
pub(crate) enum Shown {
    /// A number of things.
    Count,
    /// Things a second.
    PerSecond,
    /// CPUs, in percent of one.
    Percent,
    /// Bytes.
    Bytes,
    /// Milliseconds.
    Milliseconds,
}

impl Quantity {
    /// Those of the whole server, in the order of the table.
    pub(crate) const OF_ALL: [Quantity; 16] = [
        Quantity::Connect,
        Quantity::AcceptQueue,
        Quantity::Open,
        Quantity::Accepted,
        Quantity::Unread,
        Quantity::Elsewhere,
        Quantity::Busy,
        Quantity::Backlog,
        Quantity::Cpu,
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

    /// Those that come of a counter, as what it counted a second.
    pub(crate) fn is_rate(self) -> bool {
        matches!(self.shown(), Shown::PerSecond | Shown::Percent)
    }

    /// Its name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Quantity::AcceptQueue => "accept_queue",
            Quantity::Open => "open_connections",
            Quantity::Accepted => "accepted_connections",
            Quantity::Unread => "unread_connections",
            Quantity::Elsewhere => "unplaced_connections",
            Quantity::Busy => "busy_threads",
            Quantity::Backlog => "backlog",
            Quantity::Cpu => "cpu",
            Quantity::RunQueueWait => "run_queue_wait",
            Quantity::Voluntary => "voluntary_switches",
            Quantity::Involuntary => "involuntary_switches",
            Quantity::Threads => "threads",
            Quantity::Memory => "resident_memory",
            Quantity::Overflows => "listen_overflows",
            Quantity::Drops => "listen_drops",
            Quantity::SynRetransmits => "syn_retransmits",
            Quantity::Connect => "connect_time",
        }
    }

    /// Its unit in JSON.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Quantity::AcceptQueue | Quantity::Open | Quantity::Accepted | Quantity::Unread | Quantity::Elsewhere => {
                "connections"
            }
            Quantity::Busy | Quantity::Threads => "threads",
            Quantity::Backlog => "requests",
            Quantity::Cpu => "cpus",
            Quantity::RunQueueWait => "threads_waiting",
            Quantity::Voluntary | Quantity::Involuntary => "switches_per_s",
            Quantity::Memory => "bytes",
            Quantity::Overflows | Quantity::Drops | Quantity::SynRetransmits => "connects_per_s",
            Quantity::Connect => "ms",
        }
    }

    /// How it is written.
    pub(crate) fn shown(self) -> Shown {
        match self {
            Quantity::Cpu | Quantity::RunQueueWait => Shown::Percent,
            Quantity::Memory => Shown::Bytes,
            Quantity::Connect => Shown::Milliseconds,
            Quantity::Voluntary
            | Quantity::Involuntary
            | Quantity::Overflows
            | Quantity::Drops
            | Quantity::SynRetransmits => Shown::PerSecond,
            _ => Shown::Count,
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Quantity::AcceptQueue => "accept queue",
            Quantity::Open => "open connections",
            Quantity::Accepted => "accepted connections",
            Quantity::Unread => "unread connections",
            Quantity::Elsewhere => "held by nobody seen",
            Quantity::Busy => "busy slots",
            Quantity::Backlog => "server's own queue",
            Quantity::Cpu => "CPU, %",
            Quantity::RunQueueWait => "run-queue wait, %",
            Quantity::Voluntary => "voluntary switches/s",
            Quantity::Involuntary => "involuntary switches/s",
            Quantity::Threads => "threads",
            Quantity::Memory => "resident memory",
            Quantity::Overflows => "queue overflows/s",
            Quantity::Drops => "dropped connects/s",
            Quantity::SynRetransmits => "repeated connects/s",
            Quantity::Connect => "connect time, ms",
        })
    }
}

/// A number as its quantity is written.
pub(crate) fn written(quantity: Quantity, value: Option<f64>) -> String {
    use report::number;
    number::or_none(value, |value| match quantity.shown() {
        // What was counted is whole; its mean may not be.
        Shown::Count if value.fract() == 0.0 => number::fixed(value, 0),
        Shown::Count | Shown::PerSecond => number::or_zero(value, number::significant),
        Shown::Percent => number::or_zero(value, number::percent),
        Shown::Bytes => number::bytes(value),
        Shown::Milliseconds => number::significant(value),
    })
}
