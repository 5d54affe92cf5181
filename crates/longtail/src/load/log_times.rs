//! The times of the requests in a log that is replayed (`--replay`).

use model::Nanos;

/// Times since the log's own beginning, as the crate `requests` read them.
pub(crate) struct LogTimes {
    /// Of each request, in order.
    pub(crate) times: Vec<Nanos>,
    /// When the log begins: with its first request, or with that one's second where the times are
    /// spread.
    pub(crate) start: Nanos,
}
