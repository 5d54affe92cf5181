//! Phase A of a turn: news of the connections, and the answers that came, each recorded at the instant of the turn.

use model::tally::WorkerCount;
use model::{Clock, Exchange, Nanos, Outcome};

use super::{BUFFER, End, LONGEST_ANSWER, Lane};
use crate::connection::State;
use crate::response::{Fed, Response};
use crate::wire::{Event, Trouble, Wire};

/// Full buffers taken from one connection in a turn: 1 MiB.
const READS_IN_A_TURN: usize = 16;

/// Whether more is to be received on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// A request is out, and its answer not complete.
    More,
    /// Nothing is out, or the connection is closed.
    End,
}

impl<C: Clock, W: Wire> Lane<'_, C, W> {
    /// News of one connection.
    pub(super) fn handle(&mut self, event: Event, now: Nanos) {
        let slot = event.slot as usize;
        let mut now = now;
        let connection = &self.connections[slot];
        // While a connection is opened, whatever the news: a handshake goes both ways.
        let can_send = event.writable || connection.state == State::Opening;
        if can_send && connection.has_to_send() {
            self.send(slot);
            // What is received after this send came after it, not before.
            now = now.max(self.clock.now());
        }
        let connection = &self.connections[slot];
        if event.readable && connection.state == State::Open {
            if connection.outstanding.is_empty() {
                self.receive_idle(slot);
            } else {
                self.receive(slot, event.closing, now);
            }
        }
    }

    /// Receives until the socket is drained or no request is out any more. A server that sends without end does not
    /// hold up the other connections: the rest is left for the next turn.
    pub(super) fn receive(&mut self, slot: usize, closing: bool, now: Nanos) {
        for _ in 0..READS_IN_A_TURN {
            match self.wire.receive(slot, &mut self.buffer) {
                Ok(0) => {
                    let ended = self.connections[slot].reader.end();
                    match ended {
                        // The end itself has no stamp.
                        Some(response) => self.answered(slot, response, true, End::seen(now)),
                        None => self.end(slot, Outcome::Closed, now, None),
                    }
                    return;
                }
                Ok(n) => {
                    let is_drained = n < BUFFER && !closing;
                    if self.take(slot, n, closing, now) == Taken::End || is_drained {
                        return;
                    }
                }
                Err(Trouble::WouldBlock) => return,
                Err(_) => return self.end(slot, Outcome::Reset, now, None),
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
            if connection.state == State::Open && !connection.outstanding.is_empty() {
                self.receive(slot as usize, closing, now);
            }
        }
    }

    /// Takes the `n` bytes that were received into the buffer: of one answer, or of several with pipelining.
    #[inline]
    pub(super) fn take(&mut self, slot: usize, n: usize, closing: bool, now: Nanos) -> Taken {
        self.tally.received_bytes += n as u64;
        let end = self.arrival(slot, now);
        let mut at = 0;
        loop {
            let connection = &mut self.connections[slot];
            if connection.reader.received() == 0 {
                connection.first_byte = end.at;
            }
            let fed = connection.reader.feed(&self.buffer[at..n], &mut self.heads);
            let used = if let Ok(Fed::Done(_, used)) = fed { used } else { n - at };
            // One byte more than is kept says that it is not the whole.
            if self.shape.keep_answers && connection.answer.len() <= LONGEST_ANSWER {
                connection.answer.extend_from_slice(&self.buffer[at..at + used]);
            }
            at += used;
            match fed {
                Ok(Fed::More) => return Taken::More,
                // The last byte answers what is out.
                Ok(Fed::Done(response, _)) if at == n => {
                    self.answered(slot, response, closing, end);
                    let connection = &self.connections[slot];
                    let goes_on = connection.state == State::Open && !connection.outstanding.is_empty();
                    return if goes_on { Taken::More } else { Taken::End };
                }
                // Pipelining: the next answer follows. (The server has not closed before it.)
                Ok(Fed::Done(response, _)) if connection.outstanding.len() > 1 => {
                    self.answered(slot, response, false, end);
                    if self.connections[slot].state != State::Open {
                        return Taken::End;
                    }
                }
                // Bytes after the answer, or no answer at all: this server cannot be followed on this connection.
                Ok(Fed::Done(..)) | Err(_) => {
                    self.end(slot, Outcome::BadResponse, now, None);
                    return Taken::End;
                }
            }
        }
    }

    /// When what was just received came: by the kernel's stamp, where there is one that can be true.
    #[inline]
    fn arrival(&self, slot: usize, now: Nanos) -> End {
        let stamp = self.wall.as_ref().and_then(|wall| Some(wall.map(self.wire.stamp(slot)?)));
        let Some(at) = stamp else { return End::seen(now) };
        // Bytes that came after the turn's time was read.
        let seen = if at > now { self.clock.now() } else { now };
        let sent = self.connections[slot].outstanding.oldest().map_or(now, |request| request.sent);
        if sent <= at && at <= seen { End { at, seen, is_stamped: true } } else { End::seen(now) }
    }

    /// News of a connection without a request: it was closed, or sent what nobody asked for.
    pub(super) fn receive_idle(&mut self, slot: usize) {
        if self.wire.receive(slot, &mut self.buffer) != Err(Trouble::WouldBlock) {
            self.tally.closed_by_server += 1;
            self.close(slot);
        }
    }

    /// A whole response came, to the oldest request; `closing`: and the server has closed the connection.
    #[inline]
    pub(super) fn answered(&mut self, slot: usize, response: Response, closing: bool, end: End) {
        let connection = &mut self.connections[slot];
        let Some(request) = connection.outstanding.pop() else { return };
        connection.until_reconnect -= 1;
        // Answered before it was asked in full: the rest of the request would be read as the next one.
        let asked_in_full = connection.sent_in_full > 0;
        connection.sent_in_full = connection.sent_in_full.saturating_sub(1);
        let server_keeps = response.keep_alive && asked_in_full && !closing;
        let we_keep = self.shape.keep_alive && connection.until_reconnect > 0;
        let first_byte = connection.first_byte;
        if let Some(next) = connection.outstanding.oldest() {
            connection.reader.expect(self.shape.requests[next.request as usize].is_head);
        }
        let is_measured = request.is_measured;
        if let Some(worker) = response.worker {
            let worker = usize::from(worker);
            if worker >= self.workers.len() {
                self.workers.resize(worker + 1, WorkerCount::default());
            }
            self.workers[worker].all += 1;
            self.workers[worker].measured += u64::from(is_measured);
        }
        self.tally.body_bytes += response.body_bytes;
        let mut outcome = Outcome::Answered(response.status);
        let is_of_length = self.shape.body_bytes.is_none_or(|bytes| bytes == response.body_bytes);
        if outcome.is_good() && !is_of_length {
            outcome = Outcome::WrongLength;
        }
        if is_measured && outcome.is_good() {
            let phases = &mut self.tally.phases;
            if request.opened > Nanos::ZERO {
                let connected = if request.connected > Nanos::ZERO { request.connected } else { request.sent };
                phases.connect.record(connected.saturating_sub(request.opened));
                if request.connected > Nanos::ZERO {
                    phases.handshake.record(request.sent.saturating_sub(request.connected));
                }
            }
            phases.write.record(request.written_at.saturating_sub(request.sent));
            phases.first_byte.record(first_byte.saturating_sub(request.sent));
            phases.read.record(end.at.saturating_sub(first_byte));
            if let Some(app_times) = &mut self.app_times {
                let sent = if request.written == 0 { end.at } else { request.sent };
                let exchange = Exchange { due: request.due, sent, ended: end.at, received_bytes: 0, outcome };
                app_times.record(&exchange, response.app_time);
            }
        }
        if server_keeps && we_keep {
            self.record(slot, request, outcome, end, response.bytes);
        } else {
            self.tally.closed_by_server += u64::from(we_keep);
            self.close(slot);
            self.record(slot, request, outcome, end, response.bytes);
            // Pipelining: what was sent behind it will not be answered any more.
            self.record_all(slot, Outcome::Closed, end.seen, 0);
        }
    }
}
