//! Where a sink listens: the listening sockets, and the certificate for TLS. Nothing here is about
//! HTTP.
//!
//! Several loops listen at one TCP address with a socket each (`SO_REUSEPORT`); the kernel
//! distributes connections among them by a hash of their addresses. Measured on Linux 6.18 with 64
//! connections on 4 loops, three times each: each loop got 9 to 20 of them, like fair dice. With
//! one shared socket (`EPOLLEXCLUSIVE`, level- or edge-triggered, one connection per turn or all)
//! it was 0 to 63, because the loop that was woken last is woken first. Unix sockets can only be
//! shared.
//!
//! TLS 1.2 and 1.3 by rustls with the `ring` provider, HTTP/1.1 the only protocol, sessions resumed
//! as rustls does by default. Without a given certificate, a self-signed one is made at the start.

use std::fmt::Display;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use model::Endpoint;
use model::paths::{read_up_to, what_is_there};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, getsockname, listen,
    socket_with, sockopt,
};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::{Listen, PemPair, SinkError};

/// Errors of `accept` that end a round: no connection, no descriptor, no memory.
const NO_ACCEPT: [Errno; 5] =
    [Errno::AGAIN, Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];

/// A listening socket.
#[derive(Debug)]
pub(crate) struct ListeningSocket {
    socket: OwnedFd,
    /// Where it listens, with the actual port.
    pub(crate) at: Listen,
    /// Whether other loops use the same socket.
    pub(crate) shared: bool,
    /// It may have more connections: edge-triggered events come only once.
    pub(crate) may_accept: bool,
    /// The configuration, if it speaks TLS.
    pub(crate) tls: Option<Arc<ServerConfig>>,
    /// Whether the socket's file is removed with it.
    owns_file: bool,
}

impl ListeningSocket {
    /// Listens at `at`, with a listener for each loop.
    pub(crate) fn open_all(
        at: &Listen,
        backlog: u32,
        loops: u32,
    ) -> Result<Vec<ListeningSocket>, SinkError> {
        let is_unix = at.place.tcp().is_none();
        let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
        if loops > 1 && at.place.port().is_some_and(|port| port != 0) {
            // With SO_REUSEPORT the kernel would let two sinks of the same user share a port, each
            // with half of the load. This socket is without, so it fails if the port is in use.
            listen(bound(at, false)?, 1).map_err(|errno| refused(at, errno))?;
        }
        let failed = SinkError::of("open a listening socket");
        let mut all: Vec<ListeningSocket> = Vec::new();
        for _ in 0..loops {
            let socket = match all.first() {
                Some(first) if is_unix => fcntl_dupfd_cloexec(&first.socket, 0).map_err(&failed)?,
                first => bound(first.map_or(at, |first| &first.at), loops > 1)?,
            };
            let mut at = at.clone();
            if !is_unix {
                let address = SocketAddr::try_from(getsockname(&socket).map_err(&failed)?)
                    .map_err(&failed)?;
                at.place = Endpoint::Tcp(address);
            }
            let shared = is_unix && loops > 1;
            let owns_file = all.is_empty();
            let one =
                ListeningSocket { socket, at, shared, may_accept: true, tls: None, owns_file };
            listen(&one, backlog).map_err(|errno| refused(&one.at, errno))?;
            all.push(one);
        }
        Ok(all)
    }

    /// The next connection, non-blocking, without waiting: `AGAIN` if there is none, another error
    /// if there is no descriptor or memory, which may change later.
    pub(crate) fn accept(&self) -> Result<OwnedFd, Errno> {
        loop {
            match accept_with(&self.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Err(error) if !NO_ACCEPT.contains(&error) => {
                    // accept(2) reports errors that are pending on the new connection; the next one
                    // may be fine.
                }
                accepted => return accepted,
            }
        }
    }

    /// Whether a connection could be accepted.
    pub(crate) fn has_pending(&self) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut polled = [PollFd::new(&self.socket, PollFlags::IN)];
        poll(&mut polled, Some(&at_once)).is_ok_and(|ready| ready > 0)
    }
}

impl Drop for ListeningSocket {
    fn drop(&mut self) {
        if let (true, Endpoint::Unix(path)) = (self.owns_file, &self.at.place) {
            // If this fails, somebody else has removed it.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl AsFd for ListeningSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A socket that is bound there but doesn't listen yet.
fn bound(at: &Listen, reuse_port: bool) -> Result<OwnedFd, SinkError> {
    let failed = SinkError::of("open a listening socket");
    let family = match at.place {
        Endpoint::Tcp(SocketAddr::V4(_)) => AddressFamily::INET,
        Endpoint::Tcp(SocketAddr::V6(_)) => AddressFamily::INET6,
        Endpoint::Unix(_) | Endpoint::Abstract(_) => AddressFamily::UNIX,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None).map_err(&failed)?;
    let bound = match &at.place {
        Endpoint::Tcp(address) => {
            sockopt::set_socket_reuseaddr(&socket, true).map_err(&failed)?;
            if reuse_port {
                sockopt::set_socket_reuseport(&socket, true).map_err(&failed)?;
            }
            // Accepted sockets inherit it (Linux clones the listening socket): no call per
            // connection.
            sockopt::set_tcp_nodelay(&socket, true).map_err(&failed)?;
            bind(&socket, address)
        }
        Endpoint::Unix(path) => {
            SocketAddrUnix::new(path.as_path()).and_then(|address| match bind(&socket, &address) {
                Err(Errno::ADDRINUSE) if is_left_over(path) => {
                    // If this fails, so does the next attempt.
                    let _ = std::fs::remove_file(path);
                    bind(&socket, &address)
                }
                bound => bound,
            })
        }
        Endpoint::Abstract(name) => {
            SocketAddrUnix::new_abstract_name(name).and_then(|address| bind(&socket, &address))
        }
    };
    bound.map_err(|errno| refused(at, errno))?;
    Ok(socket)
}

/// Whether the path is a socket without a listener, left by a dead server.
fn is_left_over(path: &Path) -> bool {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    is_socket
        && UnixStream::connect(path)
            .is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
}

fn refused(at: &Listen, errno: Errno) -> SinkError {
    if let Endpoint::Unix(path) = &at.place
        && errno == Errno::ADDRINUSE
        && !std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
    {
        return SinkError(format!(
            "{at} cannot be made: '{}' {}; choose another path",
            path.display(),
            what_is_there(path)
        ));
    }
    SinkError(match errno {
        Errno::ADDRINUSE => {
            format!(
                "{at} is in use: stop what listens there, or choose another port (port 0 takes a \
                 free one)"
            )
        }
        Errno::ADDRNOTAVAIL => {
            format!(
                "{at} is not an address of this machine: listen on 127.0.0.1, [::1] or one that \
                 `ip address` shows"
            )
        }
        Errno::ACCESS | Errno::PERM => {
            format!(
                "no permission to listen on {at}: choose a port of 1024 or more, or a folder that \
                 you may write to"
            )
        }
        Errno::NOENT | Errno::NOTDIR => {
            format!(
                "{at} cannot be made: its folder does not exist; make it, or choose another path"
            )
        }
        other => return SinkError::of("listen")(other),
    })
}

/// In MiB; larger than any certificate or key.
const LARGEST_PEM: u64 = 1;

/// The configuration of all TLS connections. `names`: the names in a certificate that is made here.
pub(crate) fn tls_config(
    pair: Option<&PemPair>,
    names: Vec<String>,
) -> Result<Arc<ServerConfig>, SinkError> {
    let (certificates, key) = if let Some(PemPair { certificate, key }) = pair {
        let read = |path: &Path, what| {
            read_up_to(path, LARGEST_PEM).map_err(|why| unreadable(path, what, why))
        };
        let found = CertificateDer::pem_slice_iter(&read(certificate, "a certificate")?)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| unreadable(certificate, "a certificate", error))?;
        if found.is_empty() {
            return Err(unreadable(certificate, "a certificate", "there is none in it"));
        }
        (
            found,
            PrivateKeyDer::from_pem_slice(&read(key, "a private key")?)
                .map_err(|error| unreadable(key, "a private key", error))?,
        )
    } else {
        let made = rcgen::generate_simple_self_signed(names).map_err(unservable)?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        (vec![made.cert.der().clone()], key.into())
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
        .map_err(unservable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn unreadable(path: &Path, what: &str, reason: impl Display) -> SinkError {
    SinkError(format!(
        "cannot read {what} from {}: {reason} (it must be PEM; give both files, or neither for a \
         pair made now)",
        path.display()
    ))
}

fn unservable(reason: impl Display) -> SinkError {
    SinkError(format!(
        "TLS cannot be served: {reason}; check that the key belongs to the certificate"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    fn open(address: SocketAddr, loops: u32) -> Result<Vec<ListeningSocket>, SinkError> {
        ListeningSocket::open_all(&address.into(), 1024, loops)
    }

    fn refusal(opened: Result<Vec<ListeningSocket>, SinkError>) -> String {
        opened.unwrap_err().to_string()
    }

    fn address(listener: &ListeningSocket) -> SocketAddr {
        let Endpoint::Tcp(address) = listener.at.place else { panic!("a TCP listener") };
        address
    }

    #[test]
    fn an_accepted_connection_inherits_nodelay() {
        let listener = open(([127, 0, 0, 1], 0).into(), 1).unwrap().remove(0);
        assert_eq!(listener.accept().unwrap_err(), Errno::AGAIN);
        assert!(!listener.has_pending());
        let _client = TcpStream::connect(address(&listener)).unwrap();
        assert!(listener.has_pending());
        assert!(sockopt::tcp_nodelay(listener.accept().unwrap()).unwrap());
    }

    #[test]
    fn an_address_in_use_is_named() {
        for (first_loops, second_loops) in [(1, 1), (3, 1), (1, 3), (3, 3)] {
            let first = open(([127, 0, 0, 1], 0).into(), first_loops).unwrap();
            assert_eq!(first.len(), first_loops as usize);
            let in_use = refusal(open(address(&first[0]), second_loops));
            assert!(in_use.starts_with(&format!("{} is in use", first[0].at)), "{in_use}");
        }
        assert!(
            refusal(open(([192, 0, 2, 1], 0).into(), 1))
                .contains("is not an address of this machine")
        );
    }

    #[test]
    fn a_leftover_socket_is_replaced_and_one_in_use_is_not() {
        let path = std::env::temp_dir().join(format!("sink-left-over-{}", std::process::id()));
        let at = Listen { place: Endpoint::Unix(path.clone()), tls: false };
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let first = ListeningSocket::open_all(&at, 5, 2).unwrap();
        assert!(refusal(ListeningSocket::open_all(&at, 5, 1)).contains("is in use"));
        drop(first);
        assert!(!path.exists());
        let at = Listen { place: Endpoint::Unix("/nowhere/at/all".into()), tls: false };
        assert!(
            refusal(ListeningSocket::open_all(&at, 5, 1)).contains("its folder does not exist")
        );
    }
}
