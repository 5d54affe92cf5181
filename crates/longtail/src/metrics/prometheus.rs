//! Serves `GET /metrics` to Prometheus, from one thread that lives as long as the process.
//!
//! Clients share that thread, and none of them can hold it up: sockets don't block, and each client
//! has a deadline for the whole of its request and our answer. There are few clients at a time,
//! since the load needs the descriptors; where one more comes, the oldest goes.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use export::text_formats;
use model::{Clock as _, Nanos, SystemClock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::live_board::{LiveBoard, locked};

/// For the whole of a scrape, from the accepted connection to the last byte of the answer.
const LONGEST_SCRAPE: Nanos = Nanos::from_secs(5);
/// Clients at a time.
const MOST_CLIENTS: usize = 32;
/// No request for metrics has a longer head, in bytes.
const LONGEST_HEAD: usize = 8192;
/// The pause after the system refused a client, or to wait for one.
const PAUSE: Nanos = Nanos::from_millis(200);

/// Starts to serve, and returns the address.
///
/// # Errors
/// If the address cannot be listened to, or the system has no thread.
pub(super) fn serve(
    address: SocketAddr,
    board: Arc<LiveBoard>,
    clock: SystemClock,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let server = MetricsServer { listener, board, clock, clients: VecDeque::new() };
    std::thread::Builder::new().name("metrics".to_owned()).spawn(move || server.run())?;
    Ok(address)
}

struct MetricsServer {
    listener: TcpListener,
    board: Arc<LiveBoard>,
    clock: SystemClock,
    /// The oldest first.
    clients: VecDeque<ScrapeClient>,
}

impl MetricsServer {
    fn run(mut self) {
        loop {
            self.wait();
            let now = self.clock.now();
            let board = &self.board;
            self.clients.retain_mut(|client| client.go_on(board) && now < client.until);
            self.accept(now);
        }
    }

    /// Waits for a client that can go on, a new one, or the end of the oldest one's time.
    fn wait(&self) {
        let now = self.clock.now();
        let left = self.clients.front().map(|oldest| oldest.until.saturating_sub(now));
        let left = left.map(|left| Timespec {
            tv_sec: (left.0 / 1_000_000_000).cast_signed(),
            tv_nsec: (left.0 % 1_000_000_000).cast_signed(),
        });
        let mut sockets = vec![PollFd::new(&self.listener, PollFlags::IN)];
        sockets.extend(self.clients.iter().map(|client| {
            let waits_for = if client.response.is_empty() { PollFlags::IN } else { PollFlags::OUT };
            PollFd::new(&client.stream, waits_for)
        }));
        // If it fails, all clients are tried without knowing whether one is ready.
        if poll(&mut sockets, left.as_ref()).is_err() {
            self.clock.sleep(PAUSE);
        }
    }

    /// Takes those who have come, but no more at once than there is room for.
    fn accept(&mut self, now: Nanos) {
        for _ in 0..MOST_CLIENTS {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    // One that would block could hold up the others.
                    if stream.set_nonblocking(true).is_ok() {
                        if self.clients.len() == MOST_CLIENTS {
                            self.clients.pop_front();
                        }
                        self.clients.push_back(ScrapeClient::new(stream, now + LONGEST_SCRAPE));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // All descriptors are taken, say: the run must not pay for asking again at once.
                Err(_) => return self.clock.sleep(PAUSE),
            }
        }
    }
}

/// One connection: one request, one response.
struct ScrapeClient {
    stream: TcpStream,
    /// When it is let go, whatever it does.
    until: Nanos,
    head: Vec<u8>,
    /// What is not written yet; empty until the request is read.
    response: VecDeque<u8>,
}

impl ScrapeClient {
    fn new(stream: TcpStream, until: Nanos) -> ScrapeClient {
        ScrapeClient { stream, until, head: Vec::new(), response: VecDeque::new() }
    }

    /// Reads and writes what is possible now; whether anything is left to do.
    fn go_on(&mut self, board: &LiveBoard) -> bool {
        let done = self.read(board).and_then(|()| self.write());
        match done {
            Ok(is_done) => !is_done,
            // Whoever has gone away asks for nothing.
            Err(error) => {
                matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
            }
        }
    }

    /// Reads the request, as far as it has come, and makes the answer once it is whole.
    fn read(&mut self, board: &LiveBoard) -> io::Result<()> {
        let mut piece = [0; 2048];
        while self.response.is_empty() {
            let length = self.stream.read(&mut piece)?;
            self.head.extend_from_slice(&piece[..length]);
            let has_end = self.head.windows(4).any(|end| end == b"\r\n\r\n");
            if length == 0 || has_end || self.head.len() > LONGEST_HEAD {
                // The lock is not held while the text is made.
                let all = || locked(board).all();
                let response = response(&self.head, || text_formats::exposition(&all()));
                self.response = response.into_bytes().into();
            }
        }
        Ok(())
    }

    /// Writes as much of the answer as is taken; whether that is all.
    fn write(&mut self) -> io::Result<bool> {
        while !self.response.is_empty() {
            let (next, _) = self.response.as_slices();
            let length = self.stream.write(next)?;
            self.response.drain(..length);
        }
        Ok(true)
    }
}

/// What a request is answered with.
fn response(head: &[u8], metrics: impl FnOnce() -> String) -> String {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    let is_whole = request.parse(head).is_ok_and(|status| status.is_complete());
    let path = request.path.map(|target| target.split('?').next().unwrap_or_default());
    let (status, kind, body) = match (request.method, path) {
        _ if !is_whole => ("400 Bad Request", "text/plain", "this is no request\n".to_owned()),
        (Some("GET" | "HEAD"), Some("/metrics")) => {
            ("200 OK", text_formats::CONTENT_TYPE, metrics())
        }
        (Some("GET" | "HEAD"), _) => {
            ("404 Not Found", "text/plain", "the metrics are at /metrics\n".to_owned())
        }
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
        for request in ["", "GET", "GET /metrics HTTP/1.1\r\n", "\r\n\r\n", "GET /metrics\r\n\r\n"]
        {
            assert!(answered(request).starts_with("HTTP/1.1 400"), "{request:?}");
        }
    }
}
