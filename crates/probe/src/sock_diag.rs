//! Lists the kernel's TCP sockets by `sock_diag` netlink (`sock_diag(7)`). Needs no privilege.
//!
//! For a dump of listeners the kernel walks only their small hash; for `/proc/net/tcp` it walks
//! that of all connections, too, and prints each.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use crate::last_word::{LastWord, most_answered};
use model::Endpoint;
use rustix::io::Errno;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, sendto, socket_with,
};

/// A socket as the kernel lists it: a listener, or the end of a connection that is not closed on
/// this side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSocket {
    /// Where it is bound; the server's end of a connection has the address of its listener.
    pub place: Endpoint,
    /// Whether it is a listener.
    pub is_listener: bool,
    /// Its number in `/proc/PID/fd`; 0 for a connection that nobody has accepted yet.
    pub inode: u64,
    /// The length of a TCP listener's accept queue, or the unread bytes of a TCP connection; the
    /// kernel does not tell for Unix sockets.
    pub queue: Option<u32>,
    /// The longest queue that a listener allows, if the kernel tells.
    pub limit: Option<u32>,
    /// The user that owns it; the kernel's table does not tell for Unix sockets.
    pub user: Option<u32>,
    /// Whether a listener takes IPv6 alone (`IPV6_V6ONLY`). False if the kernel does not say,
    /// because a listener at `[::]` takes both unless that option is set.
    pub is_v6_only: bool,
    /// Who sent the last byte on a TCP connection, if that was asked for and the kernel tells.
    pub last_word: Option<LastWord>,
    /// The port at the other end of a TCP connection, if the kernel tells.
    pub peer_port: Option<u16>,
    /// Bytes that this end of a TCP connection received, if last words were asked for and the kernel
    /// tells.
    pub received: Option<u64>,
    /// How many requests this end of a TCP connection has answered, at most, under the same conditions.
    pub answered: Option<u32>,
    /// The kernel's own number of it, which no other socket gets; 0 from the tables in `/proc`.
    pub cookie: u64,
}

impl KernelSocket {
    /// Whether it is a connection that the server has accepted.
    pub(crate) fn is_accepted(&self) -> bool {
        !self.is_listener && self.inode != 0
    }

    /// Whether a request certainly has no response yet: the server has not read everything, or the
    /// last byte came from the client.
    pub(crate) fn has_request_out(&self) -> bool {
        let is_unread = !self.is_listener && self.queue > Some(0);
        is_unread || self.last_word == Some(LastWord::Client)
    }
}

/// States (`include/net/tcp_states.h`).
pub(crate) const ESTABLISHED: u8 = 1;
const CLOSED: u8 = 7;
pub(crate) const CLOSE_WAIT: u8 = 8;
pub(crate) const LISTEN: u8 = 10;

/// Message types and flags (`linux/netlink.h`, `linux/sock_diag.h`).
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 0x001;
const NLM_F_DUMP: u16 = 0x300;

const IPPROTO_TCP: u8 = 6;
/// IPv4 and IPv6, which are asked for one by one; a kernel may lack the second.
pub(crate) const FAMILIES: [u8; 2] =
    [AddressFamily::INET.as_raw() as u8, AddressFamily::INET6.as_raw() as u8];

/// Bytes of `struct nlmsghdr`, `struct inet_diag_req_v2` and `struct inet_diag_msg`
/// (`linux/inet_diag.h`).
const HEADER: usize = 16;
const REQUEST: usize = 56;
const MESSAGE: usize = 72;
/// Offsets in `struct inet_diag_msg`.
const FAMILY: usize = 0;
const STATE: usize = 1;
const SOURCE_PORT: usize = 4;
const PEER_PORT: usize = 6;
const SOURCE: usize = 8;
const COOKIE: usize = 44;
const RECEIVE_QUEUE: usize = 56;
const SEND_QUEUE: usize = 60;
const USER: usize = 64;
const INODE: usize = 68;

/// Attributes (`struct rtattr`) may follow that message. Each is a length, which includes this
/// header, a type, and a value, which begins at this offset.
const VALUE: usize = 4;
/// One byte, 1 where a socket of IPv6 takes no IPv4 (`IPV6_V6ONLY`). The kernel sends it for each
/// IPv6 listener unasked (`inet_diag_msg_attrs_fill`, `net/ipv4/inet_diag.c`); old kernels do not
/// know it.
const INET_DIAG_SKV6ONLY: u16 = 11;
/// `struct tcp_info`, which the kernel sends if the bit of its type is set in the request's
/// `idiag_ext`.
const INET_DIAG_INFO: u16 = 2;
/// Offset of `tcpi_bytes_received` in it.
const BYTES_RECEIVED: usize = 128;

/// Larger than any part of a dump that the kernel writes (`NLMSG_GOODSIZE`, or up to 32 KiB if the
/// reader offers that much).
const BUFFER: usize = 64 * 1024;

/// A question for sockets in one of these states (bit 1 is state 1) that are bound to this port; 0
/// is any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SocketQuery {
    pub(crate) states: u32,
    pub(crate) port: u16,
    /// Whether to ask who sent the last byte on each connection.
    pub(crate) has_last_words: bool,
}

impl SocketQuery {
    /// Listeners.
    pub(crate) fn listeners(port: u16) -> SocketQuery {
        SocketQuery { states: 1 << LISTEN, port, has_last_words: false }
    }

    /// Reads one socket from `struct inet_diag_msg` and the attributes behind it. The kernel
    /// filters by state and port; the filter is checked here again.
    fn socket(self, message: &[u8; MESSAGE], attributes: &[u8]) -> Option<KernelSocket> {
        fn bytes<const N: usize>(message: &[u8; MESSAGE], at: usize) -> [u8; N] {
            std::array::from_fn(|n| message[at + n])
        }
        let word = |at: usize| u32::from_ne_bytes(bytes(message, at));
        let ip = if message[FAMILY] == FAMILIES[0] {
            IpAddr::V4(Ipv4Addr::from(bytes::<4>(message, SOURCE)))
        } else {
            IpAddr::V6(Ipv6Addr::from(bytes::<16>(message, SOURCE)))
        };
        let state = message[STATE];
        let port = u16::from_be_bytes(bytes(message, SOURCE_PORT));
        let is_state =
            1_u32.checked_shl(state.into()).is_some_and(|state| self.states & state != 0);
        let is_asked_for = is_state && (self.port == 0 || port == self.port);
        let info = attribute(attributes, INET_DIAG_INFO)
            .filter(|_| self.has_last_words && state != LISTEN);
        is_asked_for.then(|| KernelSocket {
            place: Endpoint::Tcp(SocketAddr::new(ip, port)),
            is_listener: state == LISTEN,
            inode: u64::from(word(INODE)),
            queue: Some(word(RECEIVE_QUEUE)),
            limit: (state == LISTEN).then(|| word(SEND_QUEUE)),
            user: Some(word(USER)),
            is_v6_only: attribute(attributes, INET_DIAG_SKV6ONLY)
                .and_then(<[u8]>::first)
                .is_some_and(|byte| *byte != 0),
            last_word: info.and_then(LastWord::of),
            peer_port: (state != LISTEN).then(|| u16::from_be_bytes(bytes(message, PEER_PORT))),
            received: info.and_then(bytes_received),
            answered: info.and_then(most_answered),
            cookie: u64::from_ne_bytes(bytes(message, COOKIE)),
        })
    }
}

fn bytes_received(info: &[u8]) -> Option<u64> {
    let bytes = info.get(BYTES_RECEIVED..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*bytes))
}

/// The value of the first attribute of this type.
fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let header: [u8; VALUE] = *attributes.first_chunk()?;
        let [length, kind] =
            [[header[0], header[1]], [header[2], header[3]]].map(u16::from_ne_bytes);
        let length = usize::from(length);
        let value = attributes.get(VALUE..length)?;
        if kind == wanted {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

/// A netlink socket for these questions.
#[derive(Debug)]
pub(crate) struct SockDiag {
    socket: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

impl SockDiag {
    /// # Errors
    /// If the kernel has no `sock_diag`, or this process may not use it.
    pub(crate) fn open() -> io::Result<SockDiag> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            Some(SOCK_DIAG),
        )?;
        Ok(SockDiag { socket, sequence: 0, buffer: vec![0; BUFFER] })
    }

    /// The attributes of one Unix socket.
    fn ask_unix(&mut self, inode: u32, wanted: u32) -> Option<Vec<u8>> {
        /// Bytes of `struct unix_diag_req` and `struct unix_diag_msg`.
        const UNIX_REQUEST: usize = 24;
        const UNIX_MESSAGE: usize = 16;
        self.sequence = self.sequence.wrapping_add(1);
        let mut request = [0; HEADER + UNIX_REQUEST];
        let mut put =
            |at: usize, field: &[u8]| request[at..at + field.len()].copy_from_slice(field);
        put(0, &((HEADER + UNIX_REQUEST) as u32).to_ne_bytes());
        put(4, &SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        put(6, &NLM_F_REQUEST.to_ne_bytes());
        put(8, &self.sequence.to_ne_bytes());
        put(HEADER, &[AddressFamily::UNIX.as_raw() as u8]);
        put(HEADER + 4, &u32::MAX.to_ne_bytes());
        put(HEADER + 8, &inode.to_ne_bytes());
        put(HEADER + 12, &wanted.to_ne_bytes());
        // Any cookie.
        put(HEADER + 16, &[0xff; 8]);
        sendto(&self.socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0)).ok()?;
        let (_, length) = recv(&self.socket, &mut self.buffer[..], RecvFlags::TRUNC).ok()?;
        let datagram = self.buffer.get(..length)?;
        let kind = u16::from_ne_bytes([*datagram.get(4)?, *datagram.get(5)?]);
        let is_socket = kind == SOCK_DIAG_BY_FAMILY;
        is_socket.then(|| Some(datagram.get(HEADER + UNIX_MESSAGE..)?.to_vec()))?
    }

    /// The TCP sockets of these families that match the question.
    ///
    /// # Errors
    /// If the kernel does not know a family, or does not respond as it should.
    pub(crate) fn ask(
        &mut self,
        families: &[u8],
        query: SocketQuery,
    ) -> io::Result<Vec<KernelSocket>> {
        let mut found = Vec::new();
        for family in families {
            self.sequence = self.sequence.wrapping_add(1);
            let request = request(*family, query, self.sequence);
            sendto(&self.socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
            let mut is_last = false;
            while !is_last {
                let (_, length) = recv(&self.socket, &mut self.buffer[..], RecvFlags::TRUNC)?;
                let datagram = self
                    .buffer
                    .get(..length)
                    .ok_or_else(|| malformed("a longer answer than it ever writes"))?;
                is_last = take(datagram, self.sequence, query, &mut found)?;
            }
        }
        Ok(found)
    }
}

/// Hears of each TCP connection at one port when its end here is done with, with its last counts. The
/// kernel tells it to everybody (`SKNLGRP_INET_TCP_DESTROY`, Linux 4.2 and later).
#[derive(Debug)]
pub(crate) struct ClosedConnections {
    socket: OwnedFd,
    port: u16,
    buffer: Vec<u8>,
}

impl ClosedConnections {
    /// # Errors
    /// If the kernel has no `sock_diag`, or this process may not hear that.
    pub(crate) fn at(port: u16) -> io::Result<ClosedConnections> {
        /// The group's bit.
        const TCP_DESTROY: u32 = 1;
        /// Bytes: room for some thousands. Only root gets more than the system's default.
        const ROOM: usize = 4 << 20;
        let SockDiag { socket, buffer, .. } = SockDiag::open()?;
        set_socket_recv_buffer_size_force(&socket, ROOM)
            .or_else(|_| set_socket_recv_buffer_size(&socket, ROOM))?;
        bind(&socket, &SocketAddrNetlink::new(0, TCP_DESTROY))?;
        Ok(ClosedConnections { socket, port, buffer })
    }

    /// Those that were closed since the last question.
    ///
    /// # Errors
    /// If there were so many that the kernel has dropped some; what is in its buffer remains to be
    /// taken.
    pub(crate) fn take(&mut self) -> io::Result<Vec<KernelSocket>> {
        /// These are no answers to a question.
        const SEQUENCE: u32 = 0;
        let query = SocketQuery { states: 1 << CLOSED, port: self.port, has_last_words: true };
        let flags = RecvFlags::TRUNC | RecvFlags::DONTWAIT;
        let mut found = Vec::new();
        loop {
            let length = match recv(&self.socket, &mut self.buffer[..], flags) {
                Ok((_, length)) => length,
                Err(Errno::AGAIN) => return Ok(found),
                Err(error) => return Err(error.into()),
            };
            let datagram =
                self.buffer.get(..length).ok_or_else(|| malformed("a longer message"))?;
            take(datagram, SEQUENCE, query, &mut found)?;
        }
    }
}

/// Where the other end of a connected Unix socket is bound, by this end's inode: a path, or `@` and an
/// abstract name. `None` if that end has no name, as a client's has not, or the kernel does not tell.
pub(crate) fn unix_peer(inode: u32) -> Option<String> {
    /// Attributes of `struct unix_diag_msg`, and the bits that ask for them (`linux/unix_diag.h`).
    const UNIX_DIAG_NAME: u16 = 0;
    const UNIX_DIAG_PEER: u16 = 2;
    let mut kernel = SockDiag::open().ok()?;
    let peer = kernel.ask_unix(inode, 1 << UNIX_DIAG_PEER)?;
    let peer = u32::from_ne_bytes(*attribute(&peer, UNIX_DIAG_PEER)?.first_chunk()?);
    let attributes = kernel.ask_unix(peer, 1 << UNIX_DIAG_NAME)?;
    let name = attribute(&attributes, UNIX_DIAG_NAME)?;
    let (mark, name) = match name.strip_prefix(&[0]) {
        Some(name) => ("@", name),
        None => ("", name),
    };
    let name = String::from_utf8_lossy(name);
    Some(format!("{mark}{}", name.trim_end_matches('\0'))).filter(|name| !name.is_empty())
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("sock_diag: {what}"))
}

/// `struct nlmsghdr` and `struct inet_diag_req_v2`: the source port filters, everything else
/// matches any.
fn request(family: u8, query: SocketQuery, sequence: u32) -> [u8; HEADER + REQUEST] {
    let mut bytes = [0; HEADER + REQUEST];
    let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
    put(0, &((HEADER + REQUEST) as u32).to_ne_bytes());
    put(4, &SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    put(6, &(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    put(8, &sequence.to_ne_bytes());
    let wanted = if query.has_last_words { 1 << (INET_DIAG_INFO - 1) } else { 0 };
    put(HEADER, &[family, IPPROTO_TCP, wanted]);
    put(HEADER + 4, &query.states.to_ne_bytes());
    put(HEADER + 8, &query.port.to_be_bytes());
    bytes
}

/// Adds the sockets of one datagram of the response; `true` if it was the last.
fn take(
    mut datagram: &[u8],
    sequence: u32,
    query: SocketQuery,
    found: &mut Vec<KernelSocket>,
) -> io::Result<bool> {
    while !datagram.is_empty() {
        let field = |at: usize| {
            datagram.get(at..at + 4).and_then(|four| four.try_into().ok()).map(u32::from_ne_bytes)
        };
        let (Some(length), Some(kind), Some(of)) = (field(0), field(4), field(8)) else {
            return Err(malformed("a header is cut"));
        };
        let Some(body) = datagram.get(HEADER..length as usize) else {
            return Err(malformed("a message is cut"));
        };
        // The lower half of the second word is the type, the upper the flags.
        match kind.to_ne_bytes() {
            // The rest of an earlier dump that was not read to its end.
            _ if of != sequence => {}
            [a, b, ..] if u16::from_ne_bytes([a, b]) == NLMSG_DONE => return Ok(true),
            [a, b, ..] if u16::from_ne_bytes([a, b]) == NLMSG_ERROR => {
                let code = body
                    .get(..4)
                    .and_then(|four| four.try_into().ok())
                    .map_or(0, i32::from_ne_bytes);
                return Err(io::Error::from_raw_os_error(code.wrapping_neg()));
            }
            _ => {
                let split = body.split_first_chunk::<MESSAGE>();
                let (message, attributes) = split.ok_or_else(|| malformed("a socket is cut"))?;
                found.extend(query.socket(message, attributes));
            }
        }
        datagram = datagram.get((length as usize).next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_is_found_behind_others_and_never_where_it_is_cut() {
        let attribute_of = |length: u16, kind: u16, value: &[u8]| {
            [&length.to_ne_bytes(), &kind.to_ne_bytes(), value].concat()
        };
        let other = attribute_of(5, 8, &[7, 0, 0, 0]);
        let all = [other.clone(), attribute_of(5, INET_DIAG_SKV6ONLY, &[1, 0, 0, 0])].concat();
        assert_eq!(attribute(&all, INET_DIAG_SKV6ONLY), Some(&[1][..]));
        assert_eq!(attribute(&all, 9), None);
        assert_eq!(attribute(&[], 8), None);
        for cut in 0..all.len() - 3 {
            assert_eq!(attribute(&all[..cut], INET_DIAG_SKV6ONLY), None, "{cut}");
        }
        // A length of 0 would loop for ever.
        assert_eq!(attribute(&attribute_of(0, 8, &[0; 4]), 9), None);
    }

    #[test]
    fn an_answer_that_is_cut_or_an_error_is_no_count() {
        let query = SocketQuery { states: u32::MAX, port: 0, has_last_words: false };
        let mut found = Vec::new();
        let mut take =
            |datagram: &[u8], sequence| super::take(datagram, sequence, query, &mut found);
        assert!(take(&[1, 2, 3], 1).is_err());
        let mut error = [0; 36];
        error[..4].copy_from_slice(&36u32.to_ne_bytes());
        error[4..6].copy_from_slice(&NLMSG_ERROR.to_ne_bytes());
        error[8..12].copy_from_slice(&1u32.to_ne_bytes());
        error[16..20].copy_from_slice(&(-13i32).to_ne_bytes());
        assert_eq!(take(&error, 1).unwrap_err().raw_os_error(), Some(13));
        assert!(!take(&error, 2).unwrap(), "of an earlier question");
        let mut endless = error;
        endless[..4].copy_from_slice(&0u32.to_ne_bytes());
        assert!(take(&endless, 1).is_err(), "a length of 0 would never end");
        assert_eq!(found, []);
    }
}
