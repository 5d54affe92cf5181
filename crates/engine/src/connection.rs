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
    /// Not open; pauses after a failed connect, so that a dead server is not hammered.
    Pausing,
    /// Has made all its requests.
    Finished,
}

/// One connection, or the place of one: it is opened again after the server has closed it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) state: State,
    /// When its present request was due.
    pub(crate) due: Nanos,
    /// When the first byte of it was sent.
    pub(crate) sent: Nanos,
    /// When it was begun: from here the timeout counts.
    pub(crate) begun: Nanos,
    /// Bytes of it sent.
    pub(crate) written: usize,
    /// Measured requests that it may still make.
    pub(crate) requests_left: u64,
    /// When its pause ends.
    pub(crate) pause_until: Nanos,
    /// Connects that failed in a row.
    pub(crate) failed_connects: u32,
    pub(crate) reader: Reader,
}

impl Connection {
    pub(crate) fn new(requests_left: u64) -> Connection {
        Connection {
            state: State::Closed,
            due: Nanos::ZERO,
            sent: Nanos::ZERO,
            begun: Nanos::ZERO,
            written: 0,
            requests_left,
            pause_until: Nanos::ZERO,
            failed_connects: 0,
            reader: Reader::default(),
        }
    }

    /// Whether it has a request that has not ended.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.state, State::Opening | State::Sending | State::Waiting)
    }
}
