//! Addresses: of a stream socket, of Puma's control server, and of the networks that may be
//! connected to.
//!
//! Pure arithmetic: `engine::Resolver` resolves names and asks [`AllowedNetworks`] about each
//! address before anything connects to it.

use std::ffi::OsStr;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// Bytes of a Unix socket's address in the kernel (unix(7), `sun_path`). A path ends with a zero
/// byte there, and an abstract name begins with one, which leaves 107 for either.
const UNIX_ADDRESS: usize = 108;

/// An address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Endpoint {
    /// TCP, either version of IP.
    Tcp(SocketAddr),
    /// A Unix socket in the file system.
    Unix(PathBuf),
    /// A Unix socket in Linux's abstract namespace, its name without the leading zero byte.
    Abstract(Vec<u8>),
}

impl Endpoint {
    /// A Unix socket as users write it: a path, or `@name` for an abstract one.
    ///
    /// # Errors
    /// One line that says why, if it is empty or too long for the kernel.
    pub fn unix(place: &OsStr) -> Result<Endpoint, String> {
        let (endpoint, length) = match place.as_bytes() {
            [b'@', name @ ..] => (Endpoint::Abstract(name.to_vec()), name.len()),
            path => (Endpoint::Unix(place.into()), path.len()),
        };
        match length {
            0 => Err("a Unix socket needs a path, or @ and a name for an abstract one, as in \
                 --unix /run/app.sock"
                .to_owned()),
            1..UNIX_ADDRESS => Ok(endpoint),
            _ => Err(format!(
                "{endpoint}: {length} bytes, and a Unix socket's address has room for 107: use a \
                 shorter path, or a link to it"
            )),
        }
    }

    /// The TCP address; `None` for a Unix socket.
    pub fn tcp(&self) -> Option<SocketAddr> {
        if let Endpoint::Tcp(address) = self { Some(*address) } else { None }
    }

    /// Its TCP port.
    pub fn port(&self) -> Option<u16> {
        self.tcp().map(|address| address.port())
    }

    /// Its address, its path, or `@` and its abstract name.
    pub fn address(&self) -> String {
        match self {
            Endpoint::Tcp(address) => address.to_string(),
            Endpoint::Unix(path) => path.display().to_string(),
            Endpoint::Abstract(name) => format!("@{}", name.escape_ascii()),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unix = if self.tcp().is_some() { "" } else { "unix " };
        write!(f, "{unix}{}", self.address())
    }
}

/// A host and a port as the user wrote them. The host's address is resolved when it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// A name or an address; an IPv6 address is in brackets.
    pub host: String,
    /// The port; 0 if the caller allows it.
    pub port: u16,
}

impl fmt::Display for HostPort {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.host, self.port)
    }
}

impl FromStr for HostPort {
    type Err = String;

    fn from_str(text: &str) -> Result<HostPort, String> {
        let (host, port) =
            text.rsplit_once(':').ok_or("write HOST:PORT, such as 127.0.0.1:8125")?;
        let port = port.parse().map_err(|_| {
            format!("'{port}' is not a port: write HOST:PORT, such as 127.0.0.1:8125")
        })?;
        let is_bracketed = host.starts_with('[') && host.ends_with(']');
        let is_host = |byte: u8| byte.is_ascii_graphic() && !b"/?#@".contains(&byte);
        if host.is_empty() || !host.bytes().all(is_host) || host.contains(':') && !is_bracketed {
            return Err(format!(
                "'{host}' is not a host: write HOST:PORT, such as 127.0.0.1:8125 or [::1]:8125"
            ));
        }
        Ok(HostPort { host: host.to_owned(), port })
    }
}

/// Where the server of a load is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerLocation {
    /// On this machine, where the kernel's data about it can be read.
    #[default]
    Here,
    /// At an address of this machine that forwards connections; what is behind it can't be seen
    /// here.
    Forwarded {
        /// The program that forwards, such as `docker-proxy` or `ssh`; `None` if nothing listens
        /// here, so the kernel forwards (NAT).
        by: Option<String>,
    },
    /// At an address of another machine or network namespace.
    Elsewhere,
}

impl ServerLocation {
    /// Whether this machine's sockets, processes and counters are the server's.
    pub fn is_here(&self) -> bool {
        *self == ServerLocation::Here
    }
}

/// A control server and its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlServer {
    /// Where it listens.
    pub address: Endpoint,
    /// The value of `?token=`; empty if it needs none.
    pub token: String,
}

/// The networks of `--allow-net`. Longtail connects to no other address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedNetworks(Vec<IpNet>);

impl AllowedNetworks {
    /// Whether `address` may be connected to. An IPv4-mapped IPv6 address is IPv4 on the wire and
    /// treated as such (RFC 4291, section 2.5.5.2). `0.0.0.0` does not mean any address here: it is
    /// allowed only if a network contains it.
    pub fn permits(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }
}

impl FromStr for AllowedNetworks {
    type Err = String;

    /// A comma-separated list of networks; an address without a prefix length means only that
    /// address.
    fn from_str(text: &str) -> Result<AllowedNetworks, String> {
        if text.trim().is_empty() {
            return Err(
                "the list of networks is empty: write some, such as 127.0.0.0/8,::1/128, or leave \
                 it out"
                    .to_owned(),
            );
        }
        text.split(',')
            .map(|one| network(one.trim()))
            .collect::<Result<_, _>>()
            .map(AllowedNetworks)
    }
}

fn network(text: &str) -> Result<IpNet, String> {
    let network = text.parse().or_else(|_| text.parse().map(|address: IpAddr| address.into()));
    let network: IpNet = network.map_err(|_| {
        format!("'{text}' is not a network: write ADDRESS/BITS, such as 10.1.0.0/16 or fd00::/8")
    })?;
    if network.addr() != network.addr().to_canonical() {
        return Err(format!("'{text}' is IPv4 mapped into IPv6: write it as IPv4"));
    }
    let meant = network.trunc();
    let address = network.addr();
    if meant != network {
        let bits = network.prefix_len();
        return Err(format!(
            "'{text}' has bits set after the first {bits}: write {meant}, or {address} for that \
             address alone"
        ));
    }
    Ok(network)
}

impl fmt::Display for AllowedNetworks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0.iter().map(IpNet::to_string).collect::<Vec<_>>().join(","))
    }
}

/// Whether an address is on the public internet: not loopback, link-local, private (RFC 1918, RFC
/// 4193) or carrier-grade NAT (RFC 6598). Documentation addresses count as public, so that a user
/// who types one is told.
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [a, b, ..] = address.octets();
            let is_shared = a == 100 && b & 0b1100_0000 == 64;
            !(address.is_loopback()
                || address.is_private()
                || address.is_link_local()
                || address.is_unspecified()
                || is_shared)
        }
        IpAddr::V6(address) => {
            !(address.is_loopback()
                || address.is_unspecified()
                || address.is_unicast_link_local()
                || address.is_unique_local())
        }
    }
}
