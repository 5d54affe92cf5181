//! A certificate and its key, made for one server and gone with it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

/// The files of a self-signed certificate (ECDSA on P-256), in PEM.
///
/// No authority knows it: whoever is to trust it must be given the certificate itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The certificate: for `localhost`, 127.0.0.1, `::1` and the address that the server listens on.
    pub certificate: PathBuf,
    /// Its key, which only this user can read.
    pub key: PathBuf,
}

impl Pair {
    /// Makes one in `dir` for a server that listens on `host`.
    pub(crate) fn make(dir: &Path, host: IpAddr) -> io::Result<Pair> {
        let (certificate, key) = pem(host).map_err(io::Error::other)?;
        let pair = Pair { certificate: dir.join("cert.pem"), key: dir.join("key.pem") };
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
    use crate::Scratch;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn only_its_owner_can_read_the_key() {
        let scratch = Scratch::new(&std::env::temp_dir()).unwrap();
        let pair = Pair::make(scratch.path(), [127, 0, 0, 2].into()).unwrap();
        assert_eq!(fs::metadata(&pair.key).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::read_to_string(&pair.key).unwrap().starts_with("-----BEGIN PRIVATE KEY-----\n"));
        assert!(fs::read_to_string(&pair.certificate).unwrap().starts_with("-----BEGIN CERTIFICATE-----\n"));
    }
}
