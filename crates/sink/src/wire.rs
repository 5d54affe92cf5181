//! The bytes of one connection, plain or TLS: reads, writes, and keeps the rest of a partial write.
//! Nothing here is about HTTP.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::time::Duration;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown, sockopt};
use rustls::ServerConnection;

/// The size of the send buffer that a connection keeps between responses.
const KEPT_ROOM: usize = 16 * 1024;

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// Bytes at the front of the buffer (0 if TLS needs more to decrypt any), and whether the
    /// socket is empty.
    Bytes { count: usize, emptied: bool },
    /// Nothing to read.
    Nothing,
    /// The client is gone, or has announced its end.
    Gone,
    /// The client does not speak TLS.
    Broken,
}

/// How much the kernel took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    /// Everything.
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
    /// What the kernel has not taken yet; encrypted for TLS.
    unsent: VecDeque<u8>,
    tls: Option<Box<ServerConnection>>,
}

impl ClientSocket {
    /// A client on this socket.
    pub(crate) fn new(socket: OwnedFd, mut tls: Option<ServerConnection>) -> ClientSocket {
        if let Some(tls) = &mut tls {
            // It never holds more than one response, however large.
            tls.set_buffer_limit(None);
        }
        ClientSocket { socket, unsent: VecDeque::new(), tls: tls.map(Box::new) }
    }

    /// Reads from the kernel once. Part of a large `buffer` may be used for decryption.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> ReadOutcome {
        let Some(tls) = &mut self.tls else {
            return match read(&self.socket, buffer) {
                // A read that doesn't fill the buffer has emptied the socket (epoll(7)).
                Ok(count) => ReadOutcome::Bytes { count, emptied: count < buffer.len() },
                Err(received) => received,
            };
        };
        // The last quarter takes the encrypted bytes. What they and a record that began before them
        // decrypt to always fits into the other three.
        let (plain, sealed) = buffer.split_at_mut(buffer.len() / 4 * 3);
        let received = match read(&self.socket, sealed) {
            Ok(received) => received,
            Err(received) => return received,
        };
        let opened = open(tls, &sealed[..received], plain);
        let sent = self.flush();
        match opened {
            Err(_) => ReadOutcome::Broken,
            // An end that arrives behind bytes is not told here: the client sends nothing more, so
            // the next read finds the end of the connection.
            Ok((0, true)) => ReadOutcome::Gone,
            Ok(_) if sent == WriteOutcome::Gone => ReadOutcome::Gone,
            Ok((count, _)) => ReadOutcome::Bytes { count, emptied: received < sealed.len() },
        }
    }

    /// Passes bytes to the kernel. Returns how many it took, and the outcome; the rest is kept.
    /// With TLS, announces our end if they are the `last`, and counts plain bytes once they are
    /// encrypted.
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

    /// Passes the rest to the kernel. Returns how many bytes it took that were not counted yet.
    pub(crate) fn send_rest(&mut self) -> (usize, WriteOutcome) {
        let before = self.unsent.len();
        let sent = self.flush();
        (if self.tls.is_some() { 0 } else { before - self.unsent.len() }, sent)
    }

    /// Passes the rest, and TLS's own messages, to the kernel.
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

    /// Announces that we send no more.
    pub(crate) fn end(&self) {
        // If this fails, the client is gone, and the next read shows it.
        let _ = shutdown(&self.socket, Shutdown::Write);
    }

    /// Makes the close reset the connection.
    pub(crate) fn reset_on_close(&self) {
        // If this fails, the client is gone.
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

/// Decrypts into `plain`. Returns how many bytes there are, and whether the client announced its
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
