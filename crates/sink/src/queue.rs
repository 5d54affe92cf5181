//! How requests get to the slots: the words for it. The machine is `slots.rs`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// What stands before the slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlotQueue {
    /// No slots at all: each request is served at once. Workers are the sink's own loops.
    #[default]
    Unlimited,
    /// One first-come-first-served queue for the slots of all workers.
    Shared,
    /// Each connection belongs to a worker for its life, and each worker has a queue of its own (Puma 7.0).
    Split(WorkerAssignment),
    /// As Puma up to 6 with keep-alive: a slot stays with a connection for up to 10 requests in a row though others
    /// wait, and after each answer for up to 0.2 s; connections are accepted only while a slot is free.
    Inline10,
}

/// Which worker an accepted connection belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkerAssignment {
    /// One after the other.
    #[default]
    RoundRobin,
    /// By a seeded draw.
    Random,
}

impl SlotQueue {
    /// Whether each connection belongs to a worker.
    pub(crate) fn has_seats(self) -> bool {
        matches!(self, SlotQueue::Split(_) | SlotQueue::Inline10)
    }
}

/// Parses to itself.
impl fmt::Display for SlotQueue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            SlotQueue::Unlimited => "unlimited",
            SlotQueue::Shared => "shared",
            SlotQueue::Split(WorkerAssignment::RoundRobin) => "split",
            SlotQueue::Split(WorkerAssignment::Random) => "split:random",
            SlotQueue::Inline10 => "inline10",
        })
    }
}

/// Why a text names no queue.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{0}' is not a queue: write unlimited, shared, split (connections dealt in turn), split:random or inline10")]
pub struct BadQueue(String);

impl FromStr for SlotQueue {
    type Err = BadQueue;

    fn from_str(text: &str) -> Result<SlotQueue, BadQueue> {
        Ok(match text {
            "unlimited" => SlotQueue::Unlimited,
            "shared" => SlotQueue::Shared,
            "split" | "split:round-robin" => SlotQueue::Split(WorkerAssignment::RoundRobin),
            "split:random" => SlotQueue::Split(WorkerAssignment::Random),
            "inline10" => SlotQueue::Inline10,
            _ => return Err(BadQueue(text.to_owned())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_of_print_is_itself() {
        for queue in [
            SlotQueue::Unlimited,
            SlotQueue::Shared,
            SlotQueue::Split(WorkerAssignment::RoundRobin),
            SlotQueue::Split(WorkerAssignment::Random),
            SlotQueue::Inline10,
        ] {
            assert_eq!(queue.to_string().parse(), Ok(queue));
        }
        assert!("fifo".parse::<SlotQueue>().unwrap_err().to_string().contains("write unlimited"));
    }
}
