//! How a run connects: TCP or Unix sockets, plain or TLS, decided before the start.
//!
//! This is plain data that every lane copies; names are resolved (`resolve.rs`) and certificates
//! read (`tls.rs`) before.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use model::Endpoint;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, bind, getsockname,
    socket_with,
};
use serde::{Deserialize, Serialize};

use crate::EngineError;
use crate::tls::TlsSettings;

/// How the connections of a run are made.
///
/// Connections are numbered across all lanes of the run. Connection `i` goes to endpoint `i %
/// endpoints`, and each endpoint's connections take the source addresses of its family in turn, so
/// all pairs are used equally often, give or take one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Transport {
    /// Where to connect; never empty.
    pub endpoints: Vec<Endpoint>,
    /// Addresses of this machine to connect from; empty: the kernel chooses.
    pub source_ips: Vec<IpAddr>,
    /// TLS over these connections; `None` for plain text.
    pub tls: Option<TlsSettings>,
}

impl Transport {
    /// Plain TCP to one address.
    pub fn tcp(address: SocketAddr) -> Transport {
        Transport::plain(vec![Endpoint::Tcp(address)])
    }

    /// Plain connections, spread over `endpoints`.
    pub fn plain(endpoints: Vec<Endpoint>) -> Transport {
        Transport { endpoints, source_ips: Vec::new(), tls: None }
    }

    /// Whether a connection goes over TCP to an address that is not loopback.
    pub(crate) fn leaves_loopback(&self) -> bool {
        self.endpoints
            .iter()
            .filter_map(Endpoint::tcp)
            .any(|address| !address.ip().to_canonical().is_loopback())
    }

    /// Checks whether connections can be made like this, as far as this machine can tell without
    /// connecting. Called once, before the start: a lane that cannot use an address can only report
    /// the kernel's error.
    ///
    /// # Errors
    /// If an address cannot be used.
    ///
    /// # Panics
    /// If there is no endpoint: our bug.
    pub fn check(&self) -> Result<(), EngineError> {
        assert!(!self.endpoints.is_empty(), "a transport has an endpoint");
        for address in &self.source_ips {
            let socket = stream(family(*address), SocketFlags::empty());
            let bound =
                socket.and_then(|socket| bind_source(&socket, &SocketAddr::new(*address, 0)));
            bound.map_err(|errno| {
                EngineError(format!(
                    "cannot connect from {address}: {errno} (--source-ip takes addresses of this \
                     machine)"
                ))
            })?;
        }
        for endpoint in &self.endpoints {
            let can_reach =
                |source: &IpAddr| endpoint.tcp().is_some_and(|to| to.is_ipv4() == source.is_ipv4());
            if !self.source_ips.is_empty() && !self.source_ips.iter().any(can_reach) {
                return Err(EngineError(format!(
                    "no --source-ip can reach {endpoint}: give one of its kind (IPv4 or IPv6; \
                     none for a Unix socket)"
                )));
            }
        }
        Ok(())
    }
}

/// An endpoint as the kernel takes it, and the addresses to connect from (port 0; empty: the kernel
/// chooses).
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
        let sources: Vec<_> = source_ips
            .iter()
            .filter(|source| family(**source) == address.address_family())
            .map(|source| SocketAddr::new(*source, 0))
            .collect();
        if sources.is_empty() && !source_ips.is_empty() {
            return Err(Errno::AFNOSUPPORT);
        }
        Ok(ConnectAddress { address, sources })
    }

    /// Whether it is a Unix socket's.
    pub(crate) fn is_unix(&self) -> bool {
        self.address.address_family() == AddressFamily::UNIX
    }
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 }
}

/// A socket that is not connected yet.
pub(crate) fn stream(family: AddressFamily, flags: SocketFlags) -> Result<OwnedFd, Errno> {
    socket_with(family, SocketType::STREAM, flags | SocketFlags::CLOEXEC, None)
}

/// Binds to an address and leaves the port to `connect()`.
///
/// A plain bind would reserve a port that nobody else uses: with a connection for each request a
/// source would run out of ports after 28 000 a minute, because closed connections linger.
/// `connect()` only requires that the pair of both ends is new (ip(7), `IP_BIND_ADDRESS_NO_PORT`;
/// for IPv6 sockets too).
pub(crate) fn bind_source(fd: &OwnedFd, source: &SocketAddr) -> Result<(), Errno> {
    // Kernels before 4.2 do not know it: there the port is reserved early.
    let _ = nix::sys::socket::setsockopt(fd, nix::sys::socket::sockopt::IpBindAddressNoPort, &true);
    bind(fd, source)
}

/// Our end's address, of a TCP socket.
pub(crate) fn own_address(fd: &OwnedFd) -> Option<SocketAddr> {
    SocketAddr::try_from(getsockname(fd).ok()?).ok()
}
