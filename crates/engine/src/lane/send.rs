//! Second half of a turn: begins and sends requests, and reads the clock before each send.

use model::{Clock, Nanos, Outcome};
use rustix::io::Errno;

use super::Lane;
use crate::connection::{ConnectionState, Outstanding};
use crate::progress::RequestTrace;
use crate::scheduler::DueRequest;
use crate::wire::{ConnectionDriver, is_reset, would_block};

/// Closed loop: the pause after a failed connect, doubled with each failure in a row.
const FIRST_PAUSE: Nanos = Nanos::from_millis(10);
const LONGEST_PAUSE: Nanos = Nanos::from_secs(1);

impl<C: Clock, W: ConnectionDriver> Lane<'_, C, W> {
    #[inline(always)]
    pub(super) fn begin(&mut self, slot: usize, due: DueRequest, now: Nanos) {
        if self.allows_fast_path
            && due.is_measured
            && self.connections[slot].state == ConnectionState::Open
        {
            return self.begin_on_fast_path(slot, due, now);
        }
        self.busy += 1;
        self.busy_measured += usize::from(due.is_measured);
        let index = self.spec.requests.index(due.number);
        let request = self.spec.requests.request(index);
        let connection = &mut self.connections[slot];
        connection.reader.expect(request.is_head);
        let class = request.class;
        let request = index as u32;
        connection.outstanding =
            Some(Outstanding { due, request, class, begun: now, ..Outstanding::default() });
        match connection.state {
            ConnectionState::Open => self.send(slot),
            // Sent as soon as the connection is open.
            ConnectionState::Opening => {}
            ConnectionState::Closed | ConnectionState::Finished => self.open(slot),
        }
    }

    /// Sends a request on the [fast path](super). One that does not go out whole takes the slow
    /// path.
    #[inline(always)]
    fn begin_on_fast_path(&mut self, slot: usize, due: DueRequest, now: Nanos) {
        self.busy += 1;
        self.busy_measured += 1;
        let index = self.spec.requests.index(due.number);
        let request = self.spec.requests.request(index);
        let connection = &mut self.connections[slot];
        connection.reader.expect(request.is_head);
        let sent = self.clock.now();
        // (The slow path meets the same error, and handles it.)
        let written = self.wire.send(slot, &request.bytes).unwrap_or(0);
        let is_whole = written == request.bytes.len();
        self.records.tally.sent_bytes += written as u64;
        let class = request.class;
        let begun =
            Outstanding { due, request: index as u32, class, begun: now, ..Outstanding::default() };
        connection.outstanding = Some(Outstanding { sent, written_at: sent, written, ..begun });
        if is_whole {
            connection.is_sent_in_full = true;
            connection.on_fast_path = !request.is_head;
        } else {
            self.send(slot);
        }
    }

    /// Opens the connection for the request that was just begun.
    fn open(&mut self, slot: usize) {
        let opened = self.clock.now();
        let connection = &mut self.connections[slot];
        connection.state = ConnectionState::Opening;
        self.unread_responses.opening += 1;
        connection.until_reconnect = self.spec.load.reconnect_after.unwrap_or(u64::MAX);
        connection.good_before = self.records.good_of_connection(slot);
        connection.other_responses = 0;
        if let Some(request) = &mut connection.outstanding {
            request.opened = opened;
        }
        self.records.tally.connections_opened += 1;
        match self.wire.open(slot) {
            Ok(()) => {
                if self.spec.traces_requests {
                    let port = self.wire.local_port(slot).unwrap_or(0);
                    self.connections[slot].traced =
                        RequestTrace { port, number: 0, opened, app: None };
                }
                self.send(slot);
            }
            Err(errno) => self.not_opened(slot, errno),
        }
    }

    /// Sends the connection's request, as much of it as the socket takes.
    #[inline(always)]
    pub(super) fn send(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        while !connection.is_sent_in_full
            && let Some(request) = &mut connection.outstanding
        {
            let rendered = self.spec.requests.request(request.request as usize);
            let first = request.written == 0;
            let instant = if first { self.clock.now() } else { request.sent };
            let bytes = match &mut self.queue_stamps {
                Some(stamps) => stamps.stamped(rendered, instant),
                None => &rendered.bytes,
            };
            match self.wire.send(slot, &bytes[request.written..]) {
                Ok(n) => {
                    if first {
                        request.sent = instant;
                    }
                    request.written_at = if first { instant } else { self.clock.now() };
                    request.written += n;
                    connection.is_sent_in_full = request.written == bytes.len();
                    if connection.state == ConnectionState::Opening {
                        connection.state = ConnectionState::Open;
                        self.unread_responses.opening -= 1;
                    }
                    connection.failed_connects = 0;
                    self.records.tally.sent_bytes += n as u64;
                }
                Err(errno) if would_block(errno) => {
                    if first && request.connected == Nanos::ZERO && self.wire.is_connected(slot) {
                        request.connected = instant;
                    }
                    return;
                }
                // A connection that was open may still have a response to be read.
                Err(_) if connection.state == ConnectionState::Open => {
                    return self.receive_what_is_left(slot);
                }
                Err(errno) if is_reset(errno) => {
                    let now = self.clock.now();
                    return self.end(slot, Outcome::Reset, now, None);
                }
                Err(errno) => return self.not_opened(slot, errno),
            }
        }
    }

    /// The server broke the connection before it had the whole request. If it had responded first
    /// (a 413, say), that response counts: the kernel still hands over what came before the reset.
    #[cold]
    fn receive_what_is_left(&mut self, slot: usize) {
        let now = self.clock.now();
        while let Ok(n @ 1..) = self.wire.receive(slot, &mut self.buffer) {
            if self.take(slot, n, true, now) {
                return;
            }
        }
        self.end(slot, Outcome::Reset, now, None);
    }

    /// The connection could not be opened, or was closed before any of the request was sent.
    #[cold]
    fn not_opened(&mut self, slot: usize, errno: Errno) {
        let connection = &mut self.connections[slot];
        let failed = connection.failed_connects;
        connection.failed_connects = failed.saturating_add(1);
        let is_measured = connection.has_measured_request();
        let (outcome, is_exhausted) = not_connected(errno);
        self.records.tally.exhausted += u64::from(is_exhausted && is_measured);
        // A closed loop would spin on a server that is not there. An open loop keeps to its
        // schedule.
        let pause = (!self.scheduler.is_open())
            .then(|| Nanos(FIRST_PAUSE.0 << failed.min(10)).min(LONGEST_PAUSE));
        let now = self.clock.now();
        self.end(slot, outcome, now, pause);
    }
}

/// The outcome of a request whose connection could not be opened, and whether that was because this
/// machine ran out of something.
fn not_connected(errno: Errno) -> (Outcome, bool) {
    match errno {
        Errno::CONNREFUSED => (Outcome::Refused, false),
        Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN | Errno::HOSTDOWN => {
            (Outcome::NoRoute, false)
        }
        Errno::TIMEDOUT => (Outcome::ConnectTimedOut, false),
        Errno::ADDRNOTAVAIL => (Outcome::NoPort, true),
        Errno::MFILE | Errno::NFILE => (Outcome::NoDescriptor, true),
        Errno::NOBUFS | Errno::NOMEM => (Outcome::ConnectFailed, true),
        _ => (Outcome::ConnectFailed, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_connects_are_counted_by_their_cause() {
        for (errno, outcome, is_exhausted) in [
            (Errno::CONNREFUSED, Outcome::Refused, false),
            (Errno::NETUNREACH, Outcome::NoRoute, false),
            (Errno::HOSTUNREACH, Outcome::NoRoute, false),
            (Errno::TIMEDOUT, Outcome::ConnectTimedOut, false),
            (Errno::ADDRNOTAVAIL, Outcome::NoPort, true),
            (Errno::MFILE, Outcome::NoDescriptor, true),
            (Errno::NFILE, Outcome::NoDescriptor, true),
            (Errno::NOMEM, Outcome::ConnectFailed, true),
            (Errno::PERM, Outcome::ConnectFailed, false),
        ] {
            assert_eq!(not_connected(errno), (outcome, is_exhausted), "{errno}");
        }
    }
}
