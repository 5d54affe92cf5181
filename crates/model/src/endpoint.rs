//! An address of a stream socket: to connect to, or to listen at.

use std::ffi::OsStr;
use std::fmt;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

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
