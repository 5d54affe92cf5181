//! Plain sockets: each kind of address, and what an open connection announces.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener};
use std::thread;

use engine::{ConnectionDriver, ConnectionEvent, Endpoint, Transport, TransportError};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use super::{
    End, REQUEST, Scratch, answer_one, answered, encrypted, exchange, insecure, news, serve_tcp, sockets, tcp_listener,
};

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
