//! A server as the judge of its limit sees it: what was stated about it, and its loads. Depends on
//! neither studies nor sockets.

use model::theory::{ClassAlone, ServiceTime, UsualTime};
use model::{Nanos, ServerFacts};

/// One load as the client saw it, with what the server reported meanwhile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadSeen {
    /// Connections, each of which always has a request in flight.
    pub connections: u32,
    /// Further connections, which the server never served: their requests wait outside.
    pub never_served: u32,
    /// Good responses per second.
    pub rate: f64,
    /// Good responses.
    pub responses: u64,
    /// How long a typical request took, capped like the requests that ran alone; `None` if unknown.
    pub usual: Option<UsualTime>,
    /// The coefficient of variation of their times.
    pub variation: f64,
    /// Busy threads by the server's own count, on average; `None` if it has no count.
    pub busy: Option<f64>,
}

/// A server under some loads.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSeen {
    /// Requests that it can process at a time, as stated.
    pub slots: u32,
    /// Processes that serve.
    pub workers: u32,
    /// What one request takes alone, if that was measured or stated.
    pub alone: Option<ServiceTime>,
    /// The same of each class of a mix, if that was measured.
    pub classes_alone: Vec<ClassAlone>,
    /// How long it may wait before it accepts the next connection for a free thread.
    pub accept_pause: Nanos,
    /// The loads, the lowest first.
    pub loads: Vec<LoadSeen>,
}

/// A Puma 6 waits so long, so that a worker with more free threads may take the connection
/// (`wait_for_less_busy_worker`).
const PAUSE_OF_PUMA_6: Nanos = Nanos::from_millis(5);

impl LoadSeen {
    /// All connections, those that were never served too.
    pub(crate) fn all_connections(&self) -> f64 {
        f64::from(self.connections + self.never_served)
    }
}

impl ServerSeen {
    /// A server without any load yet.
    pub fn stated(slots: u32, workers: u32, alone: Option<ServiceTime>) -> ServerSeen {
        let workers = workers.max(1);
        ServerSeen {
            slots,
            workers,
            alone,
            classes_alone: Vec::new(),
            accept_pause: Nanos::ZERO,
            loads: Vec::new(),
        }
    }

    /// The same of a server whose facts are known. Without `keep_alive` each request has a
    /// connection of its own, so each waits to be accepted.
    pub fn of(facts: &ServerFacts, keep_alive: bool, alone: Option<ServiceTime>) -> ServerSeen {
        let pauses = facts.puma_major() == Some(6) && !keep_alive;
        let accept_pause = if pauses { PAUSE_OF_PUMA_6 } else { Nanos::ZERO };
        ServerSeen { accept_pause, ..ServerSeen::stated(facts.slots(), facts.workers, alone) }
    }
}
