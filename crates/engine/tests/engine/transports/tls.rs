//! TLS: what a server may do.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use engine::{ConnectionDriver, Endpoint, TlsDriver, TlsSettings, Transport};
use rustix::io::Errno;
use rustls::{HandshakeKind, ServerConfig, ServerConnection, StreamOwned};

use super::{
    ANSWER, BOTH, BUFFER, End, Pair, REQUEST, Scratch, answer_one, answered, authority, encrypted, exchange,
    exchange_watched, insecure, news, own_config, read_head, serve_tcp, serve_tls, server_config, sockets,
    tcp_listener, trusting,
};

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
fn a_server_is_told_its_name_and_http_1_1_and_later_connections_resume_the_session_of_the_first() {
    let mut config = own_config();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let (server, address) = serve_tls(config, 3, |mut stream| {
        answer_one(&mut stream).expect("answered");
        assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
        assert_eq!(stream.conn.server_name(), Some("localhost"));
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
