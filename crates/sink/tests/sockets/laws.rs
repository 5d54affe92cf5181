//! What a client sees over real sockets: the counter, the faults, the queues, the listeners and the
//! loops. Counts, bytes and order are asserted, never a duration.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixStream};
use std::sync::Arc;
use std::sync::mpsc::channel;

use crate::support::{
    Client, Failure, PATIENCE, REQUEST, anywhere, assert_conserved, busy, ledger_when, settings,
};
use model::Nanos;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use sink::{
    DelayLaw, Fault, FaultLaw, Listen, Sink, SinkBody, SinkLedger, SinkSettings, SlotQueue,
};
use testkit::clock::REAL_CLOCK;

fn start(settings: SinkSettings) -> Sink {
    Sink::start(settings, REAL_CLOCK).unwrap()
}

fn faults(laws: &[(Fault, &str)]) -> Vec<FaultLaw> {
    let law =
        |(fault, share): &(Fault, &str)| FaultLaw { fault: *fault, share: share.parse().unwrap() };
    laws.iter().map(law).collect()
}

/// Bytes of the load sink's response.
const RESPONSE_BYTES: usize =
    "HTTP/1.1 200 OK\r\ncontent-type: application/cbor\r\ncontent-length: 32\r\n\r\n".len() + 32;

#[test]
fn any_request_is_answered_by_a_rising_counter() {
    let sink = start(anywhere());
    let mut client = Client::connect(sink.address());
    for (number, line) in
        (0..).zip(["GET /", "POST /a/b?c", "DELETE *", "QUERY /x", "PUT http://a/"])
    {
        client.send(format!("{line} HTTP/1.1\r\nHost: sink\r\n\r\n"));
        let response = client.receive();
        assert_eq!((response.status, response.counter()), (200, number));
        let fields = [("content-type", "application/cbor"), ("content-length", "32")];
        assert_eq!(
            response.fields,
            fields.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        assert_eq!(client.received_bytes, u64::from(number + 1) * RESPONSE_BYTES as u64);
    }
    assert_conserved(&sink.stop());
}

#[test]
fn each_number_is_given_once_across_all_loops() {
    let sink = start(SinkSettings { loops: 4, ..anywhere() });
    let address = sink.address();
    let one = move || {
        let mut client = Client::connect(address);
        (0..50).map(|_| client.get("/").counter()).collect::<Vec<_>>()
    };
    let clients: Vec<_> = (0..16).map(|_| std::thread::spawn(one)).collect();
    let mut all = Vec::new();
    for client in clients {
        let numbers = client.join().unwrap();
        assert!(numbers.is_sorted(), "the numbers rise for each client: {numbers:?}");
        all.extend(numbers);
    }
    all.sort_unstable();
    assert_eq!(all, (0..800).collect::<Vec<_>>());
    let shown = Client::connect(address).get("/_ledger").body;
    let ledger = sink.ledger();
    assert_eq!(serde_json::from_slice::<SinkLedger>(&shown).unwrap().requests, 800);
    assert_eq!(
        (ledger.requests, ledger.answers, ledger.connections, ledger.per_worker.len()),
        (800, 800, 16, 4)
    );
    assert_conserved(&ledger);
    let last = sink.stop();
    assert_eq!((last.requests, last.per_worker.iter().sum::<u64>()), (800, 800));
}

#[test]
fn a_large_body_arrives_completely() {
    let sink = start(SinkSettings { body: SinkBody::Bytes(3_000_000), ..anywhere() });
    let mut client = Client::connect(sink.address());
    for _ in 0..3 {
        let response = client.get("/");
        assert_eq!(
            (response.body.len(), response.field("content-type")),
            (3_000_000, Some("application/octet-stream"))
        );
    }
    client.send("HEAD / HTTP/1.1\r\n\r\n");
    assert_eq!(client.try_receive(true).unwrap().field("content-length"), Some("3000000"));
    assert_eq!(sink.stop().sent_bytes, client.received_bytes);
}

/// Sends this many requests one after the other, over a new connection once the last is closed.
/// Returns how many had each outcome, the bytes received, and the number of connections.
fn count(sink: &Sink, requests: usize) -> (BTreeMap<Result<u16, Failure>, u64>, u64, u64) {
    let mut outcomes = BTreeMap::new();
    let mut received = 0;
    let mut connections = 0;
    let mut client = None;
    for _ in 0..requests {
        let mut open = client.take().unwrap_or_else(|| {
            connections += 1;
            Client::connect(sink.address())
        });
        let before = open.received_bytes;
        let asked = open.ask();
        received += open.received_bytes - before;
        client = asked
            .as_ref()
            .is_ok_and(|response| response.field("connection").is_none())
            .then_some(open);
        *outcomes.entry(asked.map(|response| response.status)).or_default() += 1;
    }
    (outcomes, received, connections)
}

#[test]
fn both_ledgers_agree_on_every_fault() {
    let mut faults = faults(&[(Fault::Reset, "7%"), (Fault::Truncate, "9%")]);
    faults.extend(["503:11%", "404:5%"].map(|text| text.parse::<FaultLaw>().unwrap()));
    for (body, seed) in [(SinkBody::Counter, 1), (SinkBody::Ok, 2), (SinkBody::Bytes(100_000), 3)] {
        let sink = start(SinkSettings {
            faults: faults.clone(),
            close_after: Some(6),
            body,
            seed,
            ..anywhere()
        });
        let (outcomes, received, connections) = count(&sink, 600);
        let of = |outcome| outcomes.get(&outcome).copied().unwrap_or(0);
        let ledger = ledger_when(&sink, |ledger| ledger.open_connections <= 1);
        assert_eq!((ledger.requests, ledger.connections), (600, connections));
        assert_eq!(
            (of(Err(Failure::Reset)), of(Err(Failure::Cut))),
            (ledger.faults.reset, ledger.faults.truncated)
        );
        assert_eq!(Some(&of(Ok(503))), ledger.faults.by_status.get(&503));
        assert_eq!(Some(&of(Ok(404))), ledger.faults.by_status.get(&404));
        assert_eq!((of(Err(Failure::Closed)), ledger.abandoned, ledger.unfinished()), (0, 0, 0));
        assert!(
            ledger.faults.closed > 0 && ledger.faults.reset > 10 && ledger.faults.truncated > 10,
            "{ledger:?}"
        );
        assert_eq!(ledger.answers, 600 - ledger.faults.reset - ledger.faults.truncated);
        assert_eq!(ledger.sent_bytes, received);
        assert_conserved(&ledger);
        // The same seed gives the same requests the same faults.
        let again = start(SinkSettings {
            faults: faults.clone(),
            close_after: Some(6),
            body,
            seed,
            ..anywhere()
        });
        assert_eq!(count(&again, 600).0, outcomes);
    }
}

#[test]
fn a_connection_is_closed_after_its_responses_and_the_last_announces_it() {
    let sink = start(SinkSettings { close_after: Some(3), ..anywhere() });
    let (outcomes, _, connections) = count(&sink, 12);
    assert_eq!((outcomes, connections), ([(Ok(200), 12)].into(), 4));
    assert_eq!(sink.stop().faults.closed, 4);
}

#[test]
fn a_request_without_response_stays_silent_until_the_client_closes() {
    let faults = faults(&[(Fault::NoAnswer, "100%")]);
    let sink = start(SinkSettings { faults, ..anywhere() });
    let mut client = Client::connect(sink.address());
    client.send(REQUEST);
    client.send(REQUEST);
    let ledger = ledger_when(&sink, |ledger| ledger.faults.unanswered == 1);
    assert_eq!(
        (ledger.requests, ledger.answers, ledger.open_connections, ledger.unfinished()),
        (1, 0, 1, 0)
    );
    drop(client);
    ledger_when(&sink, |ledger| ledger.open_connections == 0);
    let silent = Client::connect(sink.address());
    (&silent.stream).write_all(REQUEST).unwrap();
    ledger_when(&sink, |ledger| ledger.faults.unanswered == 2);
    let ledger = sink.stop();
    assert_eq!((ledger.abandoned, ledger.open_connections), (0, 0));
}

#[test]
fn every_delayed_response_has_a_lateness() {
    let delay: DelayLaw = "exp:1ms".parse().unwrap();
    let sink = start(SinkSettings { delay, ..anywhere() });
    let mut client = Client::connect(sink.address());
    for _ in 0..40 {
        client.send(REQUEST);
        client.receive();
    }
    let ledger = sink.stop();
    let held = (0..40).filter(|number| delay.of(0, *number) > Nanos::ZERO).count();
    assert_eq!((ledger.lateness.count(), ledger.answers), (held as u64, 40));
    assert!(ledger.text().contains("lateness"), "{}", ledger.text());
}

#[test]
fn responses_on_several_connections_arrive_in_the_order_of_their_delays() {
    // Request 0 is held for longer than any test takes. Request 2 is sent after request 1 and is
    // also held longer, so it is answered after it, however late it is sent.
    let delay: DelayLaw = "uniform:0s:1000s".parse().unwrap();
    let held = |seed, number| delay.of(seed, number);
    let second = Nanos::from_secs(1);
    let is_suitable = |seed: &u64| {
        held(*seed, 0) > second * 300
            && held(*seed, 1) < held(*seed, 2)
            && held(*seed, 2) < second * 3
    };
    let seed = (1..10_000_000).find(is_suitable).unwrap();
    let sink = start(SinkSettings { delay, seed, spin: Nanos::from_micros(100), ..anywhere() });
    let mut clients: Vec<_> = (0..3)
        .map(|number| {
            let mut client = Client::connect(sink.address());
            client.send(REQUEST);
            ledger_when(&sink, |ledger| ledger.requests == number + 1);
            client
        })
        .collect();
    assert_eq!(clients[2].receive().counter(), 2);
    for client in &clients {
        client.stream.set_nonblocking(true).unwrap();
    }
    assert_eq!(clients[1].receive().counter(), 1);
    let early = clients[0].stream.read(&mut [0]).map_err(|error| error.kind());
    assert_eq!(early, Err(ErrorKind::WouldBlock), "it asked first, but is held");
}

#[test]
fn a_connection_keeps_its_worker() {
    for (queue, even) in [(SlotQueue::Split, true), (SlotQueue::SplitRandom, false)] {
        let sink = start(SinkSettings { queue, ..settings(3, 2, Nanos::ZERO) });
        let mut clients: Vec<_> = (0..12).map(|_| Client::connect(sink.address())).collect();
        let mut per_worker = [0; 3];
        for client in &mut clients {
            let worker = client.get("/").worker();
            per_worker[worker] += 1;
            assert!((0..5).all(|_| client.get("/").worker() == worker));
        }
        assert_eq!(per_worker == [4, 4, 4], even, "{per_worker:?}");
        let ledger = sink.stop();
        assert_eq!(ledger.per_worker, per_worker.map(|connections| connections * 6));
        assert_conserved(&ledger);
    }
}

#[test]
fn inline_ten_accepts_no_connection_while_all_slots_are_busy() {
    let sink = start(SinkSettings { queue: SlotQueue::Inline10, ..settings(1, 2, Nanos::ZERO) });
    let _first = busy(&sink, 1);
    let gone = busy(&sink, 2);
    let mut late = Client::connect(sink.address());
    late.send("GET /sleep0 HTTP/1.1\r\n\r\n");
    // Reading the ledger causes no turn of the loop. The reset below does, and nothing is accepted
    // in that one either.
    assert_eq!([sink.ledger().connections, sink.ledger().connections], [2, 2]);
    gone.reset();
    // The slot stays with the request although its client is gone.
    assert_eq!(ledger_when(&sink, |ledger| ledger.open_connections == 1).connections, 2);
}

#[test]
fn inline_ten_makes_room_for_a_waiting_connection() {
    let sink = start(SinkSettings { queue: SlotQueue::Inline10, ..settings(1, 1, Nanos::ZERO) });
    let mut first = Client::connect(sink.address());
    assert_eq!(first.get("/").field("connection"), None);
    let mut second = Client::connect(sink.address());
    second.send("GET / HTTP/1.1\r\n\r\n");
    // Nine more, sent ahead: the slot is held for them. The tenth in a row ends the connection,
    // because another one waits.
    first.send("GET / HTTP/1.1\r\n\r\n".repeat(9));
    let last = (0..9).map(|_| first.receive()).last().unwrap();
    // If the hold ended before they arrived, the second connection was accepted meanwhile, and the
    // count of ten started again.
    if last.field("connection") == Some("close") {
        assert!(first.is_closed());
    }
    assert_eq!(second.receive().status, 200);
    assert_conserved(&sink.stop());
}

#[test]
fn accepts_are_spaced_and_none_is_lost() {
    let sink = start(SinkSettings {
        accept_rate: Some("200".parse().unwrap()),
        backlog: 64,
        ..anywhere()
    });
    let mut clients: Vec<_> = (0..30).map(|_| Client::connect(sink.address())).collect();
    assert!(clients.iter_mut().all(|client| client.get("/").status == 200));
    assert_eq!(sink.stop().connections, 30);
}

#[test]
fn a_full_backlog_leaves_clients_outside() {
    // The only slot is busy, so no connection is accepted; the kernel keeps backlog + 1 and drops
    // further attempts.
    let sink = start(SinkSettings { queue: SlotQueue::Inline10, backlog: 2, ..anywhere() });
    let _busy = busy(&sink, 1);
    let address = sink.address();
    // The fourth after the others: a handshake that begins before the queue is full succeeds for
    // its client, even if the queue is full when it ends.
    let _inside: Vec<_> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        if let Ok(stream) = TcpStream::connect(address) {
            let _ = sender.send(stream);
        }
    });
    assert!(
        receiver.recv_timeout(std::time::Duration::from_millis(300)).is_err(),
        "no room for a fourth"
    );
}

#[test]
fn it_listens_at_several_places_at_once() {
    let path = std::env::temp_dir().join(format!("sink-several-{}.sock", std::process::id()));
    let name = format!("sink-several-{}", std::process::id());
    for loops in [1, 3] {
        let mut listen = anywhere().listen;
        listen.push(format!("unix://{}", path.display()).parse().unwrap());
        listen.push(format!("unix://@{name}").parse().unwrap());
        let sink = start(SinkSettings { listen, loops, ..anywhere() });
        assert_eq!(sink.places()[1].to_string(), format!("unix://{}", path.display()));
        let mut tcp = Client::connect(sink.address());
        let mut unix = Client::over(UnixStream::connect(&path).unwrap());
        let abstract_address = UnixAddress::from_abstract_name(&name).unwrap();
        let mut abstract_unix = Client::over(UnixStream::connect_addr(&abstract_address).unwrap());
        for _ in 0..10 {
            assert_eq!(
                [tcp.get("/").status, unix.get("/").status, abstract_unix.get("/").status],
                [200; 3]
            );
        }
        let ledger = sink.stop();
        assert_eq!((ledger.connections, ledger.answers), (3, 30));
        assert!(!path.exists(), "the file is removed with its sink");
    }
}

/// A TLS client that trusts only `certificate`.
fn tls_client(
    sink: &Sink,
    certificate: CertificateDer<'static>,
) -> Client<StreamOwned<ClientConnection, TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = TcpStream::connect(sink.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    Client::over(StreamOwned::new(client, stream))
}

/// A TLS sink with a certificate and key from files, and the certificate.
fn tls_sink(test: &str, settings: SinkSettings) -> (Sink, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let folder = std::env::temp_dir();
    let file = |kind: &str| folder.join(format!("sink-{test}-{}.{kind}", std::process::id()));
    let pem = sink::PemPair { certificate: file("crt"), key: file("key") };
    std::fs::write(&pem.certificate, made.cert.pem()).unwrap();
    std::fs::write(&pem.key, made.signing_key.serialize_pem()).unwrap();
    let listen: Vec<Listen> = vec!["tls://127.0.0.1:0".parse().unwrap()];
    let sink = start(SinkSettings { listen, pem: Some(pem.clone()), ..settings });
    std::fs::remove_file(pem.certificate).unwrap();
    std::fs::remove_file(pem.key).unwrap();
    (sink, made.cert.der().clone())
}

#[test]
fn both_ledgers_agree_over_tls() {
    let settings = SinkSettings {
        body: SinkBody::Bytes(200_000),
        delay: Nanos::from_micros(100).into(),
        ..anywhere()
    };
    let (sink, certificate) = tls_sink("agree", settings);
    let mut received = 0;
    for _ in 0..3 {
        let mut client = tls_client(&sink, certificate.clone());
        for _ in 0..10 {
            let response = client.ask().unwrap();
            assert_eq!(
                (response.status, response.body.len(), response.field("connection")),
                (200, 200_000, None)
            );
        }
        received += client.received_bytes;
    }
    let ledger = sink.stop();
    assert_eq!((ledger.requests, ledger.answers, ledger.connections), (30, 30, 3));
    assert_eq!((ledger.sent_bytes, ledger.received_bytes), (received, 30 * REQUEST.len() as u64));
    assert_eq!((ledger.failed_handshakes, ledger.bad_requests), (0, 0));
}

#[test]
fn many_requests_sent_ahead_over_tls_are_all_answered() {
    let (sink, certificate) = tls_sink("ahead", anywhere());
    let mut client = tls_client(&sink, certificate);
    let count = 5000;
    client.send(REQUEST.repeat(count));
    for number in 0..count {
        assert_eq!(client.receive().counter(), number as u32);
    }
    assert_eq!(sink.stop().answers, count as u64);
}

#[test]
fn an_announced_end_is_distinguished_from_a_cut_over_tls() {
    let (sink, certificate) = tls_sink("end", anywhere());
    let mut client = tls_client(&sink, certificate);
    client.send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
    let mut all = Vec::new();
    client.stream.read_to_end(&mut all).expect("the end is announced");
    assert!(all.starts_with(b"HTTP/1.1 200 OK"));
    let faults = faults(&[(Fault::Truncate, "100%")]);
    let (sink, certificate) = tls_sink("cut", SinkSettings { faults, ..anywhere() });
    assert_eq!(tls_client(&sink, certificate).ask(), Err(Failure::Cut));
    assert_eq!(sink.stop().faults.truncated, 1);
}

#[test]
fn a_client_without_tls_is_counted_and_closed() {
    let (sink, _) = tls_sink("plain", anywhere());
    let mut stream = TcpStream::connect(sink.address()).unwrap();
    stream.write_all(REQUEST).unwrap();
    let mut alert = Vec::new();
    // The close may be a reset because our request was never read.
    let _ = stream.read_to_end(&mut alert);
    let ledger = ledger_when(&sink, |ledger| ledger.open_connections == 0);
    assert_eq!((ledger.failed_handshakes, ledger.requests), (1, 0));
}

#[test]
fn without_files_a_certificate_is_made() {
    let listen: Vec<Listen> = vec!["tls://127.0.0.1:0".parse().unwrap()];
    let sink = start(SinkSettings { listen, ..anywhere() });
    assert!(sink.places()[0].tls);
    let nowhere = sink::PemPair { certificate: "/nowhere.crt".into(), key: "/nowhere.key".into() };
    let listen: Vec<Listen> = vec!["tls://127.0.0.1:0".parse().unwrap()];
    let error = Sink::start(SinkSettings { listen, pem: Some(nowhere), ..anywhere() }, REAL_CLOCK)
        .unwrap_err();
    assert!(error.to_string().contains("/nowhere.crt"), "{error}");
}
