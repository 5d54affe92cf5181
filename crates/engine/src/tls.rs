//! TLS settings, made before the start: trusted authorities, our own certificate, the server's
//! name.
//!
//! `wire_tls` encrypts, sends and receives the bytes. TLS 1.2 and 1.3 are done by rustls with the
//! `ring` provider; HTTP/1.1 is the only protocol offered.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::paths::read_up_to;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};
use serde::{Deserialize, Serialize};

use crate::EngineError;
use crate::resolve::without_brackets;

/// TLS for every connection of a run.
///
/// # What a handshake costs
/// Sessions are resumed, as rustls does by default: the server's tickets
/// (for 256 servers, shared by all lanes) are used for later connections to the same name. A
/// resumed handshake needs no certificate and no signature (with RSA its most expensive part), so
/// the first connections of a run cost the server more than those that replace them, as with a
/// returning browser. To measure new clients only, set [`ClientConfig::resumption`] to
/// `Resumption::disabled()`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "TlsMaterial", into = "TlsMaterial")]
pub struct TlsSettings {
    /// Trusted authorities, and our own certificate.
    pub config: Arc<ClientConfig>,
    /// What the server's certificate must be valid for; sent as SNI where it is a name.
    pub name: ServerName<'static>,
    /// What both are made from.
    material: Arc<TlsMaterial>,
}

/// What the user's flags say about TLS; they are named as curl's.
#[derive(Clone, Copy, Debug, Default)]
pub struct TlsOptions<'a> {
    /// Accept any certificate.
    pub insecure: bool,
    /// Authorities in PEM, in place of the system's.
    pub ca_file: Option<&'a Path>,
    /// The client's certificate and its chain, in PEM.
    pub cert_file: Option<&'a Path>,
    /// Its private key, in PEM; if not given, it is looked for in the certificate's file.
    pub key_file: Option<&'a Path>,
    /// The server's name or address, as in the URL.
    pub server_name: &'a str,
}

impl TlsSettings {
    /// Reads the files and checks that they fit together.
    ///
    /// # Errors
    /// If a file, a key or the name cannot be used.
    pub fn new(options: &TlsOptions<'_>) -> Result<TlsSettings, EngineError> {
        let TlsOptions { insecure, ca_file, cert_file, key_file, server_name } = *options;
        let read =
            |file: Option<&Path>, what| file.map(|path| PemFile::read(path, what)).transpose();
        let authorities = read(ca_file.filter(|_| !insecure), CERTIFICATE)?;
        let certificate = read(cert_file, CERTIFICATE)?;
        let key = read(key_file, KEY)?;
        let server_name = without_brackets(server_name).to_owned();
        TlsMaterial { insecure, authorities, certificate, key, server_name }.try_into()
    }

    /// The server's name or address, as in the URL.
    pub(crate) fn server_name(&self) -> &str {
        &self.material.server_name
    }

    /// Whether there is a client certificate.
    pub fn has_certificate(&self) -> bool {
        self.material.certificate.is_some()
    }

    /// Whether authorities were named in place of the system's.
    pub(crate) fn has_authorities(&self) -> bool {
        self.material.authorities.is_some()
    }

    /// The same settings, accepting any certificate.
    pub(crate) fn trusting_anyone(&self) -> Result<TlsSettings, EngineError> {
        let material = TlsMaterial::clone(&self.material);
        TlsMaterial { insecure: true, authorities: None, ..material }.try_into()
    }

    /// The first message of a handshake; `None` if none can be made.
    pub(crate) fn hello() -> Option<Vec<u8>> {
        let anyone =
            TlsOptions { insecure: true, server_name: "localhost", ..TlsOptions::default() };
        let mut session = TlsSettings::new(&anyone).ok()?.session().ok()?;
        let mut hello = Vec::new();
        session.write_tls(&mut hello).ok()?;
        Some(hello)
    }

    /// A client's side of a new connection.
    pub(crate) fn session(&self) -> Result<ClientConnection, Error> {
        ClientConnection::new(Arc::clone(&self.config), self.name.clone())
    }
}

/// The contents of the files that TLS is set up from: a generator on another machine is given the
/// same.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct TlsMaterial {
    insecure: bool,
    authorities: Option<PemFile>,
    certificate: Option<PemFile>,
    key: Option<PemFile>,
    server_name: String,
}

const CERTIFICATE: &str = "a certificate";
const KEY: &str = "a private key";

/// Largest PEM file, in MiB: more than any list of authorities has.
const LARGEST_PEM: u64 = 16;

/// A file in PEM.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct PemFile {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl PemFile {
    fn read(path: &Path, what: &str) -> Result<PemFile, EngineError> {
        let bytes = read_up_to(path, LARGEST_PEM).map_err(|why| unreadable(path, what, why))?;
        Ok(PemFile { path: path.to_owned(), bytes })
    }

    /// The certificates of a PEM file, at least one.
    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, EngineError> {
        let found = CertificateDer::pem_slice_iter(&self.bytes)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| unreadable(&self.path, CERTIFICATE, error))?;
        if found.is_empty() {
            Err(unreadable(&self.path, CERTIFICATE, "there is none in it"))
        } else {
            Ok(found)
        }
    }
}

/// The error for a file that should hold `what`.
fn unreadable(path: &Path, what: &str, reason: impl fmt::Display) -> EngineError {
    EngineError(format!(
        "cannot read {}: {reason} ({what} in PEM is expected there)",
        path.display()
    ))
}

impl From<TlsSettings> for TlsMaterial {
    fn from(settings: TlsSettings) -> TlsMaterial {
        Arc::unwrap_or_clone(settings.material)
    }
}

impl TryFrom<TlsMaterial> for TlsSettings {
    type Error = EngineError;

    fn try_from(material: TlsMaterial) -> Result<TlsSettings, EngineError> {
        let name = ServerName::try_from(material.server_name.clone()).map_err(|_| {
            EngineError(format!(
                "{} is neither a host name nor an address, so no certificate can be valid for it",
                material.server_name
            ))
        })?;
        let provider = Arc::new(ring::default_provider());
        let policy = Arc::new(TrustPolicy::new(&material, &provider)?);
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| EngineError(format!("TLS cannot be set up: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(policy);
        let mut config = match (&material.certificate, &material.key) {
            (None, None) => builder.with_no_client_auth(),
            (None, Some(_)) => {
                return Err(EngineError(
                    "--key goes with --cert: give the client certificate too".to_owned(),
                ));
            }
            (Some(certificate), key) => {
                let file = key.as_ref().unwrap_or(certificate);
                let key = PrivateKeyDer::from_pem_slice(&file.bytes)
                    .map_err(|error| unreadable(&file.path, KEY, error))?;
                let chain = certificate.certificates()?;
                builder.with_client_auth_cert(chain, key).map_err(|error| {
                    EngineError(format!(
                        "the client certificate cannot be used: {error} (--cert and --key must \
                         belong together)"
                    ))
                })?
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsSettings { config: Arc::new(config), name, material: Arc::new(material) })
    }
}

/// Which certificates a client trusts.
#[derive(Debug)]
struct TrustPolicy {
    /// `None`: any certificate (`--insecure`), even if it is expired, for another name, or
    /// unreadable for webpki. The handshake's signature is not checked either then: it would prove
    /// that the server holds the key of a certificate which proves nothing. The connection is
    /// encrypted, towards whoever answers.
    authorities: Option<Arc<WebPkiServerVerifier>>,
    /// Certificates that are trusted for a server as they are.
    ///
    /// OpenSSL, and so curl, treat the certificates of `--cacert` like that, which makes those of
    /// `openssl req -x509` usable: they call themselves an authority, and webpki accepts no
    /// authority as a server (`CaUsedAsEndEntity`), even a trusted one.
    exact: Vec<CertificateDer<'static>>,
    schemes: Vec<SignatureScheme>,
}

impl TrustPolicy {
    fn new(
        material: &TlsMaterial,
        provider: &Arc<CryptoProvider>,
    ) -> Result<TrustPolicy, EngineError> {
        let schemes = provider.signature_verification_algorithms.supported_schemes();
        if material.insecure {
            return Ok(TrustPolicy { authorities: None, exact: Vec::new(), schemes });
        }
        let mut roots = RootCertStore::empty();
        let exact = material
            .authorities
            .as_ref()
            .map(PemFile::certificates)
            .transpose()?
            .unwrap_or_default();
        if let Some(file) = &material.authorities {
            for certificate in &exact {
                roots
                    .add(certificate.clone())
                    .map_err(|error| unreadable(&file.path, CERTIFICATE, error))?;
            }
        } else {
            // Unreadable certificates are left out, as OpenSSL does.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        let authorities =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
                .build();
        let authorities = authorities.map_err(|_| {
            EngineError(
                "no certificate authority is installed here: install ca-certificates, or give \
                 --cacert FILE or --insecure"
                    .to_owned(),
            )
        })?;
        Ok(TrustPolicy { authorities: Some(authorities), exact, schemes })
    }
}

impl ServerCertVerifier for TrustPolicy {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authorities) = &self.authorities else {
            return Ok(ServerCertVerified::assertion());
        };
        match authorities.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        ) {
            // webpki reports this only after it has checked the dates, so only the name is still to
            // be checked (webpki 0.103, verify_cert.rs, check_issuer_independent_properties).
            Err(Error::InvalidCertificate(CertificateError::Other(_)))
                if self.exact.contains(end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match &self.authorities {
            Some(known) => known.verify_tls12_signature(message, cert, dss),
            None => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match &self.authorities {
            Some(known) => known.verify_tls13_signature(message, cert, dss),
            None => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}
