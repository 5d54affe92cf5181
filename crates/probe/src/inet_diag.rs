//! The sockets of one TCP port by the kernel's `sock_diag` netlink (`sock_diag(7)`), which everybody may ask.
//!
//! Of a listener `idiag_rqueue` is the length of its accept queue and `idiag_wqueue` its limit; of a connection the first is
//! its unread bytes (`tcp_diag_get_info`, `net/ipv4/tcp_diag.c`). A connection that nobody has accepted yet has no inode.
//! The kernel walks its whole hash of sockets for a dump, but hands out those of the port alone, so that a look costs a
//! fraction of what `/proc/net/tcp` costs where there are many others.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

use crate::sockets::{AcceptQueue, ServerSockets, Socket};

/// Message types and flags (`linux/netlink.h`, `linux/sock_diag.h`).
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 0x001;
const NLM_F_DUMP: u16 = 0x300;

const IPPROTO_TCP: u8 = 6;
/// States (`include/net/tcp_states.h`).
const ESTABLISHED: u8 = 1;
const CLOSE_WAIT: u8 = 8;
const LISTEN: u8 = 10;

/// Bytes of `struct nlmsghdr`, `struct inet_diag_req_v2` and `struct inet_diag_msg` (`linux/inet_diag.h`).
const HEADER: usize = 16;
const REQUEST: usize = 56;
const MESSAGE: usize = 72;
/// Offsets in the last.
const STATE: usize = 1;
const SOURCE_PORT: usize = 4;
const RECEIVE_QUEUE: usize = 56;
const SEND_QUEUE: usize = 60;
const INODE: usize = 68;

/// The kernel writes no larger piece of a dump (`NLMSG_GOODSIZE` and what a reader offers, up to 32 KiB).
const BUFFER: usize = 64 * 1024;

/// A netlink socket that asks for one port.
#[derive(Debug)]
pub struct InetDiag {
    socket: OwnedFd,
    port: u16,
    families: Vec<u8>,
    sequence: u32,
    buffer: Vec<u8>,
}

impl InetDiag {
    /// Asks for those of the local port `port`, IPv4 and IPv6 alike, where there is a listener now.
    ///
    /// # Errors
    /// Where the kernel has no `sock_diag`, or nothing listens there.
    pub fn of_port(port: u16) -> io::Result<InetDiag> {
        let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(SOCK_DIAG))?;
        let families = [AddressFamily::INET, AddressFamily::INET6].map(|family| family.as_raw() as u8).to_vec();
        let mut diag = InetDiag { socket, port, families, sequence: 0, buffer: vec![0; BUFFER] };
        // A family without a listener has no connections either, and asking for them is half of the cost.
        let mut listening = Vec::new();
        for family in std::mem::take(&mut diag.families) {
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
        self.sequence = self.sequence.wrapping_add(1);
        let request = request(family, states, self.port, self.sequence);
        sendto(&self.socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        loop {
            let (_, length) = recv(&self.socket, &mut self.buffer[..], RecvFlags::TRUNC)?;
            let datagram = self.buffer.get(..length).ok_or_else(|| malformed("a longer answer than it ever writes"))?;
            if take(datagram, self.sequence, self.port, found)? {
                return Ok(());
            }
        }
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("sock_diag: {what}"))
}

/// `struct nlmsghdr` and `struct inet_diag_req_v2`: the source port filters, all else is any.
fn request(family: u8, states: u32, port: u16, sequence: u32) -> [u8; HEADER + REQUEST] {
    let mut bytes = [0; HEADER + REQUEST];
    let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
    put(0, &((HEADER + REQUEST) as u32).to_ne_bytes());
    put(4, &SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    put(6, &(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    put(8, &sequence.to_ne_bytes());
    put(HEADER, &[family, IPPROTO_TCP]);
    put(HEADER + 4, &states.to_ne_bytes());
    put(HEADER + 8, &port.to_be_bytes());
    bytes
}

/// Tells each socket of one datagram of the answer; `true` where it was the last.
fn take(mut datagram: &[u8], sequence: u32, port: u16, found: &mut dyn FnMut(&Socket)) -> io::Result<bool> {
    while !datagram.is_empty() {
        let field = |at: usize| datagram.get(at..at + 4).and_then(|four| four.try_into().ok()).map(u32::from_ne_bytes);
        let (Some(length), Some(kind), Some(of)) = (field(0), field(4), field(8)) else {
            return Err(malformed("a header is cut"));
        };
        let Some(body) = datagram.get(HEADER..length as usize) else { return Err(malformed("a message is cut")) };
        // The lower half of the second word is the type, the upper the flags.
        match kind.to_ne_bytes() {
            // The rest of a dump that was not read to its end.
            _ if of != sequence => {}
            [a, b, ..] if u16::from_ne_bytes([a, b]) == NLMSG_DONE => return Ok(true),
            [a, b, ..] if u16::from_ne_bytes([a, b]) == NLMSG_ERROR => {
                let code = body.get(..4).and_then(|four| four.try_into().ok()).map_or(0, i32::from_ne_bytes);
                return Err(io::Error::from_raw_os_error(code.wrapping_neg()));
            }
            _ => socket(body, port)?.iter().for_each(&mut *found),
        }
        datagram = datagram.get((length as usize).next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// One socket, where it is of that port and in a state that was asked for.
fn socket(message: &[u8], port: u16) -> io::Result<Option<Socket>> {
    let message = message.get(..MESSAGE).ok_or_else(|| malformed("a socket is cut"))?;
    let word = |at: usize| u32::from_ne_bytes([message[at], message[at + 1], message[at + 2], message[at + 3]]);
    if u16::from_be_bytes([message[SOURCE_PORT], message[SOURCE_PORT + 1]]) != port {
        return Ok(None);
    }
    let is_listener = message[STATE] == LISTEN;
    let is_ours = is_listener || [ESTABLISHED, CLOSE_WAIT].contains(&message[STATE]);
    Ok(is_ours.then(|| Socket {
        is_listener,
        inode: u64::from(word(INODE)),
        queue: Some(word(RECEIVE_QUEUE)),
        limit: is_listener.then(|| word(SEND_QUEUE)),
    }))
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

    #[test]
    fn an_answer_that_is_cut_or_an_error_is_no_count() {
        let mut never = |socket: &Socket| panic!("{socket:?}");
        assert!(take(&[1, 2, 3], 1, 80, &mut never).is_err());
        let mut error = [0; 36];
        error[..4].copy_from_slice(&36u32.to_ne_bytes());
        error[4..6].copy_from_slice(&NLMSG_ERROR.to_ne_bytes());
        error[8..12].copy_from_slice(&1u32.to_ne_bytes());
        error[16..20].copy_from_slice(&(-13i32).to_ne_bytes());
        assert_eq!(take(&error, 1, 80, &mut never).unwrap_err().raw_os_error(), Some(13));
        assert!(!take(&error, 2, 80, &mut never).unwrap(), "of an earlier question");
        let mut endless = error;
        endless[..4].copy_from_slice(&0u32.to_ne_bytes());
        assert!(take(&endless, 1, 80, &mut never).is_err(), "a length of 0 would never end");
    }
}
