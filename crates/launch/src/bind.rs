//! Where a server listens: as Puma is told it (`-b`), and as a person reads it; and the certificate that is made for it.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

/// Where a server listens, and how it is spoken to there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerBind {
    /// TCP, either version of IP.
    Tcp(SocketAddr),
    /// TLS over TCP, with this pair.
    Ssl(SocketAddr, TlsPair),
    /// A Unix socket in the file system.
    Unix(PathBuf),
    /// A Unix socket in Linux's abstract namespace, its name without the leading zero byte.
    Abstract(String),
}

impl ServerBind {
    /// The TCP address, where it has one.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            ServerBind::Tcp(address) | ServerBind::Ssl(address, _) => Some(*address),
            ServerBind::Unix(_) | ServerBind::Abstract(_) => None,
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
            ServerBind::Tcp(address) => format!("tcp://{address}"),
            ServerBind::Ssl(address, pair) => format!(
                "ssl://{address}?key={}&cert={}&verify_mode=none",
                pair.key.display(),
                pair.certificate.display()
            ),
            ServerBind::Unix(path) => format!("unix://{}", path.display()),
            ServerBind::Abstract(name) => format!("unix://@{name}"),
        }
    }
}

impl fmt::Display for ServerBind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerBind::Tcp(address) => write!(out, "http://{address}"),
            ServerBind::Ssl(address, _) => write!(out, "https://{address}"),
            ServerBind::Unix(path) => write!(out, "unix {}", path.display()),
            ServerBind::Abstract(name) => write!(out, "unix @{name}"),
        }
    }
}

/// The files of a self-signed certificate (ECDSA on P-256), in PEM.
///
/// No authority knows it: whoever is to trust it must be given the certificate itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsPair {
    /// The certificate: for `localhost`, 127.0.0.1, `::1` and the address that the server listens on.
    pub certificate: PathBuf,
    /// Its key, which only this user can read.
    pub key: PathBuf,
}

impl TlsPair {
    /// Makes one in `dir`, which has none yet, for a server that listens on `host`.
    ///
    /// # Errors
    /// Where a file cannot be written, or a key not be made.
    pub fn make(dir: &Path, host: IpAddr) -> io::Result<TlsPair> {
        let (certificate, key) = pem(host).map_err(io::Error::other)?;
        let pair = TlsPair { certificate: dir.join("cert.pem"), key: dir.join("key.pem") };
        fs::write(&pair.certificate, certificate)?;
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&pair.key)?.write_all(key.as_bytes())?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn each_kind_is_told_to_puma_and_to_a_person() {
        let pair = TlsPair { certificate: "/x/cert.pem".into(), key: "/x/key.pem".into() };
        let address: SocketAddr = "[::1]:9".parse().unwrap();
        let cases = [
            (ServerBind::Tcp(address), "tcp://[::1]:9", "http://[::1]:9", "[::1]:9"),
            (
                ServerBind::Ssl(address, pair),
                "ssl://[::1]:9?key=/x/key.pem&cert=/x/cert.pem&verify_mode=none",
                "https://[::1]:9",
                "[::1]:9",
            ),
            (ServerBind::Unix("/x/s.sock".into()), "unix:///x/s.sock", "unix /x/s.sock", "localhost"),
            (ServerBind::Abstract("name".to_owned()), "unix://@name", "unix @name", "localhost"),
        ];
        for (bind, argument, text, host) in cases {
            assert_eq!((bind.argument(), bind.to_string(), bind.host()), (argument.into(), text.into(), host.into()));
        }
    }

    #[test]
    fn only_its_owner_can_read_the_key() {
        let scratch = crate::Scratch::new(&std::env::temp_dir()).unwrap();
        let pair = TlsPair::make(scratch.path(), [127, 0, 0, 2].into()).unwrap();
        assert_eq!(fs::metadata(&pair.key).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::read_to_string(&pair.key).unwrap().starts_with("-----BEGIN PRIVATE KEY-----\n"));
        assert!(fs::read_to_string(&pair.certificate).unwrap().starts_with("-----BEGIN CERTIFICATE-----\n"));
    }
}
