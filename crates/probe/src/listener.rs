//! A listener and its connections, to be looked at many times a second.

use std::io;

use crate::inet_diag::InetDiag;
use crate::sockets::{self, AcceptQueue, ServerSockets, Socket};

/// A listener, and the cheapest way that this kernel has to look at it.
#[derive(Debug)]
pub enum Listener {
    /// TCP, by netlink.
    Diag(InetDiag),
    /// TCP, where there is no netlink: by the kernel's table.
    Table(u16),
    /// A Unix socket, by its address.
    Unix(String),
}

impl Listener {
    /// The listener of a TCP port.
    pub fn of_port(port: u16) -> Listener {
        InetDiag::of_port(port).map_or(Listener::Table(port), Listener::Diag)
    }

    /// The listener of a Unix socket: its path, or `@` and its abstract name.
    pub fn of_unix(address: &str) -> Listener {
        Listener::Unix(address.to_owned())
    }

    /// Where it is looked at.
    pub fn source(&self) -> &'static str {
        match self {
            Listener::Diag(_) => "sock_diag",
            Listener::Table(_) => "/proc/net/tcp",
            Listener::Unix(_) => "/proc/net/unix",
        }
    }

    /// The accept queue now; with netlink this is far cheaper than [`Listener::look`].
    ///
    /// # Errors
    /// Where the kernel does not tell.
    pub fn queue(&mut self) -> io::Result<AcceptQueue> {
        match self {
            Listener::Diag(diag) => diag.queue(),
            Listener::Table(_) | Listener::Unix(_) => {
                self.look().map(|seen| AcceptQueue { length: seen.accept_queue, limit: seen.limit })
            }
        }
    }

    /// What the kernel holds now.
    ///
    /// # Errors
    /// Where it does not tell.
    pub fn look(&mut self) -> io::Result<ServerSockets> {
        match self {
            Listener::Diag(diag) => diag.look(),
            Listener::Table(port) => sockets::of_port(*port),
            Listener::Unix(address) => sockets::of_unix(address),
        }
    }

    /// As [`Listener::look`], one by one.
    ///
    /// # Errors
    /// As [`Listener::look`].
    pub fn all(&mut self) -> io::Result<Vec<Socket>> {
        match self {
            Listener::Diag(diag) => diag.all(),
            Listener::Table(port) => sockets::all_of_port(*port),
            Listener::Unix(address) => sockets::all_of_unix(address),
        }
    }
}
