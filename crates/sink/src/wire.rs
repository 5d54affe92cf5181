//! The bytes of one connection, plain or in TLS: reads, writes, and keeps the rest of a write. It
//! knows nothing of HTTP.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::time::Duration;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown, sockopt};
use rustls::ServerConnection;

/// Room for what is to be sent that a connection keeps between responses.
const KEPT_ROOM: usize = 16 * 1024;

/// What a read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// Bytes at the front of the buffer, 0 of them where TLS needs more to make any; and whether
    /// the socket is empty.
    Bytes { count: usize, emptied: bool },
    /// Nothing there.
    Nothing,
    /// The client is gone, or has said that it sends no more.
    Gone,
    /// What came is no TLS.
    Broken,
}

/// How much of what is to be sent the kernel took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    /// All that there was.
    All,
    /// A part; the rest is kept.
    Part,
    /// The client is gone.
    Gone,
}

/// A connected socket.
#[derive(Debug)]
pub(crate) struct ClientSocket {
    socket: OwnedFd,
    /// What the kernel has not taken yet; of TLS, sealed.
    unsent: VecDeque<u8>,
    tls: Option<Box<ServerConnection>>,
}

impl ClientSocket {
    /// Over that socket.
    pub(crate) fn new(socket: OwnedFd, mut tls: Option<ServerConnection>) -> ClientSocket {
        if let Some(tls) = &mut tls {
            // One response at a time is all that is ever in there, however large.
            tls.set_buffer_limit(None);
        }
        ClientSocket { socket, unsent: VecDeque::new(), tls: tls.map(Box::new) }
    }

    /// Reads from the kernel once. Of a large `buffer` a part may be used for other things.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> ReadOutcome {
        let Some(tls) = &mut self.tls else {
            return match read(&self.socket, buffer) {
                // A read that leaves room has emptied the socket (epoll(7)).
                Ok(count) => ReadOutcome::Bytes { count, emptied: count < buffer.len() },
                Err(received) => received,
            };
        };
        // What a quarter holds, and a record of which the end is in it, is never more than three
        // quarters hold.
        let (plain, sealed) = buffer.split_at_mut(buffer.len() / 4 * 3);
        let received = match read(&self.socket, sealed) {
            Ok(received) => received,
            Err(received) => return received,
        };
        let opened = open(tls, &sealed[..received], plain);
        let sent = self.flush();
        match opened {
            Err(_) => ReadOutcome::Broken,
            // An end that comes with bytes is read again: the client has no more to say.
            Ok((0, true)) => ReadOutcome::Gone,
            Ok(_) if sent == WriteOutcome::Gone => ReadOutcome::Gone,
            Ok((count, _)) => ReadOutcome::Bytes { count, emptied: received < sealed.len() },
        }
    }

    /// Hands bytes to the kernel, with the announcement of our end if these are the `last`: how
    /// many it took, and what that means. The rest is kept. In TLS they are counted as they are,
    /// and once they are sealed.
    pub(crate) fn send(&mut self, bytes: &[u8], last: bool) -> (usize, WriteOutcome) {
        let Some(tls) = &mut self.tls else {
            let (taken, sent) = hand_over(&self.socket, bytes);
            if sent == WriteOutcome::Part {
                self.unsent.extend(&bytes[taken..]);
            }
            return (taken, sent);
        };
        if tls.writer().write_all(bytes).is_err() {
            return (0, WriteOutcome::Gone);
        }
        if last {
            tls.send_close_notify();
        }
        (bytes.len(), self.flush())
    }

    /// Hands what is left to the kernel: how many bytes it took that were not counted yet.
    pub(crate) fn send_rest(&mut self) -> (usize, WriteOutcome) {
        let before = self.unsent.len();
        let sent = self.flush();
        (if self.tls.is_some() { 0 } else { before - self.unsent.len() }, sent)
    }

    /// Hands to the kernel what is left, and what TLS has to say.
    fn flush(&mut self) -> WriteOutcome {
        while let Some(tls) = self.tls.as_mut().filter(|tls| tls.wants_write()) {
            tls.write_tls(&mut self.unsent).expect("there is room in memory");
        }
        loop {
            let (front, _) = self.unsent.as_slices();
            if front.is_empty() {
                self.unsent.shrink_to(KEPT_ROOM);
                return WriteOutcome::All;
            }
            let (taken, sent) = hand_over(&self.socket, front);
            self.unsent.drain(..taken);
            if sent != WriteOutcome::All {
                return sent;
            }
        }
    }

    /// Whether something is left.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Says that we send no more.
    pub(crate) fn end(&self) {
        // Where it fails the client is gone, and the next read says so.
        let _ = shutdown(&self.socket, Shutdown::Write);
    }

    /// Lets the close reset the connection.
    pub(crate) fn reset_on_close(&self) {
        // Where it fails the client is gone.
        let _ = sockopt::set_socket_linger(&self.socket, Some(Duration::ZERO));
    }
}

impl AsFd for ClientSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn read(socket: &OwnedFd, buffer: &mut [u8]) -> Result<usize, ReadOutcome> {
    match retry_on_intr(|| recv(socket, &mut *buffer, RecvFlags::empty())) {
        Ok((_, 0)) => Err(ReadOutcome::Gone),
        Ok((_, received)) => Ok(received),
        Err(Errno::AGAIN) => Err(ReadOutcome::Nothing),
        Err(_) => Err(ReadOutcome::Gone),
    }
}

/// Opens what came into `plain`: how many bytes there are, and whether the client announced its
/// end.
fn open(
    tls: &mut ServerConnection,
    mut sealed: &[u8],
    plain: &mut [u8],
) -> io::Result<(usize, bool)> {
    let mut filled = 0;
    while !sealed.is_empty() {
        tls.read_tls(&mut sealed)?;
        tls.process_new_packets().map_err(io::Error::other)?;
        loop {
            match tls.reader().read(&mut plain[filled..]) {
                Ok(0) => return Ok((filled, true)),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
    }
    Ok((filled, false))
}

fn hand_over(socket: &OwnedFd, mut bytes: &[u8]) -> (usize, WriteOutcome) {
    let all = bytes.len();
    while !bytes.is_empty() {
        match send(socket, bytes, SendFlags::NOSIGNAL) {
            Ok(taken) => bytes = &bytes[taken..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return (all - bytes.len(), WriteOutcome::Part),
            Err(_) => return (all - bytes.len(), WriteOutcome::Gone),
        }
    }
    (all, WriteOutcome::All)
}
