//! TLS: what a server may do.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use engine::{ConnectionDriver, Endpoint, LoadSpec, TlsSettings, Transport};
use model::{Outcome, Request, RequestMix};
use rustix::io::Errno;
use rustls::{HandshakeKind, ServerConfig, ServerConnection};

use super::{
    BOTH, Pair, Scratch, Served, authority, encrypted, insecure, load, news, own_config,
    server_config, tls_server, tls_wire, trusting,
};
use crate::kit::{
    ANSWER, GOOD, Server, driven, kinds, once, once_and_wait, pause, read_request, until_closed,
};

#[test]
fn a_connection_carries_one_exchange_after_the_other() {
    let server = tls_server(own_config(), |stream| {
        for _ in 0..100 {
            once(stream, ANSWER)?;
        }
        // The client ends with close_notify; without it, this read is an error.
        assert_eq!(stream.read(&mut [0]).expect("close_notify"), 0);
        Ok(())
    });
    let done = driven(&load(encrypted(server.address, insecure()), 100));
    assert_eq!((kinds(&done), server.stop()), (vec![GOOD], 1));
}

#[test]
fn a_server_is_told_its_name_and_http_1_1_and_later_connections_resume_the_session_of_the_first() {
    let mut config = own_config();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let (sender, seen) = mpsc::channel();
    let server = tls_server(config, move |stream| {
        read_request(stream)?;
        assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
        assert_eq!(stream.conn.server_name(), Some("localhost"));
        sender.send(stream.conn.handshake_kind()).expect("somebody counts");
        stream.write_all(ANSWER)?;
        until_closed(stream)
    });
    driven(
        &load(encrypted(server.address, insecure()), 3).with(|load| load.reconnect_after = Some(1)),
    );
    server.stop();
    let kinds: Vec<_> = seen.iter().collect();
    assert_ne!(kinds[0], Some(HandshakeKind::Resumed));
    assert_eq!(kinds[1..], [Some(HandshakeKind::Resumed); 2]);
}

fn read_hello(stream: &mut TcpStream) -> io::Result<()> {
    let mut record = [0; 5];
    stream.read_exact(&mut record)?;
    let length = usize::from(u16::from_be_bytes([record[3], record[4]]));
    stream.read_exact(&mut vec![0; length])
}

#[test]
fn a_handshake_that_does_not_complete_is_a_failed_connect_or_a_reset() {
    /// Sends `last` and ends, then reads what the client still sends: a close with unread bytes
    /// would be a reset.
    fn end(stream: &mut TcpStream, last: &[u8]) -> io::Result<()> {
        stream.write_all(last)?;
        stream.shutdown(Shutdown::Write)?;
        until_closed(stream)
    }
    let ending = |serve: fn(&mut TcpStream, &[u8]) -> io::Result<()>, last: &'static [u8]| {
        let server = Server::start(move |stream, _| serve(stream, last));
        let done = driven(&load(encrypted(server.address, insecure()), 1));
        server.stop();
        kinds(&done)
    };
    assert_eq!(ending(end, b""), [Outcome::ConnectFailed], "closes at once");
    for (what, last) in [
        ("closes after the client hello", &[][..]),
        ("closes in the middle of its own first message", &[22, 3, 3, 0, 100, 2, 0, 0, 96, 3, 3]),
        ("speaks plaintext", b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"),
    ] {
        let after_hello = |stream: &mut TcpStream, last: &[u8]| {
            read_hello(stream).and_then(|()| end(stream, last))
        };
        assert_eq!(ending(after_hello, last), [Outcome::ConnectFailed], "{what}");
    }
    // Closing a socket with unread bytes resets the connection.
    assert_eq!(ending(|stream, _| stream.read_exact(&mut [0; 5]), b""), [Outcome::Reset], "resets");
}

#[test]
fn a_person_is_told_why_a_handshake_fails_and_what_to_do() {
    let diagnosis = |config: Option<ServerConfig>, tls: &TlsSettings| {
        let server = Server::start(move |stream, _| {
            if let Some(config) = &config {
                let mut session =
                    ServerConnection::new(Arc::new(config.clone())).expect("a session");
                return session.complete_io(stream).map(drop);
            }
            read_hello(stream)?;
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        });
        let failure =
            tls.shake_hands(&Endpoint::Tcp(server.address), Duration::from_secs(60)).failure;
        server.stop();
        failure
    };
    let scratch = Scratch::new();
    let pair = Pair::self_signed(|_| {});
    let issuer = authority();
    let config = || Some(server_config(&pair, BOTH, None));
    let untrusted = diagnosis(config(), &trusting(&scratch, &issuer.as_ref().pem(), "localhost"))
        .expect("a failure");
    assert!(untrusted.contains("is self-signed") && untrusted.contains("--cacert"), "{untrusted}");
    assert_eq!(diagnosis(config(), &trusting(&scratch, &pair.cert.pem(), "localhost")), None);
    assert!(
        diagnosis(None, &insecure()).expect("a failure").contains("speaks plain HTTP, not TLS")
    );
    let asks_who = server_config(&pair, &[&rustls::version::TLS12], Some(issuer.as_ref()));
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
fn a_response_ends_as_the_server_says_and_what_is_cut_or_garbled_is_an_error() {
    const UNTIL_CLOSE: &[u8] = b"HTTP/1.0 200 OK\r\n\r\nuntil the end";
    for (content, is_announced, then, closes, expected) in [
        (UNTIL_CLOSE, true, &[][..], true, GOOD),
        // The socket stays open: only the close_notify behind the response tells the end.
        (UNTIL_CLOSE, true, &[], false, GOOD),
        (UNTIL_CLOSE, false, &[], true, Outcome::Reset),
        // The head of a record of 64 bytes, and no more.
        (&ANSWER[..20], false, &[23, 3, 3, 0, 64, 1, 2, 3], true, Outcome::Reset),
        // A record of a kind that does not exist.
        (&ANSWER[..20], false, &[99; 16], false, Outcome::Reset),
    ] {
        let server = tls_server(own_config(), move |stream| {
            read_request(stream)?;
            stream.conn.writer().write_all(content)?;
            if is_announced {
                stream.conn.send_close_notify();
            }
            let in_one_piece = [&flight(stream.conn), then].concat();
            stream.sock.write_all(&in_one_piece)?;
            if closes {
                stream.sock.shutdown(Shutdown::Write)?;
            }
            until_closed(stream.sock)
        });
        let done = driven(&load(encrypted(server.address, insecure()), 1));
        assert_eq!(
            (kinds(&done), done.tally.received_bytes),
            (vec![expected], content.len() as u64)
        );
        server.stop();
    }
}

#[test]
fn a_response_read_with_the_handshake_is_announced() {
    // The server speaks first, in one flight with its part of the handshake, and says nothing else.
    let mut config = server_config(&Pair::self_signed(|_| {}), &[&rustls::version::TLS13], None);
    config.send_half_rtt_data = true;
    config.send_tls13_tickets = 0;
    let config = Arc::new(config);
    let server = Server::start(move |stream, _| {
        let mut session = ServerConnection::new(Arc::clone(&config)).expect("a session");
        while !session.wants_write() {
            session.read_tls(stream)?;
            session.process_new_packets().expect("a client hello");
        }
        session.writer().write_all(ANSWER)?;
        stream.write_all(&flight(&mut session))?;
        until_closed(stream)
    });
    let mut wire = tls_wire(&Transport::tcp(server.address), insecure());
    wire.open(0).expect("under way");
    let mut events = Vec::new();
    while wire.send(0, b"a request") != Ok(9) {
        news(&mut wire, &mut events);
    }
    // What earlier events said no longer counts: from here on the response must be announced, again
    // if it was before.
    let mut readable = false;
    while !readable {
        news(&mut wire, &mut events);
        readable = events.iter().any(|event| event.is_readable());
    }
    let mut buffer = [0; 1000];
    assert_eq!(wire.receive(0, &mut buffer), Ok(ANSWER.len()));
    assert_eq!(&buffer[..ANSWER.len()], ANSWER);
    assert_eq!(wire.receive(0, &mut buffer), Err(Errno::AGAIN));
    wire.close(0);
    server.stop();
}

#[test]
fn a_response_that_comes_byte_by_byte_is_the_same() {
    let config = Arc::new(own_config());
    let server = Server::start(move |stream, _| {
        stream.set_nodelay(true)?;
        let mut session = ServerConnection::new(Arc::clone(&config)).expect("a session");
        let mut request = Vec::new();
        loop {
            for byte in flight(&mut session) {
                stream.write_all(&[byte])?;
            }
            if request.ends_with(b"\r\n\r\n") {
                request.clear();
                session.writer().write_all(ANSWER)?;
                continue;
            }
            if session.read_tls(stream)? == 0 {
                return Ok(());
            }
            session.process_new_packets().expect("TLS");
            let _ = session.reader().read_to_end(&mut request);
        }
    });
    let done = driven(&load(encrypted(server.address, insecure()), 3));
    assert_eq!((kinds(&done), server.stop()), (vec![GOOD], 1));
}

#[test]
fn a_response_of_a_megabyte_arrives_whole() {
    // In chunks, so that each stretch of it has to be in its place.
    let chunk = format!("3e8\r\n{}\r\n", "x".repeat(1000));
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let answer = format!("{head}{}0\r\n\r\n", chunk.repeat(1000));
    for version in BOTH {
        let answer = answer.clone();
        let pair = Pair::self_signed(|_| {});
        let server = tls_server(server_config(&pair, &[version], None), move |stream| {
            once_and_wait(stream, answer.as_bytes())
        });
        let done = driven(&LoadSpec {
            body_bytes: Some(1_000_000),
            ..load(encrypted(server.address, insecure()), 1)
        });
        assert_eq!(kinds(&done), [GOOD]);
        server.stop();
    }
}

/// Bytes of which no two stretches are alike.
fn body(length: usize) -> Vec<u8> {
    (0_u64..).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).take(length).collect()
}

/// One request of so many bytes.
fn sending(transport: Transport, length: usize) -> LoadSpec {
    let request = Request::new(body(length), false);
    LoadSpec { requests: RequestMix::of_one(request).into(), ..load(transport, 1) }
}

/// Takes a request of `length` bytes, but not before the client has had to wait.
fn slow_reader(stream: &mut (impl Read + Write), length: usize) {
    pause(100);
    let mut received = vec![0; length];
    stream.read_exact(&mut received).expect("all of it");
    assert!(received == body(length), "not what was sent");
    stream.write_all(ANSWER).expect("written");
    assert_eq!(stream.read(&mut [0]).expect("close_notify"), 0);
}

#[test]
fn bytes_reported_as_sent_are_in_the_kernel() {
    let config = Arc::new(own_config());
    let scratch = Scratch::new();
    let path = scratch.0.join("slow.sock");
    let listener = UnixListener::bind(&path).expect("bound");
    let (lengths, length) = mpsc::channel();
    let server = thread::spawn(move || {
        let handshake = || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut session = ServerConnection::new(Arc::clone(&config)).expect("a session");
            let _ = session.complete_io(&mut stream);
            (session, stream)
        };
        // Shakes hands with the first, and no more. (The client leaves with our tickets unread,
        // which is a reset.)
        let first = handshake();
        let length = length.recv().expect("the client knows by now");
        drop(first);
        let (mut session, mut stream) = handshake();
        slow_reader(&mut rustls::Stream::new(&mut session, &mut stream), length);
    });
    let transport = Transport::plain(vec![Endpoint::Unix(path)]);
    let mut wire = tls_wire(&transport, insecure());
    // How much does the kernel hold?
    let everything = body(1 << 20);
    wire.open(0).expect("connected");
    let mut sent = 0;
    let mut events = Vec::new();
    while sent == 0 {
        sent = wire.send(0, &everything).unwrap_or(0);
        if sent == 0 {
            news(&mut wire, &mut events);
        }
    }
    wire.close(0);
    // Of a record that is not yet whole in the kernel, one byte is reported as not sent.
    assert_eq!((sent + 1) % (16 * 1024), 0);
    lengths.send(sent + 1).expect("the server waits for it");
    // A request that ends with that record: it is not all sent before the server reads.
    let done = driven(&sending(Transport { tls: Some(insecure()), ..transport }, sent + 1));
    assert_eq!(kinds(&done), [GOOD]);
    server.join().expect("no panic");
}

#[test]
fn more_than_tcp_buffers_gets_through_to_a_slow_reader_and_one_that_leaves_breaks_the_connection() {
    // The kernel holds up to 4 MiB for the sender (tcp_wmem) and 6 MiB for the receiver (tcp_rmem).
    const LENGTH: usize = 32 << 20;
    let takes_all = |stream: &mut Served<'_>| {
        stream.conn.complete_io(stream.sock)?;
        slow_reader(stream, LENGTH);
        Ok(())
    };
    let leaves = |stream: &mut Served<'_>| stream.read_exact(&mut [0]);
    for (server, outcome) in [
        (tls_server(own_config(), takes_all), GOOD),
        (tls_server(own_config(), leaves), Outcome::Reset),
    ] {
        assert_eq!(
            kinds(&driven(&sending(encrypted(server.address, insecure()), LENGTH))),
            [outcome]
        );
        server.stop();
    }
}
