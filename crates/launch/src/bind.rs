//! Where a server listens: as Puma is told it (`-b`), and as a person reads it.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::pair::Pair;

/// Where a server listens, and how it is spoken to there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bind {
    /// TCP, either version of IP.
    Tcp(SocketAddr),
    /// TLS over TCP, with this pair.
    Ssl(SocketAddr, Pair),
    /// A Unix socket in the file system.
    Unix(PathBuf),
    /// A Unix socket in Linux's abstract namespace, its name without the leading zero byte.
    Abstract(String),
}

impl Bind {
    /// The TCP address, where it has one.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Bind::Tcp(address) | Bind::Ssl(address, _) => Some(*address),
            Bind::Unix(_) | Bind::Abstract(_) => None,
        }
    }

    /// What a client calls the server in the Host header.
    pub fn host(&self) -> String {
        self.address().map_or_else(|| "localhost".to_owned(), |address| address.to_string())
    }

    /// The value of Puma's `-b` (binder.rb, `parse`).
    ///
    /// The paths are those of our private directory, which has no character that a URI would want escaped. An IPv6
    /// address prints itself in brackets, as a URI wants it.
    pub(crate) fn argument(&self) -> String {
        match self {
            Bind::Tcp(address) => format!("tcp://{address}"),
            Bind::Ssl(address, pair) => format!(
                "ssl://{address}?key={}&cert={}&verify_mode=none",
                pair.key.display(),
                pair.certificate.display()
            ),
            Bind::Unix(path) => format!("unix://{}", path.display()),
            Bind::Abstract(name) => format!("unix://@{name}"),
        }
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bind::Tcp(address) => write!(out, "http://{address}"),
            Bind::Ssl(address, _) => write!(out, "https://{address}"),
            Bind::Unix(path) => write!(out, "unix {}", path.display()),
            Bind::Abstract(name) => write!(out, "unix @{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_told_to_puma_and_to_a_person() {
        let pair = Pair { certificate: "/x/cert.pem".into(), key: "/x/key.pem".into() };
        let address: SocketAddr = "[::1]:9".parse().unwrap();
        let cases = [
            (Bind::Tcp(address), "tcp://[::1]:9", "http://[::1]:9", "[::1]:9"),
            (
                Bind::Ssl(address, pair),
                "ssl://[::1]:9?key=/x/key.pem&cert=/x/cert.pem&verify_mode=none",
                "https://[::1]:9",
                "[::1]:9",
            ),
            (Bind::Unix("/x/s.sock".into()), "unix:///x/s.sock", "unix /x/s.sock", "localhost"),
            (Bind::Abstract("name".to_owned()), "unix://@name", "unix @name", "localhost"),
        ];
        for (bind, argument, text, host) in cases {
            assert_eq!((bind.argument(), bind.to_string(), bind.host()), (argument.into(), text.into(), host.into()));
        }
    }
}
