//! The server's sockets as the kernel lists them in `/proc/net/tcp`, `tcp6` and `unix`, which everybody may read.
//!
//! Of a listening TCP socket the column `rx_queue` is the length of its accept queue (`sk_ack_backlog`; Linux
//! `net/ipv4/tcp_ipv4.c`, `get_tcp4_sock`); of a connection it is its unread bytes.
//!
//! Of a Unix socket there are no queues in the table, but the server's end of each connection has the listener's address,
//! path or abstract name alike, while ours has none (`net/unix/af_unix.c`, `unix_stream_connect`); before it is accepted it
//! is in state `SS_CONNECTING` and has no inode (`unix_seq_show`: no `sk_socket`). It stays, as with TCP, until the
//! server closes it, whatever we did.
//!
//! Reading walks all sockets of the network namespace: fine between runs, not for every millisecond.

use std::fs;
use std::io;

/// What the kernel holds for one listener of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerSockets {
    /// Whether anything listens there.
    pub listening: bool,
    /// Connections that wait to be accepted.
    pub accept_queue: u32,
    /// The server's ends of connections that it has not closed yet, those in the accept queue included.
    pub open: u32,
    /// Those of them with bytes that the server has not read; of a Unix socket the kernel does not tell.
    pub unread: Option<u32>,
    /// The longest accept queue that the listener allows; of the kernel's tables nobody can tell.
    pub limit: Option<u32>,
}

/// A listener's accept queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcceptQueue {
    /// Connections that wait to be accepted.
    pub length: u32,
    /// So many may; where the kernel tells.
    pub limit: Option<u32>,
}

/// One socket of a server: its listener, or its end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Whether it is a listener.
    pub is_listener: bool,
    /// Its number in `/proc/PID/fd`; 0 of a connection that nobody has accepted yet.
    pub inode: u64,
    /// Of a TCP listener the length of its accept queue, of a TCP connection its unread bytes; of Unix sockets the kernel does
    /// not tell.
    pub queue: Option<u32>,
    /// Of a listener the longest queue that it allows, where the kernel tells.
    pub limit: Option<u32>,
}

impl ServerSockets {
    /// Whether the server has nothing left to do for anybody.
    pub fn is_idle(self) -> bool {
        self.accept_queue == 0 && self.open == 0
    }

    /// The sum of these.
    pub(crate) fn of(sockets: &[Socket], unread: Option<u32>) -> ServerSockets {
        let mut seen = ServerSockets { unread, ..ServerSockets::default() };
        for socket in sockets {
            seen.add(socket);
        }
        seen
    }

    /// Adds one socket.
    pub(crate) fn add(&mut self, socket: &Socket) {
        if socket.is_listener {
            self.listening = true;
            self.accept_queue += socket.queue.unwrap_or(0);
            self.limit = socket.limit.map_or(self.limit, |limit| Some(self.limit.unwrap_or(0).saturating_add(limit)));
        } else {
            self.open += 1;
            match socket.queue {
                Some(bytes) => self.unread = self.unread.map(|unread| unread + u32::from(bytes > 0)),
                // A Unix listener has no length to tell: who waits there has no inode.
                None => self.accept_queue += u32::from(socket.inode == 0),
            }
        }
    }
}

/// The sockets of the local TCP port `port`, IPv4 and IPv6.
///
/// # Errors
/// Where `/proc/net/tcp` cannot be read.
pub fn of_port(port: u16) -> io::Result<ServerSockets> {
    Ok(ServerSockets::of(&all_of_port(port)?, Some(0)))
}

/// As [`of_port`], one by one.
///
/// # Errors
/// As [`of_port`].
pub(crate) fn all_of_port(port: u16) -> io::Result<Vec<Socket>> {
    let mut all = tcp(&fs::read_to_string("/proc/net/tcp")?, port);
    // Absent where the kernel has no IPv6.
    all.extend(tcp(&fs::read_to_string("/proc/net/tcp6").unwrap_or_default(), port));
    Ok(all)
}

/// The sockets of a Unix listener: its path as the server gave it to bind(2), or `@` and its abstract name.
///
/// # Errors
/// Where `/proc/net/unix` cannot be read.
pub fn of_unix(address: &str) -> io::Result<ServerSockets> {
    Ok(ServerSockets::of(&all_of_unix(address)?, None))
}

/// As [`of_unix`], one by one.
///
/// # Errors
/// As [`of_unix`].
pub(crate) fn all_of_unix(address: &str) -> io::Result<Vec<Socket>> {
    // Any byte may be in a path.
    let table = fs::read("/proc/net/unix")?;
    Ok(unix(&String::from_utf8_lossy(&table), address))
}

/// States in `/proc/net/tcp` (`include/net/tcp_states.h`).
const ESTABLISHED: &str = "01";
const CLOSE_WAIT: &str = "08";
const LISTEN: &str = "0A";

/// States in `/proc/net/unix` (`include/uapi/linux/net.h`), and the flag of a listener (`__SO_ACCEPTCON`).
const SS_CONNECTING: &str = "02";
const SS_CONNECTED: &str = "03";
const ACCEPTS: u32 = 1 << 16;

fn unix(table: &str, address: &str) -> Vec<Socket> {
    let of_line = |line: &str| {
        // Num: RefCount Protocol Flags Type St Inode Path; the inode is padded with blanks, the path may hold some.
        let rest = line.strip_suffix(address).filter(|rest| rest.ends_with(' '))?;
        let columns: Vec<&str> = rest.split_ascii_whitespace().collect();
        let [_, _, _, flags, _, state, inode] = columns[..] else { return None };
        let is_listener = u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & ACCEPTS != 0);
        let is_open = state == SS_CONNECTED || state == SS_CONNECTING;
        let inode = inode.parse().ok()?;
        (is_listener || is_open).then_some(Socket { is_listener, inode, queue: None, limit: None })
    };
    table.lines().skip(1).filter_map(of_line).collect()
}

fn tcp(table: &str, port: u16) -> Vec<Socket> {
    let of_line = |line: &str| {
        // sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode
        let columns: Vec<&str> = line.split_ascii_whitespace().take(10).collect();
        let [_, local, _, state, queues, _, _, _, _, inode] = columns[..] else { return None };
        let hex = |text: &str| u32::from_str_radix(text, 16).ok();
        if local.rsplit_once(':').and_then(|(_, p)| hex(p)) != Some(u32::from(port)) {
            return None;
        }
        let is_listener = state == LISTEN;
        let queue = Some(queues.split_once(':').and_then(|(_, rx)| hex(rx)).unwrap_or(0));
        let inode = inode.parse().ok()?;
        let is_ours = is_listener || state == ESTABLISHED || state == CLOSE_WAIT;
        is_ours.then_some(Socket { is_listener, inode, queue, limit: None })
    };
    table.lines().skip(1).filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

    #[test]
    fn the_kernels_table_is_understood() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:9C41 00000000:0000 0A 00000000:00000003 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0\n\
            1: 0100007F:9C41 0100007F:D431 01 00000000:00000011 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1\n\
            2: 0100007F:9C41 0100007F:D432 08 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1\n\
            3: 0100007F:9C41 0100007F:D433 06 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1\n\
            4: 0100007F:D431 0100007F:9C41 01 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1\n";
        let all = tcp(table, 0x9C41);
        assert_eq!(all.iter().map(|socket| socket.inode).collect::<Vec<_>>(), [1, 0, 0]);
        let sockets = ServerSockets::of(&all, Some(0));
        assert_eq!(sockets, ServerSockets { listening: true, accept_queue: 3, open: 2, unread: Some(1), limit: None });
    }

    #[test]
    fn a_connection_that_nobody_accepts_is_in_the_queue() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(of_port(port).unwrap().is_idle());
        let _client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let sockets = of_port(port).unwrap();
        assert_eq!((sockets.listening, sockets.accept_queue), (true, 1));
        assert!(!sockets.is_idle());
        drop(listener);
        assert!(!of_port(port).unwrap().listening);
    }

    #[test]
    fn the_kernels_table_of_unix_sockets_is_understood() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000067e515bb: 00000003 00000000 00000000 0001 03 2821347 /run/a b.sock\n\
            0000000067e515bc: 00000002 00000000 00000000 0001 03 2821348 /run/a b.sock\n\
            000000007b1e4854: 00000003 00000000 00000000 0001 02     0 /run/a b.sock\n\
            0000000003027b53: 00000002 00000000 00010000 0001 01 2821344 /run/a b.sock\n\
            0000000003027b54: 00000002 00000000 00010000 0001 01 2821345 b.sock\n\
            0000000003027b55: 00000003 00000000 00000000 0001 03 2821346 /x/run/a b.sock\n\
            00000000a3c3fbdf: 00000003 00000000 00000000 0001 03 2817629\n\
            0000000003027b53: 00000003 00000000 00000000 0001 02     0 @name\n";
        let of = |address| ServerSockets::of(&unix(table, address), None);
        assert_eq!(
            of("/run/a b.sock"),
            ServerSockets { listening: true, accept_queue: 1, open: 3, ..ServerSockets::default() }
        );
        assert_eq!(of("@name"), ServerSockets { accept_queue: 1, open: 1, ..ServerSockets::default() });
        assert_eq!(of("name"), ServerSockets::default());
    }

    /// Until the server has closed its ends, and whatever the clients do, it is not idle.
    fn unix_connections_are_the_servers_until_it_closes_them(name: &str, address: &SocketAddr) {
        let listener = UnixListener::bind_addr(address).unwrap();
        let seen = || of_unix(name).unwrap();
        assert!(seen().listening && seen().is_idle());
        let clients = [(); 2].map(|()| UnixStream::connect_addr(address).unwrap());
        assert_eq!((seen().open, seen().accept_queue), (2, 2));
        let (accepted, _) = listener.accept().unwrap();
        assert_eq!((seen().open, seen().accept_queue), (2, 1));
        drop(clients);
        assert_eq!((seen().open, seen().accept_queue), (2, 1));
        drop(accepted);
        drop(listener.accept().unwrap());
        assert!(seen().listening && seen().is_idle());
        drop(listener);
        assert!(!seen().listening);
    }

    #[test]
    fn a_unix_socket_with_a_path_is_known_by_it() {
        let path = std::env::temp_dir().join(format!("probe of {}.sock", std::process::id()));
        let address = SocketAddr::from_pathname(&path).unwrap();
        unix_connections_are_the_servers_until_it_closes_them(path.to_str().unwrap(), &address);
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn an_abstract_unix_socket_is_known_by_its_name() {
        let name = format!("probe of {}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        unix_connections_are_the_servers_until_it_closes_them(&format!("@{name}"), &address);
    }
}
