//! The state of one connection: what it is doing, for which request, since when.

use model::Nanos;

use crate::response::Reader;

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Not open, and nothing to do.
    Closed,
    /// Open, and nothing to do.
    Idle,
    /// Has a request of which nothing is sent yet: the connection is being opened.
    Opening,
    /// Has a request of which a part is sent.
    Sending,
    /// Has sent its request.
    Waiting,
    /// Has made all its requests.
    Finished,
}

/// One connection, or the place of one: it is opened again after the server has closed it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) state: State,
    /// The present request's number in the run.
    pub(crate) number: u64,
    /// Which of the rendered requests it is.
    pub(crate) request: u32,
    /// When it was due.
    pub(crate) due: Nanos,
    /// Since when the generator could have begun it.
    pub(crate) possible: Nanos,
    /// When its first byte was sent.
    pub(crate) sent: Nanos,
    /// When its last byte was handed to the kernel.
    pub(crate) written_at: Nanos,
    /// When the first byte of the answer was seen.
    pub(crate) first_byte: Nanos,
    /// When it was begun: from here the timeout counts.
    pub(crate) begun: Nanos,
    /// When the connection was opened for it; zero where it was open already.
    pub(crate) opened: Nanos,
    /// When the socket was connected, where a handshake followed; zero where none did.
    pub(crate) connected: Nanos,
    /// Bytes of the request sent.
    pub(crate) written: usize,
    /// Closed loop: when its next request is due.
    pub(crate) next_due: Nanos,
    /// Measured requests that it may still make.
    pub(crate) requests_left: u64,
    /// Requests it may still make before it is closed and opened anew.
    pub(crate) until_reconnect: u64,
    /// Connects that failed in a row.
    pub(crate) failed_connects: u32,
    pub(crate) reader: Reader,
    /// The raw answer so far, where it is kept.
    pub(crate) answer: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(requests_left: u64, start: Nanos) -> Connection {
        Connection {
            state: State::Closed,
            number: 0,
            request: 0,
            due: Nanos::ZERO,
            possible: Nanos::ZERO,
            sent: Nanos::ZERO,
            written_at: Nanos::ZERO,
            first_byte: Nanos::ZERO,
            begun: Nanos::ZERO,
            opened: Nanos::ZERO,
            connected: Nanos::ZERO,
            written: 0,
            next_due: start,
            requests_left,
            until_reconnect: u64::MAX,
            failed_connects: 0,
            reader: Reader::default(),
            answer: Vec::new(),
        }
    }

    /// Whether it has a request that has not ended.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.state, State::Opening | State::Sending | State::Waiting)
    }
}
