//! Posts OTLP over HTTP between runs, once for each run; a receiver that does not answer costs a few seconds there and no figure.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use export::Family;
use export::otlp::{CONTENT_TYPE, Origin, rejected, request};

use crate::args::OtlpUrl;

/// For the connect, and for each piece that is sent or received.
const PATIENCE: Duration = Duration::from_secs(2);
/// No answer of a receiver is longer.
const LONGEST: u64 = 1 << 20;

/// Sends, and counts what was not taken.
pub(crate) struct Sender {
    address: SocketAddr,
    to: OtlpUrl,
    runs: u64,
    failed: u64,
    why: Option<String>,
    rejected: i64,
    why_rejected: Option<String>,
}

impl Sender {
    /// To that receiver, which was found at `address`.
    pub(crate) fn to(address: SocketAddr, to: OtlpUrl) -> Sender {
        Sender { address, to, runs: 0, failed: 0, why: None, rejected: 0, why_rejected: None }
    }

    /// Sends a run's figures.
    pub(crate) fn send(&mut self, families: &[Family], origin: &Origin<'_>) {
        self.runs += 1;
        let answer = post(self.address, &self.to, &request(families, origin)).map_err(|error| error.to_string());
        match answer.and_then(|answer| taken(&answer)) {
            Ok(None) => {}
            Ok(Some((points, why))) => {
                self.rejected += points;
                self.why_rejected.get_or_insert(why);
            }
            Err(why) => {
                self.failed += 1;
                self.why.get_or_insert(why);
            }
        }
    }

    /// What was not taken, in a sentence.
    pub(crate) fn end(self) -> Option<String> {
        let Sender { to, runs, failed, why, rejected, why_rejected, .. } = self;
        match (why, why_rejected) {
            (Some(why), _) => Some(format!(
                "--otlp: the figures of {failed} of {runs} runs could not be delivered to {to} ({why}); is it an OTLP receiver?"
            )),
            (None, Some(why)) => Some(format!("--otlp: {to} took the figures but for {rejected} ({why})")),
            (None, None) => None,
        }
    }
}

/// The answer to a POST of `body`, head and all.
fn post(address: SocketAddr, to: &OtlpUrl, body: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: longtail/{}\r\nContent-Type: {CONTENT_TYPE}\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        to.path,
        to.place,
        env!("CARGO_PKG_VERSION"),
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut answer = Vec::new();
    stream.take(LONGEST).read_to_end(&mut answer)?;
    Ok(answer)
}

/// What the receiver could not use, if anything.
///
/// # Errors
/// Where it is no answer of a receiver that took the request.
fn taken(answer: &[u8]) -> Result<Option<(i64, String)>, String> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut head = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(length) = head.parse(answer).map_err(|error| error.to_string())? else {
        return Err("its answer breaks off".to_owned());
    };
    match head.code {
        Some(200) => Ok(rejected(&answer[length..])),
        Some(code) => Err(format!("it answered {code} {}", head.reason.unwrap_or_default()).trim_end().to_owned()),
        None => Err("its answer has no status".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_tells_whether_it_was_taken() {
        assert_eq!(taken(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), Ok(None));
        // partial_success { rejected_data_points: 3, error_message: "full" }
        assert_eq!(taken(b"HTTP/1.1 200 OK\r\n\r\n\x0a\x08\x08\x03\x12\x04full"), Ok(Some((3, "full".to_owned()))));
        assert_eq!(taken(b"HTTP/1.1 404 Not Found\r\n\r\n"), Err("it answered 404 Not Found".to_owned()));
        assert_eq!(taken(b"HTTP/1.1 503\r\n\r\n"), Err("it answered 503".to_owned()));
        assert!(taken(b"").is_err() && taken(b"SSH-2.0-x\r\n").is_err() && taken(b"HTTP/1.1 200 OK\r\n").is_err());
    }
}
