//! What a lane needs of the operating system: numbered connections, and a wait for their events;
//! and plain sockets, which provide that.
//!
//! [`ConnectionDriver`] is the one trait between the request loop and the sockets, so that the loop
//! runs under a scripted wire and a stepped clock in tests. It is generic, never dynamic: the
//! compiler makes one loop per wire.

use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use model::{Nanos, Timestamps};
use nix::libc;
use poller::{EventFlags, Poller};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, connect, getpeername, recv, send, sockopt};

use crate::kernel_timestamps::{self, ArrivalStamps};
use crate::transport::{ConnectAddress, Transport, bind_source, own_address, stream};

/// News of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionEvent {
    /// The connection.
    pub slot: u32,
    /// What is new of it, as `epoll_ctl(2)` names it.
    pub flags: EventFlags,
}

impl ConnectionEvent {
    /// Whether bytes, an end or an error can be received.
    #[inline]
    pub fn is_readable(self) -> bool {
        self.flags.intersects(EventFlags::IN.union(CLOSING))
    }

    /// Whether bytes can be sent, or a connect has ended.
    #[inline]
    pub fn is_writable(self) -> bool {
        self.flags.intersects(EventFlags::OUT.union(EventFlags::ERR).union(EventFlags::HUP))
    }

    /// Whether the peer has closed its half, or the connection is broken: read until the end is
    /// seen.
    #[inline]
    pub fn is_closing(self) -> bool {
        self.flags.intersects(CLOSING)
    }
}

const CLOSING: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);

/// Whether an operation could do nothing for now, and an event will say when to try again.
#[inline]
pub(crate) fn would_block(errno: Errno) -> bool {
    matches!(errno, Errno::AGAIN | Errno::INTR | Errno::INPROGRESS)
}

/// Whether the connection is gone: reset, or written to after it was closed.
pub(crate) fn is_reset(errno: Errno) -> bool {
    matches!(errno, Errno::CONNRESET | Errno::PIPE | Errno::NOTCONN | Errno::CONNABORTED)
}

/// Nonblocking connections, by number (slot). Errors are the kernel's; a TLS session that fails is
/// `EPROTO`.
pub trait ConnectionDriver {
    /// Starts to open the connection. It is open when a send succeeds. Until then sends would
    /// block, and are tried again at each event of any kind (a handshake goes both ways).
    ///
    /// # Errors
    /// If the start of it fails.
    fn open(&mut self, slot: usize) -> Result<(), Errno>;

    /// Whether the socket of a connection that is being opened is connected, so that what is still
    /// missing is a handshake.
    fn is_connected(&self, slot: usize) -> bool;

    /// Our end's port, from the start of the connect on; `None` if there is none.
    fn local_port(&self, _slot: usize) -> Option<u16> {
        None
    }

    /// Whether bytes are there on a connection that is being opened, before anything was sent on
    /// it; `false` if that is unknown.
    fn has_unasked(&self, _slot: usize) -> bool {
        false
    }

    /// What TCP tells of the connection; `None` if it is no TCP connection.
    fn tcp_info(&self, _slot: usize) -> Option<TcpInfo> {
        None
    }

    /// Waits for news of any connection, `at_most` this long, and replaces `events` by it (none if
    /// the time is over).
    fn wait(&mut self, at_most: Nanos, events: &mut Vec<ConnectionEvent>);

    /// Receives into `buffer`; 0 is the end of the stream. Fewer bytes than the buffer holds:
    /// nothing is left for now.
    ///
    /// # Errors
    /// If nothing can be received now, or ever.
    fn receive(&mut self, slot: usize, buffer: &mut [u8]) -> Result<usize, Errno>;

    /// When the kernel received the last of the bytes that the last `receive` of this slot
    /// returned, by the wall clock; `None` if it does not say.
    fn stamp(&self, slot: usize) -> Option<Nanos>;

    /// Sends as many of `bytes` as the socket takes.
    ///
    /// # Errors
    /// If none can be sent now, or ever, or the connection could not be opened.
    fn send(&mut self, slot: usize, bytes: &[u8]) -> Result<usize, Errno>;

    /// Closes the connection, if it is open. No event of it will come any more.
    fn close(&mut self, slot: usize);
}

/// Events taken from the kernel in one wait.
const EVENTS: usize = 1024;

/// The connections of one lane: TCP over IPv4 and IPv6, and Unix sockets, over epoll, edge
/// triggered. Each is registered once and never touched by `epoll_ctl` again. What goes over the
/// sockets is not looked at.
///
/// The wait is to the nanosecond (crate `poller`), and the lane's timer slack is 1 ns (the default
/// of 50 000 ns would make each send that late).
pub struct SocketDriver {
    first_connection: usize,
    addresses: Vec<ConnectAddress>,
    poller: Poller,
    /// What the last wait brought.
    news: Vec<poller::Event>,
    slots: Vec<SlotSocket>,
    /// Kernel stamps of arrivals, where they are asked for.
    stamps: Option<ArrivalStamps>,
    /// Bytes that the kernel may keep of what was received and not read; `None`: as it likes.
    receive_buffer: Option<usize>,
}

/// A slot's socket. The generation tells the events of a closed socket from those of its successor.
struct SlotSocket {
    fd: Option<OwnedFd>,
    generation: u32,
}

impl SocketDriver {
    /// No connection yet, room for `slots`, of which the first has the number `first_connection` in
    /// the run. Sets the calling thread's timer slack: call it on the lane's own thread.
    ///
    /// # Errors
    /// If the kernel gives no epoll instance (out of descriptors) or no stamps, or the transport
    /// has not passed [`Transport::check`].
    ///
    /// # Panics
    /// If the transport has no endpoint: our bug.
    pub fn new(
        transport: &Transport,
        first_connection: u32,
        slots: usize,
        timestamps: Timestamps,
    ) -> Result<SocketDriver, Errno> {
        assert!(!transport.endpoints.is_empty(), "a transport has an endpoint");
        let addresses =
            transport.endpoints.iter().map(|e| ConnectAddress::new(e, &transport.source_ips));
        let addresses = addresses.collect::<Result<_, Errno>>()?;
        // A failure leaves the default slack, which the recorded send lag shows.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        Ok(SocketDriver {
            first_connection: first_connection as usize,
            addresses,
            poller: Poller::new()?,
            news: Vec::with_capacity(EVENTS),
            slots: (0..slots).map(|_| SlotSocket { fd: None, generation: 0 }).collect(),
            stamps: if timestamps == Timestamps::Kernel {
                Some(ArrivalStamps::new()?)
            } else {
                None
            },
            receive_buffer: None,
        })
    }

    /// The same, where the kernel keeps about this many bytes of what was received and not read.
    #[must_use]
    pub(crate) fn with_receive_buffer(self, bytes: usize) -> SocketDriver {
        SocketDriver { receive_buffer: Some(bytes), ..self }
    }

    /// How many connections there is room for.
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    fn fd(&self, slot: usize) -> Result<&OwnedFd, Errno> {
        self.slots[slot].fd.as_ref().ok_or(Errno::NOTCONN)
    }

    /// A socket that connects, or is connected.
    fn connect(&self, slot: usize) -> Result<OwnedFd, Errno> {
        let number = self.first_connection + slot;
        let to = &self.addresses[number % self.addresses.len()];
        let fd = stream(to.address.address_family(), SocketFlags::NONBLOCK)?;
        if let Some(bytes) = self.receive_buffer {
            sockopt::set_socket_recv_buffer_size(&fd, bytes)?;
        }
        if !to.is_unix() {
            sockopt::set_tcp_nodelay(&fd, true)?;
            if self.stamps.is_some() {
                kernel_timestamps::ask(&fd)?;
            }
            if !to.sources.is_empty() {
                bind_source(&fd, &to.sources[number / self.addresses.len() % to.sources.len()])?;
            }
        }
        match connect(&fd, &to.address) {
            Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(fd),
            // The listener's accept queue is full (unix(7); net/unix/af_unix.c,
            // unix_stream_connect). Unlike TCP, where the kernel retries by itself, nothing is
            // under way and no event would ever come. The server's side did not accept, so it
            // counts as refused.
            Err(Errno::AGAIN) if to.is_unix() => Err(Errno::CONNREFUSED),
            Err(errno) => Err(errno),
        }
    }
}

impl ConnectionDriver for SocketDriver {
    fn open(&mut self, slot: usize) -> Result<(), Errno> {
        let fd = self.connect(slot)?;
        let socket = &mut self.slots[slot];
        socket.generation = socket.generation.wrapping_add(1);
        let data = u64::from(socket.generation) << 32 | slot as u64;
        let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        self.poller.add(&fd, data, interest)?;
        socket.fd = Some(fd);
        Ok(())
    }

    fn is_connected(&self, slot: usize) -> bool {
        self.fd(slot).is_ok_and(|fd| getpeername(fd).is_ok())
    }

    fn local_port(&self, slot: usize) -> Option<u16> {
        own_address(self.fd(slot).ok()?).map(|address| address.port())
    }

    #[cold]
    fn has_unasked(&self, slot: usize) -> bool {
        self.fd(slot).is_ok_and(|fd| matches!(recv(fd, &mut [0; 1], RecvFlags::PEEK), Ok((1.., _))))
    }

    fn tcp_info(&self, slot: usize) -> Option<TcpInfo> {
        TcpInfo::of(self.fd(slot).ok()?)
    }

    #[inline(always)]
    fn wait(&mut self, at_most: Nanos, events: &mut Vec<ConnectionEvent>) {
        events.clear();
        self.poller.wait(at_most, &mut self.news);
        for event in &self.news {
            let data = event.data.u64();
            let flags = event.flags;
            let slot = data as u32;
            if self.slots[slot as usize].generation != (data >> 32) as u32 {
                continue;
            }
            events.push(ConnectionEvent { slot, flags });
        }
    }

    #[inline(always)]
    fn receive(&mut self, slot: usize, buffer: &mut [u8]) -> Result<usize, Errno> {
        let fd = self.slots[slot].fd.as_ref().ok_or(Errno::NOTCONN)?;
        match &mut self.stamps {
            Some(stamps) => stamps.receive(fd, buffer),
            None => recv(fd, buffer, RecvFlags::empty()).map(|(kept, _)| kept),
        }
    }

    #[inline(always)]
    fn stamp(&self, _slot: usize) -> Option<Nanos> {
        // The caller has just received.
        self.stamps.as_ref()?.last()
    }

    #[inline(always)]
    fn send(&mut self, slot: usize, bytes: &[u8]) -> Result<usize, Errno> {
        send(self.fd(slot)?, bytes, SendFlags::NOSIGNAL)
    }

    fn close(&mut self, slot: usize) {
        let socket = &mut self.slots[slot];
        socket.fd = None;
        socket.generation = socket.generation.wrapping_add(1);
    }
}

/// What the kernel's TCP knows of a connection's path (`TCP_INFO`, tcp(7)).
///
/// Only retransmissions of this end are known. A lost response is retransmitted by the server, and
/// shows as time alone, unless our request was not acknowledged before it and is retransmitted too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// Segments retransmitted since the connection was opened, its SYN included.
    pub retransmitted: u32,
    /// The shortest round trip that was seen (of the last 5 minutes); zero if none was.
    pub shortest_round_trip: Nanos,
}

/// Offsets in `struct tcp_info` (`include/uapi/linux/tcp.h`), which only ever grows at its end.
const TOTAL_RETRANS: usize = 100;
/// In microseconds; since Linux 4.6.
const MIN_RTT: usize = 148;
/// As far as we read.
const BYTES: usize = MIN_RTT + 4;

impl TcpInfo {
    /// Of this socket; `None` if it is no TCP socket, or the kernel is older.
    #[expect(
        unsafe_code,
        reason = "neither rustix nor nix has TCP_INFO; one getsockopt into a buffer of our own"
    )]
    pub(crate) fn of(socket: impl AsFd) -> Option<TcpInfo> {
        let mut bytes = [0u8; BYTES];
        let mut length = BYTES as libc::socklen_t;
        let fd = socket.as_fd().as_raw_fd();
        // SAFETY: `fd` is open as long as `socket` is borrowed, and the kernel writes `length`
        // bytes at most to `bytes`.
        let done = unsafe {
            libc::getsockopt(
                fd,
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                bytes.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if done != 0 || (length as usize) < BYTES {
            return None;
        }
        let field = |at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        // The kernel writes "none yet" as the largest number.
        let round_trip = Some(field(MIN_RTT)).filter(|micros| *micros != u32::MAX).unwrap_or(0);
        Some(TcpInfo {
            retransmitted: field(TOTAL_RETRANS),
            shortest_round_trip: Nanos::from_micros(u64::from(round_trip)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_connection_over_loopback_has_a_round_trip_and_loses_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let info = TcpInfo::of(&stream).unwrap();
        assert!(info.retransmitted == 0 && info.shortest_round_trip > Nanos::ZERO, "{info:?}");
        assert!(info.shortest_round_trip < Nanos::from_secs(10), "{info:?}");
        assert_eq!(TcpInfo::of(std::fs::File::open("/dev/null").unwrap()), None);
    }
}
