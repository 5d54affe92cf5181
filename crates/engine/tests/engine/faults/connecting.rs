//! Servers that cannot be connected to, or not yet.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use engine::{LoadSpec, RunProgress};
use model::{Nanos, Outcome};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketType, bind, listen, socket};

use crate::kit::{
    ANSWER, GOOD, REQUESTS, Server, always, driven, driven_until, kinds, open, pause, shape, shown,
    timed_out,
};

/// A port of ours at which nobody listens yet.
fn taken_port() -> (OwnedFd, SocketAddr) {
    let fd = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&fd, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let address = rustix::net::getsockname(&fd).unwrap().try_into().unwrap();
    (fd, address)
}

#[test]
fn where_nobody_listens_every_request_is_refused() {
    let (_port, address) = taken_port();
    for shape in [open(&shape(address)), shape(address)] {
        let done = driven(&shape);
        assert_eq!(kinds(&done), [Outcome::Refused], "{}", shown(&done));
        assert_eq!((done.tally.sent_bytes, done.tally.received_bytes), (0, 0));
        assert_eq!(done.tally.connections_opened, REQUESTS);
    }
}

#[test]
fn a_server_that_comes_up_in_the_middle_is_found() {
    let (port, address) = taken_port();
    let spec = shape(address).with(|load| load.requests_total = Some(40));
    let progress = Arc::new(RunProgress::new(spec.load.lanes));
    let seen = Arc::clone(&progress);
    let server = thread::spawn(move || {
        while seen.ended() < 6 {
            pause(1);
        }
        listen(&port, 100).unwrap();
        Server::on(TcpListener::from(port), |stream, _| always(stream, ANSWER))
    });
    let done = driven_until(&spec, Arc::new(AtomicBool::new(false)), progress);
    let connections = server.join().unwrap().stop();
    let counts = &done.tally.counts;
    assert_eq!(kinds(&done), [GOOD, Outcome::Refused], "{counts:?}");
    assert!(counts.of(Outcome::Refused) >= 6, "{counts:?}");
    assert_eq!(done.tally.connections_opened, counts.of(Outcome::Refused) + connections);
    assert_eq!(connections, 2);
}

#[test]
fn a_server_that_never_accepts_times_out_while_connecting() {
    let (port, address) = taken_port();
    listen(&port, 0).unwrap();
    // Its queue is full when a connect does not come through (tcp_conn_request in
    // net/ipv4/tcp_input.c drops the SYN).
    let mut queued = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
        queued.push(stream);
        assert!(queued.len() < 10, "a queue of one takes everybody");
    }
    // A connect may be given up before the timeout, which is two minutes here.
    let impatient = shape(address).with(|load| load.connect_timeout = Some(Nanos::from_millis(50)));
    let done = driven(&impatient);
    assert_eq!(kinds(&done), [Outcome::ConnectTimedOut], "{}", shown(&done));
    for shape in [open(&shape(address)), shape(address)] {
        for done in timed_out(&shape) {
            assert_eq!((done.tally.sent_bytes, done.tally.received_bytes), (0, 0));
            let timed_out = done.tally.counts.of(Outcome::TimedOut);
            assert_eq!(timed_out, 0, "no connection came about: {}", shown(&done));
        }
    }
}

#[test]
fn an_address_that_cannot_be_reached_fails_to_connect() {
    // A broadcast address: nobody can connect to it without asking for that (EACCES, ip(7)).
    let done = driven(&shape(SocketAddr::from(([255, 255, 255, 255], 9))));
    let allowed = [Outcome::ConnectFailed, Outcome::NoRoute, Outcome::Refused];
    assert!(kinds(&done).iter().all(|kind| allowed.contains(kind)), "{}", shown(&done));
}

#[test]
fn a_load_on_a_dead_server_can_be_interrupted() {
    let (port, address) = taken_port();
    let endless = shape(address).with(|load| load.requests_total = None);
    let spec = LoadSpec { measured: Some(Nanos::from_secs(600)), ..endless };
    let interrupt = Arc::new(AtomicBool::new(false));
    let progress = Arc::new(RunProgress::new(spec.load.lanes));
    let flag = Arc::clone(&interrupt);
    let seen = Arc::clone(&progress);
    let watch = thread::spawn(move || {
        while seen.ended() < 4 {
            pause(1);
        }
        flag.store(true, Ordering::Relaxed);
    });
    let done = driven_until(&spec, interrupt, progress);
    watch.join().unwrap();
    drop(port);
    assert!(done.interrupted_at.is_some());
    assert_eq!(kinds(&done), [Outcome::Refused], "{}", shown(&done));
}
