//! What the sink saw and said: the server's side of "client's count = server's count". Counts only, no times.

use serde::{Deserialize, Serialize};

/// The sink's count since it started. Requests for `/_ledger` itself are in none of these.
///
/// While the sink runs, `requests = answers + abandoned + waiting + busy + those being written`, and the sum of
/// `per_worker` and `waiting` and `busy` is `requests`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Whole, well-formed requests received.
    pub requests: u64,
    /// Answers wholly handed to the kernel. Whether the client read them only the client can tell.
    pub answers: u64,
    /// Requests whose client was gone before the answer was wholly handed to the kernel.
    pub abandoned: u64,
    /// What was no HTTP/1 request, or too large a one: answered by 400 or 431, in no other count.
    pub bad_requests: u64,
    /// Connections accepted, those that asked for nothing but `/_ledger` aside.
    pub connections: u64,
    /// Of them, those open now.
    pub open_connections: u64,
    /// Bytes of the requests counted: heads, bodies and their framing.
    pub received_bytes: u64,
    /// Bytes handed to the kernel for the requests counted: whole and unfinished answers, and interim 100 responses.
    pub sent_bytes: u64,
    /// Requests each worker has finished, whether or not the client was still there.
    pub per_worker: Vec<u64>,
    /// Requests that wait for a slot now.
    pub waiting: u64,
    /// Slots in use now.
    pub busy: u64,
    /// Answers that the kernel did not take at once, because the client reads too slowly or not at all.
    pub stalled: u64,
    /// Times that a connection could not be accepted: no file descriptor or no memory left.
    pub accept_failures: u64,
}

impl Ledger {
    /// An empty ledger for so many workers.
    pub(crate) fn new(workers: u32) -> Ledger {
        Ledger { per_worker: vec![0; workers as usize], ..Ledger::default() }
    }
}
