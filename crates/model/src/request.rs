//! A request as bytes: rendered before the start, so that a lane only sends it.

use std::sync::Arc;

/// A rendered request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Head and body, as they go over the wire.
    pub bytes: Arc<[u8]>,
    /// Whether the method is HEAD: its response has no body, whatever its head says (RFC 9110 section 9.3.2).
    pub is_head: bool,
}
