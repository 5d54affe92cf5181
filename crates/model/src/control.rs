//! Puma's control server: where it listens, and what opens it.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Where a control server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlAddress {
    /// `tcp://…`
    Tcp(SocketAddr),
    /// `unix://…`
    Unix(PathBuf),
}

/// A control server and the token that opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlServer {
    /// Where it listens.
    pub address: ControlAddress,
    /// What it wants as `?token=`; empty where it wants none.
    pub token: String,
}
