//! The listening socket and what is accepted from it. It knows nothing of HTTP.

use std::net::SocketAddr;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, accept_with, bind, getsockname, listen, socket_with, sockopt,
};

use crate::SinkError;

/// Connections the kernel completes before we accept them, if `net.core.somaxconn` allows as many. Puma's own number.
const BACKLOG: i32 = 1024;

/// What came of trying to accept.
#[derive(Debug)]
pub(crate) enum Accepted {
    /// A connection, non-blocking.
    Connection(OwnedFd),
    /// None is there.
    Nobody,
    /// The kernel could not: no descriptor or no memory. It may later.
    Failed,
}

/// A listening TCP socket.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: OwnedFd,
    address: SocketAddr,
}

impl Listener {
    /// Listens on `address`.
    pub(crate) fn open(address: SocketAddr) -> Result<Listener, SinkError> {
        let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let failed = SinkError::of("open a listening socket");
        let socket = socket_with(family, SocketType::STREAM, flags, None).map_err(&failed)?;
        sockopt::set_socket_reuseaddr(&socket, true).map_err(&failed)?;
        // Accepted sockets inherit it (Linux clones the listening socket): no call per connection.
        sockopt::set_tcp_nodelay(&socket, true).map_err(&failed)?;
        let refused = |errno| match errno {
            Errno::ADDRINUSE => SinkError::AddressInUse(address),
            Errno::ADDRNOTAVAIL => SinkError::NotOurAddress(address),
            Errno::ACCESS | Errno::PERM => SinkError::Forbidden(address),
            other => SinkError::of("listen")(other),
        };
        bind(&socket, &address).map_err(refused)?;
        listen(&socket, BACKLOG).map_err(refused)?;
        let address = SocketAddr::try_from(getsockname(&socket).map_err(&failed)?).map_err(&failed)?;
        Ok(Listener { socket, address })
    }

    /// Where it listens, with the port that it really has.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next connection, without waiting.
    pub(crate) fn accept(&self) -> Accepted {
        loop {
            match accept_with(&self.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(socket) => return Accepted::Connection(socket),
                Err(Errno::AGAIN) => return Accepted::Nobody,
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => return Accepted::Failed,
                // accept(2): errors that are pending on the new connection are reported here; the next may be well.
                Err(_) => {}
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[test]
    fn an_accepted_connection_inherits_nodelay() {
        let listener = Listener::open(([127, 0, 0, 1], 0).into()).unwrap();
        assert!(matches!(listener.accept(), Accepted::Nobody));
        let _client = TcpStream::connect(listener.address()).unwrap();
        let Accepted::Connection(socket) = listener.accept() else { panic!("the client is connected") };
        assert!(sockopt::tcp_nodelay(&socket).unwrap());
    }

    #[test]
    fn an_address_in_use_is_named() {
        let first = Listener::open(([127, 0, 0, 1], 0).into()).unwrap();
        let error = Listener::open(first.address()).unwrap_err();
        assert!(matches!(error, SinkError::AddressInUse(address) if address == first.address()));
        assert!(matches!(Listener::open(([192, 0, 2, 1], 0).into()), Err(SinkError::NotOurAddress(_))));
    }
}
