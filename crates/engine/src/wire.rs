//! What a lane needs of the operating system: connections by number, and a wait for their news.
//!
//! The one trait between the request loop and the sockets, so that the loop runs under a scripted wire and a stepped
//! clock in tests. It is generic, never dynamic: the compiler makes one loop per wire.

use model::Nanos;

use crate::tcp_info::TcpInfo;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

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

    /// Whether the peer has closed its half, or the connection is broken: read until the end is seen.
    #[inline]
    pub fn is_closing(self) -> bool {
        self.flags.intersects(CLOSING)
    }
}

const CLOSING: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);

/// Whether an operation that failed so did nothing for now, and an event will say when to try again.
#[inline]
pub(crate) fn would_block(errno: Errno) -> bool {
    matches!(errno, Errno::AGAIN | Errno::INTR | Errno::INPROGRESS)
}

/// Whether the connection is gone: reset, or written to after it was closed.
pub(crate) fn is_reset(errno: Errno) -> bool {
    matches!(errno, Errno::CONNRESET | Errno::PIPE | Errno::NOTCONN | Errno::CONNABORTED)
}

/// Connections by number (slot), nonblocking. What goes wrong is said as the kernel says it; a TLS session that fails is `EPROTO`.
pub trait ConnectionDriver {
    /// Starts to open the connection. Done when a send succeeds; until then it would block, and is tried again at each
    /// event of the connection, whatever its kind (a handshake goes both ways).
    ///
    /// # Errors
    /// Where even the start of it fails.
    fn open(&mut self, slot: usize) -> Result<(), Errno>;

    /// Whether the socket of a connection that is being opened is connected, so that what is still missing is a handshake.
    fn is_connected(&self, slot: usize) -> bool;

    /// Our end's port, from the start of the connect on; `None` where there is none.
    fn local_port(&self, _slot: usize) -> Option<u16> {
        None
    }

    /// Whether bytes are there on a connection that is being opened, before anything was sent on it; `false` where that is unknown.
    fn has_unasked(&self, _slot: usize) -> bool {
        false
    }

    /// What TCP says of the connection; `None` where it is none of TCP's.
    fn tcp_info(&self, _slot: usize) -> Option<TcpInfo> {
        None
    }

    /// Waits for news of any connection, `at_most` this long, and replaces `events` by it (none if the time is over).
    fn wait(&mut self, at_most: Nanos, events: &mut Vec<ConnectionEvent>);

    /// Receives into `buffer`; 0 is the end of the stream. Fewer bytes than the buffer holds: nothing is left for now.
    ///
    /// # Errors
    /// Where nothing can be received now, or ever.
    fn receive(&mut self, slot: usize, buffer: &mut [u8]) -> Result<usize, Errno>;

    /// When the kernel received the last of the bytes that the last `receive` of this slot returned, by the wall clock;
    /// `None` where it does not say.
    fn stamp(&self, slot: usize) -> Option<Nanos>;

    /// Sends the first of `bytes`, as many as go.
    ///
    /// # Errors
    /// Where none can be sent now, or ever, or the connection could not be opened.
    fn send(&mut self, slot: usize, bytes: &[u8]) -> Result<usize, Errno>;

    /// Closes the connection, if it is open. No event of it will come any more.
    fn close(&mut self, slot: usize);
}
