//! Addresses: of a stream socket, of Puma's control server, and of the networks that may be connected to.
//!
//! Pure arithmetic: names are resolved by `engine::Resolver`, which asks [`AllowedNetworks`] about each address before anybody connects to it.

use std::ffi::OsStr;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// Bytes of a Unix socket's address in the kernel (unix(7), `sun_path`). A path ends with a zero byte there, an abstract
/// name begins with one: 107 are left to either.
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
    /// Where it is empty, or longer than the kernel takes: why, in a line.
    pub fn unix(place: &OsStr) -> Result<Endpoint, String> {
        let (endpoint, length) = match place.as_bytes() {
            [b'@', name @ ..] => (Endpoint::Abstract(name.to_vec()), name.len()),
            path => (Endpoint::Unix(place.into()), path.len()),
        };
        match length {
            0 => Err("a Unix socket needs a path, or @ and a name for an abstract one, as in --unix /run/app.sock"
                .to_owned()),
            1..UNIX_ADDRESS => Ok(endpoint),
            _ => Err(format!(
                "{endpoint}: {length} bytes, and a Unix socket's address has room for 107: use a shorter path, or a link to it"
            )),
        }
    }

    /// The TCP address; `None` of a Unix socket.
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

/// Where the server of a load is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerLocation {
    /// On this machine: what the kernel holds for it can be seen here.
    #[default]
    Here,
    /// At an address of this machine that passes connections on. What is behind it is not seen here.
    Forwarded {
        /// The program that does it, such as `docker-proxy` or `ssh`; `None`: nobody listens here, so the kernel does (NAT).
        by: Option<String>,
    },
    /// At an address of another machine or network namespace.
    Elsewhere,
}

impl ServerLocation {
    /// Whether sockets, processes and counters of this machine are the server's.
    pub fn is_here(&self) -> bool {
        *self == ServerLocation::Here
    }
}

/// A control server and the token that opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlServer {
    /// Where it listens.
    pub address: Endpoint,
    /// What it wants as `?token=`; empty where it wants none.
    pub token: String,
}

/// The networks of `--allow-net`. An address outside of them all is not connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedNetworks(Vec<IpNet>);

impl AllowedNetworks {
    /// Whether `address` may be connected to. An IPv4-mapped IPv6 address is IPv4 on the wire, and judged as such (RFC 4291
    /// section 2.5.5.2). No address stands for others: `0.0.0.0` is allowed where a network with it is.
    pub fn permits(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }
}

impl FromStr for AllowedNetworks {
    type Err = String;

    /// Networks with commas between them; an address without a prefix is that address alone.
    fn from_str(text: &str) -> Result<AllowedNetworks, String> {
        if text.trim().is_empty() {
            return Err(
                "the list of networks is empty: write some, such as 127.0.0.0/8,::1/128, or leave it out".to_owned()
            );
        }
        text.split(',').map(|one| network(one.trim())).collect::<Result<_, _>>().map(AllowedNetworks)
    }
}

fn network(text: &str) -> Result<IpNet, String> {
    let network = text.parse().or_else(|_| text.parse().map(|address: IpAddr| address.into()));
    let network: IpNet =
        network.map_err(|_| format!("'{text}' is no network: write ADDRESS/BITS, such as 10.1.0.0/16 or fd00::/8"))?;
    if network.addr() != network.addr().to_canonical() {
        return Err(format!("'{text}' is IPv4 mapped into IPv6: write it as IPv4"));
    }
    let (meant, address) = (network.trunc(), network.addr());
    if meant != network {
        let bits = network.prefix_len();
        return Err(format!(
            "'{text}' has bits set behind the first {bits}: write {meant}, or {address} for that address alone"
        ));
    }
    Ok(network)
}

impl fmt::Display for AllowedNetworks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0.iter().map(IpNet::to_string).collect::<Vec<_>>().join(","))
    }
}

/// Whether an address is of the public internet: none of loopback, link-local, private use (RFC 1918, RFC 4193) or a carrier's
/// NAT (RFC 6598). Addresses for documentation count as public: who types one should see it named.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_prints_as_a_person_writes_it() {
        for text in ["127.0.0.1:3000", "[::1]:3000"] {
            assert_eq!(Endpoint::Tcp(text.parse().unwrap()).to_string(), text);
        }
        for text in ["/run/x.sock", "@name"] {
            assert_eq!(Endpoint::unix(OsStr::new(text)).unwrap().to_string(), format!("unix {text}"));
        }
    }

    #[test]
    fn a_unix_address_has_107_bytes() {
        let long = "x".repeat(107);
        let of = |address: &str| Endpoint::unix(OsStr::new(address));
        assert!(of(&long).is_ok() && of(&format!("@{long}")).is_ok() && of(&format!("@{long}x")).is_err());
        assert!(of(&format!("{long}x")).unwrap_err().contains(": 108 bytes"));
        assert!(["@", ""].iter().all(|address| of(address).unwrap_err().contains("needs a path")));
    }
}

#[cfg(test)]
mod networks_tests {
    use super::*;

    fn networks(text: &str) -> AllowedNetworks {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn refusal(text: &str) -> String {
        text.parse::<AllowedNetworks>().map(|networks| networks.to_string()).unwrap_err()
    }

    #[test]
    fn an_address_is_permitted_where_a_network_holds_it() {
        let here = "127.0.0.0/8,::1/128";
        for (allowed, address, expected) in [
            (here, "127.0.0.1", true),
            (here, "128.0.0.0", false),
            (here, "10.0.0.1", false),
            (here, "0.0.0.0", false),
            (here, "169.254.169.254", false),
            (here, "::1", true),
            (here, "::ffff:127.0.0.1", true),
            (here, "::ffff:10.0.0.1", false),
            // IPv4-compatible addresses (RFC 4291 section 2.5.5.1, deprecated) and translated ones (RFC 6052) are IPv6.
            (here, "::127.0.0.1", false),
            ("10.1.0.0/16", "10.1.255.255", true),
            ("10.1.0.0/16", "10.0.255.255", false),
            ("10.1.0.0/16", "::ffff:10.1.2.3", true),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "10.1.2.4", false),
            ("10.1.2.3/32,10.1.2.5/32", "10.1.2.5", true),
            ("0.0.0.0/0", "203.0.113.7", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "127.0.0.1", false),
            ("::/0", "::ffff:127.0.0.1", false),
            ("fd00::/8", "fdff::1", true),
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(networks(allowed).permits(address), expected, "{address} in {allowed}");
        }
    }

    #[test]
    fn a_list_prints_as_it_is_written() {
        assert_eq!(networks(" 127.0.0.0/8 , ::1 ").to_string(), "127.0.0.0/8,::1/128");
        assert_eq!(networks("0.0.0.0/0,::/0").to_string(), "0.0.0.0/0,::/0");
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for (text, said) in [
            ("", "is empty"),
            (" ", "is empty"),
            ("localhost", "'localhost' is no network"),
            ("127.1/8", "'127.1/8' is no network"),
            ("0x7f.0.0.0/8", "is no network"),
            ("127.0.0.0/8,", "'' is no network"),
            ("127.0.0.0/33", "is no network"),
            ("127.0.0.0/+8", "is no network"),
            ("127.0.0.0/", "is no network"),
            ("::/129", "is no network"),
            ("::1%lo/128", "is no network"),
            ("10.1.2.3/8", "write 10.0.0.0/8, or 10.1.2.3 for that address alone"),
            ("fd00::1/8", "write fd00::/8"),
            ("::ffff:10.0.0.0/104", "write it as IPv4"),
        ] {
            assert!(refusal(text).contains(said), "{text}: {}", refusal(text));
        }
    }

    #[test]
    fn what_is_not_public_is_for_this_machine_or_its_neighbours() {
        let public = |text: &str| is_public(text.parse().unwrap());
        for text in ["127.0.0.1", "10.0.0.1", "172.31.0.1", "192.168.0.1", "169.254.1.1", "100.64.0.1", "0.0.0.0"] {
            assert!(!public(text), "{text}");
        }
        for text in ["::1", "::", "fe80::1", "fd00::1", "::ffff:10.0.0.1"] {
            assert!(!public(text), "{text}");
        }
        for text in ["203.0.113.7", "100.128.0.1", "172.32.0.1", "2001:db8::1", "::ffff:8.8.8.8"] {
            assert!(public(text), "{text}");
        }
    }
}
