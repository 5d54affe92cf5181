//! Every transport against real listeners: each kind of address, and TLS with all that can go wrong
//! with it.
//!
//! The tests run whole loads where they can: if a wire forgets to announce an event, the load hangs
//! and times out. They call a wire directly only to see what a lane does not show.

mod plain;
mod tls;
mod trust;

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use engine::{
    ConnectionDriver, ConnectionEvent, LoadSpec, SocketDriver, TlsDriver, TlsOptions, TlsSettings,
    Transport, render,
};
use model::{Nanos, Outcome, Timestamps};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion};

use crate::kit::{ANSWER, LONG_TIMEOUT, Server, always, driven, kinds};

/// A load of this many requests over one connection.
fn load(transport: Transport, requests: u64) -> LoadSpec {
    let request = render("GET", "localhost", "/", &[], true);
    let closed = LoadSpec::closed(transport, request, 1);
    closed.with(|load| {
        load.lanes = 1;
        load.requests_total = Some(requests);
        load.timeout = LONG_TIMEOUT;
    })
}

fn encrypted(address: SocketAddr, tls: TlsSettings) -> Transport {
    Transport { tls: Some(tls), ..Transport::tcp(address) }
}

type Served<'a> = rustls::Stream<'a, ServerConnection, TcpStream>;

/// A TLS server that handles each connection with `serve`.
fn tls_server(
    config: ServerConfig,
    serve: impl Fn(&mut Served<'_>) -> io::Result<()> + Send + Sync + 'static,
) -> Server {
    let config = Arc::new(config);
    Server::start(move |socket, _| {
        let mut session = ServerConnection::new(Arc::clone(&config)).expect("a session");
        serve(&mut Served::new(&mut session, socket))
    })
}

/// The outcome of one request to a TLS server that answers.
fn outcome(config: ServerConfig, tls: TlsSettings) -> Outcome {
    let server = tls_server(config, |stream| always(stream, ANSWER));
    let done = driven(&load(encrypted(server.address, tls), 1));
    server.stop();
    kinds(&done)[0]
}

/// Waits for the next events of a wire. A wait may bring none, but a minute without any is a hang.
fn news(wire: &mut impl ConnectionDriver, events: &mut Vec<ConnectionEvent>) {
    for _ in 0..600 {
        wire.wait(Nanos::from_millis(100), events);
        if !events.is_empty() {
            return;
        }
    }
    panic!("no news for a minute: the wire hangs");
}

/// The wire of one lane with all connections.
fn sockets(transport: &Transport, slots: usize) -> SocketDriver {
    SocketDriver::new(transport, 0, slots, Timestamps::User).expect("an epoll instance")
}

fn tls_wire(transport: &Transport, tls: TlsSettings) -> TlsDriver {
    TlsDriver::new(sockets(transport, 1), tls)
}

/// A folder of the test's own.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir()
            .join(format!("longtail-transports-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).expect("a new folder");
        Scratch(path)
    }

    fn file(&self, name: &str, contents: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, contents).expect("written");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A certificate and its key.
struct Pair {
    cert: rcgen::Certificate,
    key: KeyPair,
}

impl Pair {
    fn self_signed(change: impl FnOnce(&mut CertificateParams)) -> Pair {
        let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        Pair { cert: params.self_signed(&key).expect("signed"), key }
    }

    fn signed_by(issuer: &Issuer<'_, KeyPair>, name: &str) -> Pair {
        let params = CertificateParams::new([name.to_owned()]).expect("a name");
        let key = KeyPair::generate().expect("a key");
        Pair { cert: params.signed_by(&key, issuer).expect("signed"), key }
    }
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, "an authority");
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("signed")
}

const BOTH: &[&SupportedProtocolVersion] = rustls::ALL_VERSIONS;

/// The server's side, with `clients` as the authority for client certificates.
fn server_config(
    pair: &Pair,
    versions: &[&'static SupportedProtocolVersion],
    clients: Option<&rcgen::Certificate>,
) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .expect("versions of ring");
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.der().clone()).expect("a certificate");
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().expect("a root"))
        }
    };
    let key = PrivatePkcs8KeyDer::from(pair.key.serialize_der());
    builder.with_single_cert(vec![pair.cert.der().clone()], key.into()).expect("a pair")
}

/// The configuration of a server with a self-signed certificate.
fn own_config() -> ServerConfig {
    server_config(&Pair::self_signed(|_| {}), BOTH, None)
}

fn insecure() -> TlsSettings {
    TlsSettings::new(&TlsOptions {
        insecure: true,
        server_name: "localhost",
        ..TlsOptions::default()
    })
    .expect("nothing to read")
}

fn trusting(scratch: &Scratch, cert_pem: &str, server_name: &str) -> TlsSettings {
    let ca_file = scratch.file("ca.pem", cert_pem);
    TlsSettings::new(&TlsOptions { ca_file: Some(&ca_file), server_name, ..TlsOptions::default() })
        .expect("a certificate")
}
