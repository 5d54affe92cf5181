//! Chooses where a server listens, a loopback address that was free a moment ago; writes it as
//! Puma's `-b` and for people; and makes the certificate for TLS.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use model::{Endpoint, Socket};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

use crate::LaunchError;

/// Where a server listens, and whether with TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerBind {
    /// The address.
    pub place: Endpoint,
    /// TLS with this pair.
    pub tls: Option<TlsPair>,
}

impl ServerBind {
    /// Plain TCP.
    pub fn tcp(address: SocketAddr) -> ServerBind {
        ServerBind { place: Endpoint::Tcp(address), tls: None }
    }

    /// What a client calls the server in the Host header.
    pub fn host(&self) -> String {
        self.place.tcp().map_or_else(|| "localhost".to_owned(), |address| address.to_string())
    }

    /// The value of Puma's `-b` (binder.rb, `parse`).
    ///
    /// The paths are those of our private directory, which has no character that a URI would want
    /// escaped. An IPv6 address prints itself in brackets, as a URI wants it.
    pub(crate) fn argument(&self) -> String {
        match (&self.place, &self.tls) {
            (Endpoint::Tcp(address), None) => format!("tcp://{address}"),
            (Endpoint::Tcp(address), Some(TlsPair { certificate, key })) => {
                format!(
                    "ssl://{address}?key={}&cert={}&verify_mode=none",
                    key.display(),
                    certificate.display()
                )
            }
            (unix, _) => unix.to_string().replacen(' ', "://", 1),
        }
    }
}

impl fmt::Display for ServerBind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.place, &self.tls) {
            (Endpoint::Tcp(address), None) => write!(out, "http://{address}"),
            (Endpoint::Tcp(address), Some(_)) => write!(out, "https://{address}"),
            (unix, _) => unix.fmt(out),
        }
    }
}

/// The files of a self-signed certificate (ECDSA on P-256), in PEM.
///
/// No authority signed it: a client has to be given the certificate itself to trust it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsPair {
    /// The certificate: for `localhost`, 127.0.0.1, `::1` and the address that the server listens
    /// on.
    pub certificate: PathBuf,
    /// Its key, which only this user can read.
    pub key: PathBuf,
}

impl TlsPair {
    /// Makes a pair in `dir`, which has none yet, for a server that listens on `host`.
    ///
    /// # Errors
    /// If a file cannot be written, or a key cannot be made.
    pub fn make(dir: &Path, host: IpAddr) -> io::Result<TlsPair> {
        let (certificate, key) = pem(host).map_err(io::Error::other)?;
        let pair = TlsPair { certificate: dir.join("cert.pem"), key: dir.join("key.pem") };
        fs::write(&pair.certificate, certificate)?;
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&pair.key)?
            .write_all(key.as_bytes())?;
        Ok(pair)
    }
}

fn pem(host: IpAddr) -> Result<(String, String), rcgen::Error> {
    let mut names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    let host = host.to_string();
    if !names.contains(&host) {
        names.push(host);
    }
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "a server that longtail measures");
    let key = KeyPair::generate()?;
    Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
}

/// Where Puma and its control server listen. `PUMA_TEST_HOST4`, `PUMA_TEST_HOST6`, `PUMA_TEST_PORT`
/// and `PUMA_TEST_CTRL` in the environment of Puma's own scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// For `-s tcp4`, `ssl4` and for the control server: an address of 127.0.0.0/8, or `localhost`.
    pub host4: String,
    /// For `-s tcp6` and `ssl6`: `::1`, `[::1]` or `localhost`.
    pub host6: String,
    /// The server's port, where its socket has one; `None` finds a free one.
    pub port: Option<u16>,
    /// The control server's port; `None` uses a private unix socket.
    pub control_port: Option<u16>,
}

impl Default for Addresses {
    fn default() -> Addresses {
        Addresses {
            host4: "127.0.0.1".to_owned(),
            host6: "::1".to_owned(),
            port: None,
            control_port: None,
        }
    }
}

/// A free address of the kind, or the one that was asked for, for a server other than Puma: on
/// loopback, or at `reached_at`, where generators on other machines reach it.
///
/// # Errors
/// As [`puma::prepare`](crate::puma::prepare), of hosts and ports.
///
/// # Panics
/// If this kind of socket has no address; callers check that before.
pub fn free_address(
    socket: Socket,
    reached_at: Option<IpAddr>,
    addresses: &Addresses,
) -> Result<SocketAddr, LaunchError> {
    ChosenAddresses::choose(socket, reached_at, addresses)
        .map(|listeners| listeners.server.expect("a kind with an address"))
}

/// The addresses, free a moment ago.
pub(crate) struct ChosenAddresses {
    /// `None` for a Unix socket.
    pub(crate) server: Option<SocketAddr>,
    pub(crate) control: Option<SocketAddr>,
}

impl ChosenAddresses {
    /// The server is on loopback, or at the address where generators on other machines reach it;
    /// its control server on loopback.
    pub(crate) fn choose(
        socket: Socket,
        reached_at: Option<IpAddr>,
        addresses: &Addresses,
    ) -> Result<ChosenAddresses, LaunchError> {
        let host4 = loopback(&addresses.host4, Ipv4Addr::LOCALHOST.into())?;
        let server = match socket {
            socket if !socket.is_unix() && reached_at.is_some() => reached_at,
            Socket::Tcp4 | Socket::Ssl4 => Some(host4),
            Socket::Tcp6 | Socket::Ssl6 => {
                Some(loopback(&addresses.host6, Ipv6Addr::LOCALHOST.into())?)
            }
            Socket::Unix | Socket::Aunix => None,
        };
        if let Some(port) = addresses.port
            && addresses.control_port == Some(port)
            && server.is_some()
        {
            return Err(LaunchError::Unusable(format!(
                "PUMA_TEST_PORT and PUMA_TEST_CTRL are both {port}: unset one"
            )));
        }
        // Both sockets stay open until both ports are chosen, so that they differ.
        let control = addresses
            .control_port
            .map(|port| hold(host4, Some(port), "PUMA_TEST_CTRL"))
            .transpose()?;
        let server = server.map(|host| hold(host, addresses.port, "PUMA_TEST_PORT")).transpose()?;
        let address = |(_, address)| address;
        Ok(ChosenAddresses { server: server.map(address), control: control.map(address) })
    }
}

/// Listens there to see that it is possible; on a free port if none was asked for.
fn hold(
    host: IpAddr,
    port: Option<u16>,
    setting: &'static str,
) -> Result<(TcpListener, SocketAddr), LaunchError> {
    let listen = |port: u16| {
        let listener = TcpListener::bind(SocketAddr::new(host, port))?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    let bound = match port {
        Some(port) => listen(port),
        // The kernel's own choice comes last: see `quiet_ports`.
        None => quiet_ports().find_map(|port| listen(port).ok()).map_or_else(|| listen(0), Ok),
    };
    let wanted = SocketAddr::new(host, port.unwrap_or(0));
    bound.map_err(|error: io::Error| {
        let hint = match (error.kind(), port, host) {
            (ErrorKind::AddrInUse, Some(port), _) => {
                return LaunchError::Unusable(format!(
                    "port {port} ({setting}) is in use on {host}: stop what listens there, or set \
                     {setting} to another, or unset it"
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

/// Ports to try for a server that binds its port only when it has booted. They are below the
/// kernel's ephemeral ports, because a connection may take one of those meanwhile ("Address already
/// in use"). Each process and each call begins at another port, so that two servers that start at
/// the same time do not choose the same one. None if nearly all ports are ephemeral.
fn quiet_ports() -> impl Iterator<Item = u16> {
    const EPHEMERAL_RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let range = fs::read_to_string(EPHEMERAL_RANGE).unwrap_or_default();
    let first_ephemeral = range.split_whitespace().next().and_then(|port| port.parse().ok());
    let end = first_ephemeral.unwrap_or(0_u16).min(20_000);
    let first = end.saturating_sub(10_000).max(1024);
    let count = u32::from(end.saturating_sub(first));
    let start = process::id().wrapping_add(CALLS.fetch_add(997, Ordering::Relaxed));
    (0..count.min(1000)).map(move |n| {
        let offset = (start.wrapping_add(n)) % count;
        first + u16::try_from(offset).expect("below a count of ports")
    })
}

/// The address of `host`, which must be on loopback and of the same IP version as `localhost`.
fn loopback(host: &str, localhost: IpAddr) -> Result<IpAddr, LaunchError> {
    let is_v6 = localhost.is_ipv6();
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .filter(|_| is_v6)
        .unwrap_or(host);
    let address = if bare == "localhost" { Some(localhost) } else { bare.parse().ok() };
    let found =
        address.filter(|address: &IpAddr| address.is_loopback() && address.is_ipv6() == is_v6);
    found.ok_or_else(|| {
        let (setting, allowed) = if is_v6 {
            ("PUMA_TEST_HOST6", "::1")
        } else {
            ("PUMA_TEST_HOST4", "127.0.0.1 and others of 127.0.0.0/8")
        };
        LaunchError::Unusable(format!(
            "{setting}='{host}' is not loopback: a server under test is bound to {allowed} only; \
             unset {setting}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_its_owner_can_read_the_key() {
        let scratch = crate::Scratch::new(&std::env::temp_dir()).unwrap();
        let pair = TlsPair::make(scratch.path(), [127, 0, 0, 2].into()).unwrap();
        assert_eq!(fs::metadata(&pair.key).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(
            fs::read_to_string(&pair.key).unwrap().starts_with("-----BEGIN PRIVATE KEY-----\n")
        );
        assert!(
            fs::read_to_string(&pair.certificate)
                .unwrap()
                .starts_with("-----BEGIN CERTIFICATE-----\n")
        );
    }

    #[test]
    fn a_chosen_port_is_below_the_ephemeral_ports() {
        let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
        let first: u16 = range.split_whitespace().next().unwrap().parse().unwrap();
        let chosen: Vec<u16> = quiet_ports().collect();
        assert!(chosen.iter().all(|port| (1024..first).contains(port)), "{chosen:?}");
        let next = quiet_ports().next();
        assert!(
            chosen.is_empty() || next != chosen.first().copied(),
            "the next call begins elsewhere"
        );
    }

    #[test]
    fn only_loopback_is_bound() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/loopback_hosts.txt");
        testkit::golden::expect_rows(file, |given| {
            let (localhost, host) = given.split_once(' ').unwrap();
            loopback(host, localhost.parse().unwrap()).map_err(|error| error.to_string())
        });
    }
}
