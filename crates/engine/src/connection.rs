//! The state of one connection: whether it is open, and the requests that it has out.

use std::collections::VecDeque;

use model::Nanos;

use crate::response::Reader;

/// Whether there is a socket behind a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No.
    Closed,
    /// It is being opened: nothing could be sent yet.
    Opening,
    /// Yes.
    Open,
    /// No, and there will be none: it has made all its requests.
    Finished,
}

/// A request that was begun and has not ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outstanding {
    /// Its number in the run.
    pub(crate) number: u64,
    /// Which of the rendered requests it is.
    pub(crate) request: u32,
    /// When it was due.
    pub(crate) due: Nanos,
    /// Since when the generator could have begun it.
    pub(crate) possible: Nanos,
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

/// One connection, or the place of one: it is opened again after the server has closed it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) state: State,
    /// The requests that are out, the oldest first: the one whose answer comes next. More than one only with pipelining.
    pub(crate) outstanding: VecDeque<Outstanding>,
    /// How many of them are sent in full: the next byte to send belongs to the one behind those.
    pub(crate) sent_in_full: usize,
    /// When the first byte of the present answer was seen.
    pub(crate) first_byte: Nanos,
    /// Closed loop: when its next request is due.
    pub(crate) next_due: Nanos,
    /// Measured requests that it may still make.
    pub(crate) requests_left: u64,
    /// Requests it may still make before it is closed and opened anew.
    pub(crate) until_reconnect: u64,
    /// Our end's port, when it was opened, and the answers since; where requests are traced.
    pub(crate) traced: (u16, Nanos, u64),
    /// Connects that failed in a row.
    pub(crate) failed_connects: u32,
    pub(crate) reader: Reader,
    /// The raw answer so far, where it is kept.
    pub(crate) answer: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(requests_left: u64, start: Nanos, pipeline: u32) -> Connection {
        Connection {
            state: State::Closed,
            outstanding: VecDeque::with_capacity(pipeline as usize),
            sent_in_full: 0,
            first_byte: Nanos::ZERO,
            next_due: start,
            requests_left,
            until_reconnect: u64::MAX,
            traced: (0, Nanos::ZERO, 0),
            failed_connects: 0,
            reader: Reader::default(),
            answer: Vec::new(),
        }
    }

    /// Whether a byte of some request is still to be sent.
    pub(crate) fn has_to_send(&self) -> bool {
        self.sent_in_full < self.outstanding.len()
    }
}
