//! Where connections go, and over what.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Where a connection goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// An address of TCP.
    Tcp(SocketAddr),
    /// A unix socket's file.
    Unix(PathBuf),
    /// An abstract unix socket's name, without the leading NUL.
    Abstract(Vec<u8>),
}

/// Where connections go, and over what.
#[derive(Clone, Debug)]
pub struct Transport {
    /// Connection `i` of the run goes to the `i % len`-th; never empty.
    pub endpoints: Vec<Endpoint>,
    /// Encryption, where there is any.
    pub tls: Option<()>,
}

impl Transport {
    /// Plain TCP to one address.
    pub fn tcp(address: SocketAddr) -> Transport {
        Transport { endpoints: vec![Endpoint::Tcp(address)], tls: None }
    }
}
