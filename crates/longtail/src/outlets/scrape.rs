//! The endpoint that Prometheus scrapes: `GET /metrics`, one request a connection, one connection at a time.
//!
//! It lives as long as the process. A client that does not ask, or does not read, is let go after a moment.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use export::prometheus::{CONTENT_TYPE, exposition};
use model::{Clock as _, Nanos, SystemClock};

use super::LiveBoard;

/// A client may take so long for each piece of its request, and of our answer.
const TIMEOUT: Duration = Duration::from_millis(500);
/// Before the next client where the system had none to give.
const PAUSE: Nanos = Nanos::from_millis(200);
/// And so many pieces for the request.
const MOST_READS: usize = 8;
/// No request for metrics is longer.
const LONGEST: usize = 8192;

/// Serves from a thread of its own; where.
///
/// # Errors
/// Where the address cannot be listened to.
pub(crate) fn serve(address: SocketAddr, board: Arc<LiveBoard>, clock: SystemClock) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    let address = listener.local_addr()?;
    std::thread::Builder::new().name("metrics".to_owned()).spawn(move || {
        for client in listener.incoming() {
            match client {
                // Whoever has gone away asked for nothing.
                Ok(client) => _ = answer(client, &board),
                // All descriptors are taken, say: the run must not pay for asking again at once.
                Err(_) => clock.sleep(PAUSE),
            }
        }
    })?;
    Ok(address)
}

fn answer(mut client: TcpStream, board: &LiveBoard) -> io::Result<()> {
    client.set_read_timeout(Some(TIMEOUT))?;
    client.set_write_timeout(Some(TIMEOUT))?;
    let mut head = Vec::new();
    let mut piece = [0; 2048];
    for _ in 0..MOST_READS {
        if head.windows(4).any(|end| end == b"\r\n\r\n") || head.len() > LONGEST {
            break;
        }
        let length = client.read(&mut piece)?;
        if length == 0 {
            break;
        }
        head.extend_from_slice(&piece[..length]);
    }
    let response = response(&head, || exposition(&board.all()));
    client.write_all(response.as_bytes())
}

/// What a request is answered with.
fn response(head: &[u8], metrics: impl FnOnce() -> String) -> String {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    let is_whole = request.parse(head).is_ok_and(|status| status.is_complete());
    let path = request.path.map(|target| target.split('?').next().unwrap_or_default());
    let (status, kind, body) = match (request.method, path) {
        _ if !is_whole => ("400 Bad Request", "text/plain", "this is no request\n".to_owned()),
        (Some("GET" | "HEAD"), Some("/metrics")) => ("200 OK", CONTENT_TYPE, metrics()),
        (Some("GET" | "HEAD"), _) => ("404 Not Found", "text/plain", "the metrics are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "text/plain", "only GET\n".to_owned()),
    };
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{allow}Connection: close\r\n\r\n",
        body.len()
    );
    if request.method == Some("HEAD") { head } else { head + &body }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(request: &str) -> String {
        response(request.as_bytes(), || "a 1\n".to_owned())
    }

    #[test]
    fn only_metrics_are_served() {
        assert!(
            answered("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
                .ends_with("Content-Length: 4\r\nConnection: close\r\n\r\na 1\n")
        );
        assert!(answered("GET /metrics?x=y HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
        assert!(answered("HEAD /metrics HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"));
        assert!(answered("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(answered("POST /metrics HTTP/1.1\r\n\r\n").contains("\r\nAllow: GET, HEAD\r\n"));
        for request in ["", "GET", "GET /metrics HTTP/1.1\r\n", "\r\n\r\n", "GET /metrics\r\n\r\n"] {
            assert!(answered(request).starts_with("HTTP/1.1 400"), "{request:?}");
        }
    }
}
