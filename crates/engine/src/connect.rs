//! Sockets that connect: to an endpoint, from an address, and once without a lane, for whoever asks before the start.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, bind, connect, getsockname, socket_with,
    sockopt,
};
use thiserror::Error;

use model::Endpoint;

/// An endpoint as the kernel wants it, and the addresses from which to go there (port 0; empty: the kernel chooses).
pub(crate) struct ConnectAddress {
    pub(crate) address: SocketAddrAny,
    pub(crate) sources: Vec<SocketAddr>,
}

impl ConnectAddress {
    pub(crate) fn new(endpoint: &Endpoint, source_ips: &[IpAddr]) -> Result<ConnectAddress, Errno> {
        let address = match endpoint {
            Endpoint::Tcp(address) => SocketAddrAny::from(*address),
            Endpoint::Unix(path) => SocketAddrUnix::new(path.as_path())?.into(),
            Endpoint::Abstract(name) => SocketAddrUnix::new_abstract_name(name)?.into(),
        };
        let fits = |source: &&IpAddr| family(**source) == address.address_family();
        let sources: Vec<_> = source_ips.iter().filter(fits).map(|source| SocketAddr::new(*source, 0)).collect();
        if sources.is_empty() && !source_ips.is_empty() {
            return Err(Errno::AFNOSUPPORT);
        }
        Ok(ConnectAddress { address, sources })
    }

    /// Whether it is a Unix socket's.
    pub(crate) fn is_unix(&self) -> bool {
        self.address.address_family() == AddressFamily::UNIX
    }

    /// A socket for it that is not connected yet.
    pub(crate) fn socket(&self, flags: SocketFlags) -> Result<OwnedFd, Errno> {
        stream(self.address.address_family(), flags)
    }
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 }
}

fn stream(family: AddressFamily, flags: SocketFlags) -> Result<OwnedFd, Errno> {
    socket_with(family, SocketType::STREAM, flags | SocketFlags::CLOEXEC, None)
}

/// A connected socket that blocks, for whoever asks before the start. The connect, each send and each receive may take `timeout`.
pub(crate) fn connect_blocking(endpoint: &Endpoint, timeout: Duration) -> Result<OwnedFd, Errno> {
    let to = ConnectAddress::new(endpoint, &[])?;
    let fd = to.socket(SocketFlags::empty())?;
    for direction in [sockopt::Timeout::Send, sockopt::Timeout::Recv] {
        sockopt::set_socket_timeout(&fd, direction, Some(timeout))?;
    }
    connect(&fd, &to.address)?;
    Ok(fd)
}

/// Binds to an address and leaves the port to `connect()`.
///
/// A plain bind would take a port at once, one that nobody else uses: with a connection a request, each source would be
/// out of ports after 28 000 in a minute, for as long as closed connections linger. `connect()` only asks that the pair of both
/// ends be new (ip(7), `IP_BIND_ADDRESS_NO_PORT`; for IPv6 sockets too).
pub(crate) fn bind_source(fd: &OwnedFd, source: &SocketAddr) -> Result<(), Errno> {
    // Where the kernel does not know it (before 4.2), the port is taken early.
    let _ = nix::sys::socket::setsockopt(fd, nix::sys::socket::sockopt::IpBindAddressNoPort, &true);
    bind(fd, source)
}

/// Whether one can connect from here, so that a mistake is found before the start.
pub(crate) fn try_source(address: IpAddr) -> Result<(), Errno> {
    bind_source(&stream(family(address), SocketFlags::empty())?, &SocketAddr::new(address, 0))
}

/// Why nobody at an endpoint takes a connection.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unreachable {
    /// It answers, and nobody listens.
    #[error("refuses connections")]
    Refused,
    /// There is no way to it.
    #[error("has no route to it")]
    NoRoute,
    /// It answers nothing at all: it is down, or a firewall drops what is sent to it.
    #[error("does not answer within {} s (it is down, or a firewall drops packets)", .0.as_secs())]
    Silent(Duration),
}

/// Connects once, waits for `timeout` at the most, and closes at once what succeeds. What fails otherwise (a Unix socket that
/// this user may not open or whose accept queue is full, say) is not unreachable: the run will tell. A lane never does this: what becomes
/// of its connects are outcomes that it counts.
///
/// # Errors
/// Where nobody takes the connection.
pub fn reach(endpoint: &Endpoint, timeout: Duration) -> Result<(), Unreachable> {
    match connect_blocking(endpoint, timeout) {
        // Where nobody listens at a port that the kernel deals out, it may deal out that very port to this connect, and
        // the connection leads to itself (RFC 9293, 3.5, simultaneous open).
        Ok(fd) if own_address(&fd).is_some_and(|ours| *endpoint == Endpoint::Tcp(ours)) => Err(Unreachable::Refused),
        Err(Errno::CONNREFUSED | Errno::NOENT | Errno::NOTDIR) => Err(Unreachable::Refused),
        Err(Errno::ADDRNOTAVAIL | Errno::NETUNREACH | Errno::HOSTUNREACH) => Err(Unreachable::NoRoute),
        // The second is what the kernel says where our own time was over (socket(7), SO_SNDTIMEO).
        Err(Errno::TIMEDOUT | Errno::INPROGRESS) => Err(Unreachable::Silent(timeout)),
        _ => Ok(()),
    }
}

/// Our end's address, of a TCP socket.
pub(crate) fn own_address(fd: &OwnedFd) -> Option<SocketAddr> {
    SocketAddr::try_from(getsockname(fd).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};

    const TIMEOUT: Duration = Duration::from_secs(1);

    #[test]
    fn an_address_refuses_as_long_as_nobody_listens() {
        let path = std::env::temp_dir().join(format!("refuses-{}.sock", std::process::id()));
        let name = format!("refuses-{}", std::process::id()).into_bytes();
        let tcp = TcpListener::bind("127.0.0.9:0").unwrap();
        let (unix, there) = (Endpoint::Unix(path.clone()), Endpoint::Tcp(tcp.local_addr().unwrap()));
        let by_name = Endpoint::Abstract(name.clone());
        let refused = Err(Unreachable::Refused);
        assert_eq!([&unix, &by_name].map(|endpoint| reach(endpoint, TIMEOUT)), [refused.clone(), refused.clone()]);
        let listeners = (
            tcp,
            UnixListener::bind(&path).unwrap(),
            UnixListener::bind_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap(),
        );
        for endpoint in [&there, &unix, &by_name] {
            assert_eq!(reach(endpoint, TIMEOUT), Ok(()));
        }
        drop(listeners);
        // The file is left.
        for endpoint in [&there, &unix, &by_name, &Endpoint::Unix("/dev/null/x".into())] {
            assert_eq!(reach(endpoint, TIMEOUT), refused);
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_full_accept_queue_does_not_refuse() {
        let name = format!("refuses-full-{}", std::process::id()).into_bytes();
        let address = SocketAddrUnix::new_abstract_name(&name).unwrap();
        let stream = || socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None).unwrap();
        let listener = stream();
        rustix::net::bind(&listener, &address).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let waiting = stream();
        connect(&waiting, &address).unwrap();
        assert_eq!(connect(stream(), &address), Err(Errno::AGAIN), "the queue is full");
        assert_eq!(reach(&Endpoint::Abstract(name), TIMEOUT), Ok(()));
    }
}
