//! Reads a server's sockets from the kernel: its listener, the accept queue, its ends of
//! connections. Needs no privilege.
//!
//! **TCP** sockets come from `sock_diag` if there is netlink, else from `/proc/net/tcp` and `tcp6`.
//! The receive queue of a listener is the length of its accept queue (`sk_ack_backlog`; Linux
//! `tcp_diag_get_info` and `get_tcp4_sock`), that of a connection its unread bytes. A connection
//! that nobody has accepted yet has no inode. For a dump the kernel walks its whole hash of sockets
//! but returns only those of the port, so if there are many others a sample costs a fraction of
//! what `/proc/net/tcp` costs.
//!
//! **Unix** sockets come from `/proc/net/unix`. That table has no queues, but the server's end of
//! each connection has the listener's address, a path or an abstract name, while ours has none
//! (`net/unix/af_unix.c`, `unix_stream_connect`). Before it is accepted it is in state
//! `SS_CONNECTING` and has no inode (`unix_seq_show`: no `sk_socket`). As with TCP it stays until
//! the server closes it, whatever the client did.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use model::Endpoint;

pub use crate::last_word::LastWord;
pub use crate::sock_diag::KernelSocket;
pub(crate) use crate::sock_diag::LISTEN as LISTENING;
use crate::sock_diag::{CLOSE_WAIT, ESTABLISHED, FAMILIES, LISTEN, SockDiag, SocketQuery};

/// The states of a listener, and of a connection that the server has not closed.
const OPEN: u32 = 1 << LISTEN | 1 << ESTABLISHED | 1 << CLOSE_WAIT;

/// The kernel's counts for one listener of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerSockets {
    /// Whether anything listens there.
    pub listening: bool,
    /// Connections that wait to be accepted.
    pub accept_queue: u32,
    /// The server's ends of connections that it has not closed yet, those in the accept queue
    /// included.
    pub open: u32,
    /// Those of the open ones that it has accepted.
    pub accepted: u32,
    /// Those of the open ones with bytes that the server has not read; the kernel does not tell for
    /// Unix sockets.
    pub unread: Option<u32>,
    /// The longest accept queue that the listener allows; the tables in `/proc` do not say.
    pub limit: Option<u32>,
    /// Accepted connections with a request without a response; `None` if there are none, or the
    /// kernel was not asked or does not tell.
    pub out: Option<u32>,
    /// Accepted connections for which it is not clear whether a request waits for its response.
    pub maybe_out: u32,
}

impl ServerSockets {
    /// Adds up what these sockets show.
    pub fn of(sockets: &[KernelSocket]) -> ServerSockets {
        let mut seen = ServerSockets { unread: Some(0), ..ServerSockets::default() };
        let mut out = 0;
        let mut is_told = true;
        for socket in sockets {
            if socket.is_listener {
                seen.listening = true;
                seen.accept_queue += socket.queue.unwrap_or(0);
                seen.limit = socket.limit.map_or(seen.limit, |limit| {
                    Some(seen.limit.unwrap_or(0).saturating_add(limit))
                });
            } else {
                seen.open += 1;
                seen.accepted += u32::from(socket.is_accepted());
                // A Unix listener shows no queue length; connections that wait have no inode.
                seen.accept_queue += u32::from(socket.queue.is_none() && !socket.is_accepted());
            }
            let is_unread = !socket.is_listener && socket.queue > Some(0);
            seen.unread = socket.queue.and(seen.unread).map(|unread| unread + u32::from(is_unread));
            if socket.is_accepted() {
                let is_out = socket.has_request_out();
                let is_unclear = !is_out && socket.last_word == Some(LastWord::Unclear);
                out += u32::from(is_out);
                is_told &= socket.last_word.is_some();
                seen.maybe_out += u32::from(is_unclear);
            }
        }
        seen.out = (is_told && seen.accepted > 0).then_some(out);
        seen
    }

    /// Whether the server has no connections left.
    pub fn is_idle(self) -> bool {
        self.accept_queue == 0 && self.open == 0
    }
}

/// A listener, and the cheapest way to sample it many times a second on this kernel.
#[derive(Debug)]
pub struct ServerListener(SocketSource);

#[derive(Debug)]
enum SocketSource {
    /// TCP by netlink: a port, and the IP families that have a listener there.
    Diag(SockDiag, u16, Vec<u8>),
    /// TCP without netlink: by the kernel's table.
    Table(u16),
    /// A Unix socket, by its address.
    Unix(Endpoint),
}

impl ServerListener {
    /// The listener of a TCP port, IPv4 and IPv6 alike.
    pub fn of_port(port: u16) -> ServerListener {
        ServerListener(diag(port).unwrap_or(SocketSource::Table(port)))
    }

    /// The listener of connections to this address.
    pub fn of(place: &Endpoint) -> ServerListener {
        match place.port() {
            Some(port) => ServerListener::of_port(port),
            None => ServerListener(SocketSource::Unix(place.clone())),
        }
    }

    /// The TCP port, if the kernel tells of its sockets by netlink.
    pub(crate) fn port(&self) -> Option<u16> {
        match self.0 {
            SocketSource::Diag(_, port, _) => Some(port),
            SocketSource::Table(_) | SocketSource::Unix(_) => None,
        }
    }

    /// Where the sockets are read from.
    pub fn source(&self) -> &'static str {
        match self.0 {
            SocketSource::Diag(..) => "sock_diag",
            SocketSource::Table(_) => "/proc/net/tcp",
            SocketSource::Unix(_) => "/proc/net/unix",
        }
    }

    /// The accept queue alone. With netlink the kernel walks only the hash of listeners, a
    /// hundredth of the work of [`ServerListener::all`].
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn queue(&mut self) -> io::Result<ServerSockets> {
        let all = match &mut self.0 {
            SocketSource::Diag(kernel, port, families) => {
                kernel.ask(families, SocketQuery::listeners(*port))?
            }
            _ => self.all()?,
        };
        Ok(ServerSockets::of(&all))
    }

    /// The kernel's counts now.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn sample(&mut self) -> io::Result<ServerSockets> {
        Ok(ServerSockets::of(&self.all()?))
    }

    /// The sockets that the kernel lists now.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn all(&mut self) -> io::Result<Vec<KernelSocket>> {
        self.each(false)
    }

    /// The same, and who sent the last byte on each connection, if there is netlink.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn all_with_last_words(&mut self) -> io::Result<Vec<KernelSocket>> {
        self.each(true)
    }

    fn each(&mut self, has_last_words: bool) -> io::Result<Vec<KernelSocket>> {
        match &mut self.0 {
            SocketSource::Diag(kernel, port, families) => {
                let query = SocketQuery { states: OPEN, port: *port, has_last_words };
                kernel.ask(families, query)
            }
            SocketSource::Table(port) => {
                let is_ours = |socket: &KernelSocket| socket.place.port() == Some(*port);
                Ok(tcp_table()?.into_iter().filter(is_ours).collect())
            }
            SocketSource::Unix(place) => Ok(at_place(unix_table()?, place)),
        }
    }
}

/// Only the families with a listener are asked for: the other has no connections, and asking costs
/// half of the time. The kernel may lack IPv6.
fn diag(port: u16) -> io::Result<SocketSource> {
    let mut kernel = SockDiag::open()?;
    let listeners = SocketQuery::listeners(port);
    let mut is_listening =
        |family: &u8| kernel.ask(&[*family], listeners).is_ok_and(|all| !all.is_empty());
    let families: Vec<u8> = FAMILIES.into_iter().filter(|family| is_listening(family)).collect();
    if families.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("nothing listens on port {port}"),
        ));
    }
    Ok(SocketSource::Diag(kernel, port, families))
}

fn at_place(table: Vec<KernelSocket>, place: &Endpoint) -> Vec<KernelSocket> {
    table.into_iter().filter(|socket| socket.place == *place).collect()
}

/// The endpoint of a Unix socket as the kernel's table shows it: its path, or `@` and its abstract
/// name.
pub fn unix_place(address: &str) -> Endpoint {
    match address.strip_prefix('@') {
        Some(name) => Endpoint::Abstract(name.as_bytes().to_vec()),
        None => Endpoint::Unix(address.into()),
    }
}

/// All TCP sockets in the kernel's table.
pub(crate) fn tcp_table() -> io::Result<Vec<KernelSocket>> {
    let mut all: Vec<KernelSocket> =
        fs::read_to_string("/proc/net/tcp")?.lines().filter_map(tcp_line).collect();
    // Absent if the kernel has no IPv6.
    all.extend(
        fs::read_to_string("/proc/net/tcp6").unwrap_or_default().lines().filter_map(tcp_line),
    );
    Ok(all)
}

fn tcp_line(line: &str) -> Option<KernelSocket> {
    // sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode
    let ([_, local, _, state, queues, _, _, user, _, inode], _) = columns(line)?;
    let state = u8::from_str_radix(state, 16).ok()?;
    [LISTEN, ESTABLISHED, CLOSE_WAIT].contains(&state).then_some(KernelSocket {
        place: Endpoint::Tcp(address(local)?),
        is_listener: state == LISTEN,
        inode: inode.parse().ok()?,
        queue: Some(u32::from_str_radix(queues.split_once(':')?.1, 16).ok()?),
        limit: None,
        user: Some(user.parse().ok()?),
        is_v6_only: false,
        last_word: None,
        peer_port: None,
        received: None,
        answered: None,
        cookie: 0,
    })
}

/// `0100007F:9C41`: words of four bytes as the machine stores them, in hexadecimal, and the port.
pub(crate) fn address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| Some(u32::from_str_radix(host.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let ip = if host.len() == 8 {
        IpAddr::V4(Ipv4Addr::from(word(0)?))
    } else {
        let mut bytes = [0; 16];
        for at in 0..4 {
            bytes[at * 4..at * 4 + 4].copy_from_slice(&word(at * 8)?);
        }
        IpAddr::V6(Ipv6Addr::from(bytes))
    };
    Some(SocketAddr::new(ip, port))
}

/// All Unix sockets that have an address. A path may contain any byte.
pub(crate) fn unix_table() -> io::Result<Vec<KernelSocket>> {
    Ok(String::from_utf8_lossy(&fs::read("/proc/net/unix")?)
        .lines()
        .filter_map(unix_line)
        .collect())
}

fn unix_line(line: &str) -> Option<KernelSocket> {
    /// States (`include/uapi/linux/net.h`), and the flag of a listener (`__SO_ACCEPTCON`).
    const SS_CONNECTING: &str = "02";
    const SS_CONNECTED: &str = "03";
    const ACCEPTS: u32 = 1 << 16;
    // Num: RefCount Protocol Flags Type St Inode Path; the inode is padded with blanks, the path
    // may contain some.
    let ([_, _, _, flags, _, state, inode], address) = columns(line)?;
    let address = address.strip_prefix(' ').filter(|address| !address.is_empty())?;
    let is_listener = u32::from_str_radix(flags, 16).ok()? & ACCEPTS != 0;
    (is_listener || [SS_CONNECTING, SS_CONNECTED].contains(&state)).then_some(KernelSocket {
        place: unix_place(address),
        is_listener,
        inode: inode.parse().ok()?,
        queue: None,
        limit: None,
        user: None,
        is_v6_only: false,
        last_word: None,
        peer_port: None,
        received: None,
        answered: None,
        cookie: 0,
    })
}

/// The first words of a line, and the rest of it.
pub(crate) fn columns<const N: usize>(line: &str) -> Option<([&str; N], &str)> {
    let mut words = [""; N];
    let mut rest = line;
    for word in &mut words {
        rest = rest.trim_start_matches(' ');
        let end = rest.find(' ').unwrap_or(rest.len());
        (*word, rest) = rest.split_at(end);
    }
    (!words[N - 1].is_empty()).then_some((words, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener, UnixStream};

    #[test]
    fn the_kernels_table_is_understood() {
        let all: Vec<KernelSocket> =
            include_str!("proc_net_tcp.txt").lines().filter_map(tcp_line).collect();
        let seen: Vec<(bool, u64)> =
            all.iter().map(|socket| (socket.is_listener, socket.inode)).collect();
        assert_eq!(
            seen,
            [(true, 1), (false, 0), (false, 0), (false, 0)],
            "the one in FIN_WAIT2 is closed"
        );
        let expected = ServerSockets {
            listening: true,
            accept_queue: 3,
            open: 2,
            unread: Some(1),
            ..ServerSockets::default()
        };
        assert_eq!(ServerSockets::of(&all[..3]), expected);
    }

    #[test]
    fn the_kernels_table_of_unix_sockets_is_understood() {
        let table: Vec<KernelSocket> =
            include_str!("proc_net_unix.txt").lines().filter_map(unix_line).collect();
        let of = |address| ServerSockets::of(&at_place(table.clone(), &unix_place(address)));
        assert_eq!(
            of("/run/a b.sock"),
            ServerSockets {
                listening: true,
                accept_queue: 1,
                open: 3,
                accepted: 2,
                ..ServerSockets::default()
            }
        );
        assert_eq!(
            of("@name"),
            ServerSockets { accept_queue: 1, open: 1, ..ServerSockets::default() }
        );
        assert_eq!((of("name").open, of("b.sock").listening, of("b.sock").open), (0, true, 0));
        let line = "0000000003027b53: 00000002 00000000 00010000 0001 01   812 /run/a 812 b.sock";
        assert_eq!(
            unix_line(line).map(|socket| (socket.place, socket.inode)),
            Some((Endpoint::Unix("/run/a 812 b.sock".into()), 812))
        );
    }

    #[test]
    fn unix_connections_are_the_servers_until_it_closes_them() {
        let path = std::env::temp_dir().join(format!("probe of {}.sock", std::process::id()));
        let name = format!("probe of {}", std::process::id());
        let by_path =
            (path.to_str().unwrap().to_owned(), UnixAddress::from_pathname(&path).unwrap());
        let by_name = (format!("@{name}"), UnixAddress::from_abstract_name(&name).unwrap());
        for (place, address) in [by_path, by_name] {
            let listener = UnixListener::bind_addr(&address).unwrap();
            let seen = || ServerListener::of(&unix_place(&place)).sample().unwrap();
            assert!(seen().listening && seen().is_idle());
            let clients = [(); 2].map(|()| UnixStream::connect_addr(&address).unwrap());
            assert_eq!((seen().open, seen().accept_queue), (2, 2));
            let (accepted, _) = listener.accept().unwrap();
            assert_eq!((seen().open, seen().accept_queue), (2, 1));
            drop(clients);
            // Whatever the clients do, it is not idle until it has closed its ends.
            assert_eq!((seen().open, seen().accept_queue), (2, 1));
            drop(accepted);
            drop(listener.accept().unwrap());
            assert!(seen().listening && seen().is_idle());
            drop(listener);
            assert!(!seen().listening);
        }
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn addresses_of_both_families_are_understood() {
        assert_eq!(address("0100007F:9C41"), Some("127.0.0.1:40001".parse().unwrap()));
        let six = "00000000000000000000000001000000:1F90";
        assert_eq!(address(six), Some("[::1]:8080".parse().unwrap()));
        assert_eq!(address("00000000:0050"), Some("0.0.0.0:80".parse().unwrap()));
        assert_eq!((address("x"), address("01:1"), address("0100007F:")), (None, None, None));
    }

    /// Both ways of asking the kernel must agree, whatever is connected.
    #[test]
    fn what_sock_diag_tells_is_what_the_table_tells() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let port = listener.local_addr().unwrap().port();
            let mut diag = ServerListener::of_port(port);
            let seen = diag.sample().unwrap();
            assert!(
                seen.listening && seen.is_idle() && seen.limit.is_some_and(|limit| limit > 0),
                "{seen:?}"
            );
            let mut clients: Vec<_> = (0..5)
                .map(|_| TcpStream::connect(listener.local_addr().unwrap()).unwrap())
                .collect();
            let accepted: Vec<_> = (0..2).map(|_| listener.accept().unwrap()).collect();
            clients[4].write_all(b"x").unwrap();
            // What is sent over loopback may be on its way for a moment, on a machine that is busy.
            let expected = (3, 5, Some(1));
            let is_there =
                |seen: &ServerSockets| (seen.accept_queue, seen.open, seen.unread) == expected;
            let mut samples = std::iter::repeat_with(|| diag.sample().unwrap()).take(1_000_000);
            let seen = samples
                .find(is_there)
                .unwrap_or_else(|| panic!("{:?}", ServerListener::of_port(port).sample()));
            let queue = diag.queue().unwrap();
            assert_eq!((queue.accept_queue, queue.limit), (3, seen.limit));
            // The table is no snapshot: a read of it may miss a socket, or show it twice, where
            // others come and go meanwhile.
            let table = || ServerListener(SocketSource::Table(port)).sample().unwrap();
            let agrees = (0..10_000).any(|_| ServerSockets { limit: None, ..seen } == table());
            assert!(agrees, "{seen:?}, and the table {:?}", table());
            // One by one too; a connection that is not accepted yet has no inode in either.
            let inodes = |all: Vec<KernelSocket>| {
                let mut inodes: Vec<u64> = all.iter().map(|socket| socket.inode).collect();
                inodes.sort_unstable();
                inodes
            };
            let one_by_one = inodes(diag.all().unwrap());
            let table = || inodes(ServerListener(SocketSource::Table(port)).all().unwrap());
            assert!(
                (0..10_000).any(|_| one_by_one == table()),
                "{one_by_one:?}, and the table {:?}",
                table()
            );
            assert_eq!(one_by_one.iter().filter(|inode| **inode == 0).count(), 3);
            drop((clients, accepted));
        }
    }

    #[test]
    fn the_kernel_tells_whose_turn_it_is() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut kernel = ServerListener::of_port(address.port());
        let mut pairs: Vec<_> = (0..3)
            .map(|_| (TcpStream::connect(address).unwrap(), listener.accept().unwrap().0))
            .collect();
        let mut piece = [0; 1];
        // Of three connections one is never used, one has a request out, and one is answered.
        for (client, server) in &mut pairs[1..] {
            client.write_all(b"?").unwrap();
            server.read_exact(&mut piece).unwrap();
        }
        pairs[2].1.write_all(b"!").unwrap();
        pairs[2].0.read_exact(&mut piece).unwrap();
        let seen = ServerSockets::of(&kernel.all_with_last_words().unwrap());
        if seen.out.is_some() {
            assert_eq!((seen.accepted, seen.out, seen.maybe_out), (3, Some(1), 0), "{seen:?}");
        }
    }

    #[test]
    fn more_sockets_than_one_datagram_holds_are_all_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut diag = ServerListener::of_port(address.port());
        let pairs: Vec<_> = (0..400)
            .map(|_| (TcpStream::connect(address).unwrap(), listener.accept().unwrap()))
            .collect();
        assert_eq!((diag.sample().unwrap().open, diag.sample().unwrap().accept_queue), (400, 0));
        drop(pairs);
    }

    #[test]
    fn where_nothing_listens_there_is_nothing_to_ask() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        assert_eq!(diag(port).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(ServerListener::of_port(port).source(), "/proc/net/tcp");
    }
}
