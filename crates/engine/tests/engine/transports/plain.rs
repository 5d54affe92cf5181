//! Plain sockets: each kind of address, and what an open connection announces.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener};
use std::sync::mpsc;
use std::thread;

use engine::{ConnectionDriver, ConnectionEvent, Endpoint, Transport};
use model::Outcome;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use super::{Scratch, encrypted, insecure, load, news, sockets};
use crate::kit::{ANSWER, GOOD, Server, always, driven, kinds, once_and_wait};

trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

/// One exchange with a server at `endpoint`, whose connections `accept` gives.
fn exchanges_over(endpoint: Endpoint, accept: impl FnOnce() -> Box<dyn Stream> + Send + 'static) {
    let server = thread::spawn(move || once_and_wait(&mut accept(), ANSWER));
    assert_eq!(kinds(&driven(&load(Transport::plain(vec![endpoint]), 1))), [GOOD]);
    server.join().expect("no panic").expect("it is served to its end");
}

#[test]
#[expect(clippy::print_stderr, reason = "a skip says why")]
fn an_exchange_over_each_kind_of_address() {
    for address in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
        match TcpListener::bind((address, 0)) {
            Ok(listener) => {
                let endpoint = Endpoint::Tcp(listener.local_addr().expect("bound"));
                exchanges_over(endpoint, move || {
                    Box::new(listener.accept().expect("a connection").0)
                });
            }
            Err(_) => eprintln!("skipped: this machine has no {address}"),
        }
    }
    let scratch = Scratch::new();
    let path = scratch.0.join("app.sock");
    let name = format!("longtail-transports-{}", std::process::id());
    let in_folder = UnixListener::bind(&path).expect("bound");
    let address = UnixAddr::from_abstract_name(&name).expect("a name");
    let abstract_one = UnixListener::bind_addr(&address).expect("bound");
    for (place, listener) in
        [(path.into_os_string(), in_folder), (format!("@{name}").into(), abstract_one)]
    {
        let endpoint = Endpoint::unix(&place).expect("short enough");
        exchanges_over(endpoint, move || Box::new(listener.accept().expect("a connection").0));
    }
}

/// One to three servers note from which address each connection came. Two lanes make one request on
/// each of nine or four connections.
#[test]
fn connections_go_evenly_to_each_endpoint_and_from_each_source_whichever_lane_has_them() {
    let sources: [IpAddr; 2] = [[127, 0, 0, 2].into(), [127, 0, 0, 3].into()];
    for (endpoints, source_ips, connections, sources_of_each) in [
        (3, vec![], 9, vec![Ipv4Addr::LOCALHOST.into(); 3]),
        (1, sources.to_vec(), 4, vec![sources[0], sources[0], sources[1], sources[1]]),
        (2, sources.to_vec(), 4, sources.to_vec()),
    ] {
        let (sender, seen) = mpsc::channel();
        let serve = |number: usize| {
            let sender = sender.clone();
            Server::start(move |stream, _| {
                sender.send((number, stream.peer_addr()?.ip())).expect("somebody counts");
                always(stream, ANSWER)
            })
        };
        let servers: Vec<_> = (0..endpoints).map(serve).collect();
        let places = servers.iter().map(|server| Endpoint::Tcp(server.address)).collect();
        let one_each =
            load(Transport { source_ips, ..Transport::plain(places) }, u64::from(connections));
        driven(&one_each.with(|load| {
            load.lanes = 2;
            load.connections = connections;
        }));
        assert_eq!(servers.into_iter().map(Server::stop).sum::<u64>(), u64::from(connections));
        drop(sender);
        let mut seen: Vec<_> = seen.iter().collect();
        seen.sort_unstable();
        let of_each = |number| sources_of_each.iter().map(move |source| (number, *source));
        assert_eq!(seen, (0..endpoints).flat_map(of_each).collect::<Vec<_>>());
    }
}

#[test]
fn a_source_that_cannot_be_used_is_told_before_the_start() {
    let source = |address: &str| vec![address.parse().expect("an address")];
    let tcp = Transport::tcp(([127, 0, 0, 1], 1).into());
    // 192.0.2.0/24 is nobody's (RFC 5737).
    let foreign = Transport { source_ips: source("192.0.2.1"), ..tcp.clone() };
    let refusal = |transport: &Transport| transport.check().unwrap_err().to_string();
    assert!(refusal(&foreign).starts_with("cannot connect from"), "{}", refusal(&foreign));
    let local = Transport { source_ips: source("127.0.0.1"), ..tcp };
    assert!(local.check().is_ok());
    let six = Transport {
        endpoints: vec![Endpoint::Tcp("[::1]:1".parse().expect("an address"))],
        ..local.clone()
    };
    assert!(refusal(&six).starts_with("no --source-ip can reach"));
    let unix = Transport { endpoints: vec![Endpoint::Unix("/run/x.sock".into())], ..local };
    assert!(refusal(&unix).starts_with("no --source-ip can reach"));
}

#[test]
fn nobody_listening_is_refused() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("bound");
    let scratch = Scratch::new();
    let gone = scratch.0.join("gone.sock");
    let never = scratch.0.join("never.sock");
    drop((listener, UnixListener::bind(&gone).expect("bound")));
    for (transport, outcome) in [
        (encrypted(address, insecure()), Outcome::Refused),
        (Transport::plain(vec![Endpoint::Unix(gone)]), Outcome::Refused),
        (Transport::plain(vec![Endpoint::Unix(never)]), Outcome::ConnectFailed),
    ] {
        assert_eq!(kinds(&driven(&load(transport, 1))), [outcome]);
    }
}

#[test]
fn a_unix_socket_whose_accept_queue_is_full_refuses() {
    let scratch = Scratch::new();
    let path = scratch.0.join("full.sock");
    let listener = UnixListener::bind(&path).expect("bound");
    rustix::net::listen(&listener, 1).expect("a shorter queue");
    let mut wire = sockets(&Transport::plain(vec![Endpoint::Unix(path)]), 8);
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
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let mut wire = sockets(&Transport::tcp(listener.local_addr().expect("bound")), 1);
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
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let mut wire = sockets(&Transport::tcp(listener.local_addr().expect("bound")), 1);
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
