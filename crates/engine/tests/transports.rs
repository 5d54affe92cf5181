//! Every wire against real listeners: each kind of address, and TLS with all that can go wrong with it.
//!
//! The driver here does what a lane does and no more: it acts on events only, sends on a writable one, receives on a
//! readable one until less than a bufferful comes. What a wire forgets to announce is a hang here as it would be there.
//! Nothing measures time; a wire that says nothing for a minute is taken to have hung.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use engine::{
    ConnectionDriver, ConnectionEvent, Endpoint, SocketDriver, TlsDriver, TlsOptions, TlsSettings, Transport,
    TransportError,
};
use model::{Nanos, Timestamps};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, Issuer, KeyPair, date_time_ymd};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{HandshakeKind, RootCertStore, ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion};

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

// ---- the servers ------------------------------------------------------------------------------------------------------

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

// ---- plain sockets ----------------------------------------------------------------------------------------------------

fn sockets(transport: &Transport, first_connection: u32, slots: usize) -> SocketDriver {
    transport.check().expect("can be used here");
    SocketDriver::new(transport, first_connection, slots, Timestamps::User).expect("an epoll instance")
}

trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

/// One exchange with a server at `endpoint`, whose connections `accept` gives.
fn exchanges_over(endpoint: Endpoint, accept: impl FnOnce() -> Box<dyn Stream> + Send + 'static) {
    let server = thread::spawn(move || answer_one(&mut accept()).is_ok());
    let mut wire = sockets(&Transport::plain(vec![endpoint]), 0, 1);
    answered(&mut wire, 0);
    wire.close(0);
    assert!(server.join().expect("no panic"));
}

fn exchanges_over_tcp(listener: TcpListener) {
    let address = listener.local_addr().expect("bound");
    exchanges_over(Endpoint::Tcp(address), move || Box::new(listener.accept().expect("a connection").0));
}

#[test]
#[expect(clippy::print_stderr, reason = "a skip says why")]
fn an_exchange_over_each_kind_of_address() {
    exchanges_over_tcp(tcp_listener().0);
    match TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) {
        Ok(listener) => exchanges_over_tcp(listener),
        Err(_) => eprintln!("IPv6 is skipped: this machine has no ::1"),
    }
    let scratch = Scratch::new();
    let (path, name) = (scratch.0.join("app.sock"), format!("longtail-transports-{}", std::process::id()));
    let in_folder = UnixListener::bind(&path).expect("bound");
    let address = UnixAddr::from_abstract_name(&name).expect("a name");
    let abstract_one = UnixListener::bind_addr(&address).expect("bound");
    for (place, listener) in [(path.into_os_string(), in_folder), (format!("@{name}").into(), abstract_one)] {
        let endpoint = Endpoint::unix(&place).expect("short enough");
        exchanges_over(endpoint, move || Box::new(listener.accept().expect("a connection").0));
    }
}

/// Whom each of two or three servers saw, when nine or four connections of two lanes each made a request.
#[test]
fn connections_go_evenly_to_each_endpoint_and_from_each_source_whichever_lane_has_them() {
    let sources: [IpAddr; 2] = [[127, 0, 0, 2].into(), [127, 0, 0, 3].into()];
    let local: IpAddr = Ipv4Addr::LOCALHOST.into();
    for (endpoints, source_ips, lanes, seen) in [
        (3, vec![], [4, 5], vec![local; 3]),
        (1, sources.to_vec(), [4, 0], [sources, sources].concat()),
        (2, sources.to_vec(), [1, 3], sources.to_vec()),
    ] {
        let listeners: Vec<_> = (0..endpoints).map(|_| tcp_listener()).collect();
        let places = listeners.iter().map(|(_, address)| Endpoint::Tcp(*address)).collect();
        let transport = Transport { source_ips, ..Transport::plain(places) };
        let serve = |mut stream: TcpStream| {
            let peer = stream.peer_addr().expect("connected").ip();
            answer_one(&mut stream).expect("answered");
            peer
        };
        let servers = listeners.into_iter().map(|(listener, _)| serve_tcp(listener, seen.len(), serve));
        let servers: Vec<_> = servers.collect();
        let mut first = 0;
        for slots in lanes {
            let mut wire = sockets(&transport, first, slots);
            for slot in 0..slots {
                answered(&mut wire, slot);
                wire.close(slot);
            }
            first += slots as u32;
        }
        for server in servers {
            assert_eq!(server.join().expect("no panic"), seen);
        }
    }
}

#[test]
fn a_source_that_cannot_be_used_is_told_before_the_start() {
    let source = |address: &str| vec![address.parse().expect("an address")];
    let tcp = Transport::tcp(([127, 0, 0, 1], 1).into());
    // 192.0.2.0/24 is nobody's (RFC 5737).
    let foreign = Transport { source_ips: source("192.0.2.1"), ..tcp.clone() };
    assert!(matches!(foreign.check(), Err(TransportError::Source { .. })), "{:?}", foreign.check());
    let local = Transport { source_ips: source("127.0.0.1"), ..tcp };
    assert!(local.check().is_ok());
    let six = Transport { endpoints: vec![Endpoint::Tcp("[::1]:1".parse().expect("an address"))], ..local.clone() };
    assert!(matches!(six.check(), Err(TransportError::NoSource { .. })));
    let unix = Transport { endpoints: vec![Endpoint::Unix("/run/x.sock".into())], ..local };
    assert!(matches!(unix.check(), Err(TransportError::NoSource { .. })));
}

#[test]
fn nobody_listening_is_refused() {
    let (listener, address) = tcp_listener();
    drop(listener);
    let scratch = Scratch::new();
    let (gone, never) = (scratch.0.join("gone.sock"), scratch.0.join("never.sock"));
    drop(UnixListener::bind(&gone).expect("bound"));
    for (endpoint, trouble) in [
        (Endpoint::Tcp(address), Errno::CONNREFUSED),
        (Endpoint::Unix(gone), Errno::CONNREFUSED),
        (Endpoint::Unix(never), Errno::NOENT),
    ] {
        let done = exchange(&mut sockets(&Transport::plain(vec![endpoint]), 0, 1), 0, false, REQUEST, 1);
        assert_eq!(done.end, End::NotSent(trouble));
    }
    let done = exchange(&mut encrypted(address, insecure(), 1), 0, false, REQUEST, 1);
    assert_eq!(done.end, End::NotSent(Errno::CONNREFUSED), "with TLS too");
}

#[test]
fn a_unix_socket_whose_accept_queue_is_full_refuses() {
    let scratch = Scratch::new();
    let path = scratch.0.join("full.sock");
    let listener = UnixListener::bind(&path).expect("bound");
    rustix::net::listen(&listener, 1).expect("a shorter queue");
    let mut wire = sockets(&Transport::plain(vec![Endpoint::Unix(path)]), 0, 8);
    let opened: Vec<_> = (0..8).map(|slot| wire.open(slot)).collect();
    // A queue of n holds n + 1 (net/unix/af_unix.c, unix_recvq_full).
    assert_eq!(opened[..2], [Ok(()), Ok(())]);
    assert_eq!(opened[2..], [Err(Errno::CONNREFUSED); 6]);
    // And takes the next as soon as there is room.
    let (accepted, _) = listener.accept().expect("one of them");
    assert_eq!(wire.open(2), Ok(()));
    drop(accepted);
}

#[test]
fn a_connection_is_connected_once_the_server_has_it() {
    let (listener, address) = tcp_listener();
    let mut wire = sockets(&Transport::tcp(address), 0, 1);
    assert!(!wire.is_connected(0), "not open");
    wire.open(0).expect("under way");
    let _accepted = listener.accept().expect("a connection");
    let mut events = Vec::new();
    news(&mut wire, &mut events);
    assert!(wire.is_connected(0));
    wire.close(0);
    assert!(!wire.is_connected(0));
}

#[test]
fn no_event_of_a_closed_connection_reaches_its_successor() {
    let (listener, address) = tcp_listener();
    let mut wire = sockets(&Transport::tcp(address), 0, 1);
    wire.open(0).expect("under way");
    let (mut first, _) = listener.accept().expect("a connection");
    first.write_all(b"news").expect("written");
    wire.close(0);
    wire.open(0).expect("under way");
    let _second = listener.accept().expect("a connection");
    let mut events = Vec::new();
    news(&mut wire, &mut events);
    assert_eq!(events, [ConnectionEvent { slot: 0, flags: EventFlags::OUT }]);
}

// ---- certificates -----------------------------------------------------------------------------------------------------

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

// ---- TLS: whom to trust -----------------------------------------------------------------------------------------------

#[test]
#[expect(clippy::print_stderr, reason = "a skip says why")]
fn without_insecure_a_certificate_nobody_vouches_for_fails() {
    let tls = match TlsSettings::new(&TlsOptions { server_name: "localhost", ..TlsOptions::default() }) {
        Err(TransportError::NoRoots) => return eprintln!("skipped: no certificate authority is installed here"),
        tls => tls.expect("the system's authorities"),
    };
    let config = own_config();
    assert_eq!(one_exchange(config, tls), (End::NotSent(Errno::PROTO), false));
}

#[test]
fn a_certificate_is_trusted_where_somebody_vouches_for_it_and_its_name_and_dates_fit() {
    let scratch = Scratch::new();
    let (ours, another) = (authority(), authority());
    let (vouched, foreign) = (Pair::signed_by(&ours, "localhost"), Pair::signed_by(&another, "localhost"));
    let own = Pair::self_signed(|_| {});
    // As `openssl req -x509` makes it.
    let is_ca = || IsCa::Ca(BasicConstraints::Unconstrained);
    let calls_itself_authority = Pair::self_signed(|params| params.is_ca = is_ca());
    let expired = |is_ca| {
        Pair::self_signed(|params| {
            params.is_ca = is_ca;
            params.not_after = date_time_ymd(2001, 1, 1);
        })
    };
    let (expired, expired_authority) = (expired(IsCa::NoCa), expired(is_ca()));
    let of_address = Pair::self_signed(|params| {
        params.subject_alt_names = vec![rcgen::SanType::IpAddress([127, 0, 0, 1].into())];
    });
    let elsewhere = Pair::self_signed(|params| {
        params.not_after = date_time_ymd(2001, 1, 1);
        params.subject_alt_names = vec![rcgen::SanType::DnsName("elsewhere.example".try_into().expect("a name"))];
    });
    let given = |pem: &str, name| trusting(&scratch, pem, name);
    for (what, pair, tls, is_trusted) in [
        ("its authority is given", &vouched, given(&ours.pem(), "localhost"), true),
        ("another authority is given", &foreign, given(&ours.pem(), "localhost"), false),
        ("self-signed, and given", &own, given(&own.cert_pem, "localhost"), true),
        ("given, of another name", &own, given(&own.cert_pem, "elsewhere.example"), false),
        ("an authority's own", &calls_itself_authority, given(&calls_itself_authority.cert_pem, "localhost"), true),
        ("the same, of another name", &calls_itself_authority, given(&calls_itself_authority.cert_pem, "x.y"), false),
        ("expired", &expired, given(&expired.cert_pem, "localhost"), false),
        ("an authority's, expired", &expired_authority, given(&expired_authority.cert_pem, "localhost"), false),
        ("an address's", &of_address, given(&of_address.cert_pem, "127.0.0.1"), true),
        ("another address's", &of_address, given(&of_address.cert_pem, "[::1]"), false),
        ("nobody vouches, and insecure", &own, insecure(), true),
        ("expired, of another name, and insecure", &elsewhere, insecure(), true),
    ] {
        let expected = if is_trusted { (End::Answered, true) } else { (End::NotSent(Errno::PROTO), false) };
        for version in BOTH {
            assert_eq!(one_exchange(server_config(pair, &[version], None), tls.clone()), expected, "{what}");
        }
    }
}

#[test]
fn a_server_that_asks_who_we_are_is_told_or_refuses_in_both_versions() {
    let scratch = Scratch::new();
    let (pair, issuer) = (Pair::self_signed(|_| {}), authority());
    let clients = Pair::new(issuer.as_ref(), issuer.key());
    let client = Pair::signed_by(&issuer, "client");
    let cert = scratch.file("cert.pem", &client.cert_pem);
    let key = scratch.file("key.pem", &client.key_pem);
    let both = scratch.file("both.pem", &format!("{}{}", client.cert_pem, client.key_pem));
    let options = TlsOptions { insecure: true, server_name: "localhost", ..TlsOptions::default() };
    for version in BOTH {
        for (cert_file, key_file) in [(&cert, Some(key.as_path())), (&both, None)] {
            let tls =
                TlsSettings::new(&TlsOptions { cert_file: Some(cert_file), key_file, ..options }).expect("a pair");
            assert_eq!(one_exchange(server_config(&pair, &[version], Some(&clients)), tls), (End::Answered, true));
        }
        let (end, served) = one_exchange(server_config(&pair, &[version], Some(&clients)), insecure());
        // TLS 1.3: our side of the handshake is over before the server has looked for the certificate, and the request is out.
        let (End::NotSent(errno) | End::Broke(errno)) = end else { panic!("{version:?}: {end:?}") };
        assert!(!served && matches!(errno, Errno::PROTO | Errno::CONNRESET), "{version:?}: {errno}");
    }
}

#[test]
fn files_and_names_that_are_of_no_use_are_refused_with_a_hint() {
    let scratch = Scratch::new();
    let error_of = |options: TlsOptions<'_>| TlsSettings::new(&options).expect_err("of no use").to_string();
    let options = TlsOptions { server_name: "localhost", insecure: true, ..TlsOptions::default() };
    let pair = Pair::self_signed(|_| {});
    let cert = scratch.file("cert.pem", &pair.cert_pem);
    let key = scratch.file("key.pem", &pair.key_pem);
    let other_key = scratch.file("other.pem", &Pair::self_signed(|_| {}).key_pem);
    let text = scratch.file("text.pem", "no certificate");
    let missing = Path::new("/nonexistent/ca.pem");
    let verified = TlsOptions { insecure: false, ..options };
    assert!(error_of(TlsOptions { ca_file: Some(missing), ..verified }).starts_with("cannot read /nonexistent/ca.pem"));
    assert!(error_of(TlsOptions { ca_file: Some(&text), ..verified }).contains("there is none in it"));
    assert!(error_of(TlsOptions { key_file: Some(&key), ..options }).contains("--cert"));
    assert!(error_of(TlsOptions { cert_file: Some(&cert), ..options }).contains("a private key"));
    let mismatch = TlsOptions { cert_file: Some(&cert), key_file: Some(&other_key), ..options };
    assert!(error_of(mismatch).contains("belong together"));
    assert!(error_of(TlsOptions { server_name: "a b", ..options }).contains("a b is neither"));
}

// ---- TLS: what a server may do ----------------------------------------------------------------------------------------

#[test]
fn a_connection_carries_one_exchange_after_the_other() {
    let (server, address) = serve_tls(own_config(), 1, |mut stream| {
        for _ in 0..100 {
            assert_eq!(read_head(&mut stream).expect("a request"), REQUEST);
            stream.write_all(ANSWER).expect("written");
        }
        // Nothing more comes, and the client says so: an end without that is an error here.
        stream.read(&mut [0]).expect("close_notify")
    });
    let mut wire = encrypted(address, insecure(), 1);
    for i in 0..100 {
        let done = exchange(&mut wire, 0, i > 0, REQUEST, ANSWER.len());
        assert_eq!((done.end, done.received), (End::Answered, ANSWER.to_vec()), "exchange {i}");
    }
    wire.close(0);
    assert_eq!(server.join().expect("no panic"), [0]);
}

#[test]
fn http_1_1_is_what_we_ask_for_and_the_name_is_told() {
    let mut config = own_config();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let (server, address) = serve_tls(config, 1, |mut stream| {
        answer_one(&mut stream).expect("answered");
        (stream.conn.alpn_protocol().map(<[u8]>::to_vec), stream.conn.server_name().map(str::to_owned))
    });
    let mut wire = encrypted(address, insecure(), 1);
    answered(&mut wire, 0);
    wire.close(0);
    assert_eq!(server.join().expect("no panic"), [(Some(b"http/1.1".to_vec()), Some("localhost".to_owned()))]);
}

#[test]
fn later_connections_resume_the_session_of_the_first() {
    let (server, address) = serve_tls(own_config(), 3, |mut stream| {
        answer_one(&mut stream).expect("answered");
        stream.conn.handshake_kind()
    });
    let mut wire = encrypted(address, insecure(), 3);
    for slot in 0..3 {
        answered(&mut wire, slot);
        wire.close(slot);
    }
    let kinds = server.join().expect("no panic");
    assert_ne!(kinds[0], Some(HandshakeKind::Resumed));
    assert_eq!(kinds[1..], [Some(HandshakeKind::Resumed); 2]);
}

fn read_hello(stream: &mut TcpStream) {
    let mut record = [0; 5];
    stream.read_exact(&mut record).expect("a record's head");
    let length = usize::from(u16::from_be_bytes([record[3], record[4]]));
    stream.read_exact(&mut vec![0; length]).expect("a client hello");
}

#[test]
fn a_handshake_that_does_not_come_about_has_failed_or_was_reset() {
    /// The end, with what the client still sends read: a close with something unread would be a reset.
    fn end(stream: &mut TcpStream) {
        stream.shutdown(Shutdown::Write).expect("shut");
        let _ = io::copy(stream, &mut io::sink());
    }
    fn hello_then_end(stream: &mut TcpStream) {
        read_hello(stream);
        end(stream);
    }
    type Serve = fn(&mut TcpStream);
    let servers: [(&str, Serve, Errno); 5] = [
        ("closes at once", end, Errno::PROTO),
        ("closes after the client hello", hello_then_end, Errno::PROTO),
        (
            "closes in the middle of its own first message",
            |stream| {
                read_hello(stream);
                stream.write_all(&[22, 3, 3, 0, 100, 2, 0, 0, 96, 3, 3]).expect("written");
                end(stream);
            },
            Errno::PROTO,
        ),
        (
            "speaks plaintext",
            |stream| {
                read_hello(stream);
                stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").expect("written");
                end(stream);
            },
            Errno::PROTO,
        ),
        // What is not read when a socket is closed makes a reset of it.
        ("resets", |stream| stream.read_exact(&mut [0; 5]).expect("a record's head"), Errno::CONNRESET),
    ];
    for (what, serve, expected) in servers {
        let (listener, address) = tcp_listener();
        let server = serve_tcp(listener, 1, move |mut stream| serve(&mut stream));
        let mut wire = encrypted(address, insecure(), 1);
        let done = exchange(&mut wire, 0, false, REQUEST, 1);
        assert_eq!(done.end, End::NotSent(expected), "{what}");
        wire.close(0);
        server.join().expect("no panic");
    }
}

#[test]
fn a_person_is_told_why_a_handshake_fails_and_what_to_do() {
    let diagnosis = |config: Option<ServerConfig>, tls: &TlsSettings| {
        let (listener, address) = tcp_listener();
        let server = serve_tcp(listener, 1, move |mut stream| {
            if let Some(config) = &config {
                let mut session = ServerConnection::new(Arc::new(config.clone())).expect("a session");
                let _ = session.complete_io(&mut stream);
            } else {
                let _ = stream.read(&mut [0; 1024]).expect("a client hello");
                stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("written");
            }
        });
        let failure = tls.failure(&Endpoint::Tcp(address), Duration::from_secs(60));
        server.join().expect("no panic");
        failure.map(|error| error.to_string())
    };
    let scratch = Scratch::new();
    let (pair, issuer) = (Pair::self_signed(|_| {}), authority());
    let config = || Some(server_config(&pair, BOTH, None));
    let untrusted = diagnosis(config(), &trusting(&scratch, &issuer.as_ref().pem(), "localhost")).expect("a failure");
    assert!(untrusted.contains("UnknownIssuer") && untrusted.contains("--cacert"), "{untrusted}");
    assert_eq!(diagnosis(config(), &trusting(&scratch, &pair.cert_pem, "localhost")), None);
    assert!(diagnosis(None, &insecure()).expect("a failure").contains("does not speak TLS"));
    let clients = Pair::new(issuer.as_ref(), issuer.key());
    let asks_who = server_config(&pair, &[&rustls::version::TLS12], Some(&clients));
    assert!(diagnosis(Some(asks_who), &insecure()).expect("a failure").contains("--cert"));
}

/// What the session has encrypted.
fn flight(session: &mut ServerConnection) -> Vec<u8> {
    let mut flight = Vec::new();
    while session.wants_write() {
        session.write_tls(&mut flight).expect("into memory");
    }
    flight
}

#[test]
fn an_answer_ends_as_the_server_says_and_what_is_cut_or_garbled_is_an_error() {
    const UNTIL_CLOSE: &[u8] = b"HTTP/1.0 200 OK\r\n\r\nuntil the end";
    let reset = || End::Broke(Errno::CONNRESET);
    for (content, is_announced, then, closes, expected) in [
        (UNTIL_CLOSE, true, &[][..], true, End::Closed),
        // The socket stays open: nothing but what came with the answer tells the end.
        (UNTIL_CLOSE, true, &[], false, End::Closed),
        (UNTIL_CLOSE, false, &[], true, reset()),
        // The head of a record of 64 bytes, and no more.
        (&ANSWER[..20], false, &[23, 3, 3, 0, 64, 1, 2, 3], true, reset()),
        // A record of a kind that does not exist.
        (&ANSWER[..20], false, &[99; 16], false, End::Broke(Errno::PROTO)),
    ] {
        let (server, address) = serve_tls(own_config(), 1, move |mut stream| {
            read_head(&mut stream).expect("a request");
            stream.conn.writer().write_all(content).expect("buffered");
            if is_announced {
                stream.conn.send_close_notify();
            }
            let in_one_piece = [&flight(&mut stream.conn), then].concat();
            stream.sock.write_all(&in_one_piece).expect("written");
            if closes {
                stream.sock.shutdown(Shutdown::Write).expect("shut");
            }
            let _ = io::copy(&mut stream.sock, &mut io::sink());
        });
        let mut wire = encrypted(address, insecure(), 1);
        let done = exchange(&mut wire, 0, false, REQUEST, usize::MAX);
        assert_eq!((done.end, &done.received[..]), (expected, content));
        wire.close(0);
        server.join().expect("no panic");
    }
}

#[test]
fn news_read_with_the_handshake_is_announced() {
    // The server speaks first, in one flight with its part of the handshake, and says nothing else.
    let mut config = server_config(&Pair::self_signed(|_| {}), &[&rustls::version::TLS13], None);
    config.send_half_rtt_data = true;
    config.send_tls13_tickets = 0;
    let (listener, address) = tcp_listener();
    let config = Arc::new(config);
    let server = serve_tcp(listener, 1, move |mut stream| {
        let mut session = ServerConnection::new(Arc::clone(&config)).expect("a session");
        while !session.wants_write() {
            session.read_tls(&mut stream).expect("a client hello");
            session.process_new_packets().expect("a client hello");
        }
        session.writer().write_all(ANSWER).expect("buffered");
        stream.write_all(&flight(&mut session)).expect("written");
        let _ = io::copy(&mut stream, &mut io::sink());
    });
    let mut wire = encrypted(address, insecure(), 1);
    wire.open(0).expect("under way");
    let mut events = Vec::new();
    while wire.send(0, REQUEST) != Ok(REQUEST.len()) {
        news(&mut wire, &mut events);
    }
    // Whatever the event of before said is forgotten: the answer has to be announced (again).
    let mut readable = false;
    while !readable {
        news(&mut wire, &mut events);
        readable = events.iter().any(|event| event.is_readable());
    }
    let mut buffer = vec![0; BUFFER];
    assert_eq!(wire.receive(0, &mut buffer), Ok(ANSWER.len()));
    assert_eq!(&buffer[..ANSWER.len()], ANSWER);
    assert_eq!(wire.receive(0, &mut buffer), Err(Errno::AGAIN));
    wire.close(0);
    server.join().expect("no panic");
}

#[test]
fn bytes_that_dribble_in_make_the_same_answer() {
    let config = Arc::new(own_config());
    let (listener, address) = tcp_listener();
    let server = serve_tcp(listener, 1, move |mut stream| {
        stream.set_nodelay(true).expect("TCP");
        let mut session = ServerConnection::new(Arc::clone(&config)).expect("a session");
        let mut request = Vec::new();
        loop {
            for byte in flight(&mut session) {
                stream.write_all(&[byte]).expect("written");
            }
            if request.ends_with(b"\r\n\r\n") {
                request.clear();
                session.writer().write_all(ANSWER).expect("buffered");
                continue;
            }
            match session.read_tls(&mut stream) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            session.process_new_packets().expect("TLS");
            let _ = session.reader().read_to_end(&mut request);
        }
    });
    let mut wire = encrypted(address, insecure(), 1);
    for i in 0..3 {
        let done = exchange(&mut wire, 0, i > 0, REQUEST, ANSWER.len());
        assert_eq!((done.end, done.received), (End::Answered, ANSWER.to_vec()));
    }
    wire.close(0);
    server.join().expect("no panic");
}

/// Bytes of which no two stretches are alike.
fn body(length: usize) -> Vec<u8> {
    (0_u64..).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).take(length).collect()
}

#[test]
fn a_megabyte_of_answer_arrives_whole() {
    for version in BOTH {
        let (server, address) =
            serve_tls(server_config(&Pair::self_signed(|_| {}), &[version], None), 1, |mut stream| {
                read_head(&mut stream).expect("a request");
                stream.write_all(&body(1 << 20)).expect("written");
                stream.read(&mut [0]).expect("close_notify")
            });
        let mut wire = encrypted(address, insecure(), 1);
        let done = exchange(&mut wire, 0, false, REQUEST, 1 << 20);
        assert_eq!(done.end, End::Answered);
        assert!(done.received == body(1 << 20), "{} bytes, not the same", done.received.len());
        wire.close(0);
        assert_eq!(server.join().expect("no panic"), [0]);
    }
}

/// A request of `length` bytes to a server that does not read before the client has had to wait.
fn slow_reader<S>(mut stream: S, config: Arc<ServerConfig>, may_read: &mpsc::Receiver<()>, length: usize)
where
    S: Read + Write,
{
    let session = ServerConnection::new(config).expect("a session");
    let mut stream = StreamOwned::new(session, &mut stream);
    stream.conn.complete_io(&mut stream.sock).expect("a handshake");
    may_read.recv().expect("the client waits");
    let mut received = vec![0; length];
    stream.read_exact(&mut received).expect("all of it");
    assert!(received == body(length), "not what was sent");
    stream.write_all(ANSWER).expect("written");
    assert_eq!(stream.read(&mut [0]).expect("close_notify"), 0);
}

fn send_to_slow_reader(wire: &mut impl ConnectionDriver, length: usize, reads: &mpsc::Sender<()>) {
    let mut first = true;
    let mut on_blocked = || {
        if std::mem::take(&mut first) {
            reads.send(()).expect("the server waits for it");
        }
    };
    let done = exchange_watched(wire, 0, false, &body(length), ANSWER.len(), &mut on_blocked);
    assert_eq!((done.end, done.received), (End::Answered, ANSWER.to_vec()));
    assert!(done.blocked > 0, "the server did not read, and yet all went");
    wire.close(0);
}

#[test]
fn what_is_called_sent_is_not_in_a_buffer_of_ours() {
    let config = Arc::new(own_config());
    let scratch = Scratch::new();
    let path = scratch.0.join("slow.sock");
    let listener = UnixListener::bind(&path).expect("bound");
    let (reads, may_read) = mpsc::channel();
    let (lengths, length) = mpsc::channel();
    let server = thread::spawn(move || {
        // Shakes hands with the first, and no more. (The client leaves with our tickets unread, which is a reset.)
        let (mut first, _) = listener.accept().expect("a connection");
        let _ = ServerConnection::new(Arc::clone(&config)).expect("a session").complete_io(&mut first);
        let length = length.recv().expect("the client knows by now");
        drop(first);
        let (stream, _) = listener.accept().expect("a connection");
        slow_reader(stream, config, &may_read, length);
    });
    let transport = Transport::plain(vec![Endpoint::Unix(path)]);
    let mut wire = TlsDriver::new(sockets(&transport, 0, 1), insecure());
    // How much does the kernel hold?
    let everything = body(1 << 20);
    wire.open(0).expect("connected");
    let (mut sent, mut events) = (0, Vec::new());
    while sent == 0 {
        sent = wire.send(0, &everything).unwrap_or(0);
        if sent == 0 {
            news(&mut wire, &mut events);
        }
    }
    wire.close(0);
    // One byte of a record that the kernel does not have in full is held back.
    assert_eq!((sent + 1) % (16 * 1024), 0);
    lengths.send(sent + 1).expect("the server waits for it");
    // A request that ends with that record: it is not all sent before the server reads.
    send_to_slow_reader(&mut wire, sent + 1, &reads);
    server.join().expect("no panic");
}

#[test]
fn more_than_tcp_buffers_gets_through_to_a_slow_reader() {
    // The kernel holds up to 4 MiB for the sender (tcp_wmem) and 6 MiB for the receiver (tcp_rmem).
    const LENGTH: usize = 32 << 20;
    let config = Arc::new(own_config());
    let (listener, address) = tcp_listener();
    let (reads, may_read) = mpsc::channel();
    let server = serve_tcp(listener, 1, move |stream| slow_reader(stream, Arc::clone(&config), &may_read, LENGTH));
    send_to_slow_reader(&mut encrypted(address, insecure(), 1), LENGTH, &reads);
    server.join().expect("no panic");
}

#[test]
fn a_server_that_leaves_in_the_middle_of_the_request_breaks_the_connection() {
    const LENGTH: usize = 32 << 20;
    let (server, address) = serve_tls(own_config(), 1, |mut stream| {
        stream.read_exact(&mut [0]).expect("the first byte");
    });
    let done = exchange(&mut encrypted(address, insecure(), 1), 0, false, &body(LENGTH), usize::MAX);
    assert_eq!(done.end, End::Broke(Errno::CONNRESET));
    server.join().expect("no panic");
}
