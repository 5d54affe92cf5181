//! Servers that respond, or do a TLS handshake, as a row of a table says.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair,
    date_time_ymd,
};
use rustix::net::sockopt::set_socket_linger;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use testkit::http::KeptRequest;

use super::unescaped;
use crate::lab::Lab;

const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const NO_TLS: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";

/// Starts a thread for each connection. The threads end with the test's process.
fn listen(serve: impl Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            thread::spawn(move || serve(stream));
        }
    });
    address
}

/// The bytes of a step, one for each character.
fn bytes(step: &str) -> Vec<u8> {
    unescaped(step).chars().map(|char| u8::try_from(u32::from(char)).unwrap()).collect()
}

/// Ends a connection as the last step says.
fn finish(mut stream: TcpStream, how: &str) -> io::Result<()> {
    match how {
        // Closing with a linger time of 0 sends a reset.
        "reset" => set_socket_linger(&stream, Some(std::time::Duration::ZERO))?,
        "close" => {
            stream.shutdown(Shutdown::Write)?;
            io::copy(&mut stream, &mut io::sink())?;
        }
        "wait" => _ = io::copy(&mut stream, &mut io::sink())?,
        other => panic!("a connection can't end with '{other}'"),
    }
    Ok(())
}

/// A plain HTTP server that sends the same bytes for each request.
pub(super) struct CannedServer {
    pub(super) address: SocketAddr,
}

impl CannedServer {
    /// Starts a server with these steps; the last one says how the connection ends.
    pub(super) fn start(steps: &str) -> CannedServer {
        let mut steps: Vec<&str> = steps.split("; ").collect();
        let how = steps.pop().unwrap().to_owned();
        let steps: Vec<Vec<u8>> = steps.into_iter().map(bytes).collect();
        let address = listen(move |mut stream| {
            let mut answers = 0;
            loop {
                KeptRequest::read(&mut stream)?;
                answers += 1;
                for step in &steps {
                    stream.write_all(step)?;
                }
                match how.as_str() {
                    "again" => {}
                    "tenth" if answers < 10 => {}
                    "tenth" => return finish(stream, "close"),
                    "forever" => loop {
                        stream.write_all(steps.last().unwrap())?;
                    },
                    how => return finish(stream, how),
                }
            }
        });
        CannedServer { address }
    }
}

/// A server for trying a handshake.
pub(super) struct HandshakeServer {
    pub(super) address: SocketAddr,
}

impl HandshakeServer {
    /// Starts the server that a row describes, and writes its certificates into the lab.
    pub(super) fn start(words: &str, lab: &Lab) -> HandshakeServer {
        let (kind, rest) = words.split_once(' ').unwrap_or((words, ""));
        let address = match kind {
            "plain" => listen(|mut stream| answer_all(&mut stream)),
            "raw" => {
                let (first, how) = rest.rsplit_once("; ").unwrap();
                let first = bytes(first);
                let how = how.to_owned();
                listen(move |mut stream| {
                    _ = stream.read(&mut [0; 4096])?;
                    stream.write_all(&first)?;
                    finish(stream, &how)
                })
            }
            "tls" => tls(rest, lab),
            other => panic!("there is no server called '{other}'"),
        };
        HandshakeServer { address }
    }
}

fn answer_all(stream: &mut (impl Read + Write)) -> io::Result<()> {
    loop {
        KeptRequest::read(stream)?;
        stream.write_all(GOOD)?;
    }
}

fn tls(words: &str, lab: &Lab) -> SocketAddr {
    let has = |word: &str| words.split(' ').any(|one| one == word);
    let authority = authority(lab);
    let (certificate, key) = certificate(words, &authority);
    lab.write("own.pem", &certificate.pem());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions: &[_] = match (has("1.2"), has("1.3")) {
        (true, _) => &[&rustls::version::TLS12],
        (_, true) => &[&rustls::version::TLS13],
        _ => rustls::ALL_VERSIONS,
    };
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .unwrap();
    let builder = if has("client") {
        let mut roots = RootCertStore::empty();
        roots.add(authority.der().clone()).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        builder.with_client_cert_verifier(verifier.build().unwrap())
    } else {
        builder.with_no_client_auth()
    };
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    let mut config = builder.with_single_cert(vec![certificate.der().clone()], key.into()).unwrap();
    if has("h2") {
        config.alpn_protocols = vec![b"h2".to_vec()];
    }
    let config = Arc::new(config);
    let is_quiet = has("quiet");
    let says_400 = has("says400");
    listen(move |mut stream| {
        let mut first = [0];
        stream.peek(&mut first)?;
        // A handshake begins with this byte (RFC 8446, section 5.1).
        if first != [0x16] && is_quiet {
            return finish(stream, "wait");
        }
        if first != [0x16] && says_400 {
            KeptRequest::read(&mut stream)?;
            stream.write_all(NO_TLS)?;
            return finish(stream, "close");
        }
        let session = ServerConnection::new(Arc::clone(&config)).map_err(io::Error::other)?;
        answer_all(&mut StreamOwned::new(session, stream))
    })
}

/// A certificate authority with its certificate in ca.pem, and client certificates from it and from
/// another authority.
fn authority(lab: &Lab) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "an authority");
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    lab.write("ca.pem", &authority.pem());
    let client = CertificateParams::new(["client".to_owned()]).unwrap();
    let key = KeyPair::generate().unwrap();
    lab.write("client.pem", &client.signed_by(&key, &authority).unwrap().pem());
    lab.write("client.key", &key.serialize_pem());
    let key = KeyPair::generate().unwrap();
    lab.write("stranger.pem", &client.self_signed(&key).unwrap().pem());
    lab.write("stranger.key", &key.serialize_pem());
    authority
}

/// The server's own certificate and key.
fn certificate(words: &str, authority: &CertifiedIssuer<'_, KeyPair>) -> (Certificate, KeyPair) {
    let name = words.strip_prefix("named ").unwrap_or("127.0.0.1").to_owned();
    let mut params = CertificateParams::new([name]).unwrap();
    let key = KeyPair::generate().unwrap();
    match words.split(' ').next().unwrap_or_default() {
        "signed" => {
            params.distinguished_name = rcgen::DistinguishedName::new();
            params.distinguished_name.push(DnType::CommonName, "a server");
            return (params.signed_by(&key, authority).unwrap(), key);
        }
        "authority" => params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained),
        "expired" => params.not_after = date_time_ymd(2001, 1, 1),
        "early" => params.not_before = date_time_ymd(2099, 1, 1),
        "self" | "named" => {}
        other => panic!("there is no certificate called '{other}'"),
    }
    (params.self_signed(&key).unwrap(), key)
}
