//! The fast path: what nearly every request of a busy closed loop takes, in two straight pieces of code, its sending and its record.
//!
//! The request is measured, and goes out whole and in one go on a connection that is open and has nothing else out. Its answer comes in one
//! read before the window ends, with a head that was seen before: a good one, as long as it has to be, and the connection goes on. Then only
//! what is the request's own is recorded, its times; what it has in common with others is counted by the head, and added up when somebody
//! asks. Whatever is otherwise at any point goes the general way (`send.rs`, `receive.rs`), and the two leave the same tally (law
//! `the_fast_path_and_the_general_one_record_the_same`).

use model::{Clock, Nanos, NetworkPath};

use super::Lane;
use crate::connection::{ConnectionState, Outstanding};
use crate::scheduler::DueRequest;
use crate::wire::ConnectionDriver;

impl<C: Clock, W: ConnectionDriver> Lane<'_, C, W> {
    /// Whether the request that is `due` on `slot`, which has nothing out, can take the fast path.
    #[inline(always)]
    pub(super) fn begins_on_fast_path(&self, slot: usize, due: &DueRequest) -> bool {
        self.allows_fast_path && due.is_measured && self.connections[slot].state == ConnectionState::Open
    }

    /// Sends it. What does not go out whole goes on the general way.
    #[inline(always)]
    pub(super) fn begin_on_fast_path(&mut self, slot: usize, due: DueRequest, now: Nanos) {
        self.busy += 1;
        self.busy_measured += 1;
        let index = self.spec.order.index(due.number, self.spec.requests.len());
        let request = &self.spec.requests[index];
        let connection = &mut self.connections[slot];
        connection.reader.expect(request.is_head);
        let sent = self.clock.now();
        // (Trouble comes again on the general way.)
        let written = self.wire.send(slot, &request.bytes).unwrap_or(0);
        let is_whole = written == request.bytes.len();
        self.records.tally.sent_bytes += written as u64;
        let begun = Outstanding::new(due, index, now);
        connection.outstanding.push(Outstanding { sent, written_at: sent, written, ..begun });
        if is_whole {
            connection.sent_in_full = 1;
            connection.on_fast_path = !request.is_head;
        } else {
            self.send(slot);
        }
    }

    /// Takes the `n` bytes that were received into the buffer, if they are all of a fast answer to what was out on `slot`;
    /// `false`: they are still to be taken.
    #[inline(always)]
    pub(super) fn take_on_fast_path(&mut self, slot: usize, n: usize, now: Nanos) -> bool {
        let end = self.arrival(slot, now);
        let connection = &mut self.connections[slot];
        let Some(request) = connection.outstanding.oldest() else { return false };
        let is_slow = end.at.saturating_sub(request.sent) >= NetworkPath::SLOW;
        if request.sent >= end.at || end.at >= self.window.until || is_slow {
            return false;
        }
        let Some(bytes) = self.buffer.get(..n) else { return false };
        let hint = connection.reader.hint();
        let Some(head) = self.heads.fast_path(bytes, hint) else { return false };
        self.records.fast_path(slot, request, end, hint, head);
        connection.outstanding.drop_oldest();
        connection.sent_in_full = 0;
        connection.next_due = end.seen;
        self.busy -= 1;
        self.busy_measured -= 1;
        self.free.push(slot as u32);
        true
    }
}
