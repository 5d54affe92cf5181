//! TLS over the same sockets: one rustls session per connection, driven by the same edge-triggered
//! events.
//!
//! Three invariants. Bytes that `send` reports as sent are in the kernel, not in a buffer of ours,
//! so that sent bytes and times mean the same as without TLS. A session may hold data, or the end
//! of the stream, that no epoll event will announce because it has already been read from the
//! socket: `wait` makes an event for it. A stream that ends without `close_notify` is a reset,
//! never an end (RFC 8446 section 6.1): a body without a length could have been cut anywhere.

use std::io::{self, Read, Write};
use std::mem;

use model::Nanos;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustls::ClientConnection;

use crate::tls::TlsSettings;
use crate::wire::{
    ConnectionDriver, ConnectionEvent, SocketDriver, TcpInfo, is_reset, would_block,
};

/// The most plaintext in one record (RFC 8446 section 5.1), and so the most that can be encrypted
/// and not yet sent.
const RECORD: usize = 16 * 1024;

/// The encrypted connections of one lane.
pub struct TlsDriver {
    sockets: SocketDriver,
    tls: TlsSettings,
    sessions: Vec<TlsSession>,
    /// Slots that have something to read although no kernel event will say so. No slot is in it
    /// twice; it is usually empty.
    owed: Vec<u32>,
}

/// A slot's session.
#[derive(Default)]
struct TlsSession {
    tls: Option<ClientConnection>,
    /// Whether the handshake is done and our last message of it has been sent.
    is_established: bool,
    /// Plaintext bytes that are encrypted and not yet reported as sent, because their record is not
    /// all sent.
    held: usize,
    /// An error that was found while there was something else to return.
    trouble: Option<Errno>,
    /// Whether the peer has announced that nothing more comes, or closed.
    has_ended: bool,
    /// When the last bytes that it has read arrived, if the kernel says.
    stamp: Option<Nanos>,
}

impl TlsDriver {
    /// TLS over the connections of `sockets`.
    pub fn new(sockets: SocketDriver, tls: TlsSettings) -> TlsDriver {
        let sessions: Vec<_> = (0..sockets.slots()).map(|_| TlsSession::default()).collect();
        TlsDriver { sockets, tls, owed: Vec::with_capacity(sessions.len()), sessions }
    }

    /// Goes on with the handshake: `Ok` when it is done, `WouldBlock` while it waits for the server
    /// or the socket.
    ///
    /// `PROTO` if the server is not trusted, breaks the protocol, or leaves before the end:
    /// connecting has failed then. `CONNRESET` if it resets the connection.
    #[cold]
    fn handshake(&mut self, slot: usize) -> Result<(), Errno> {
        let session = &mut self.sessions[slot];
        let tls = session.tls.as_mut().ok_or(Errno::PROTO)?;
        let mut pipe = TlsPipe::new(&mut self.sockets, slot);
        while tls.is_handshaking() {
            // Reads until the handshake is done or the socket is empty, even after a short read:
            // the event that brought us here may have announced the end of the stream too. If we
            // break off the handshake, this also sends the server an alert that says why.
            if let Err(error) = tls.complete_io(&mut pipe) {
                let is_ours =
                    error.get_ref().is_some() || error.kind() == io::ErrorKind::UnexpectedEof;
                return Err(pipe.trouble.filter(|_| !is_ours).unwrap_or(Errno::PROTO));
            }
        }
        pipe.flush(tls)?;
        // Data that came with the server's last message.
        let state = tls.process_new_packets().map_err(|_| Errno::PROTO)?;
        session.has_ended = state.peer_has_closed();
        if state.plaintext_bytes_to_read() > 0 || session.has_ended {
            owe(&mut self.owed, slot);
        }
        session.is_established = true;
        Ok(())
    }
}

/// Makes the next wait announce the slot, unless it is read or closed before.
fn owe(owed: &mut Vec<u32>, slot: usize) {
    if !owed.contains(&(slot as u32)) {
        owed.push(slot as u32);
    }
}

impl ConnectionDriver for TlsDriver {
    fn open(&mut self, slot: usize) -> Result<(), Errno> {
        self.sockets.open(slot)?;
        let session = self.tls.session().map_err(|_| Errno::PROTO)?;
        self.sessions[slot] = TlsSession { tls: Some(session), ..TlsSession::default() };
        Ok(())
    }

    fn tcp_info(&self, slot: usize) -> Option<TcpInfo> {
        self.sockets.tcp_info(slot)
    }

    fn is_connected(&self, slot: usize) -> bool {
        self.sockets.is_connected(slot)
    }

    fn local_port(&self, slot: usize) -> Option<u16> {
        self.sockets.local_port(slot)
    }

    fn wait(&mut self, at_most: Nanos, events: &mut Vec<ConnectionEvent>) {
        if self.owed.is_empty() {
            return self.sockets.wait(at_most, events);
        }
        self.sockets.wait(Nanos::ZERO, events);
        events.extend(
            self.owed.drain(..).map(|slot| ConnectionEvent { slot, flags: EventFlags::IN }),
        );
    }

    fn receive(&mut self, slot: usize, buffer: &mut [u8]) -> Result<usize, Errno> {
        if !self.sessions[slot].is_established {
            self.handshake(slot)?;
        }
        let session = &mut self.sessions[slot];
        let tls = session.tls.as_mut().ok_or(Errno::PROTO)?;
        let mut pipe = TlsPipe::new(&mut self.sockets, slot);
        self.owed.retain(|other| *other as usize != slot);
        let mut filled = 0;
        let end = loop {
            match tls.reader().read(&mut buffer[filled..]) {
                Ok(0) => break Ok(0),
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The stream has ended without `close_notify`.
                Err(_) => break Err(Errno::CONNRESET),
            }
            if filled == buffer.len() {
                return Ok(filled);
            }
            if let Some(trouble) = session.trouble {
                break Err(trouble);
            }
            // An end that came with the bytes is found when they are all read.
            if pipe.is_drained && !session.has_ended {
                return if filled > 0 { Ok(filled) } else { Err(Errno::AGAIN) };
            }
            match tls.read_tls(&mut pipe) {
                Ok(0) => session.has_ended = true,
                Ok(_) => session.stamp = pipe.sockets.stamp(slot),
                Err(_) if pipe.trouble == Some(Errno::AGAIN) => continue,
                Err(_) => {
                    session.trouble = pipe.trouble.or(Some(Errno::PROTO));
                    continue;
                }
            }
            match tls.process_new_packets() {
                Ok(state) => session.has_ended |= state.peer_has_closed(),
                Err(_) => session.trouble = Some(Errno::PROTO),
            }
            // Sends an alert, or the refusal to renegotiate. Not while part of a request is held:
            // send() sends that, and reports it as sent.
            if tls.wants_write() && session.held == 0 {
                let _ = pipe.flush(tls);
            }
        };
        session.has_ended = true;
        if filled > 0 {
            // This call returns the data before the end. The next one returns the end, but the
            // kernel has no event left for it, so `wait` must announce it.
            owe(&mut self.owed, slot);
            return Ok(filled);
        }
        end
    }

    fn stamp(&self, slot: usize) -> Option<Nanos> {
        self.sessions[slot].stamp
    }

    /// Sends record by record. If the socket takes only part of one, all of its plaintext but the
    /// last byte is reported as sent: the caller then calls again with that byte when the socket
    /// can take more, and the rest of the record is sent first.
    fn send(&mut self, slot: usize, bytes: &[u8]) -> Result<usize, Errno> {
        if !self.sessions[slot].is_established {
            self.handshake(slot)?;
        }
        let session = &mut self.sessions[slot];
        let tls = session.tls.as_mut().ok_or(Errno::PROTO)?;
        if session.trouble.is_some() {
            return Err(Errno::CONNRESET);
        }
        let mut pipe = TlsPipe::new(&mut self.sockets, slot);
        if tls.wants_write() {
            pipe.flush(tls)?;
        }
        let mut sent = mem::take(&mut session.held).min(bytes.len());
        while sent < bytes.len() {
            let record = &bytes[sent..][..RECORD.min(bytes.len() - sent)];
            // Nothing is pending, so the session has room for a record.
            let encrypted = tls.writer().write(record).map_err(|_| Errno::PROTO)?;
            sent += encrypted;
            match pipe.flush(tls) {
                Ok(()) => {}
                Err(Errno::AGAIN) => {
                    session.held = 1;
                    sent -= 1;
                    break;
                }
                Err(trouble) => {
                    sent -= encrypted;
                    session.trouble = Some(trouble);
                    if sent == 0 {
                        return Err(trouble);
                    }
                    break;
                }
            }
        }
        if sent > 0 { Ok(sent) } else { Err(Errno::AGAIN) }
    }

    /// Sends `close_notify` where the connection is still open: many servers log a connection that
    /// ends without it.
    fn close(&mut self, slot: usize) {
        let mut session = mem::take(&mut self.sessions[slot]);
        let is_whole = session.is_established
            && session.held == 0
            && session.trouble.is_none()
            && !session.has_ended;
        if is_whole && let Some(tls) = &mut session.tls {
            tls.send_close_notify();
            let _ = TlsPipe::new(&mut self.sockets, slot).flush(tls);
        }
        self.owed.retain(|other| *other as usize != slot);
        self.sockets.close(slot);
    }
}

/// A slot's socket as rustls wants to see it. Remembers what an `io::Error` cannot carry.
struct TlsPipe<'a> {
    sockets: &'a mut SocketDriver,
    slot: usize,
    /// Why the last operation failed.
    trouble: Option<Errno>,
    /// Whether the last read brought less than it could have: nothing is left for now.
    is_drained: bool,
}

impl<'a> TlsPipe<'a> {
    fn new(sockets: &'a mut SocketDriver, slot: usize) -> TlsPipe<'a> {
        TlsPipe { sockets, slot, trouble: None, is_drained: false }
    }

    /// Sends all that the session has encrypted.
    fn flush(&mut self, tls: &mut ClientConnection) -> Result<(), Errno> {
        while tls.wants_write() {
            tls.write_tls(self).map_err(|_| self.trouble.unwrap_or(Errno::PROTO))?;
        }
        Ok(())
    }

    /// An error that tells only whether to try again.
    fn failed(&mut self, errno: Errno) -> io::Error {
        let is_blocked = would_block(errno);
        let trouble = if is_reset(errno) { Errno::CONNRESET } else { errno };
        self.trouble = Some(if is_blocked { Errno::AGAIN } else { trouble });
        if is_blocked { io::ErrorKind::WouldBlock } else { io::ErrorKind::ConnectionReset }.into()
    }
}

impl Read for TlsPipe<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.sockets.receive(self.slot, buffer) {
            Ok(n) => {
                self.is_drained = n < buffer.len();
                Ok(n)
            }
            Err(trouble) => {
                self.is_drained = true;
                Err(self.failed(trouble))
            }
        }
    }
}

impl Write for TlsPipe<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sockets.send(self.slot, bytes).map_err(|trouble| self.failed(trouble))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
