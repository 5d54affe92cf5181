//! Descriptors for all connections, raised or refused before the start: "too many open files" must never look like a
//! failing server.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use thiserror::Error;

/// Descriptors that the process needs beside its connections.
const OTHERS: u64 = 64;

/// Why the connections can not be had.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LimitError {
    /// The process may not open so many descriptors.
    #[error(
        "{connections} connections need {needed} file descriptors and the limit is {limit}: raise it (ulimit -n {needed}) or lower the connections"
    )]
    Descriptors {
        /// Connections asked for.
        connections: u64,
        /// Descriptors needed.
        needed: u64,
        /// Descriptors allowed.
        limit: u64,
    },
}

/// Raises the limit of open descriptors as far as `connections` need it.
///
/// # Errors
/// Where the limit cannot be raised so far.
pub fn ensure_descriptors(connections: u64) -> Result<(), LimitError> {
    let needed = connections + OTHERS;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    // Only root may raise the maximum; the attempt costs nothing.
    let raised = Rlimit { current: Some(needed), maximum: maximum.map(|maximum| maximum.max(needed)) };
    setrlimit(Resource::Nofile, raised).map_err(|_| LimitError::Descriptors {
        connections,
        needed,
        limit: maximum.or(current).unwrap_or(0),
    })
}
