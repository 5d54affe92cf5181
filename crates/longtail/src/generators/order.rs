//! What another generator is to do in one run, whoever it is.

use std::path::PathBuf;

use model::{Nanos, Rate};

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// After this time.
    After(Nanos),
    /// After so many requests in total.
    Requests(u64),
}

/// One run's load.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Errand {
    /// Where to: by address, never by name, so that it goes where we have looked.
    pub(crate) url: String,
    /// What the Host header says where that is another place than the URL's.
    pub(crate) host: Option<String>,
    /// In total.
    pub(crate) connections: u32,
    /// Threads of the generator, at most.
    pub(crate) threads: u32,
    /// When it ends.
    pub(crate) end: End,
    /// Load before it that is thrown away.
    pub(crate) warm_up: Nanos,
    /// Open loop: requests per second in total.
    pub(crate) rate: Option<Rate>,
    /// Open loop: requests per second of each connection.
    pub(crate) rate_per_connection: Option<Rate>,
    /// Whether a connection carries more than one request.
    pub(crate) keep_alive: bool,
    /// An answer that takes longer is given up.
    pub(crate) timeout: Nanos,
    /// The method.
    pub(crate) method: String,
    /// The user's own headers, `Name: value`, without the Host header.
    pub(crate) headers: Vec<String>,
    /// A file with the body.
    pub(crate) body: Option<PathBuf>,
}

impl Errand {
    /// Threads that share the connections evenly, so that all of them are opened: the largest divisor of the connections
    /// that is at most what was asked for. (wrk gives each thread connections / threads and forgets the rest.)
    pub(crate) fn even_threads(&self) -> u32 {
        (1..=self.threads.min(self.connections)).rev().find(|n| self.connections.is_multiple_of(*n)).unwrap_or(1)
    }

    /// The time of a run that time ends.
    pub(crate) fn time(&self) -> Option<Nanos> {
        match self.end {
            End::After(time) => Some(time),
            End::Requests(_) => None,
        }
    }
}
