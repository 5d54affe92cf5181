//! One connect that carries nothing, for whoever wants to know before the start whether anybody takes connections.
//!
//! A lane never does this: what becomes of its connects are outcomes that it counts.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::transport::Endpoint;

/// Whether a connect to `endpoint` fails at once and would again: it is refused, or there is no such address or socket. The
/// connection of one that succeeds is closed at once. Waits for `patience` at the most, of TCP; whatever is silent as long, or fails
/// otherwise (a file that this user may not open, say), does not refuse.
pub fn refuses(endpoint: &Endpoint, patience: Duration) -> bool {
    match endpoint {
        Endpoint::Tcp(address) => match TcpStream::connect_timeout(address, patience) {
            // Where nobody listens at a port that the kernel deals out, it may deal out that very port to this connect, and
            // the connection leads to itself (RFC 9293, 3.5, simultaneous open).
            Ok(stream) => stream.local_addr().is_ok_and(|ours| ours == *address),
            Err(error) => matches!(
                error.kind(),
                ErrorKind::ConnectionRefused
                    | ErrorKind::AddrNotAvailable
                    | ErrorKind::NetworkUnreachable
                    | ErrorKind::HostUnreachable
            ),
        },
        Endpoint::Unix(path) => refuses_unix(SocketAddrUnix::new(path.as_path())),
        Endpoint::Abstract(name) => refuses_unix(SocketAddrUnix::new_abstract_name(name)),
    }
}

/// Without a wait: where the accept queue is full there is somebody whose queue it is.
fn refuses_unix(address: Result<SocketAddrUnix, Errno>) -> bool {
    let connected = address.and_then(|address| {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        connect(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?, &address)
    });
    matches!(connected, Err(Errno::CONNREFUSED | Errno::NOENT | Errno::NOTDIR))
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
        assert!(!refuses(&endpoint, PATIENCE));
        drop(listener);
        assert!(refuses(&endpoint, PATIENCE));
    }

    #[test]
    fn a_unix_socket_refuses_where_there_is_none_or_nobody_at_it() {
        let path = std::env::temp_dir().join(format!("refuses-{}.sock", std::process::id()));
        let endpoint = Endpoint::Unix(path.clone());
        assert!(refuses(&endpoint, PATIENCE), "there is no such file");
        let listener = UnixListener::bind(&path).unwrap();
        assert!(!refuses(&endpoint, PATIENCE));
        drop(listener);
        assert!(refuses(&endpoint, PATIENCE), "the file is left");
        std::fs::remove_file(&path).unwrap();
        assert!(refuses(&Endpoint::Unix("/dev/null/x".into()), PATIENCE));

        let name = format!("refuses-{}", std::process::id()).into_bytes();
        let endpoint = Endpoint::Abstract(name.clone());
        assert!(refuses(&endpoint, PATIENCE));
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap();
        assert!(!refuses(&endpoint, PATIENCE));
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
        assert!(!refuses(&Endpoint::Abstract(name), PATIENCE));
    }
}
