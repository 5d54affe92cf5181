//! One client's connection, which turns bytes into requests and responses into bytes, and the table
//! of all open connections. A connection has one request at a time: requests sent ahead stay in the
//! kernel or in `unread` until their turn, so neither side of a connection grows without bound and
//! responses are in order.

use std::mem;

use crate::request::{HeadMemo, ReadProgress, RequestHead, RequestReader};
use crate::wire::{ClientSocket, ReadOutcome};

/// What happens after the kernel has taken a whole response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterResponse {
    /// Read the next request.
    Read,
    /// Close the connection.
    Close,
    /// Close, but so that the client can read the response although it is still sending.
    Linger,
}

/// What the connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionPhase {
    /// Reading a request, or waiting for one.
    Reading,
    /// A request is in the pool, or waits for the ledger.
    Working(RequestHead),
    /// Sending a response that the kernel has not taken completely; what follows it, and how the
    /// ledger counts it.
    Writing(AfterResponse, ResponseKind),
    /// Nothing more will be sent; what the client still sends is dropped.
    Lingering,
}

/// How the ledger counts a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseKind {
    /// The whole response to a request.
    Whole,
    /// Part of a response, of which only the bytes count: one that is cut on purpose, or an interim
    /// response.
    Part,
    /// Not counted: a refusal, or the ledger itself.
    Uncounted,
}

/// What the connection needs next.
#[derive(Debug)]
pub(crate) enum ConnectionStep {
    /// Nothing until the next event.
    Wait,
    /// Another turn: there may be more to read.
    Again,
    /// Handle what was read.
    Read(ReadProgress),
    /// Something is to be sent, but the socket has no room for it.
    NeedRoom,
    /// Remove it: the client is gone.
    Gone,
    /// Remove it: the client does not speak TLS.
    Broken,
}

/// What the kernel may have for us. Edge-triggered events come only once, so it must be remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PendingInput {
    /// Nothing; an event will say when.
    Drained,
    /// Bytes.
    Readable,
    /// Bytes, and after them their end.
    Ending,
}

/// How the ledger counts a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Booking {
    /// Counted; it has not sent a request yet.
    New,
    /// Counted; it has sent a counted request.
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
    /// Bytes received but not yet taken by the reader, from `unread_from` on: later requests, and
    /// an incomplete head.
    unread: Vec<u8>,
    unread_from: usize,
    /// What it is doing.
    pub(crate) phase: ConnectionPhase,
    input: PendingInput,
    /// How the ledger counts it.
    pub(crate) booking: Booking,
    /// Whether it is also registered for room to write.
    pub(crate) watches_room: bool,
    /// Whether it waits for another turn already.
    pub(crate) has_turn: bool,
    /// Responses so far.
    pub(crate) responses: u32,
}

impl SinkConnection {
    /// A connection that was just accepted.
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
            responses: 0,
        }
    }

    /// The kernel has bytes, or the end of them.
    pub(crate) fn note_readable(&mut self, half_closed: bool) {
        self.input =
            self.input.max(if half_closed { PendingInput::Ending } else { PendingInput::Readable });
    }

    /// Decides what to do next. Reads from the kernel at most once, into `buffer`, and only if
    /// `may_receive`, so that a client that never stops sending can't keep the others waiting.
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

    /// Parses the unread bytes; `None` if the request is incomplete.
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

    /// Whether closing now would make the kernel reset the connection, so that the client loses the
    /// response.
    pub(crate) fn may_hold_input(&self) -> bool {
        self.input != PendingInput::Drained || !self.unread.is_empty()
    }

    /// Announces the end of our side, and drops what still arrives.
    pub(crate) fn linger(&mut self) {
        self.be_silent();
        self.socket.end();
    }

    /// Sends nothing more, and drops what still arrives.
    pub(crate) fn be_silent(&mut self) {
        self.phase = ConnectionPhase::Lingering;
        self.forget_unread();
    }

    fn forget_unread(&mut self) {
        self.unread = Vec::new();
        self.unread_from = 0;
    }

    /// Reads once. Returns the number of bytes, or what to do instead.
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
                // Later bytes cause a new event. But the end of the stream was reported with this
                // event, or before it.
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

/// A connection's key: its place in the table, and a generation, which says how often the place was
/// used before. Keys are never reused, so an event or a response for a closed connection finds
/// nothing, and not the next connection at that place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ConnectionKey(pub(crate) u64);

impl ConnectionKey {
    fn new(place: usize, generation: u32) -> ConnectionKey {
        ConnectionKey(u64::from(generation) << 32 | place as u64)
    }

    fn place(self) -> usize {
        (self.0 & 0xffff_ffff) as usize
    }
}

/// The open connections.
#[derive(Debug, Default)]
pub(crate) struct ConnectionTable {
    /// The generation of each place, and its current connection.
    places: Vec<(u32, Option<SinkConnection>)>,
    free: Vec<usize>,
}

impl ConnectionTable {
    /// Adds a connection.
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
        let (generation, connection) = self.places.get_mut(key.place())?;
        if ConnectionKey::new(key.place(), *generation) == key { connection.as_mut() } else { None }
    }

    /// Removes a connection; dropping it closes it.
    pub(crate) fn remove(&mut self, key: ConnectionKey) -> Option<SinkConnection> {
        self.at(key)?;
        let (generation, connection) = &mut self.places[key.place()];
        *generation = generation.wrapping_add(1);
        self.free.push(key.place());
        connection.take()
    }

    /// All open connections.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ConnectionKey, &SinkConnection)> {
        let places = self.places.iter().enumerate();
        places.filter_map(|(place, (generation, one))| {
            Some((ConnectionKey::new(place, *generation), one.as_ref()?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};

    #[test]
    fn an_old_key_finds_nothing() {
        let connection = || {
            SinkConnection::new(ClientSocket::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap(), None))
        };
        let mut table = ConnectionTable::default();
        let first = table.insert(connection());
        let second = table.insert(connection());
        assert!(table.remove(first).is_some());
        assert!(table.remove(first).is_none());
        assert_eq!(table.iter().map(|(key, _)| key).collect::<Vec<_>>(), [second]);
        let third = table.insert(connection());
        assert_ne!(first, third);
        assert_eq!(first.place(), third.place());
        assert!(table.at(first).is_none() && table.at(third).is_some());
    }
}
