//! A server as the judge of its limit sees it: what was stated about it, and its loads. Depends on
//! neither studies nor sockets.

use model::theory::{ServiceTime, UsualTime};

/// One load as the client saw it, with what the server reported meanwhile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadSeen {
    /// Connections, each of which always has a request in flight.
    pub connections: u32,
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
    /// The loads, the lowest first.
    pub loads: Vec<LoadSeen>,
}

impl ServerSeen {
    /// A server without any load yet.
    pub fn stated(slots: u32, workers: u32, alone: Option<ServiceTime>) -> ServerSeen {
        ServerSeen { slots, workers: workers.max(1), alone, loads: Vec::new() }
    }
}
