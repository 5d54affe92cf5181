//! A server as its limit is judged: what it is stated to be, and its loads. It knows no studies and no
//! sockets.

use model::theory::{ServiceTime, UsualTime};

/// One load as the client saw it, and what the server said meanwhile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadSeen {
    /// Connections, each with a request out all the time.
    pub connections: u32,
    /// Good responses per second.
    pub rate: f64,
    /// How many there were.
    pub responses: u64,
    /// What a usual one took, by the cap of those that were made alone; `None` where that is not known.
    pub usual: Option<UsualTime>,
    /// The coefficient of variation of their times.
    pub variation: f64,
    /// Threads that the server itself said are busy, on average; `None` where it did not say.
    pub busy: Option<f64>,
}

/// A server under some loads.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSeen {
    /// Requests at a time, as stated.
    pub slots: u32,
    /// Processes that serve.
    pub workers: u32,
    /// What one request takes alone, where that was measured or stated.
    pub alone: Option<ServiceTime>,
    /// The loads, the lowest first.
    pub loads: Vec<LoadSeen>,
}

impl ServerSeen {
    /// A server that was not loaded yet.
    pub fn stated(slots: u32, workers: u32, alone: Option<ServiceTime>) -> ServerSeen {
        ServerSeen { slots, workers: workers.max(1), alone, loads: Vec::new() }
    }
}
