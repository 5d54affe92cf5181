//! One request, one answer: to ask whether a server answers at all. Not for load.

use std::sync::atomic::AtomicBool;

use model::{BadResponse, Clock, Nanos, Outcome, Request};
use thiserror::Error;

use crate::drive::{DriveError, drive};
use crate::load_spec::LoadSpec;
use crate::progress::RunProgress;
use crate::transport::Transport;

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedResponse {
    /// Status code.
    pub status: u16,
    /// The worker that answered, where it names itself.
    pub worker: Option<String>,
    /// Bytes of the response, head included.
    pub bytes: u64,
    /// Bytes of its content.
    pub body_bytes: u64,
}

/// Why nothing came back.
#[derive(Debug, Error)]
pub enum FetchError {
    /// It could not be sent.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// What came back is no answer.
    #[error("bad response: {0}")]
    BadResponse(BadResponse),
    /// It ended otherwise.
    #[error("{}", model::counts::name(*.0).replace('_', " "))]
    Outcome(Outcome),
}

/// Sends `request` on a new connection, waits for the answer, `timeout` at the most or until `interrupt` is set, and
/// closes the connection.
///
/// # Errors
/// Where no whole, well-formed response came in time.
pub fn fetch<C: Clock + Clone + Send>(
    transport: &Transport,
    request: &Request,
    worker_header: &str,
    timeout: Nanos,
    clock: &C,
    interrupt: &AtomicBool,
) -> Result<FetchedResponse, FetchError> {
    let spec = LoadSpec {
        requests_total: Some(1),
        keep_alive: false,
        timeout,
        worker_header: worker_header.to_owned(),
        ..LoadSpec::closed(transport.clone(), request.clone(), 1)
    };
    let done = drive(&spec, clock, interrupt, &RunProgress::new(1), None)?;
    if let Some((reason, _)) = done.tally.bad_responses.iter().next() {
        return Err(FetchError::BadResponse(reason));
    }
    let outcome = done.tally.counts.iter().next().map_or(Outcome::InFlight, |(outcome, _)| outcome);
    match outcome {
        Outcome::Answered(status) => Ok(FetchedResponse {
            status,
            worker: done.tally.per_worker.keys().next().cloned(),
            bytes: done.tally.received_bytes,
            body_bytes: done.tally.body_bytes,
        }),
        other => Err(FetchError::Outcome(other)),
    }
}
