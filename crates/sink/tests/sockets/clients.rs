//! Whatever clients do, the sink answers valid requests in order, and keeps serving the others. No
//! duration is asserted.

use std::io::{Read, Write};
use std::net::Shutdown;

use crate::support::{Client, assert_conserved, ledger_when, serving, start, stopped};
use model::Nanos;
use sink::Sink;

/// Checks that the sink still serves and its ledger is right.
fn assert_well(sink: &Sink) {
    assert_eq!(Client::connect(sink.address()).get("/").status, 200);
    assert_conserved(&sink.ledger());
}

#[test]
fn requests_sent_ahead_are_answered_in_order() {
    let sink = start(4, 4, Nanos::ZERO);
    let mut client = Client::connect(sink.address());
    // The slow ones come first: if they were served at the same time, the quick ones would overtake
    // them.
    client.send(
        "GET /sleep0.02 HTTP/1.1\r\n\r\nHEAD / HTTP/1.1\r\n\r\nGET /_ledger HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n",
    );
    assert_eq!(client.receive().body, b"ok\n");
    assert_eq!(client.try_receive(true).unwrap().body, b"");
    assert!(String::from_utf8(client.receive().body).unwrap().contains("\"requests\":2"));
    assert_eq!(client.receive().body, b"ok\n");
    let ledger = sink.stop();
    assert_eq!(ledger.answers, 3);
    assert!(ledger.sent_bytes < client.received_bytes, "the ledger is not in its own count");
}

#[test]
fn many_ledgers_asked_ahead_do_not_exhaust_the_stack() {
    let (sink, mut client) = serving();
    client.send("GET /_ledger HTTP/1.1\r\n\r\n".repeat(1500));
    for _ in 0..1500 {
        assert_eq!(client.receive().status, 200);
    }
    assert_well(&sink);
}

#[test]
fn bodies_are_counted_in_any_framing_and_pieces() {
    let (sink, mut client) = serving();
    client.send("POST / HTTP/1.1\r\nContent-Length: 200000\r\n\r\n");
    client.send("x".repeat(200_000));
    assert_eq!(client.receive().status, 200);
    client.send("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
    for piece in ["5;name=value\r\nhe", "llo\r", "\n00", "0\r\nTrailer: 1\r\n", "\r", "\n"] {
        client.send(piece);
    }
    assert_eq!(client.receive().status, 200);
    assert_eq!(client.get("/").status, 200);
    // A client that expects it gets 100 Continue.
    client.send("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_eq!(client.receive().status, 100);
    client.send("ab");
    assert_eq!(client.receive().status, 200);
    let ledger = sink.stop();
    assert_eq!(ledger.requests, 4);
    assert_eq!(
        (ledger.received_bytes, ledger.sent_bytes),
        (client.sent_bytes, client.received_bytes)
    );
}

#[test]
fn http_1_0_clients_are_told_whether_the_connection_stays_open() {
    let (_sink, mut client) = serving();
    client.send("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n");
    assert_eq!(client.receive().field("connection"), Some("keep-alive"));
    client.send("GET / HTTP/1.0\r\n\r\n");
    assert_eq!(client.receive().field("connection"), Some("close"));
    assert!(client.is_closed());
}

#[test]
fn a_refused_client_can_read_the_reason_before_the_close() {
    let sink = start(1, 1, Nanos::ZERO);
    let endless = format!("GET / HTTP/1.1\r\na: {}", "b".repeat(300_000));
    for (status, garbage) in [
        (400, "hello\r\n\r\n"),
        (400, "\x16\x03\x01\x02\x00\x01\x00"),
        (400, "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n"),
        (400, "GET / HTTP/3\r\n\r\n"),
        (400, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n"),
        (431, &endless),
    ] {
        let mut client = Client::connect(sink.address());
        client.send(garbage);
        let response = client.receive();
        assert_eq!(
            (response.status, response.field("connection")),
            (status, Some("close")),
            "{garbage:.99?}"
        );
        assert!(client.is_closed());
    }
    let ledger = sink.ledger();
    assert_eq!(
        (ledger.bad_requests, ledger.requests, ledger.received_bytes, ledger.sent_bytes),
        (6, 0, 0, 0)
    );
    assert_well(&sink);
}

#[test]
fn bytes_after_the_last_request_do_not_lose_its_response() {
    let (sink, mut client) = serving();
    client.send(format!(
        "GET / HTTP/1.1\r\nConnection: close\r\n\r\n{}",
        "GET / HTTP/1.1\r\n\r\n".repeat(10_000)
    ));
    assert_eq!(client.receive().status, 200);
    assert!(client.is_closed());
    assert_eq!(sink.stop().requests, 1);
}

#[test]
fn a_client_that_has_shut_down_its_side_still_gets_its_response() {
    let sink = start(1, 1, Nanos::from_millis(5));
    let mut client = Client::connect(sink.address());
    client.send("GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n");
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!([client.receive().status, client.receive().status], [200, 200]);
    assert!(client.is_closed());
    assert_eq!(ledger_when(&sink, |ledger| ledger.open_connections == 0).answers, 2);
}

#[test]
fn a_request_keeps_its_slot_when_its_client_is_gone() {
    // Time stands still until the client is gone.
    let (sink, clock) = stopped(1, 1, Nanos::ZERO);
    let mut client = Client::connect(sink.address());
    client.send("GET /sleep0.05 HTTP/1.1\r\n\r\n");
    ledger_when(&sink, |ledger| ledger.busy == 1);
    client.reset();
    assert_eq!(ledger_when(&sink, |ledger| ledger.open_connections == 0).busy, 1);
    clock.advance(Nanos::from_millis(50));
    let ledger = ledger_when(&sink, |ledger| ledger.busy == 0);
    assert_eq!((ledger.requests, ledger.answers, ledger.abandoned), (1, 0, 1));
    assert_eq!(
        (ledger.per_worker.as_slice(), ledger.sent_bytes, ledger.open_connections),
        ([1].as_slice(), 0, 0)
    );
    assert_well(&sink);
}

#[test]
fn clients_that_close_at_any_point_leave_nothing_behind() {
    let sink = start(2, 2, Nanos::from_micros(100));
    let request = "POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello";
    for end in 0..=request.len() {
        for reset in [false, true] {
            let mut client = Client::connect(sink.address());
            client.send(&request[..end]);
            if reset {
                client.reset();
            }
        }
    }
    let ledger = ledger_when(&sink, |ledger| {
        ledger.open_connections == 0 && ledger.busy + ledger.waiting == 0
    });
    assert!(ledger.requests <= 2);
    assert_eq!(ledger.answers + ledger.abandoned, ledger.requests);
    assert_well(&sink);
}

#[test]
fn a_client_that_sends_byte_by_byte_is_waited_for() {
    let (sink, mut slow) = serving();
    for byte in b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nab" {
        slow.send([*byte]);
        assert_eq!(Client::connect(sink.address()).get("/_ledger").status, 200);
    }
    assert_eq!(slow.receive().status, 200);
    assert_eq!(sink.stop().received_bytes, slow.sent_bytes);
}

#[test]
fn a_client_that_never_reads_is_stalled_and_the_others_are_not() {
    let (sink, deaf) = serving();
    deaf.stream.set_nonblocking(true).unwrap();
    let requests = b"GET / HTTP/1.1\r\n\r\n".repeat(1000);
    // Until the sink takes no more: its responses fill both kernel buffers, and then it stops
    // reading requests.
    let stalled = |ledger: &sink::SinkLedger| {
        while matches!((&deaf.stream).write(&requests), Ok(taken) if taken > 0) {}
        ledger.stalled == 1
    };
    let ledger = ledger_when(&sink, stalled);
    assert!(ledger.requests > 0);
    assert_well(&sink);
    drop(deaf);
    let ledger = ledger_when(&sink, |ledger| ledger.open_connections == 0);
    assert_eq!(ledger.answers + ledger.abandoned, ledger.requests);
}

#[test]
fn a_client_that_reads_late_gets_every_response() {
    let (sink, mut late) = serving();
    let mut writer = late.stream.try_clone().unwrap();
    let request = b"GET / HTTP/1.1\r\n\r\n";
    let count = 150_000;
    let all = std::thread::spawn(move || writer.write_all(&request.repeat(count)));
    ledger_when(&sink, |ledger| ledger.stalled == 1 || ledger.answers == count as u64);
    let one = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nx-worker: 0\r\ncontent-length: 3\r\n\r\nok\n";
    let expected = one.len() * count;
    let mut received = 0;
    let mut buffer = vec![0; 1 << 16];
    while received < expected {
        received += late.stream.read(&mut buffer).unwrap();
    }
    all.join().unwrap().unwrap();
    let ledger = sink.stop();
    assert_eq!(
        (ledger.requests, ledger.answers, ledger.connections),
        (count as u64, count as u64, 1)
    );
    assert_eq!(
        (ledger.received_bytes, ledger.sent_bytes),
        ((request.len() * count) as u64, received as u64)
    );
}
