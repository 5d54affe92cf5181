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

impl ServerSockets {
    /// Whether the server has nothing left to do for anybody.
    pub fn is_idle(self) -> bool {
        self.accept_queue == 0 && self.open == 0
    }
}

/// The sockets of the local TCP port `port`, IPv4 and IPv6.
///
/// # Errors
/// Where `/proc/net/tcp` cannot be read.
pub fn of_port(port: u16) -> io::Result<ServerSockets> {
    let mut sockets = ServerSockets { unread: Some(0), ..ServerSockets::default() };
    add(&mut sockets, &fs::read_to_string("/proc/net/tcp")?, port);
    // Absent where the kernel has no IPv6.
    if let Ok(text) = fs::read_to_string("/proc/net/tcp6") {
        add(&mut sockets, &text, port);
    }
    Ok(sockets)
}

/// The sockets of a Unix listener: its path as the server gave it to bind(2), or `@` and its abstract name.
///
/// # Errors
/// Where `/proc/net/unix` cannot be read.
pub fn of_unix(address: &str) -> io::Result<ServerSockets> {
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

fn unix(table: &str, address: &str) -> ServerSockets {
    let mut sockets = ServerSockets::default();
    for line in table.lines().skip(1) {
        // Num: RefCount Protocol Flags Type St Inode Path; the inode is padded with blanks, the path may hold some.
        let Some(rest) = line.strip_suffix(address).filter(|rest| rest.ends_with(' ')) else { continue };
        let columns: Vec<&str> = rest.split_ascii_whitespace().collect();
        let [_, _, _, flags, _, state, inode] = columns[..] else { continue };
        if u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & ACCEPTS != 0) {
            sockets.listening = true;
        } else if state == SS_CONNECTED || state == SS_CONNECTING {
            sockets.open += 1;
            sockets.accept_queue += u32::from(inode == "0");
        }
    }
    sockets
}

fn add(sockets: &mut ServerSockets, table: &str, port: u16) {
    for line in table.lines().skip(1) {
        let mut columns = line.split_ascii_whitespace().skip(1);
        let (Some(local), Some(_), Some(state), Some(queues)) =
            (columns.next(), columns.next(), columns.next(), columns.next())
        else {
            continue;
        };
        let hex = |text: &str| u32::from_str_radix(text, 16).ok();
        if local.rsplit_once(':').and_then(|(_, p)| hex(p)) != Some(u32::from(port)) {
            continue;
        }
        let rx_queue = queues.split_once(':').and_then(|(_, rx)| hex(rx)).unwrap_or(0);
        match state {
            LISTEN => {
                sockets.listening = true;
                sockets.accept_queue += rx_queue;
            }
            ESTABLISHED | CLOSE_WAIT => {
                sockets.open += 1;
                sockets.unread = sockets.unread.map(|unread| unread + u32::from(rx_queue > 0));
            }
            _ => {}
        }
    }
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
        let mut sockets = ServerSockets { unread: Some(0), ..ServerSockets::default() };
        add(&mut sockets, table, 0x9C41);
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
        let of = |address| unix(table, address);
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
