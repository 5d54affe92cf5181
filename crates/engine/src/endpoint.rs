//! Where a run connects to, and why it cannot.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::resolve::ResolveError;

/// Bytes of a Unix socket's address in the kernel (unix(7), `sun_path`). A path ends with a zero byte there, an abstract
/// name begins with one: 107 are left to either.
const UNIX_ADDRESS: usize = 108;

/// One place to connect to.
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
    /// Where it is empty, or longer than the kernel takes.
    pub fn unix(place: &OsStr) -> Result<Endpoint, TransportError> {
        let endpoint = match place.as_bytes() {
            [b'@', name @ ..] => Endpoint::Abstract(name.to_vec()),
            _ => Endpoint::Unix(place.into()),
        };
        endpoint.check().map(|()| endpoint)
    }

    pub(crate) fn check(&self) -> Result<(), TransportError> {
        let bytes = match self {
            Endpoint::Tcp(_) => return Ok(()),
            Endpoint::Unix(path) => path.as_os_str().as_bytes(),
            Endpoint::Abstract(name) => name,
        };
        match bytes.len() {
            0 => Err(TransportError::NoUnixAddress),
            length if length >= UNIX_ADDRESS => Err(TransportError::LongUnixAddress { endpoint: self.clone(), length }),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp(address) => write!(f, "{address}"),
            Endpoint::Unix(path) => write!(f, "unix {}", path.display()),
            Endpoint::Abstract(name) => write!(f, "unix @{}", name.escape_ascii()),
        }
    }
}

/// Why a run's connections cannot be made as they were asked for.
#[derive(Debug, Error)]
pub enum TransportError {
    /// The host has no address that may be connected to.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// A Unix socket without a name.
    #[error("a Unix socket needs a path, or @ and a name for an abstract one, as in --unix /run/app.sock")]
    NoUnixAddress,
    /// A Unix socket's address that the kernel cannot take.
    #[error(
        "{endpoint}: {length} bytes, and a Unix socket's address has room for 107: use a shorter path, or a link to it"
    )]
    LongUnixAddress {
        /// The address.
        endpoint: Endpoint,
        /// Its length.
        length: usize,
    },
    /// No source address fits the endpoint.
    #[error("no --source-ip can reach {endpoint}: give one of its kind (IPv4 or IPv6; none for a Unix socket)")]
    NoSource {
        /// The endpoint.
        endpoint: Endpoint,
    },
    /// The source address is not this machine's.
    #[error("cannot connect from {address}: {source} (--source-ip takes addresses of this machine)")]
    Source {
        /// The address.
        address: IpAddr,
        /// The kernel's word for it.
        source: io::Error,
    },
    /// A file could not be read.
    #[error("cannot read {path}: {reason} ({what} in PEM is expected there)")]
    File {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A key without its certificate.
    #[error("--key goes with --cert: give the client certificate too")]
    KeyAlone,
    /// Certificate and key do not belong together, or are of no use.
    #[error("the client certificate cannot be used: {0} (--cert and --key must belong together)")]
    ClientCertificate(rustls::Error),
    /// Nothing to verify a certificate with.
    #[error("no certificate authority is installed here: install ca-certificates, or give --cacert FILE or --insecure")]
    NoRoots,
    /// A name that no certificate can have.
    #[error("{0} is neither a host name nor an address, so no certificate can be valid for it")]
    ServerName(String),
    /// The server's certificate is not to be trusted.
    #[error(
        "the certificate of {endpoint} is not trusted: {reason} (trust it with --cacert FILE, or any with --insecure)"
    )]
    Untrusted {
        /// The server.
        endpoint: Endpoint,
        /// What is wrong with it.
        reason: rustls::CertificateError,
    },
    /// What the server says is not TLS.
    #[error("{endpoint} does not speak TLS (is it http:// there?)")]
    NoTls {
        /// The server.
        endpoint: Endpoint,
    },
    /// The handshake failed otherwise.
    #[error("no TLS handshake with {endpoint}: {reason} (a server may want a client certificate: --cert and --key)")]
    Handshake {
        /// The server.
        endpoint: Endpoint,
        /// rustls' word for it.
        reason: String,
    },
    /// TLS cannot be set up for another reason.
    #[error("TLS cannot be set up: {0}")]
    Tls(rustls::Error),
}

/// A file's path in an error.
pub(crate) fn unreadable(path: &Path, what: &'static str, reason: impl fmt::Display) -> TransportError {
    TransportError::File { path: path.to_owned(), what, reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(address: &str) -> Endpoint {
        Endpoint::Tcp(address.parse().expect("an address"))
    }

    #[test]
    fn an_endpoint_prints_as_a_person_writes_it() {
        assert_eq!(tcp("127.0.0.1:3000").to_string(), "127.0.0.1:3000");
        assert_eq!(tcp("[::1]:3000").to_string(), "[::1]:3000");
        assert_eq!(Endpoint::unix(OsStr::new("/run/x.sock")).expect("short").to_string(), "unix /run/x.sock");
        assert_eq!(Endpoint::unix(OsStr::new("@name")).expect("short").to_string(), "unix @name");
    }

    #[test]
    fn a_unix_address_has_107_bytes() {
        let fits = format!("/{}", "x".repeat(106));
        assert!(Endpoint::unix(OsStr::new(&fits)).is_ok());
        assert!(matches!(
            Endpoint::unix(OsStr::new(&format!("{fits}x"))),
            Err(TransportError::LongUnixAddress { length: 108, .. })
        ));
        assert!(Endpoint::unix(OsStr::new(&format!("@{}", "x".repeat(107)))).is_ok());
        assert!(Endpoint::unix(OsStr::new(&format!("@{}", "x".repeat(108)))).is_err());
        assert!(matches!(Endpoint::unix(OsStr::new("@")), Err(TransportError::NoUnixAddress)));
        assert!(matches!(Endpoint::unix(OsStr::new("")), Err(TransportError::NoUnixAddress)));
    }
}
