//! One observation from outside the client: the server's own statistics, or the kernel's.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// A number that someone else counted. A value that could not be had is an absent reading, never 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Who said it: `puma stats`, `/proc/net/tcp`.
    pub source: String,
    /// Of whom: a worker, a listener; empty for the whole server.
    pub of: String,
    /// What: `requests_count`, `accept_queue`.
    pub name: String,
    /// The unit of the value: `requests`, `connections`, `threads`.
    pub unit: String,
    /// When it was read, since the start of the run's measured window.
    #[serde(rename = "at_ns")]
    pub at: Nanos,
    /// The value.
    pub value: f64,
    /// How old the value may have been when it was read.
    #[serde(rename = "staleness_ns")]
    pub staleness: Nanos,
}
