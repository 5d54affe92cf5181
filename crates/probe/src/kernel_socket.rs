//! A socket as the kernel lists it, by netlink or in `/proc`.

use std::fmt;
use std::net::SocketAddr;

/// Where a socket is bound.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BoundAddress {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A Unix socket: its path, or `@` and its abstract name.
    Unix(String),
}

impl BoundAddress {
    /// Its TCP port.
    pub fn port(&self) -> Option<u16> {
        match self {
            BoundAddress::Tcp(address) => Some(address.port()),
            BoundAddress::Unix(_) => None,
        }
    }
}

impl fmt::Display for BoundAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BoundAddress::Tcp(address) => write!(out, "{address}"),
            BoundAddress::Unix(address) => write!(out, "{address}"),
        }
    }
}

/// A socket as the kernel lists it: a listener, or the end of a connection that nobody here has closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSocket {
    /// Where it is bound; of the server's end of a connection that is where its listener is.
    pub place: BoundAddress,
    /// Whether it is a listener.
    pub is_listener: bool,
    /// Its number in `/proc/PID/fd`; 0 of a connection that nobody has accepted yet.
    pub inode: u64,
    /// Of a TCP listener the length of its accept queue, of a TCP connection its unread bytes; of Unix sockets the kernel does
    /// not tell.
    pub queue: Option<u32>,
    /// Of a listener the longest queue that it allows, where the kernel tells.
    pub limit: Option<u32>,
    /// Whose it is; of a Unix socket the kernel's table does not tell.
    pub user: Option<u32>,
    /// Whether a listener takes IPv6 alone (`IPV6_V6ONLY`); false where the kernel does not say, as what listens at `[::]` takes both
    /// unless it is set otherwise.
    pub is_v6_only: bool,
}

impl KernelSocket {
    /// Whether it is a connection that the server has accepted.
    pub(crate) fn is_accepted(&self) -> bool {
        !self.is_listener && self.inode != 0
    }
}
