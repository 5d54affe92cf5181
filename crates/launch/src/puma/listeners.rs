//! Where Puma and its control server listen: addresses of loopback and no others, free a moment ago.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use model::Socket;

use super::Addresses;
use crate::LaunchError;

/// A free address of the kind, or the one that was asked for, for a server other than Puma: on loopback, or at `reached_at`, where generators on other machines reach it.
///
/// # Errors
/// As [`super::prepare`], of hosts and ports.
///
/// # Panics
/// Where the kind has no address: such a server takes none of those.
pub fn free_address(
    socket: Socket,
    reached_at: Option<IpAddr>,
    addresses: &Addresses,
) -> Result<SocketAddr, LaunchError> {
    ChosenAddresses::choose(socket, reached_at, addresses)
        .map(|listeners| listeners.server.expect("a kind with an address"))
}

/// The addresses, free a moment ago.
pub(super) struct ChosenAddresses {
    /// `None` for a Unix socket.
    pub(super) server: Option<SocketAddr>,
    pub(super) control: Option<SocketAddr>,
}

impl ChosenAddresses {
    /// The server is on loopback, or at the address where generators on other machines reach it; its control server on loopback.
    pub(super) fn choose(
        socket: Socket,
        reached_at: Option<IpAddr>,
        addresses: &Addresses,
    ) -> Result<ChosenAddresses, LaunchError> {
        let host4 = loopback4(&addresses.host4)?;
        let server = match socket {
            socket if !socket.is_unix() && reached_at.is_some() => reached_at,
            Socket::Tcp4 | Socket::Ssl4 => Some(host4),
            Socket::Tcp6 | Socket::Ssl6 => Some(loopback6(&addresses.host6)?),
            Socket::Unix | Socket::Aunix => None,
        };
        if let (Some(port), true, true) = (addresses.port, addresses.port == addresses.control_port, server.is_some()) {
            return Err(LaunchError::Unusable(format!("PUMA_TEST_PORT and PUMA_TEST_CTRL are both {port}: unset one")));
        }
        // Both are held until both are chosen, so that they differ.
        let control = addresses.control_port.map(|port| hold(host4, Some(port), "PUMA_TEST_CTRL")).transpose()?;
        let server = server.map(|host| hold(host, addresses.port, "PUMA_TEST_PORT")).transpose()?;
        let address = |(_, address)| address;
        Ok(ChosenAddresses { server: server.map(address), control: control.map(address) })
    }
}

/// Listens there, to know that it can be done.
fn hold(host: IpAddr, port: Option<u16>, setting: &'static str) -> Result<(TcpListener, SocketAddr), LaunchError> {
    let wanted = SocketAddr::new(host, port.unwrap_or(0));
    let bound = TcpListener::bind(wanted).and_then(|listener| listener.local_addr().map(|address| (listener, address)));
    bound.map_err(|error: io::Error| {
        let hint = match (error.kind(), port, host) {
            (ErrorKind::AddrInUse, Some(port), _) => {
                return LaunchError::Unusable(format!(
                    "port {port} ({setting}) is in use on {host}: stop what listens there, or set {setting} to another, or unset it"
                ));
            }
            (ErrorKind::PermissionDenied, Some(port), _) => {
                format!("unset {setting}, or set it to a port above 1023, not {port}")
            }
            (_, _, IpAddr::V6(_)) => "use -s tcp4".to_owned(),
            (_, _, IpAddr::V4(_)) => "is the loopback interface up?".to_owned(),
        };
        LaunchError::Unusable(format!("{wanted} cannot be bound on this machine ({error}): {hint}"))
    })
}

fn loopback4(host: &str) -> Result<IpAddr, LaunchError> {
    let address = if host == "localhost" { Ok(Ipv4Addr::LOCALHOST) } else { host.parse() };
    let found = address.ok().filter(Ipv4Addr::is_loopback).map(IpAddr::V4);
    found.ok_or_else(|| outside(host, "PUMA_TEST_HOST4", "127.0.0.1 and others of 127.0.0.0/8"))
}

fn loopback6(host: &str) -> Result<IpAddr, LaunchError> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let address = if bare == "localhost" { Ok(Ipv6Addr::LOCALHOST) } else { bare.parse() };
    let found = address.ok().filter(Ipv6Addr::is_loopback).map(IpAddr::V6);
    found.ok_or_else(|| outside(host, "PUMA_TEST_HOST6", "::1"))
}

fn outside(host: &str, setting: &'static str, allowed: &'static str) -> LaunchError {
    LaunchError::Unusable(format!(
        "{setting}='{host}' is not loopback: a server under test is bound to {allowed} only; unset {setting}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_bound() {
        for host in ["0.0.0.0", "192.168.1.2", "example.org", "", "::1"] {
            assert!(matches!(loopback4(host), Err(LaunchError::Unusable(_))), "{host}");
        }
        for host in ["::", "fe80::1", "::ffff:127.0.0.1", "example.org", "127.0.0.1"] {
            assert!(matches!(loopback6(host), Err(LaunchError::Unusable(_))), "{host}");
        }
        assert_eq!(loopback4("127.0.0.2").unwrap(), Ipv4Addr::new(127, 0, 0, 2));
        assert_eq!(loopback4("localhost").unwrap(), Ipv4Addr::LOCALHOST);
        assert_eq!(loopback6("[::1]").unwrap(), Ipv6Addr::LOCALHOST);
    }
}
