//! Phase B of a turn: requests begun and sent, the clock read before each send.

use model::{Clock, Nanos, Outcome};

use super::receive::ReceiveStatus;
use super::{FIRST_PAUSE, LONGEST_PAUSE, Lane};
use crate::agenda::DueRequest;
use crate::connection::{ConnectionState, Outstanding};
use crate::journal::RequestTrace;
use crate::wire::{ConnectionDriver, ConnectionError};

impl<C: Clock, W: ConnectionDriver> Lane<'_, C, W> {
    #[inline(always)]
    pub(super) fn begin(&mut self, slot: usize, due: DueRequest, now: Nanos) {
        if self.begins_usual(slot, &due) {
            return self.begin_usual(slot, due, now);
        }
        self.busy += 1;
        let is_measured = due.is_measured;
        self.busy_measured += usize::from(is_measured);
        let request = self.shape.order.index(due.number, self.shape.requests.len());
        let connection = &mut self.connections[slot];
        if connection.outstanding.is_empty() {
            connection.reader.expect(self.shape.requests[request].is_head);
        }
        connection.outstanding.push(Outstanding {
            number: due.number,
            request: request as u32,
            due: due.at,
            is_measured,
            possible: due.possible,
            begun: now,
            opened: Nanos::ZERO,
            connected: Nanos::ZERO,
            sent: Nanos::ZERO,
            written_at: Nanos::ZERO,
            written: 0,
        });
        if connection.state == ConnectionState::Open {
            self.send(slot);
        } else if connection.state != ConnectionState::Opening {
            self.open(slot);
        }
        // (What is being opened sends it as soon as it is there.)
    }

    /// Opens the connection for the request that was just begun.
    fn open(&mut self, slot: usize) {
        let opened = self.clock.now();
        let connection = &mut self.connections[slot];
        connection.state = ConnectionState::Opening;
        connection.until_reconnect = self.shape.reconnect_after.unwrap_or(u64::MAX);
        if let Some(request) = connection.outstanding.newest_mut() {
            request.opened = opened;
        }
        self.records.tally.connections_opened += 1;
        match self.wire.open(slot) {
            Ok(()) => {
                if self.shape.traces {
                    let port = self.wire.local_port(slot).unwrap_or(0);
                    self.connections[slot].traced = RequestTrace { port, number: 0, opened, app: None };
                }
                self.send(slot);
            }
            Err(trouble) => self.not_opened(slot, trouble),
        }
    }

    /// Sends what is to be sent, as far as it goes.
    #[inline(always)]
    pub(super) fn send(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        while let Some(request) = connection.outstanding.get_mut(connection.sent_in_full) {
            let bytes = &self.shape.requests[request.request as usize].bytes;
            let first = request.written == 0;
            let instant = if first { self.clock.now() } else { request.sent };
            match self.wire.send(slot, &bytes[request.written..]) {
                Ok(n) => {
                    if first {
                        request.sent = instant;
                    }
                    request.written_at = if first { instant } else { self.clock.now() };
                    request.written += n;
                    let is_whole = request.written == bytes.len();
                    connection.sent_in_full += usize::from(is_whole);
                    connection.state = ConnectionState::Open;
                    connection.failed_connects = 0;
                    self.records.tally.sent_bytes += n as u64;
                    if is_whole && !connection.has_to_send() {
                        return;
                    }
                }
                Err(ConnectionError::WouldBlock) => {
                    if first && request.connected == Nanos::ZERO && self.wire.is_connected(slot) {
                        request.connected = instant;
                    }
                    return;
                }
                // A connection that was open may still have an answer to give.
                Err(_) if connection.state == ConnectionState::Open => return self.receive_what_is_left(slot),
                Err(trouble) => return self.not_sent(slot, trouble),
            }
        }
    }

    /// The server broke the connection before it had all of the request. Where it had answered first (413, and gone), that
    /// is the answer: the kernel still hands over what came before the reset.
    #[cold]
    fn receive_what_is_left(&mut self, slot: usize) {
        let now = self.clock.now();
        while let Ok(n @ 1..) = self.wire.receive(slot, &mut self.buffer) {
            if self.take(slot, n, true, now) == ReceiveStatus::End {
                return;
            }
        }
        self.end(slot, Outcome::Reset, now, None);
    }

    /// Nothing of the request could be sent: the connection was refused, or had been closed in the meantime.
    #[cold]
    fn not_sent(&mut self, slot: usize, trouble: ConnectionError) {
        if trouble == ConnectionError::Reset {
            let now = self.clock.now();
            self.end(slot, Outcome::Reset, now, None);
        } else {
            self.not_opened(slot, trouble);
        }
    }

    #[cold]
    fn not_opened(&mut self, slot: usize, trouble: ConnectionError) {
        let failed = self.connections[slot].failed_connects;
        self.connections[slot].failed_connects = failed.saturating_add(1);
        // A closed loop would spin on a server that is not there; an open one has its schedule, and waits for nobody.
        let pause = (!self.agenda.is_open()).then(|| Nanos(FIRST_PAUSE.0 << failed.min(10)).min(LONGEST_PAUSE));
        let is_measured = self.connections[slot].outstanding.oldest().is_some_and(|request| request.is_measured);
        let is_exhausted =
            matches!(trouble, ConnectionError::NoPort | ConnectionError::NoDescriptor | ConnectionError::NoMemory);
        self.records.tally.exhausted += u64::from(is_exhausted && is_measured);
        let outcome = match trouble {
            ConnectionError::Refused => Outcome::Refused,
            ConnectionError::NoRoute => Outcome::NoRoute,
            ConnectionError::TimedOut => Outcome::ConnectTimedOut,
            ConnectionError::NoPort => Outcome::NoPort,
            ConnectionError::NoDescriptor => Outcome::NoDescriptor,
            ConnectionError::WouldBlock
            | ConnectionError::Reset
            | ConnectionError::NoMemory
            | ConnectionError::Failed => Outcome::ConnectFailed,
        };
        let now = self.clock.now();
        self.end(slot, outcome, now, pause);
    }
}
