//! Every wire against real listeners: each kind of address, and TLS with all that can go wrong with it.
//!
//! The driver here does what a lane does and no more: it acts on events only, sends on a writable one, receives on a
//! readable one until less than a bufferful comes. What a wire forgets to announce is a hang here as it would be there.
//! Nothing measures time; a wire that says nothing for a minute is taken to have hung.

mod plain;
mod tls;
mod trust;

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::thread::JoinHandle;

use engine::{ConnectionDriver, ConnectionEvent, SocketDriver, TlsDriver, TlsOptions, TlsSettings, Transport};
use model::{Nanos, Timestamps};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, Issuer, KeyPair};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
/// A lane's buffer.
const BUFFER: usize = 64 * 1024;

// ---- the driver -------------------------------------------------------------------------------------------------------

/// How an exchange ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// All of the answer came.
    Answered,
    /// The stream ended, cleanly.
    Closed,
    /// Opening, or sending the first byte of the request, failed.
    NotSent(Errno),
    /// Something failed afterwards.
    Broke(Errno),
}

#[derive(Debug)]
struct Exchange {
    end: End,
    received: Vec<u8>,
    /// How often the request had to wait for the socket after its first byte.
    blocked: usize,
}

/// What the next wait brings. Empty waits are allowed, a minute of them is a hang.
fn news(wire: &mut impl ConnectionDriver, events: &mut Vec<ConnectionEvent>) {
    for _ in 0..600 {
        wire.wait(Nanos::from_millis(100), events);
        if !events.is_empty() {
            return;
        }
    }
    panic!("no news for a minute: the wire hangs");
}

/// One request and what comes back, `length` bytes of it at the most, on a connection that may be open already.
fn exchange(wire: &mut impl ConnectionDriver, slot: usize, is_open: bool, request: &[u8], length: usize) -> Exchange {
    let mut blocked = || {};
    exchange_watched(wire, slot, is_open, request, length, &mut blocked)
}

fn exchange_watched(
    wire: &mut impl ConnectionDriver,
    slot: usize,
    is_open: bool,
    request: &[u8],
    length: usize,
    on_blocked: &mut dyn FnMut(),
) -> Exchange {
    let mut done = Exchange { end: End::Answered, received: Vec::new(), blocked: 0 };
    if !is_open && let Err(trouble) = wire.open(slot) {
        done.end = End::NotSent(trouble);
        return done;
    }
    let (mut sent, mut buffer, mut events) = (0, vec![0; BUFFER], Vec::new());
    let mut event = ConnectionEvent { slot: slot as u32, flags: EventFlags::OUT };
    loop {
        if sent == 0 || sent < request.len() && event.is_writable() {
            while sent < request.len() {
                match wire.send(slot, &request[sent..]) {
                    Ok(n) => {
                        assert!(n > 0 && sent + n <= request.len(), "{n} of {} bytes sent", request.len() - sent);
                        sent += n;
                    }
                    Err(Errno::AGAIN) => {
                        if sent > 0 {
                            done.blocked += 1;
                            on_blocked();
                        }
                        break;
                    }
                    Err(trouble) => {
                        done.end = if sent == 0 { End::NotSent(trouble) } else { End::Broke(trouble) };
                        return done;
                    }
                }
            }
        }
        if event.is_readable() && sent > 0 {
            loop {
                match wire.receive(slot, &mut buffer) {
                    Ok(0) => {
                        done.end = End::Closed;
                        return done;
                    }
                    Ok(n) => {
                        done.received.extend_from_slice(&buffer[..n]);
                        if done.received.len() >= length {
                            return done;
                        }
                        if n < BUFFER && !event.is_closing() {
                            break;
                        }
                    }
                    Err(Errno::AGAIN) => break,
                    Err(trouble) => {
                        done.end = End::Broke(trouble);
                        return done;
                    }
                }
            }
        }
        // Of other slots there is no news here: each test has one exchange under way at a time.
        news(wire, &mut events);
        event.flags = EventFlags::empty();
        for other in events.iter().filter(|other| other.slot == event.slot) {
            event.flags |= other.flags;
        }
    }
}

fn answered(wire: &mut impl ConnectionDriver, slot: usize) {
    let done = exchange(wire, slot, false, REQUEST, ANSWER.len());
    assert_eq!(done.end, End::Answered, "{done:?}");
    assert_eq!(done.received, ANSWER);
}

fn tcp_listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("bound");
    (listener, address)
}

/// Reads a request's head.
fn read_head(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(head)
}

/// Answers one request, and waits for the client to close.
fn answer_one(stream: &mut (impl Read + Write)) -> io::Result<()> {
    read_head(stream)?;
    stream.write_all(ANSWER)?;
    stream.flush()?;
    io::copy(stream, &mut io::sink()).map(drop)
}

/// A thread that takes `count` connections and serves each to its end; what it found, one after the other.
fn serve_tcp<T: Send + 'static>(
    listener: TcpListener,
    count: usize,
    mut serve: impl FnMut(TcpStream) -> T + Send + 'static,
) -> JoinHandle<Vec<T>> {
    thread::spawn(move || (0..count).map(|_| serve(listener.accept().expect("a connection").0)).collect())
}

/// A folder of the test's own.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("longtail-transports-{}-{number}", std::process::id()));
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

fn sockets(transport: &Transport, first_connection: u32, slots: usize) -> SocketDriver {
    transport.check().expect("can be used here");
    SocketDriver::new(transport, first_connection, slots, Timestamps::User).expect("an epoll instance")
}

/// A server's pair, as PEM and as rustls takes it.
struct Pair {
    cert_pem: String,
    key_pem: String,
    cert: rustls::pki_types::CertificateDer<'static>,
}

impl Pair {
    fn new(cert: &rcgen::Certificate, key: &KeyPair) -> Pair {
        Pair { cert_pem: cert.pem(), key_pem: key.serialize_pem(), cert: cert.der().clone() }
    }

    fn self_signed(change: impl FnOnce(&mut CertificateParams)) -> Pair {
        let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        Pair::new(&params.self_signed(&key).expect("signed"), &key)
    }

    fn signed_by(issuer: &Issuer<'_, KeyPair>, name: &str) -> Pair {
        let params = CertificateParams::new([name.to_owned()]).expect("a name");
        let key = KeyPair::generate().expect("a key");
        Pair::new(&params.signed_by(&key, issuer).expect("signed"), &key)
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        let pem = KeyPair::from_pem(&self.key_pem).expect("our own");
        PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pem.serialize_der()))
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
fn server_config(pair: &Pair, versions: &[&'static SupportedProtocolVersion], clients: Option<&Pair>) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .expect("versions of ring");
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.cert.clone()).expect("a certificate");
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().expect("a root"))
        }
    };
    builder.with_single_cert(vec![pair.cert.clone()], pair.key()).expect("a pair")
}

/// Of a server whom nobody vouches for.
fn own_config() -> ServerConfig {
    server_config(&Pair::self_signed(|_| {}), BOTH, None)
}

fn insecure() -> TlsSettings {
    TlsSettings::new(&TlsOptions { insecure: true, server_name: "localhost", ..TlsOptions::default() })
        .expect("nothing to read")
}

fn trusting(scratch: &Scratch, cert_pem: &str, server_name: &str) -> TlsSettings {
    let ca_file = scratch.file("ca.pem", cert_pem);
    TlsSettings::new(&TlsOptions { ca_file: Some(&ca_file), server_name, ..TlsOptions::default() })
        .expect("a certificate")
}

fn encrypted(address: SocketAddr, tls: TlsSettings, slots: usize) -> TlsDriver {
    TlsDriver::new(sockets(&Transport::tcp(address), 0, slots), tls)
}

type Served = StreamOwned<ServerConnection, TcpStream>;

/// A TLS server for `count` connections.
fn serve_tls<T: Send + 'static>(
    config: ServerConfig,
    count: usize,
    mut serve: impl FnMut(Served) -> T + Send + 'static,
) -> (JoinHandle<Vec<T>>, SocketAddr) {
    let (listener, address) = tcp_listener();
    let config = Arc::new(config);
    let server = serve_tcp(listener, count, move |stream| {
        let session = ServerConnection::new(Arc::clone(&config)).expect("a session");
        serve(StreamOwned::new(session, stream))
    });
    (server, address)
}

/// One exchange with a server that answers, if the handshake comes about; and whether the server's side went well.
fn one_exchange(config: ServerConfig, tls: TlsSettings) -> (End, bool) {
    let (server, address) = serve_tls(config, 1, |mut stream| answer_one(&mut stream).is_ok());
    let mut wire = encrypted(address, tls, 1);
    let done = exchange(&mut wire, 0, false, REQUEST, ANSWER.len());
    if done.end == End::Answered {
        assert_eq!(done.received, ANSWER);
    }
    wire.close(0);
    (done.end, server.join().expect("no panic")[0])
}
