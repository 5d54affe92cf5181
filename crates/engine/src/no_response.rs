//! Explains why a load got no response: by one TLS handshake, or one line of HTTP, with the server
//! afterwards.
//!
//! A lane only counts failed connections. This finds out what is wrong and what the user can type.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::{Endpoint, FirstBytes};
use rustls::client::{ResolvesClientCert, Resumption};
use rustls::pki_types::CertificateDer;
use rustls::sign::CertifiedKey;
use rustls::{AlertDescription, ClientConnection, Error, PeerIncompatible, SignatureScheme};

use crate::certificate;
use crate::reach::connect_blocking;
use crate::tls::TlsSettings;

/// How long a server may take after the handshake to say that it wanted a certificate (TLS 1.3 says
/// it only then).
const AFTERTHOUGHT: Duration = Duration::from_millis(500);

/// What one TLS handshake found out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandshakeFindings {
    /// Why it failed, and what to do; `None`: it succeeded, or TLS is not the reason.
    pub failure: Option<String>,
    /// Whether the server asked for a client certificate.
    pub asks_for_certificate: bool,
}

impl TlsSettings {
    /// Shakes hands once, blocking. The connect, each read and each write may take `timeout`.
    pub fn shake_hands(&self, endpoint: &Endpoint, timeout: Duration) -> HandshakeFindings {
        // TCP or Unix: from here on it is only read and written.
        let Ok(socket) = connect_blocking(endpoint, timeout) else {
            return HandshakeFindings::default();
        };
        let asked = Arc::new(CertificateRequests {
            asked: AtomicBool::new(false),
            ours: Arc::clone(&self.config.client_auth_cert_resolver),
        });
        let mut config = (*self.config).clone();
        config.client_auth_cert_resolver = Arc::clone(&asked) as Arc<dyn ResolvesClientCert>;
        // A resumed handshake tells less.
        config.resumption = Resumption::disabled();
        let Ok(mut session) = ClientConnection::new(Arc::new(config), self.name.clone()) else {
            return HandshakeFindings::default();
        };
        let mut stream = WatchedStream { stream: UnixStream::from(socket), first: Vec::new() };
        let ended = complete(&mut session, &mut stream, || asked.is_asked());
        let is_asked = asked.is_asked();
        let first = stream.first;
        // Before another look: some servers serve one connection at a time.
        drop(stream.stream);
        let failure = ended.err().map(|error| {
            match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
                Some(error) => self.told(error, &first, endpoint, is_asked, timeout),
                None if first.is_empty() => without_a_word(endpoint, &error, timeout),
                None if is_asked => self.wants_certificate(endpoint),
                None => format!(
                    "{endpoint} ended the connection in the middle of the TLS handshake: what \
                     does its log say?"
                ),
            }
        });
        HandshakeFindings { failure, asks_for_certificate: is_asked }
    }

    /// What a failed handshake means, and what to do.
    fn told(
        &self,
        error: &Error,
        first: &[u8],
        endpoint: &Endpoint,
        is_asked: bool,
        timeout: Duration,
    ) -> String {
        match error {
            Error::InvalidCertificate(reason) => certificate::explanation(
                reason,
                self.end_entity(endpoint, timeout).as_ref(),
                endpoint,
                self,
            ),
            Error::InvalidMessage(_) => no_tls(endpoint, first, timeout),
            Error::AlertReceived(alert) => self.alert(*alert, endpoint, is_asked),
            Error::PeerIncompatible(
                PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
                | PeerIncompatible::ServerDoesNotSupportTls12Or13,
            ) => old_version(endpoint),
            Error::NoApplicationProtocol => http_2_only(endpoint),
            other => format!(
                "the TLS handshake with {endpoint} failed ({other}): openssl s_client -connect \
                 {endpoint} shows more"
            ),
        }
    }

    fn alert(&self, alert: AlertDescription, endpoint: &Endpoint, is_asked: bool) -> String {
        match alert {
            AlertDescription::CertificateRequired => self.wants_certificate(endpoint),
            AlertDescription::ProtocolVersion => old_version(endpoint),
            AlertDescription::NoApplicationProtocol => http_2_only(endpoint),
            AlertDescription::UnrecognisedName => format!(
                "{endpoint} serves no site of the name {}: write the right name in the URL \
                 (--connect-to {endpoint} connects there all the same)",
                self.server_name()
            ),
            _ if is_asked && !self.has_certificate() => self.wants_certificate(endpoint),
            _ if is_asked => format!(
                "{endpoint} does not accept the client certificate of --cert ({}): give one that \
                 is valid and that its authority has signed",
                in_words(alert)
            ),
            AlertDescription::HandshakeFailure | AlertDescription::InsufficientSecurity => format!(
                "{endpoint} has no cipher suite in common with longtail (TLS 1.3, or TLS 1.2 with ECDHE and AES-GCM or ChaCha20): enable one of these in the server"
            ),
            _ => format!(
                "{endpoint} ended the TLS handshake with the alert '{}': what does its log say?",
                in_words(alert)
            ),
        }
    }

    fn wants_certificate(&self, endpoint: &Endpoint) -> String {
        if self.has_certificate() {
            return format!(
                "{endpoint} does not accept the client certificate of --cert: give one that is \
                 valid and that its authority has signed"
            );
        }
        format!("{endpoint} wants a client certificate: give it with --cert FILE and --key FILE")
    }

    /// The server's own certificate, of a handshake that trusts anyone.
    fn end_entity(
        &self,
        endpoint: &Endpoint,
        timeout: Duration,
    ) -> Option<CertificateDer<'static>> {
        let trusting = self.trusting_anyone().ok()?;
        let mut stream = UnixStream::from(connect_blocking(endpoint, timeout).ok()?);
        let mut session = trusting.session().ok()?;
        while session.is_handshaking() && session.peer_certificates().is_none() {
            session.complete_io(&mut stream).ok()?;
        }
        session.peer_certificates()?.first().map(|first| first.clone().into_owned())
    }
}

/// Completes the handshake. Where the server asked for a certificate, waits for what it says to the
/// one it got, or to none.
fn complete(
    session: &mut ClientConnection,
    stream: &mut WatchedStream,
    is_asked: impl Fn() -> bool,
) -> io::Result<()> {
    while session.is_handshaking() {
        session.complete_io(stream)?;
    }
    while session.wants_write() {
        session.write_tls(stream)?;
    }
    if !is_asked() {
        return Ok(());
    }
    stream.stream.set_read_timeout(Some(AFTERTHOUGHT))?;
    loop {
        match session.read_tls(stream) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => _ = session.process_new_packets().map_err(io::Error::other)?,
            Err(error) if is_timeout(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// The server sent nothing at all: it may wait for a line of HTTP, or speak neither protocol.
fn without_a_word(endpoint: &Endpoint, error: &io::Error, timeout: Duration) -> String {
    if speaks_http(endpoint, timeout) {
        return speaks_plainly(endpoint);
    }
    if is_timeout(error) {
        return format!(
            "{endpoint} takes the connection and does not answer a TLS handshake within {} s: is \
             this the port of HTTPS?",
            timeout.as_secs()
        );
    }
    format!(
        "{endpoint} ends each connection at the first byte of a TLS handshake: is this the port \
         of HTTPS, and what does its log say?"
    )
}

fn speaks_plainly(endpoint: &Endpoint) -> String {
    format!("{endpoint} speaks plain HTTP, not TLS: type http:// in place of https://")
}

fn no_tls(endpoint: &Endpoint, first: &[u8], timeout: Duration) -> String {
    // Some servers respond to anything but HTTP with a page without a head.
    if first.starts_with(b"HTTP/") || speaks_http(endpoint, timeout) {
        return speaks_plainly(endpoint);
    }
    let bytes = FirstBytes::of(first);
    format!(
        "{endpoint} does not speak TLS: it answers with {bytes}; correct the port, or type http://"
    )
}

fn old_version(endpoint: &Endpoint) -> String {
    format!(
        "{endpoint} speaks neither TLS 1.2 nor TLS 1.3, and longtail speaks no older one: enable TLS 1.2 in the server"
    )
}

fn http_2_only(endpoint: &Endpoint) -> String {
    format!(
        "{endpoint} offers HTTP/2 only, and longtail speaks HTTP/1.1 only: enable HTTP/1.1 in the \
         server (ALPN http/1.1)"
    )
}

/// `UnknownCA` as a person would say it.
fn in_words(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::UnknownCA => "its authority is not known there".to_owned(),
        AlertDescription::BadCertificate => "it is not in order".to_owned(),
        AlertDescription::CertificateExpired => "it has expired".to_owned(),
        AlertDescription::CertificateRevoked => "it was revoked".to_owned(),
        AlertDescription::AccessDenied => "access denied".to_owned(),
        other => {
            let mut words = String::new();
            for char in format!("{other:?}").chars().take_while(|char| *char != '(') {
                if char.is_ascii_uppercase() && !words.is_empty() {
                    words.push(' ');
                }
                words.push(char.to_ascii_lowercase());
            }
            words
        }
    }
}

/// Whether a server answers plain HTTP. The request is one that no app handles.
pub fn speaks_http(endpoint: &Endpoint, timeout: Duration) -> bool {
    first_response(
        endpoint,
        b"OPTIONS * HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        timeout,
    )
    .starts_with(b"HTTP/")
}

/// Whether a server answers the first message of a TLS handshake in TLS.
pub fn speaks_tls(endpoint: &Endpoint, timeout: Duration) -> bool {
    let Some(hello) = TlsSettings::hello() else { return false };
    matches!(first_response(endpoint, &hello, timeout).as_slice(), [0x15 | 0x16, 3, ..])
}

/// The first bytes that a server answers with; none if it does not.
fn first_response(endpoint: &Endpoint, question: &[u8], timeout: Duration) -> Vec<u8> {
    ask(endpoint, question, timeout).unwrap_or_default()
}

fn ask(endpoint: &Endpoint, question: &[u8], timeout: Duration) -> io::Result<Vec<u8>> {
    let mut stream = UnixStream::from(connect_blocking(endpoint, timeout)?);
    stream.write_all(question)?;
    let mut first = vec![0; 16];
    let length = stream.read(&mut first)?;
    first.truncate(length);
    Ok(first)
}

/// A stream that keeps the first bytes that came.
struct WatchedStream {
    stream: UnixStream,
    first: Vec<u8>,
}

impl Read for WatchedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.stream.read(buffer)?;
        if self.first.is_empty() {
            self.first.extend_from_slice(&buffer[..length]);
        }
        Ok(length)
    }
}

impl Write for WatchedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Notices that the server asks for a client certificate, and answers as `ours` does.
#[derive(Debug)]
struct CertificateRequests {
    asked: AtomicBool,
    ours: Arc<dyn ResolvesClientCert>,
}

impl CertificateRequests {
    fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

impl ResolvesClientCert for CertificateRequests {
    fn resolve(&self, hints: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.asked.store(true, Ordering::Relaxed);
        self.ours.resolve(hints, schemes)
    }

    fn has_certs(&self) -> bool {
        self.ours.has_certs()
    }
}
