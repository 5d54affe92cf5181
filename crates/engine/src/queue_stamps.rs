//! Stamps requests with the wall clock as they are sent, as a proxy in front of the server would
//! (`--queue-header`): with the time at which each is sent, not due, so that the generator's own
//! lateness does not look like queueing at the server.

use model::{Clock, Nanos, QueueHeader, Request};

use crate::load_spec::LoadSpec;

/// Stamps the requests of a lane, each in a copy.
pub(crate) struct QueueStamps {
    header: QueueHeader,
    /// How far the wall clock is ahead of the lane's. Either may be ahead: sums wrap.
    ahead: u64,
    /// The request that is being sent.
    copy: Vec<u8>,
}

impl QueueStamps {
    /// Stamps with the difference of the clocks as it is now; `None` if nothing is to be stamped.
    pub(crate) fn new(spec: &LoadSpec, clock: &impl Clock) -> Option<QueueStamps> {
        let longest = spec.requests.requests().iter().map(|request| request.bytes.len()).max();
        Some(QueueStamps {
            header: spec.load.queue_header?,
            ahead: clock.wall().0.wrapping_sub(clock.now().0),
            // A lane does not allocate once it is warm.
            copy: Vec::with_capacity(longest.unwrap_or(0)),
        })
    }

    /// The bytes of a request, stamped with the time at which its first byte was sent. The same
    /// time gives the same bytes, so the rest of a request can be sent later.
    pub(crate) fn stamped(&mut self, request: &Request, sent: Nanos) -> &[u8] {
        self.copy.clear();
        self.copy.extend_from_slice(&request.bytes);
        if let Some(at) = request.queue_stamp {
            let value = &mut self.copy[at as usize..][..self.header.unstamped().len()];
            self.header.stamp(value, Nanos(sent.0.wrapping_add(self.ahead)));
        }
        &self.copy
    }
}
