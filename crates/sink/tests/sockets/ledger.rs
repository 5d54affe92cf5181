//! The sink's ledger while it serves, when it stops and when it cannot start. No duration is
//! asserted. `longtail/tests/cli/ledger.rs` compares it with a client's ledger.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{
    Client, assert_conserved, busy, ledger_when, serving, settings, start, stopped,
};
use model::Nanos;
use sink::{Sink, SinkLedger};
use testkit::clock::REAL_CLOCK;

#[test]
fn no_more_requests_are_busy_than_there_are_slots() {
    let sink = start(2, 2, Nanos::ZERO);
    let mut clients: Vec<_> = (0..7).map(|_| Client::connect(sink.address())).collect();
    for client in &mut clients {
        client.send("GET /sleep1000000 HTTP/1.1\r\n\r\n");
    }
    let ledger = ledger_when(&sink, |ledger| ledger.requests == 7);
    assert_eq!((ledger.busy, ledger.waiting, ledger.answers), (4, 3, 0));
    assert_conserved(&ledger);
}

#[test]
fn requests_of_one_worker_are_answered_in_the_order_of_their_arrival() {
    // Time stands still until all wait.
    let (sink, clock) = stopped(1, 1, Nanos::from_millis(1));
    let address = sink.address();
    let mut first = Client::connect(address);
    first.send("GET /sleep0.3 HTTP/1.1\r\n\r\n");
    ledger_when(&sink, |ledger| ledger.busy == 1);
    let mut clients: Vec<_> = (1..=5)
        .map(|waiting| {
            let mut client = Client::connect(address);
            client.send("GET / HTTP/1.1\r\n\r\n");
            ledger_when(&sink, |ledger| ledger.waiting == waiting);
            client
        })
        .collect();
    clock.advance(Nanos::from_secs(1));
    // Once the last has its response, all the others have theirs.
    assert_eq!(clients[4].receive().status, 200);
    for client in &clients[..4] {
        client.stream.set_nonblocking(true).unwrap();
        assert_eq!(client.stream.peek(&mut [0; 1]).unwrap(), 1);
    }
    assert_eq!(first.receive().status, 200);
    assert_eq!(sink.stop().per_worker, [6]);
}

#[test]
fn the_ledger_is_shown_at_once_and_does_not_count_itself() {
    let sink = start(1, 1, Nanos::ZERO);
    let _busy = busy(&sink, 1);
    let before = sink.ledger();
    let mut onlooker = Client::connect(sink.address());
    for _ in 0..3 {
        let response = onlooker.get("/_ledger");
        assert_eq!(response.field("content-type"), Some("application/json"));
        assert_eq!(serde_json::from_slice::<SinkLedger>(&response.body).unwrap(), before);
    }
    onlooker.send("HEAD /_ledger HTTP/1.1\r\n\r\n");
    assert_eq!(onlooker.try_receive(true).unwrap().status, 200);
    assert_eq!(sink.ledger(), before);
    drop(onlooker);
    assert_eq!(sink.ledger(), before);
}

#[test]
fn an_onlooker_that_becomes_a_client_is_counted() {
    let (sink, mut client) = serving();
    client.get("/_ledger");
    assert_eq!(sink.ledger().connections, 0);
    client.get("/");
    client.get("/_ledger");
    let ledger = sink.ledger();
    assert_eq!((ledger.connections, ledger.open_connections, ledger.requests), (1, 1, 1));
}

#[test]
fn a_stopping_sink_answers_its_requests_and_takes_no_more() {
    // Time stands still until it is stopping, so no response is due before.
    let (sink, clock) = stopped(1, 2, Nanos::from_millis(200));
    let address = sink.address();
    let mut idle = Client::connect(address);
    idle.get("/sleep0");
    let mut clients: Vec<_> = (0..4).map(|_| Client::connect(address)).collect();
    for client in &mut clients {
        client.send("GET / HTTP/1.1\r\n\r\n");
    }
    ledger_when(&sink, |ledger| ledger.requests == 5);
    let stopping = std::thread::spawn(move || sink.stop());
    while std::net::TcpStream::connect(address).is_ok() {
        std::thread::yield_now();
    }
    // Two in a row on each slot.
    clock.advance(Nanos::from_millis(400));
    let ledger = stopping.join().unwrap();
    assert_eq!((ledger.requests, ledger.answers), (5, 5));
    assert!(idle.is_closed());
    for client in &mut clients {
        assert_eq!(client.receive().field("connection"), Some("close"));
        assert!(client.is_closed());
    }
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn an_endless_request_does_not_keep_a_sink_from_stopping() {
    let (sink, mut client) = serving();
    client.send("GET /sleep1000000 HTTP/1.1\r\n\r\n");
    ledger_when(&sink, |ledger| ledger.busy == 1);
    let ledger = sink.stop();
    assert_eq!((ledger.requests, ledger.answers, ledger.busy), (1, 0, 1));
}

#[test]
fn a_sink_ends_with_its_flag() {
    let stop = Arc::new(AtomicBool::new(false));
    let sink =
        Sink::start_until(settings(1, 1, Nanos::ZERO), REAL_CLOCK, Arc::clone(&stop)).unwrap();
    let mut client = Client::connect(sink.address());
    assert_eq!(client.get("/").status, 200);
    stop.store(true, Ordering::Release);
    let ledger = sink.wait();
    assert_eq!(
        (ledger.received_bytes, ledger.sent_bytes),
        (client.sent_bytes, client.received_bytes)
    );
}
