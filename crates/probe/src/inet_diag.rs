//! The sockets of one TCP port, by `sock_diag`.
//!
//! Of a listener `idiag_rqueue` is the length of its accept queue and `idiag_wqueue` its limit; of a connection the first is
//! its unread bytes (`tcp_diag_get_info`, `net/ipv4/tcp_diag.c`). A connection that nobody has accepted yet has no inode.
//! The kernel walks its whole hash of sockets for a dump, but hands out those of the port alone, so that a look costs a
//! fraction of what `/proc/net/tcp` costs where there are many others.

use std::io;

use crate::sock_diag::{CLOSE_WAIT, ESTABLISHED, FAMILIES, LISTEN, Message, SockDiag};
use crate::sockets::{AcceptQueue, ServerSockets, Socket};

/// Asks for one port.
#[derive(Debug)]
pub struct InetDiag {
    kernel: SockDiag,
    port: u16,
    families: Vec<u8>,
}

impl InetDiag {
    /// Asks for those of the local port `port`, IPv4 and IPv6 alike, where there is a listener now.
    ///
    /// # Errors
    /// Where the kernel has no `sock_diag`, or nothing listens there.
    pub fn of_port(port: u16) -> io::Result<InetDiag> {
        let mut diag = InetDiag { kernel: SockDiag::open()?, port, families: Vec::new() };
        // A family without a listener has no connections either, and asking for them is half of the cost.
        let mut listening = Vec::new();
        for family in FAMILIES {
            let mut seen = ServerSockets::default();
            // The kernel may lack IPv6.
            if diag.ask(family, 1 << LISTEN, &mut |socket| seen.add(socket)).is_ok() && seen.listening {
                listening.push(family);
            }
        }
        if listening.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("nothing listens on port {port}")));
        }
        diag.families = listening;
        Ok(diag)
    }

    /// What the kernel holds now.
    ///
    /// # Errors
    /// Where the kernel does not answer as it should.
    pub fn look(&mut self) -> io::Result<ServerSockets> {
        let mut seen = ServerSockets { unread: Some(0), ..ServerSockets::default() };
        self.each(1 << LISTEN | 1 << ESTABLISHED | 1 << CLOSE_WAIT, &mut |socket| seen.add(socket))?;
        Ok(seen)
    }

    /// As [`InetDiag::look`], one by one.
    ///
    /// # Errors
    /// As [`InetDiag::look`].
    pub(crate) fn all(&mut self) -> io::Result<Vec<Socket>> {
        let mut all = Vec::new();
        self.each(1 << LISTEN | 1 << ESTABLISHED | 1 << CLOSE_WAIT, &mut |socket| all.push(*socket))?;
        Ok(all)
    }

    /// The accept queue alone. Only the hash of listeners is walked, a hundredth of the work.
    ///
    /// # Errors
    /// As [`InetDiag::look`].
    pub fn queue(&mut self) -> io::Result<AcceptQueue> {
        let mut seen = ServerSockets::default();
        self.each(1 << LISTEN, &mut |socket| seen.add(socket))?;
        Ok(AcceptQueue { length: seen.accept_queue, limit: seen.limit })
    }

    /// Every socket in these states.
    fn each(&mut self, states: u32, found: &mut dyn FnMut(&Socket)) -> io::Result<()> {
        (0..self.families.len()).try_for_each(|at| self.ask(self.families[at], states, found))
    }

    /// One dump of the sockets of a family that are in these states.
    fn ask(&mut self, family: u8, states: u32, found: &mut dyn FnMut(&Socket)) -> io::Result<()> {
        self.kernel.ask(family, states, self.port, &mut |message| found(&socket(message)))
    }
}

fn socket(message: Message<'_>) -> Socket {
    let is_listener = message.state() == LISTEN;
    Socket {
        is_listener,
        inode: message.inode(),
        queue: Some(message.receive_queue()),
        limit: is_listener.then(|| message.send_queue()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    /// Both ways of asking the kernel must agree, whatever is connected.
    #[test]
    fn what_sock_diag_tells_is_what_the_table_tells() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let port = listener.local_addr().unwrap().port();
            let mut diag = InetDiag::of_port(port).unwrap();
            let seen = diag.look().unwrap();
            assert!(seen.listening && seen.is_idle() && seen.limit.is_some_and(|limit| limit > 0), "{seen:?}");
            let mut clients: Vec<_> =
                (0..5).map(|_| TcpStream::connect(listener.local_addr().unwrap()).unwrap()).collect();
            let accepted: Vec<_> = (0..2).map(|_| listener.accept().unwrap()).collect();
            clients[4].write_all(b"x").unwrap();
            // What is sent over loopback may be on its way for a moment, on a machine that is busy.
            let expected = (3, 5, Some(1));
            let is_there = |seen: &ServerSockets| (seen.accept_queue, seen.open, seen.unread) == expected;
            let mut looks = std::iter::repeat_with(|| diag.look().unwrap()).take(1_000_000);
            let seen = looks.find(is_there).unwrap_or_else(|| panic!("{:?}", InetDiag::of_port(port).unwrap().look()));
            assert_eq!(diag.queue().unwrap(), AcceptQueue { length: 3, limit: seen.limit });
            // The table is no snapshot: a read of it may miss a socket, or show it twice, where others come and go meanwhile.
            let table = || crate::sockets::of_port(port).unwrap();
            let agrees = (0..10_000).any(|_| ServerSockets { limit: None, ..seen } == table());
            assert!(agrees, "{seen:?}, and the table {:?}", table());
            // One by one too, and who is not accepted yet has no inode in either.
            let inodes = |all: Vec<Socket>| {
                let mut inodes: Vec<u64> = all.iter().map(|socket| socket.inode).collect();
                inodes.sort_unstable();
                inodes
            };
            let one_by_one = inodes(diag.all().unwrap());
            let table = || inodes(crate::sockets::all_of_port(port).unwrap());
            assert!((0..10_000).any(|_| one_by_one == table()), "{one_by_one:?}, and the table {:?}", table());
            assert_eq!(one_by_one.iter().filter(|inode| **inode == 0).count(), 3);
            drop((clients, accepted));
        }
    }

    #[test]
    fn more_sockets_than_one_datagram_holds_are_all_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut diag = InetDiag::of_port(address.port()).unwrap();
        let pairs: Vec<_> =
            (0..400).map(|_| (TcpStream::connect(address).unwrap(), listener.accept().unwrap())).collect();
        assert_eq!((diag.look().unwrap().open, diag.look().unwrap().accept_queue), (400, 0));
        drop(pairs);
    }

    #[test]
    fn where_nothing_listens_there_is_nothing_to_ask() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        assert_eq!(InetDiag::of_port(port).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
