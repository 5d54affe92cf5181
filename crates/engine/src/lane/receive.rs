//! The first half of a turn: handles socket events, and records the responses that came, by the
//! kernel's stamps or with the time of the turn.

use model::{BadResponse, Clock, Nanos, NetworkPath, Outcome};
use rustix::io::Errno;

use super::records::RequestEnd;
use super::{BUFFER, Lane};
use crate::connection::{ConnectionState, LONGEST_RESPONSE, take_response};
use crate::response::ReceivedResponse;
use crate::wire::{ConnectionDriver, ConnectionEvent, would_block};

/// Full buffers taken from one connection in a turn: 1 MiB.
const READS_IN_A_TURN: usize = 16;

impl<C: Clock, W: ConnectionDriver> Lane<'_, C, W> {
    /// Handles an event of one connection. `CLASSES`: whether requests are told apart.
    #[inline(always)]
    pub(super) fn handle<const CLASSES: bool>(&mut self, event: ConnectionEvent, now: Nanos) {
        let slot = event.slot as usize;
        let connection = &mut self.connections[slot];
        // This is the whole response, or the request leaves the fast path.
        if connection.on_fast_path && event.is_readable() {
            connection.on_fast_path = false;
            let received = self.wire.receive(slot, &mut self.buffer);
            let is_taken = matches!(received, Ok(n) if !event.is_closing() && self.take_on_fast_path::<CLASSES>(slot, n, now));
            if !is_taken {
                self.receive_more(slot, event.is_closing(), now, received);
            }
            return;
        }
        // While a connection is being opened any event counts: a handshake goes both ways.
        let can_send = event.is_writable() || connection.state == ConnectionState::Opening;
        let now = if can_send && connection.has_to_send() {
            self.send_the_rest(slot, event, now)
        } else {
            now
        };
        let connection = &self.connections[slot];
        if event.is_readable() && connection.state == ConnectionState::Open {
            if connection.outstanding.is_none() {
                return self.receive_idle(slot);
            }
            let received = self.wire.receive(slot, &mut self.buffer);
            match received {
                // Most often one read brings the whole response: the socket is drained and still
                // open.
                Ok(n @ 1..BUFFER) if !event.is_closing() => _ = self.take(slot, n, false, now),
                _ => self.receive_more(slot, event.is_closing(), now, received),
            }
        }
    }

    /// Sends what could not be sent before, and returns the time after that, so that what is
    /// received next counts as later than the request. Bytes that were there before anything was
    /// sent are not its response.
    #[inline(never)]
    fn send_the_rest(&mut self, slot: usize, event: ConnectionEvent, now: Nanos) -> Nanos {
        let is_opening = self.connections[slot].state == ConnectionState::Opening;
        let is_unasked = is_opening && event.is_readable() && self.wire.has_unasked(slot);
        self.send(slot);
        let now = now.max(self.clock.now());
        if is_unasked && self.connections[slot].state == ConnectionState::Open {
            self.end_badly(slot, BadResponse::BeforeRequest, now);
        }
        now
    }

    /// Receives until the socket is drained or the request has ended; `received` is the first read.
    /// A server that sends without end does not hold up the other connections: the rest is left for
    /// the next turn.
    #[inline(never)]
    fn receive_more(
        &mut self,
        slot: usize,
        closing: bool,
        now: Nanos,
        received: Result<usize, Errno>,
    ) {
        let mut received = received;
        for reads in 1..=READS_IN_A_TURN {
            match received {
                Ok(0) => {
                    let ended = self.connections[slot].reader.end();
                    match ended {
                        // The end of a stream has no kernel stamp.
                        Some(response) => {
                            self.answered_in_pieces(slot, &response, true, RequestEnd::seen(now));
                        }
                        None => self.end(slot, Outcome::Closed, now, None),
                    }
                    return;
                }
                Ok(n) => {
                    let is_drained = n < BUFFER && !closing;
                    if self.take(slot, n, closing, now) || is_drained {
                        return;
                    }
                }
                Err(errno) if would_block(errno) => return,
                Err(_) => return self.end(slot, Outcome::Reset, now, None),
            }
            if reads < READS_IN_A_TURN {
                received = self.wire.receive(slot, &mut self.buffer);
            }
        }
        match self.unread.iter_mut().find(|(other, _)| *other as usize == slot) {
            Some((_, was_closing)) => *was_closing |= closing,
            None => self.unread.push((slot as u32, closing)),
        }
    }

    /// Receives more of what was left in the turn before.
    pub(super) fn receive_the_unread(&mut self, now: Nanos) {
        for (slot, closing) in std::mem::take(&mut self.unread) {
            let connection = &self.connections[slot as usize];
            if connection.state == ConnectionState::Open && connection.outstanding.is_some() {
                let received = self.wire.receive(slot as usize, &mut self.buffer);
                self.receive_more(slot as usize, closing, now, received);
            }
        }
    }

    /// Takes the `n` bytes that were received into the buffer if they are a whole response that the
    /// fast path can record; `false` if they still have to be taken.
    #[inline(always)]
    fn take_on_fast_path<const CLASSES: bool>(
        &mut self,
        slot: usize,
        n: usize,
        now: Nanos,
    ) -> bool {
        let end = self.arrival(slot, now);
        let connection = &mut self.connections[slot];
        let Some(request) = &connection.outstanding else { return false };
        let is_slow = end.at.saturating_sub(request.begun) >= self.slow;
        if request.sent >= end.at || end.at >= self.window.until || is_slow {
            return false;
        }
        let Some(bytes) = self.buffer.get(..n) else { return false };
        let hint = connection.reader.hint;
        let Some(head) = self.heads.fast_path(bytes, hint) else { return false };
        self.records.fast_path::<CLASSES>(slot, request, end, hint, head);
        connection.outstanding = None;
        connection.is_sent_in_full = false;
        connection.next_due = end.seen;
        self.busy -= 1;
        self.busy_measured -= 1;
        self.free.push(slot as u32);
        true
    }

    /// Takes the `n` bytes that were received into the buffer, and tells whether the request has
    /// ended with them.
    #[inline(always)]
    pub(super) fn take(&mut self, slot: usize, n: usize, closing: bool, now: Nanos) -> bool {
        self.records.tally.received_bytes += n as u64;
        let end = self.arrival(slot, now);
        let connection = &mut self.connections[slot];
        if let Some(response) = connection.reader.whole(&self.buffer[..n], &self.heads)
            && !self.spec.keep_responses
        {
            connection.first_byte = end.at;
            self.answered(slot, &response, closing, end);
            return true;
        }
        self.take_piece(slot, n, closing, end)
    }

    /// Takes bytes that are not one whole response with a known head.
    #[inline(never)]
    fn take_piece(&mut self, slot: usize, n: usize, closing: bool, end: RequestEnd) -> bool {
        let connection = &mut self.connections[slot];
        if connection.reader.received() == 0 {
            connection.first_byte = end.at;
        }
        match connection.reader.feed(&self.buffer[..n], &mut self.heads) {
            Ok(None) => {
                self.keep_piece(slot, n);
                return false;
            }
            Ok(Some((response, used))) => {
                self.keep_piece(slot, used);
                if used == n {
                    self.answered_in_pieces(slot, &response, closing, end);
                } else {
                    // Bytes after the response: what follows on this connection could not be
                    // understood.
                    let reader = &self.connections[slot].reader;
                    let reason = reader.reason_of_rest(&response, &self.buffer[used..n]);
                    self.end_badly(slot, reason, end.seen);
                }
            }
            Err(BadResponse::NotHttp) if self.responses_of(slot) > 0 => {
                let reason = self.connections[slot].reader.reason_after_another();
                self.keep_piece(slot, n);
                self.end_badly(slot, reason, end.seen);
            }
            Err(reason) => {
                self.note_first_bytes(slot, reason, n);
                self.keep_piece(slot, n);
                self.end_badly(slot, reason, end.seen);
            }
        }
        true
    }

    /// Keeps the first `n` bytes of the buffer, which are part of the response, where responses are
    /// checked.
    fn keep_piece(&mut self, slot: usize, n: usize) {
        let response = &mut self.connections[slot].response;
        // Kept until it is longer than the limit; `take_response` then drops it.
        if self.spec.keep_responses && response.len() <= LONGEST_RESPONSE {
            response.extend_from_slice(&self.buffer[..n]);
        }
    }

    /// Ends the request as a bad response, for this `reason`.
    #[cold]
    fn end_badly(&mut self, slot: usize, reason: BadResponse, seen: Nanos) {
        let bytes = self.connections[slot].reader.received();
        self.close(slot);
        self.record_end(slot, Outcome::BadResponse, Some(reason), seen, bytes);
    }

    #[inline(never)]
    fn answered_in_pieces(
        &mut self,
        slot: usize,
        response: &ReceivedResponse,
        closing: bool,
        end: RequestEnd,
    ) {
        self.answered(slot, response, closing, end);
    }

    /// When the bytes that were just received came: by the kernel's stamp, if there is a
    /// plausible one.
    #[inline(always)]
    fn arrival(&self, slot: usize, now: Nanos) -> RequestEnd {
        let stamp = self.wall.as_ref().and_then(|wall| Some(wall.map(self.wire.stamp(slot)?)));
        let Some(at) = stamp else { return RequestEnd::seen(now) };
        // The bytes came after the turn's time was read.
        let seen = if at > now { self.clock.now() } else { now };
        let sent = self.connections[slot].outstanding.as_ref().map_or(now, |request| request.sent);
        if at < sent || seen < at {
            return RequestEnd::seen(now);
        }
        let meant_to_read = at.max(self.unread_responses.until);
        RequestEnd { at, seen, read_lag: Some(seen.saturating_sub(meant_to_read)) }
    }

    /// Handles an event of an idle connection: the server closed it, or sent something unasked.
    #[inline(never)]
    fn receive_idle(&mut self, slot: usize) {
        match self.wire.receive(slot, &mut self.buffer) {
            Err(errno) if would_block(errno) => return,
            Ok(1..) => self.records.tally.closed_for_unasked += 1,
            Ok(0) | Err(_) => {
                self.records.tally.closed_by_server += 1;
                self.note_silent_closing(slot);
            }
        }
        self.close(slot);
    }

    /// Records a whole response; `closing`: the server has closed the connection after it.
    #[inline(always)]
    fn answered(
        &mut self,
        slot: usize,
        response: &ReceivedResponse,
        closing: bool,
        end: RequestEnd,
    ) {
        let connection = &mut self.connections[slot];
        let Some(request) = &connection.outstanding else { return };
        let took = end.at.saturating_sub(request.begun);
        if took >= self.spec.load.timeout {
            return self.answered_too_late(slot, took, response.bytes, end.seen);
        }
        let mut outcome = Outcome::Answered(response.head.status);
        let mut is_good = outcome.is_good();
        let was_measured = request.due.is_measured;
        let is_slow = was_measured && took >= NetworkPath::SLOW;
        if let Some(wanted) = self.spec.body_bytes
            && is_good
            && wanted != response.body_bytes
        {
            (outcome, is_good) = (Outcome::WrongLength, false);
            if was_measured {
                self.records.tally.record_wrong_length(wanted, response.body_bytes);
            }
        }
        connection.other_responses += u64::from(!(was_measured && is_good));
        self.records.response(request, response, is_good, connection.first_byte, end);
        let spec = self.spec;
        let kept = &mut connection.response;
        let traced = &mut connection.traced;
        if is_good || !self.retries.take(slot, request, outcome, end, response.bytes) {
            self.records.end(slot, request, outcome, end, response.bytes, |record| {
                record.response = spec.keep_responses.then(|| take_response(kept)).flatten();
                record.trace = spec.traces_requests.then(|| traced.next(response.head.app_time));
            });
        }
        connection.outstanding = None;
        if is_slow {
            self.note_slow(slot, took);
        }
        let connection = &mut self.connections[slot];
        connection.until_reconnect -= 1;
        // If the response came before the whole request was sent, the server would read the rest of
        // it as the next request.
        let asked_in_full = std::mem::take(&mut connection.is_sent_in_full);
        let server_keeps = response.head.keep_alive && asked_in_full && !closing;
        let we_keep = self.spec.load.keep_alive && connection.until_reconnect > 0;
        let is_whole_and_stamped = connection.first_byte == end.at && end.read_lag.is_some();
        self.unread_responses.ended(response.bytes, is_whole_and_stamped);
        if server_keeps && we_keep {
            self.free_connection(slot, was_measured, end.seen);
        } else {
            if we_keep && asked_in_full {
                self.note_closing(slot, response.head.keep_alive, closing);
            }
            self.ended_with_its_connection(slot, was_measured, we_keep, end.seen);
        }
    }

    /// A whole response came after the timeout, before a scan found the request: it has timed out all
    /// the same, and its connection is closed as that of any other timeout.
    #[cold]
    fn answered_too_late(&mut self, slot: usize, took: Nanos, bytes: u64, seen: Nanos) {
        self.make_no_further_request(slot, seen);
        if self.connections[slot].has_measured_request() && took >= NetworkPath::SLOW {
            self.note_slow(slot, took);
        }
        self.close(slot);
        self.record_end(slot, Outcome::TimedOut, None, seen, bytes);
    }

    /// Notes that the server closes the connection with this response. `is_silent`: the response
    /// does not announce it; `closing`: it is closed already.
    #[cold]
    fn note_closing(&mut self, slot: usize, is_silent: bool, closing: bool) {
        if !is_silent {
            let responses = self.responses_of(slot);
            self.records.tally.record_announced_closing(responses);
        } else if closing {
            self.note_silent_closing(slot);
        }
    }

    /// The response was the last one on its connection. `we_keep`: we would have kept it open, so
    /// it is the server that closes it.
    #[inline(never)]
    fn ended_with_its_connection(
        &mut self,
        slot: usize,
        was_measured: bool,
        we_keep: bool,
        seen: Nanos,
    ) {
        self.records.tally.closed_by_server += u64::from(we_keep);
        self.close(slot);
        self.free_connection(slot, was_measured, seen);
    }
}
