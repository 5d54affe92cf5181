//! Where a server listens: as Puma is told it (`-b`), and as a person reads it; and the certificate that is made for it.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use model::Endpoint;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

/// Where a server listens, and how it is spoken to there.
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
    /// The paths are those of our private directory, which has no character that a URI would want escaped. An IPv6
    /// address prints itself in brackets, as a URI wants it.
    pub(crate) fn argument(&self) -> String {
        match (&self.place, &self.tls) {
            (Endpoint::Tcp(address), None) => format!("tcp://{address}"),
            (Endpoint::Tcp(address), Some(TlsPair { certificate, key })) => {
                format!("ssl://{address}?key={}&cert={}&verify_mode=none", key.display(), certificate.display())
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
    fn only_its_owner_can_read_the_key() {
        let scratch = crate::Scratch::new(&std::env::temp_dir()).unwrap();
        let pair = TlsPair::make(scratch.path(), [127, 0, 0, 2].into()).unwrap();
        assert_eq!(fs::metadata(&pair.key).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::read_to_string(&pair.key).unwrap().starts_with("-----BEGIN PRIVATE KEY-----\n"));
        assert!(fs::read_to_string(&pair.certificate).unwrap().starts_with("-----BEGIN CERTIFICATE-----\n"));
    }
}
