//! One request, one answer: to ask whether a server answers at all. And the plain GET that a sweep sends, rendered before the start.

use std::sync::atomic::AtomicBool;

use model::{Nanos, Outcome, Request, SystemClock};

use crate::drive::drive;
use crate::load_spec::LoadSpec;
use crate::progress::RunProgress;
use crate::transport::Transport;

/// Renders a request without a body.
///
/// `host` goes into the Host header, which HTTP/1.1 demands (RFC 9112 section 3.2) and newer Pumas insist on.
pub fn render(method: &str, host: &str, path: &str, keep_alive: bool) -> Request {
    render_with(method, host, path, &[], keep_alive)
}

/// As [`render`], with header lines of one's own, `name: value`, beside those that every request has.
pub fn render_with(method: &str, host: &str, path: &str, headers: &[String], keep_alive: bool) -> Request {
    let version = env!("CARGO_PKG_VERSION");
    let more: String = headers.iter().flat_map(|line| [line, "\r\n"]).collect();
    let close = if keep_alive { "" } else { "connection: close\r\n" };
    let text = format!(
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\nuser-agent: longtail/{version}\r\naccept: */*\r\n{more}{close}\r\n"
    );
    Request { bytes: text.into_bytes().into(), is_head: method == "HEAD" }
}

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

/// Sends `request` on a new connection, waits for the answer, `timeout` at the most or until `interrupt` is set, and
/// closes the connection.
///
/// # Errors
/// Where no whole, well-formed response came in time: why, in some words.
pub fn fetch(
    transport: &Transport,
    request: &Request,
    worker_header: &str,
    timeout: Nanos,
    clock: &SystemClock,
    interrupt: &AtomicBool,
) -> Result<FetchedResponse, String> {
    let spec = LoadSpec {
        requests_total: Some(1),
        keep_alive: false,
        timeout,
        worker_header: worker_header.to_owned(),
        ..LoadSpec::closed(transport.clone(), request.clone(), 1)
    };
    let done = drive(&spec, clock, interrupt, &RunProgress::new(1), None).map_err(|error| error.to_string())?;
    if let Some((reason, _)) = done.tally.bad_responses.iter().next() {
        return Err(format!("bad response: {reason}"));
    }
    let outcome = done.tally.counts.iter().next().map_or(Outcome::InFlight, |(outcome, _)| outcome);
    match outcome {
        Outcome::Answered(status) => Ok(FetchedResponse {
            status,
            worker: done.tally.per_worker.keys().next().cloned(),
            bytes: done.tally.received_bytes,
            body_bytes: done.tally.body_bytes,
        }),
        other => Err(model::counts::name(other).replace('_', " ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_is_said_and_headers_of_ones_own_stand_before_the_end() {
        let text = |headers: &[String], keep_alive| {
            String::from_utf8(render_with("GET", "h:1", "/x", headers, keep_alive).bytes.to_vec()).unwrap()
        };
        let kept = text(&[], true);
        assert!(kept.starts_with("GET /x HTTP/1.1\r\nhost: h:1\r\n") && !kept.contains("connection"), "{kept}");
        let closed = text(&["body-conf: s10".to_owned()], false);
        assert!(closed.ends_with("accept: */*\r\nbody-conf: s10\r\nconnection: close\r\n\r\n"), "{closed}");
    }
}
