//! The server's TCP sockets as the kernel lists them in `/proc/net/tcp` and `tcp6`, which everybody may read.
//!
//! Of a listening socket the column `rx_queue` is the length of its accept queue (`sk_ack_backlog`; Linux
//! `net/ipv4/tcp_ipv4.c`, `get_tcp4_sock`); of a connection it is its unread bytes. Reading walks all sockets of the network
//! namespace: fine between runs, not for every millisecond.

use std::fs;
use std::io;

/// What the kernel holds for one server port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortSockets {
    /// Whether anything listens on the port.
    pub listening: bool,
    /// Connections that wait to be accepted.
    pub accept_queue: u32,
    /// The server's ends of connections that it has not closed yet, those in the accept queue included.
    pub open: u32,
    /// Those of them with bytes that the server has not read.
    pub unread: u32,
}

impl PortSockets {
    /// Whether the server has nothing left to do for anybody.
    pub fn is_idle(self) -> bool {
        self.accept_queue == 0 && self.open == 0
    }
}

/// The sockets of the local TCP port `port`, IPv4 and IPv6.
///
/// # Errors
/// Where `/proc/net/tcp` cannot be read.
pub fn of_port(port: u16) -> io::Result<PortSockets> {
    let mut sockets = PortSockets::default();
    add(&mut sockets, &fs::read_to_string("/proc/net/tcp")?, port);
    // Absent where the kernel has no IPv6.
    if let Ok(text) = fs::read_to_string("/proc/net/tcp6") {
        add(&mut sockets, &text, port);
    }
    Ok(sockets)
}

/// States in `/proc/net/tcp` (`include/net/tcp_states.h`).
const ESTABLISHED: &str = "01";
const CLOSE_WAIT: &str = "08";
const LISTEN: &str = "0A";

fn add(sockets: &mut PortSockets, table: &str, port: u16) {
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
                sockets.unread += u32::from(rx_queue > 0);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_kernels_table_is_understood() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:9C41 00000000:0000 0A 00000000:00000003 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0\n\
            1: 0100007F:9C41 0100007F:D431 01 00000000:00000011 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1\n\
            2: 0100007F:9C41 0100007F:D432 08 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1\n\
            3: 0100007F:9C41 0100007F:D433 06 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1\n\
            4: 0100007F:D431 0100007F:9C41 01 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1\n";
        let mut sockets = PortSockets::default();
        add(&mut sockets, table, 0x9C41);
        assert_eq!(sockets, PortSockets { listening: true, accept_queue: 3, open: 2, unread: 1 });
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
}
