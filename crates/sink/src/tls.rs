//! What is settled about TLS before the start: the sink's certificate and key. The bytes themselves are `wire.rs`.
//!
//! TLS 1.2 and 1.3 by rustls with the `ring` provider, HTTP/1.1 the only protocol, sessions resumed as rustls does by
//! default. Where no pair is given, one is made at the start that nobody has a reason to trust.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::SinkError;

/// The files of a certificate and its key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PemPair {
    /// The certificate, and those that vouch for it.
    pub certificate: PathBuf,
    /// Its private key; may be the same file.
    pub key: PathBuf,
}

/// What every TLS connection uses. `names` are those for which a pair that is made here shall be good.
pub(crate) fn configure(pair: Option<&PemPair>, names: Vec<String>) -> Result<Arc<ServerConfig>, SinkError> {
    let (certificates, key) = match pair {
        Some(pair) => (certificates(&pair.certificate)?, key(&pair.key)?),
        None => self_signed(names)?,
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
        .map_err(|error| SinkError::Tls(error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

type Pair = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn self_signed(names: Vec<String>) -> Result<Pair, SinkError> {
    let made = rcgen::generate_simple_self_signed(names).map_err(|error| SinkError::Tls(error.to_string()))?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    Ok((vec![made.cert.der().clone()], key.into()))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, SinkError> {
    const WHAT: &str = "a certificate";
    let found = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unreadable(path, WHAT, error))?;
    if found.is_empty() { Err(unreadable(path, WHAT, "there is none in it")) } else { Ok(found) }
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, SinkError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| unreadable(path, "a private key", error))
}

fn unreadable(path: &Path, what: &'static str, reason: impl Display) -> SinkError {
    SinkError::Unreadable { path: path.to_owned(), what, reason: reason.to_string() }
}
