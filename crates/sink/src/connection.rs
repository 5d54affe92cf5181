//! One client's connection: bytes in, requests out; a response in, bytes out; and the table of all
//! that are open. One request at a time: what a client sends ahead stays in the kernel or in
//! `unread` until its turn, so that neither side of a connection grows without bound and answers
//! are in order.

use std::mem;

use crate::request::{HeadMemo, ReadProgress, RequestHead, RequestReader};
use crate::wire::{ClientSocket, ReadOutcome};

/// What follows a response once the kernel has all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterResponse {
    /// The next request.
    Read,
    /// The end.
    Close,
    /// The end, in a way that lets a client read the response though it still sends.
    Linger,
}

/// What the connection is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionPhase {
    /// A request, or the wait for one.
    Reading,
    /// A request is in the pool, or waits for the ledger.
    Working(RequestHead),
    /// A response that the kernel has not taken wholly: what follows it, and what it is to the
    /// ledger.
    Writing(AfterResponse, ResponseKind),
    /// There is nothing more to say; what the client still sends is dropped.
    Lingering,
}

/// What a response is to the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseKind {
    /// The response to a request.
    Answer,
    /// A part of one, of which the bytes count alone: cut on purpose and counted so, or an interim
    /// response.
    Part,
    /// Nothing: a refusal, or the ledger itself.
    Uncounted,
}

/// What the connection needs next.
#[derive(Debug)]
pub(crate) enum ConnectionStep {
    /// Nothing until an event.
    Wait,
    /// Another turn: there may be more to read.
    Again,
    /// What was read to be handled.
    Read(ReadProgress),
    /// The socket has something to say, and no room for it.
    NeedRoom,
    /// To be forgotten: the client is gone.
    Gone,
    /// To be forgotten: the client does not speak TLS.
    Broken,
}

/// What the kernel may have for us. Edges are reported once, so it is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PendingInput {
    /// Nothing; an event will tell.
    Drained,
    /// Bytes.
    Readable,
    /// Bytes, and after them their end.
    Ending,
}

/// What the ledger makes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Booking {
    /// Counted; it has asked for nothing yet.
    New,
    /// Counted; it has sent a request that is.
    Client,
    /// Not counted; it has asked for nothing but the ledger.
    Onlooker,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct SinkConnection {
    /// Its bytes.
    pub(crate) socket: ClientSocket,
    reader: RequestReader,
    /// What the reader has not taken of what was received, from `unread_from` on: later requests,
    /// and a head without its end.
    unread: Vec<u8>,
    unread_from: usize,
    /// What it is about.
    pub(crate) phase: ConnectionPhase,
    input: PendingInput,
    /// What the ledger makes of it.
    pub(crate) booking: Booking,
    /// Whether it is registered for room to write, too.
    pub(crate) watches_room: bool,
    /// Whether it waits for another turn already.
    pub(crate) has_turn: bool,
    /// Responses so far.
    pub(crate) answers: u32,
}

impl SinkConnection {
    /// A connection just accepted, of which nothing is known.
    pub(crate) fn new(socket: ClientSocket) -> SinkConnection {
        SinkConnection {
            socket,
            reader: RequestReader::new(),
            unread: Vec::new(),
            unread_from: 0,
            phase: ConnectionPhase::Reading,
            input: PendingInput::Drained,
            booking: Booking::New,
            watches_room: false,
            has_turn: false,
            answers: 0,
        }
    }

    /// The kernel has bytes, or the end of them.
    pub(crate) fn note_readable(&mut self, half_closed: bool) {
        self.input =
            self.input.max(if half_closed { PendingInput::Ending } else { PendingInput::Readable });
    }

    /// What to do next. Reads from the kernel at most once, into `buffer`, and only if
    /// `may_receive`: one client that sends without end must not keep the others waiting.
    pub(crate) fn step(
        &mut self,
        buffer: &mut [u8],
        memo: &mut HeadMemo,
        may_receive: &mut bool,
    ) -> ConnectionStep {
        let drops_input = self.phase == ConnectionPhase::Lingering;
        if !drops_input && (self.phase != ConnectionPhase::Reading || self.socket.has_unsent()) {
            return ConnectionStep::Wait;
        }
        if let Some(progress) = self.read_unread(memo) {
            return ConnectionStep::Read(progress);
        }
        let received = match self.receive(buffer, may_receive) {
            Ok(received) => received,
            Err(step) => return step,
        };
        let progress = if drops_input {
            None
        } else if self.unread.is_empty() {
            let (taken, progress) = self.reader.feed(&buffer[..received], memo);
            self.unread.extend_from_slice(&buffer[taken..received]);
            progress
        } else {
            self.unread.drain(..mem::take(&mut self.unread_from));
            self.unread.extend_from_slice(&buffer[..received]);
            self.read_unread(memo)
        };
        if let Some(progress) = progress {
            return ConnectionStep::Read(progress);
        }
        if self.input == PendingInput::Drained {
            ConnectionStep::Wait
        } else {
            ConnectionStep::Again
        }
    }

    /// What of the bytes that lie here was not taken yet makes of the request; `None` where it is
    /// unfinished.
    fn read_unread(&mut self, memo: &mut HeadMemo) -> Option<ReadProgress> {
        if self.unread.is_empty() {
            return None;
        }
        let (taken, progress) = self.reader.feed(&self.unread[self.unread_from..], memo);
        self.unread_from += taken;
        if self.unread_from == self.unread.len() {
            self.forget_unread();
        }
        progress
    }

    /// Whether a close now would make the kernel reset the connection, and the client lose the
    /// response with it.
    pub(crate) fn may_hold_input(&self) -> bool {
        self.input != PendingInput::Drained || !self.unread.is_empty()
    }

    /// Says that we send no more, and drops what comes.
    pub(crate) fn linger(&mut self) {
        self.be_silent();
        self.socket.end();
    }

    /// Says nothing any more, and drops what comes.
    pub(crate) fn be_silent(&mut self) {
        self.phase = ConnectionPhase::Lingering;
        self.forget_unread();
    }

    fn forget_unread(&mut self) {
        self.unread = Vec::new();
        self.unread_from = 0;
    }

    /// Reads once: how many bytes; or what to do instead.
    fn receive(
        &mut self,
        buffer: &mut [u8],
        may_receive: &mut bool,
    ) -> Result<usize, ConnectionStep> {
        if self.input == PendingInput::Drained {
            return Err(ConnectionStep::Wait);
        }
        if !mem::take(may_receive) {
            return Err(ConnectionStep::Again);
        }
        match self.socket.receive(buffer) {
            ReadOutcome::Bytes { count, emptied } => {
                // What comes later is a new edge. But the end of the stream was reported with this
                // edge, or before it.
                if emptied && self.input == PendingInput::Readable {
                    self.input = PendingInput::Drained;
                }
                match (count, self.socket.has_unsent(), self.input) {
                    (1.., ..) => Ok(count),
                    (_, true, _) => Err(ConnectionStep::NeedRoom),
                    (_, false, PendingInput::Drained) => Err(ConnectionStep::Wait),
                    (_, false, PendingInput::Readable | PendingInput::Ending) => {
                        Err(ConnectionStep::Again)
                    }
                }
            }
            ReadOutcome::Nothing => {
                self.input = PendingInput::Drained;
                Err(ConnectionStep::Wait)
            }
            ReadOutcome::Gone => Err(ConnectionStep::Gone),
            ReadOutcome::Broken => Err(ConnectionStep::Broken),
        }
    }
}

/// A connection's name: its place in the table, and how often the place was taken before. It is
/// never given to another: an event or a response that comes after its connection was closed finds
/// nobody, and not the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ConnectionKey(pub(crate) u64);

impl ConnectionKey {
    fn new(place: usize, taking: u32) -> ConnectionKey {
        ConnectionKey(u64::from(taking) << 32 | place as u64)
    }

    fn place(self) -> usize {
        (self.0 & 0xffff_ffff) as usize
    }
}

/// The open connections.
#[derive(Debug, Default)]
pub(crate) struct ConnectionTable {
    /// How often each place was taken before, and who has it.
    places: Vec<(u32, Option<SinkConnection>)>,
    free: Vec<usize>,
}

impl ConnectionTable {
    /// Takes a connection in.
    pub(crate) fn insert(&mut self, connection: SinkConnection) -> ConnectionKey {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            self.places.len() - 1
        });
        self.places[place].1 = Some(connection);
        ConnectionKey::new(place, self.places[place].0)
    }

    /// The connection, if it is still open.
    #[inline]
    pub(crate) fn at(&mut self, key: ConnectionKey) -> Option<&mut SinkConnection> {
        let (taking, connection) = self.places.get_mut(key.place())?;
        if ConnectionKey::new(key.place(), *taking) == key { connection.as_mut() } else { None }
    }

    /// Takes a connection out; dropping it closes it.
    pub(crate) fn remove(&mut self, key: ConnectionKey) -> Option<SinkConnection> {
        self.at(key)?;
        let (taking, connection) = &mut self.places[key.place()];
        *taking = taking.wrapping_add(1);
        self.free.push(key.place());
        connection.take()
    }

    /// All that are open.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ConnectionKey, &SinkConnection)> {
        let places = self.places.iter().enumerate();
        places.filter_map(|(place, (taking, one))| {
            Some((ConnectionKey::new(place, *taking), one.as_ref()?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};

    #[test]
    fn an_old_key_finds_nobody() {
        let connection = || {
            SinkConnection::new(ClientSocket::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap(), None))
        };
        let mut table = ConnectionTable::default();
        let (first, second) = (table.insert(connection()), table.insert(connection()));
        assert!(table.remove(first).is_some());
        assert!(table.remove(first).is_none());
        assert_eq!(table.iter().map(|(key, _)| key).collect::<Vec<_>>(), [second]);
        let third = table.insert(connection());
        assert_ne!(first, third);
        assert_eq!(first.place(), third.place());
        assert!(table.at(first).is_none() && table.at(third).is_some());
    }
}
