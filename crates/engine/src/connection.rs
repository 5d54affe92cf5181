//! The state of one connection: open or not, and its outstanding request.

use model::Nanos;

use crate::progress::RequestTrace;
use crate::response::ResponseReader;
use crate::scheduler::DueRequest;

/// Bytes of the longest response that is kept for checks.
pub(crate) const LONGEST_RESPONSE: usize = 2 * 1024 * 1024;

/// Takes the raw response that was kept, unless it is longer than [`LONGEST_RESPONSE`]. The next
/// one is then kept from its first byte.
pub(crate) fn take_response(response: &mut Vec<u8>) -> Option<Box<[u8]>> {
    let response = std::mem::take(response);
    (response.len() <= LONGEST_RESPONSE).then(|| response.into_boxed_slice())
}

/// Whether there is a socket behind a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    /// No.
    #[default]
    Closed,
    /// It is being opened: nothing was sent yet.
    Opening,
    /// Yes.
    Open,
    /// No, and none will be opened: it has made all its requests.
    Finished,
}

/// A request that was begun and has not ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outstanding {
    pub(crate) due: DueRequest,
    /// Which of the rendered requests it is.
    pub(crate) request: u32,
    /// The number of its class.
    pub(crate) class: u8,
    /// When it was begun: the timeout counts from here.
    pub(crate) begun: Nanos,
    /// When opening the connection for it began; zero if it was open already.
    pub(crate) opened: Nanos,
    /// When the socket was connected, where a handshake followed; zero if none did.
    pub(crate) connected: Nanos,
    /// When its first byte was sent.
    pub(crate) sent: Nanos,
    /// When its last byte was handed to the kernel.
    pub(crate) written_at: Nanos,
    /// Bytes of it sent.
    pub(crate) written: usize,
}

/// One connection. It is opened again after the server has closed it.
#[derive(Debug, Default)]
pub(crate) struct LaneConnection {
    pub(crate) state: ConnectionState,
    /// The request in flight.
    pub(crate) outstanding: Option<Outstanding>,
    /// Whether all its bytes were handed to the kernel; `false` if none is in flight.
    pub(crate) is_sent_in_full: bool,
    /// Whether that request is on the [fast path](crate::lane) so far: it is measured, not HEAD,
    /// was sent whole in one send on an open connection, and nothing of its response has come.
    pub(crate) on_fast_path: bool,
    /// When the first byte of the present response was seen.
    pub(crate) first_byte: Nanos,
    /// Closed loop: when its next request is due.
    pub(crate) next_due: Nanos,
    /// Measured requests that it may still make.
    pub(crate) requests_left: u64,
    /// Requests it may still make before it is closed and opened anew.
    pub(crate) until_reconnect: u64,
    /// How the kernel knows its next response, where requests are traced.
    pub(crate) traced: RequestTrace,
    /// TCP segments that had been retransmitted when this was last read.
    pub(crate) retransmitted: u32,
    /// Good measured responses of its slot before it was opened, and other responses since. With
    /// the slot's good ones up to now, which the tally counts anyway, they tell how many responses
    /// it has had, so the fast path counts nothing for this.
    pub(crate) good_before: u64,
    pub(crate) other_responses: u64,
    /// Connects that failed in a row.
    pub(crate) failed_connects: u32,
    pub(crate) reader: ResponseReader,
    /// The raw response so far, where it is kept.
    pub(crate) response: Vec<u8>,
}

impl LaneConnection {
    pub(crate) fn new(requests_left: u64, start: Nanos) -> LaneConnection {
        LaneConnection {
            next_due: start,
            requests_left,
            until_reconnect: u64::MAX,
            ..LaneConnection::default()
        }
    }

    /// Whether a byte of its request is still to be sent.
    #[inline]
    pub(crate) fn has_to_send(&self) -> bool {
        self.outstanding.is_some() && !self.is_sent_in_full
    }

    /// Whether a measured request is in flight on it.
    #[inline]
    pub(crate) fn has_measured_request(&self) -> bool {
        self.outstanding.is_some_and(|request| request.due.is_measured)
    }
}
