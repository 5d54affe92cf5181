//! Puma's control server: where it listens, and what opens it.

use crate::Endpoint;

/// A control server and the token that opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlServer {
    /// Where it listens.
    pub address: Endpoint,
    /// What it wants as `?token=`; empty where it wants none.
    pub token: String,
}
