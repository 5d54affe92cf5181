//! The usual exchange: what nearly every request of a busy closed loop is, in two straight pieces of code, its sending and its record.
//!
//! The request is measured, and goes out whole and in one go on a connection that is open and has nothing else out. Its answer comes in one
//! read before the window ends, with a head that was seen before: a good one, as long as it has to be, and the connection goes on. Then only what is
//! the request's own is recorded, its times; what it has in common with others is counted with its head and its connection, and
//! added up when somebody asks. Whatever is otherwise at any point goes the general way (`send.rs`, `receive.rs`), and the two leave
//! the same tally (law `the_usual_way_and_the_general_one_record_the_same`).

use model::{Clock, Nanos, NetworkPath};

use super::Lane;
use crate::agenda::DueRequest;
use crate::connection::{ConnectionState, Outstanding};
use crate::shape::LoadSpec;
use crate::wire::ConnectionDriver;

/// Whether exchanges of this load can be usual ones: a closed loop without pauses, pipelining or quotas of its connections, of
/// which nobody wants to see the exchanges one by one.
pub(super) fn may_be(shape: &LoadSpec, has_journal: bool) -> bool {
    let is_seen_one_by_one = has_journal || shape.keep_exchanges || shape.keep_answers || shape.traces;
    let keeps_connections =
        shape.keep_alive && shape.reconnect_after.is_none() && shape.requests_per_connection.is_none();
    let is_plain_loop = !shape.pace.is_open() && shape.think == Nanos::ZERO && shape.pipeline <= 1;
    is_plain_loop && keeps_connections && !is_seen_one_by_one && !shape.reads_app_times
}

impl<C: Clock, W: ConnectionDriver> Lane<'_, C, W> {
    /// Whether the request that is `due` on `slot`, which has nothing out, can be a usual one.
    #[inline(always)]
    pub(super) fn begins_usual(&self, slot: usize, due: &DueRequest) -> bool {
        self.may_be_usual && due.is_measured && self.connections[slot].state == ConnectionState::Open
    }

    /// Sends it. What does not go out whole goes on the general way.
    #[inline(always)]
    pub(super) fn begin_usual(&mut self, slot: usize, due: DueRequest, now: Nanos) {
        self.busy += 1;
        self.busy_measured += 1;
        let index = self.shape.order.index(due.number, self.shape.requests.len());
        let request = &self.shape.requests[index];
        let connection = &mut self.connections[slot];
        connection.reader.expect(request.is_head);
        let sent = self.clock.now();
        // (Trouble comes again on the general way.)
        let written = self.wire.send(slot, &request.bytes).unwrap_or(0);
        let is_whole = written == request.bytes.len();
        self.records.tally.sent_bytes += written as u64;
        connection.outstanding.push(Outstanding {
            number: due.number,
            request: index as u32,
            due: due.at,
            is_measured: true,
            possible: due.possible,
            begun: now,
            opened: Nanos::ZERO,
            connected: Nanos::ZERO,
            sent,
            written_at: sent,
            written,
        });
        if is_whole {
            connection.sent_in_full = 1;
            connection.is_usual = !request.is_head;
        } else {
            self.send(slot);
        }
    }

    /// Takes the `n` bytes that were received into the buffer, if they are all of a usual answer to what was out on `slot`
    /// as a usual request; `false`: they are still to be taken.
    #[inline(always)]
    pub(super) fn take_usual(&mut self, slot: usize, n: usize, now: Nanos) -> bool {
        let end = self.arrival(slot, now);
        let connection = &mut self.connections[slot];
        let Some(request) = connection.outstanding.oldest() else { return false };
        let is_slow = end.at.saturating_sub(request.sent) >= NetworkPath::SLOW;
        if request.sent >= end.at || end.at >= self.window.until || is_slow {
            return false;
        }
        let Some(bytes) = self.buffer.get(..n) else { return false };
        if !self.heads.is_usual(bytes, connection.reader.hint()) {
            return false;
        }
        self.records.usual(request, end);
        connection.outstanding.drop_oldest();
        connection.sent_in_full = 0;
        connection.usual_answers += 1;
        connection.next_due = end.seen;
        self.busy -= 1;
        self.busy_measured -= 1;
        self.free.push(slot as u32);
        true
    }
}
