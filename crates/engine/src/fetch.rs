//! One request, one answer, blocking: to ask whether a server answers at all. Not for load.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use model::{Clock, Nanos, Request};
use thiserror::Error;

use crate::head::Heads;
use crate::response::{BadResponse, Fed, Reader};

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// The worker that answered, where it names itself.
    pub worker: Option<String>,
}

/// Why nothing came back.
#[derive(Debug, Error)]
pub enum FetchError {
    /// The socket failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// What came was no response.
    #[error("{0}")]
    Bad(#[from] BadResponse),
    /// No whole response before the connection or the time ended.
    #[error("no whole response came")]
    Unfinished,
}

/// Sends `request` on a new connection and waits for the answer, `timeout` at the most.
///
/// # Errors
/// Where no whole, well-formed response came in time.
pub fn fetch(
    address: SocketAddr,
    request: &Request,
    worker_header: &str,
    timeout: Nanos,
    clock: &impl Clock,
) -> Result<Answer, FetchError> {
    let end = clock.now() + timeout;
    let left = || Nanos(end.saturating_sub(clock.now()).0.max(1));
    let mut stream = TcpStream::connect_timeout(&address, left().into())?;
    stream.set_write_timeout(Some(left().into()))?;
    stream.write_all(&request.bytes)?;
    let (mut reader, mut heads) = (Reader::default(), Heads::new(worker_header, request.is_head));
    let mut buffer = vec![0; 64 * 1024];
    loop {
        stream.set_read_timeout(Some(left().into()))?;
        let n = stream.read(&mut buffer)?;
        let response = if n == 0 {
            reader.end().ok_or(FetchError::Unfinished)?
        } else if let Fed::Done(response, _) = reader.feed(&buffer[..n], &mut heads)? {
            response
        } else if clock.now() >= end {
            return Err(FetchError::Unfinished);
        } else {
            continue;
        };
        let worker = response.worker.map(|index| heads.workers()[usize::from(index)].clone());
        return Ok(Answer { status: response.status, worker });
    }
}
