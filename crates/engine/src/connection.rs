//! The state of one connection: open or not, and its outstanding requests.

use std::collections::VecDeque;

use model::Nanos;

use crate::progress::RequestTrace;
use crate::response::ResponseReader;
use crate::scheduler::DueRequest;

/// Bytes of the longest answer that is kept for checks.
pub(crate) const LONGEST_ANSWER: usize = 2 * 1024 * 1024;

/// The raw answer that was kept, unless it is longer than [`LONGEST_ANSWER`]; the next one is kept
/// from its first byte.
pub(crate) fn take_answer(answer: &mut Vec<u8>) -> Option<Box<[u8]>> {
    let answer = std::mem::take(answer);
    (answer.len() <= LONGEST_ANSWER).then(|| answer.into_boxed_slice())
}

/// Whether there is a socket behind a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    /// No.
    #[default]
    Closed,
    /// It is being opened: nothing could be sent yet.
    Opening,
    /// Yes.
    Open,
    /// No, and there will be none: it has made all its requests.
    Finished,
}

/// A request that was begun and has not ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outstanding {
    pub(crate) due: DueRequest,
    /// Which of the rendered requests it is.
    pub(crate) request: u32,
    /// When it was begun: from here the timeout counts.
    pub(crate) begun: Nanos,
    /// When the connection was opened for it; zero where it was open already.
    pub(crate) opened: Nanos,
    /// When the socket was connected, where a handshake followed; zero where none did.
    pub(crate) connected: Nanos,
    /// When its first byte was sent.
    pub(crate) sent: Nanos,
    /// When its last byte was handed to the kernel.
    pub(crate) written_at: Nanos,
    /// Bytes of it sent.
    pub(crate) written: usize,
}

/// The requests that are out on a connection, the oldest first: the one whose answer comes next.
/// The oldest stands here in place, as without pipelining there is no other.
#[derive(Debug, Default)]
pub(crate) struct RequestsInFlight {
    oldest: Option<Outstanding>,
    /// Empty where there is no oldest.
    behind: VecDeque<Outstanding>,
}

impl RequestsInFlight {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.oldest.is_none()
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.oldest.is_some()) + self.behind.len()
    }

    /// How many of them are measured.
    pub(crate) fn measured(&self) -> u64 {
        self.oldest.iter().chain(&self.behind).filter(|request| request.due.is_measured).count()
            as u64
    }

    #[inline]
    pub(crate) fn oldest(&self) -> Option<&Outstanding> {
        self.oldest.as_ref()
    }

    /// The n-th from the oldest, from 0.
    #[inline]
    pub(crate) fn get_mut(&mut self, n: usize) -> Option<&mut Outstanding> {
        if n == 0 { self.oldest.as_mut() } else { self.behind.get_mut(n - 1) }
    }

    #[inline]
    pub(crate) fn push(&mut self, request: Outstanding) {
        if self.oldest.is_none() {
            self.oldest = Some(request);
        } else {
            self.behind.push_back(request);
        }
    }

    /// The oldest has ended.
    #[inline]
    pub(crate) fn drop_oldest(&mut self) {
        self.oldest = None;
        if !self.behind.is_empty() {
            self.oldest = self.behind.pop_front();
        }
    }
}

/// One connection, or the place of one: it is opened again after the server has closed it.
#[derive(Debug, Default)]
pub(crate) struct LaneConnection {
    pub(crate) state: ConnectionState,
    /// The requests that are out. More than one only with pipelining.
    pub(crate) outstanding: RequestsInFlight,
    /// How many of them are sent in full: the next byte to send belongs to the one behind those.
    pub(crate) sent_in_full: usize,
    /// Whether what is out is on the [fast path](crate::lane) so far: one measured request, not
    /// HEAD, sent whole in one go on a connection that was open, and nothing of its answer has
    /// come.
    pub(crate) on_fast_path: bool,
    /// When the first byte of the present answer was seen.
    pub(crate) first_byte: Nanos,
    /// Closed loop: when its next request is due.
    pub(crate) next_due: Nanos,
    /// Measured requests that it may still make.
    pub(crate) requests_left: u64,
    /// Requests it may still make before it is closed and opened anew.
    pub(crate) until_reconnect: u64,
    /// How the kernel knows its next answer, where requests are traced.
    pub(crate) traced: RequestTrace,
    /// Segments that TCP had sent again on it when it was last asked.
    pub(crate) retransmitted: u32,
    /// Good measured answers of its place before it was opened, and answers since that are none of
    /// these: how many it has had, without counting them on the fast path.
    pub(crate) good_before: u64,
    pub(crate) other_answers: u64,
    /// Connects that failed in a row.
    pub(crate) failed_connects: u32,
    pub(crate) reader: ResponseReader,
    /// The raw answer so far, where it is kept.
    pub(crate) answer: Vec<u8>,
}

impl LaneConnection {
    pub(crate) fn new(requests_left: u64, start: Nanos, pipeline: u32) -> LaneConnection {
        let behind = VecDeque::with_capacity(pipeline as usize - 1);
        LaneConnection {
            outstanding: RequestsInFlight { oldest: None, behind },
            next_due: start,
            requests_left,
            until_reconnect: u64::MAX,
            ..LaneConnection::default()
        }
    }

    /// Whether a byte of some request is still to be sent.
    #[inline]
    pub(crate) fn has_to_send(&self) -> bool {
        self.sent_in_full < self.outstanding.len()
    }
}
