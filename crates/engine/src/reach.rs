//! One connect that carries nothing, for whoever wants to know before the start whether anybody takes connections.
//!
//! A lane never does this: what becomes of its connects are outcomes that it counts.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use thiserror::Error;

use crate::transport::Endpoint;

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

/// Connects once, waits for `patience` at the most, and closes at once what succeeds. What fails otherwise (a Unix socket that
/// this user may not open, say) is not unreachable: the run will tell.
///
/// # Errors
/// Where nobody takes the connection.
pub fn reach(endpoint: &Endpoint, patience: Duration) -> Result<(), Unreachable> {
    match endpoint {
        Endpoint::Tcp(address) => match TcpStream::connect_timeout(address, patience) {
            // Where nobody listens at a port that the kernel deals out, it may deal out that very port to this connect, and
            // the connection leads to itself (RFC 9293, 3.5, simultaneous open).
            Ok(stream) if stream.local_addr().is_ok_and(|ours| ours == *address) => Err(Unreachable::Refused),
            Ok(_) => Ok(()),
            Err(error) => match error.kind() {
                ErrorKind::ConnectionRefused => Err(Unreachable::Refused),
                ErrorKind::AddrNotAvailable | ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable => {
                    Err(Unreachable::NoRoute)
                }
                ErrorKind::TimedOut => Err(Unreachable::Silent(patience)),
                _ => Ok(()),
            },
        },
        Endpoint::Unix(path) => unix(SocketAddrUnix::new(path.as_path())),
        Endpoint::Abstract(name) => unix(SocketAddrUnix::new_abstract_name(name)),
    }
}

/// Without a wait: where the accept queue is full there is somebody whose queue it is.
fn unix(address: Result<SocketAddrUnix, Errno>) -> Result<(), Unreachable> {
    let connected = address.and_then(|address| {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        connect(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?, &address)
    });
    match connected {
        Err(Errno::CONNREFUSED | Errno::NOENT | Errno::NOTDIR) => Err(Unreachable::Refused),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};

    const PATIENCE: Duration = Duration::from_secs(1);

    #[test]
    fn a_port_refuses_as_long_as_nobody_listens() {
        let listener = TcpListener::bind("127.0.0.9:0").unwrap();
        let endpoint = Endpoint::Tcp(listener.local_addr().unwrap());
        assert_eq!(reach(&endpoint, PATIENCE), Ok(()));
        drop(listener);
        assert_eq!(reach(&endpoint, PATIENCE), Err(Unreachable::Refused));
    }

    #[test]
    fn a_unix_socket_refuses_where_there_is_none_or_nobody_at_it() {
        let path = std::env::temp_dir().join(format!("refuses-{}.sock", std::process::id()));
        let endpoint = Endpoint::Unix(path.clone());
        assert_eq!(reach(&endpoint, PATIENCE), Err(Unreachable::Refused), "there is no such file");
        let listener = UnixListener::bind(&path).unwrap();
        assert_eq!(reach(&endpoint, PATIENCE), Ok(()));
        drop(listener);
        assert_eq!(reach(&endpoint, PATIENCE), Err(Unreachable::Refused), "the file is left");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(reach(&Endpoint::Unix("/dev/null/x".into()), PATIENCE), Err(Unreachable::Refused));

        let name = format!("refuses-{}", std::process::id()).into_bytes();
        let endpoint = Endpoint::Abstract(name.clone());
        assert_eq!(reach(&endpoint, PATIENCE), Err(Unreachable::Refused));
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap();
        assert_eq!(reach(&endpoint, PATIENCE), Ok(()));
        drop(listener);
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
        assert_eq!(reach(&Endpoint::Abstract(name), PATIENCE), Ok(()));
    }
}
