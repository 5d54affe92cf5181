//! The HTTP client for everything but load: one request and its response on a connection of their
//! own. It asks Puma's control server, the sink's ledger and OTLP receivers.
//!
//! The server may be slow, broken or hostile, and must neither delay a measurement nor fill memory.
//! So each exchange has limits, all declared here: a time from the connect to the last byte of the
//! response, and a longest head and body. It also ends as soon as its caller no longer needs it
//! (`over`). Redirects are not followed, and TLS is not spoken.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use model::chunked::ChunkedDecoder;
use model::{Clock as _, Endpoint, Nanos, SystemClock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with, sockopt,
};
use thiserror::Error;

/// The time limit if the result matters: a server's statistics before and after a run, the sink's
/// ledger, a run's figures for a receiver.
pub const LONGEST_EXCHANGE: Nanos = Nanos::from_secs(5);
/// The time limit of a poll that is soon repeated anyway.
pub const LONGEST_POLL: Nanos = Nanos::from_millis(500);
/// The longest head of a response in bytes, informational heads (1xx) included.
const LONGEST_HEAD: usize = 16 << 10;
/// The longest body of a response, in bytes.
const LONGEST_BODY: usize = 4 << 20;
/// Bytes needed to tell whether a response is HTTP.
const FIRST_BYTES: usize = 64;
/// The most header fields of a response.
const MOST_FIELDS: usize = 128;
/// Characters of the reason phrase that are kept, because it is printed.
const LONGEST_REASON: usize = 80;
/// How often `over` is checked.
const POLL_INTERVAL: Nanos = Nanos::from_millis(20);

/// The `over` of a caller that is never interrupted.
pub static NEVER: AtomicBool = AtomicBool::new(false);

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    /// Its status line without the version: `200 OK`.
    pub status: String,
    /// What follows the head.
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// Whether the status is 200.
    pub fn is_ok(&self) -> bool {
        self.status.split(' ').next() == Some("200")
    }
}

/// Why there is no response; "it" in a message is the server.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HttpError {
    /// The system reported an error.
    #[error("{0}")]
    NoConnection(Errno),
    /// It took too long.
    #[error("{step} within {time}")]
    TooSlow {
        /// The step that was not finished.
        step: HttpStep,
        /// The time limit of the whole exchange.
        time: Nanos,
    },
    /// The caller no longer needed the response.
    #[error("it had not answered when longtail stopped waiting")]
    Over,
    /// The connection ended before the response began.
    #[error("it closed the connection without a response")]
    NoResponse,
    /// The connection ended within the response.
    #[error("it closed the connection in the middle of its response")]
    HalfAResponse,
    /// The response is not HTTP/1.
    #[error("its response is not HTTP")]
    NotHttp,
    /// The response is a TLS record.
    #[error("it speaks TLS, and longtail plain HTTP")]
    SpeaksTls,
    /// The head is too long.
    #[error("the head of its response is longer than {} KiB", LONGEST_HEAD >> 10)]
    HeadTooLong,
    /// The body is too long.
    #[error("its response is longer than {} MiB", LONGEST_BODY >> 20)]
    BodyTooLong,
}

/// A step of an exchange that took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpStep {
    /// Connecting.
    Connect,
    /// Sending the request.
    Send,
    /// Waiting for the first byte of the response.
    Response,
    /// Waiting for the last byte of the response.
    WholeResponse,
}

impl fmt::Display for HttpStep {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            HttpStep::Connect => "it took no connection",
            HttpStep::Send => "it did not read the request",
            HttpStep::Response => "it did not answer",
            HttpStep::WholeResponse => "it did not finish its response",
        })
    }
}

/// Sends `request`, which asks the server to close the connection, and reads the response. This
/// takes at most `time`, and ends when `over` is set.
///
/// # Errors
/// If there is no complete HTTP/1 response by then, or it is too long.
pub fn exchange(
    address: &Endpoint,
    request: &[u8],
    time: Nanos,
    over: &AtomicBool,
) -> Result<HttpResponse, HttpError> {
    let clock = SystemClock::start();
    let deadline = Deadline { clock, at: clock.now() + time, time, over };
    let socket = connected(address, &deadline)?;
    let mut unsent = request;
    let mut reader = HttpResponseReader::default();
    let mut buffer = [0; 16 << 10];
    loop {
        let (step, events) = match (unsent, reader.is_empty()) {
            ([], true) => (HttpStep::Response, PollFlags::IN),
            ([], false) => (HttpStep::WholeResponse, PollFlags::IN),
            _ => (HttpStep::Send, PollFlags::IN | PollFlags::OUT),
        };
        let ready = deadline.wait(&socket, events, step)?;
        if !unsent.is_empty() && ready.intersects(PollFlags::OUT) {
            match send(&socket, unsent, SendFlags::NOSIGNAL) {
                Ok(sent) => unsent = &unsent[sent..],
                Err(Errno::AGAIN | Errno::INTR) => {}
                // The server may have answered before it closed the connection.
                Err(_) => unsent = &[],
            }
        }
        if ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            match recv(&socket, &mut buffer, RecvFlags::empty()) {
                Ok((_, 0)) => return reader.at_the_end(),
                Ok((_, length)) => {
                    if let Some(response) = reader.take(&buffer[..length])? {
                        return Ok(response);
                    }
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return reader.at_the_end(),
            }
        }
    }
}

/// Sends `GET /<path>` by HTTP/1.0 and reads the response.
///
/// # Errors
/// As [`exchange`].
pub fn get(
    address: &Endpoint,
    path: &str,
    time: Nanos,
    over: &AtomicBool,
) -> Result<HttpResponse, HttpError> {
    let request = format!("GET /{path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
    exchange(address, request.as_bytes(), time, over)
}

/// When to give up an exchange.
struct Deadline<'a> {
    clock: SystemClock,
    at: Nanos,
    /// The time that was allowed at the start.
    time: Nanos,
    over: &'a AtomicBool,
}

impl Deadline<'_> {
    /// How long to sleep before `over` is checked again.
    fn nap(&self, step: HttpStep) -> Result<Nanos, HttpError> {
        if self.over.load(Ordering::Relaxed) {
            return Err(HttpError::Over);
        }
        match self.at.saturating_sub(self.clock.now()) {
            Nanos::ZERO => Err(HttpError::TooSlow { step, time: self.time }),
            left => Ok(left.min(POLL_INTERVAL)),
        }
    }

    /// Waits for one of `events`, or an end of the connection.
    fn wait(
        &self,
        socket: &OwnedFd,
        events: PollFlags,
        step: HttpStep,
    ) -> Result<PollFlags, HttpError> {
        loop {
            let nap = self.nap(step)?;
            let nap = Timespec { tv_sec: 0, tv_nsec: nap.0.cast_signed() };
            let mut polled = [PollFd::new(socket, events)];
            match poll(&mut polled, Some(&nap)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(polled[0].revents()),
                Err(why) => return Err(HttpError::NoConnection(why)),
            }
        }
    }
}

/// A non-blocking connection.
fn connected(address: &Endpoint, deadline: &Deadline<'_>) -> Result<OwnedFd, HttpError> {
    let socket = stream(address).map_err(HttpError::NoConnection)?;
    loop {
        let tried = match address {
            Endpoint::Tcp(address) => connect(&socket, address),
            Endpoint::Unix(path) => {
                SocketAddrUnix::new(path).and_then(|path| connect(&socket, &path))
            }
            Endpoint::Abstract(name) => {
                SocketAddrUnix::new_abstract_name(name).and_then(|name| connect(&socket, &name))
            }
        };
        match tried {
            Ok(()) => return Ok(socket),
            // A Unix socket whose accept queue is full: unlike with TCP, the kernel does not retry.
            Err(Errno::AGAIN) => deadline.clock.sleep(deadline.nap(HttpStep::Connect)?),
            Err(Errno::INPROGRESS | Errno::INTR | Errno::ALREADY) => break,
            Err(why) => return Err(HttpError::NoConnection(why)),
        }
    }
    deadline.wait(&socket, PollFlags::OUT, HttpStep::Connect)?;
    match sockopt::socket_error(&socket) {
        Ok(Ok(())) => Ok(socket),
        Ok(Err(why)) | Err(why) => Err(HttpError::NoConnection(why)),
    }
}

fn stream(address: &Endpoint) -> Result<OwnedFd, Errno> {
    let family = match address {
        Endpoint::Tcp(address) if address.is_ipv4() => AddressFamily::INET,
        Endpoint::Tcp(_) => AddressFamily::INET6,
        Endpoint::Unix(_) | Endpoint::Abstract(_) => AddressFamily::UNIX,
    };
    socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}

/// Reads a response that arrives in pieces of any size.
#[derive(Default)]
struct HttpResponseReader {
    /// Bytes of the head, until it is complete.
    head: Vec<u8>,
    /// Bytes of the informational heads before it.
    skipped: usize,
    /// What the head says.
    begun: Option<BegunResponse>,
}

struct BegunResponse {
    response: HttpResponse,
    end: BodyEnd,
}

/// Where a body ends (RFC 9112 section 6.3).
enum BodyEnd {
    /// After this many bytes.
    Length(usize),
    /// After its last chunk.
    Chunked(ChunkedDecoder),
    /// When the connection is closed.
    Close,
}

impl HttpResponseReader {
    /// Whether nothing has arrived yet.
    fn is_empty(&self) -> bool {
        self.head.is_empty() && self.skipped == 0 && self.begun.is_none()
    }

    /// Takes the next bytes. Returns the response once it is complete.
    fn take(&mut self, bytes: &[u8]) -> Result<Option<HttpResponse>, HttpError> {
        if let Some(begun) = &mut self.begun {
            return begun.take(bytes);
        }
        self.head.extend_from_slice(bytes);
        // A head ends with a line break, so parse only then, or while the first bytes may show that
        // it is not HTTP.
        let may_end = self.head.len() <= FIRST_BYTES || bytes.contains(&b'\n');
        while may_end && self.begun.is_none() {
            let Some((length, begun)) = BegunResponse::parse(&self.head)? else { break };
            self.begun = begun;
            self.skipped += length;
            if self.skipped > LONGEST_HEAD {
                return Err(HttpError::HeadTooLong);
            }
            self.head.drain(..length);
        }
        match &mut self.begun {
            Some(begun) => begun.take(&std::mem::take(&mut self.head)),
            None if self.head.len() + self.skipped > LONGEST_HEAD => Err(HttpError::HeadTooLong),
            None => Ok(None),
        }
    }

    /// Takes the end of the connection.
    fn at_the_end(self) -> Result<HttpResponse, HttpError> {
        match self.begun {
            Some(BegunResponse { response, end: BodyEnd::Close }) => Ok(response),
            None if self.head.is_empty() && self.skipped == 0 => Err(HttpError::NoResponse),
            None => Err(BegunResponse::parse(&self.head).err().unwrap_or(HttpError::HalfAResponse)),
            Some(_) => Err(HttpError::HalfAResponse),
        }
    }
}

impl BegunResponse {
    /// Reads a head. Returns its length and the response that it begins; `None` if the head is not
    /// complete. An informational head (1xx) begins no response: another head follows.
    fn parse(bytes: &[u8]) -> Result<Option<(usize, Option<BegunResponse>)>, HttpError> {
        let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let mut head = httparse::Response::new(&mut fields);
        let length = match head.parse(bytes) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return Ok(None),
            // A TLS record of an alert or a handshake begins like this (RFC 8446 section 5.1).
            Err(_) if matches!(bytes, [0x15 | 0x16] | [0x15 | 0x16, 3, ..]) => {
                return Err(HttpError::SpeaksTls);
            }
            Err(httparse::Error::TooManyHeaders) => return Err(HttpError::HeadTooLong),
            Err(_) => return Err(HttpError::NotHttp),
        };
        let code = head.code.ok_or(HttpError::NotHttp)?;
        if (100..200).contains(&code) {
            return Ok(Some((length, None)));
        }
        let reason: String = head.reason.unwrap_or("").chars().take(LONGEST_REASON).collect();
        let status = format!("{code} {reason}").trim_end().to_owned();
        let end = if matches!(code, 204 | 304) {
            BodyEnd::Length(0)
        } else {
            BodyEnd::announced(head.headers)?
        };
        let response = HttpResponse { status, body: Vec::new() };
        Ok(Some((length, Some(BegunResponse { response, end }))))
    }

    fn take(&mut self, bytes: &[u8]) -> Result<Option<HttpResponse>, HttpError> {
        let body = &mut self.response.body;
        let is_whole = match &mut self.end {
            BodyEnd::Length(length) => {
                let missing = *length - body.len();
                body.extend_from_slice(&bytes[..bytes.len().min(missing)]);
                body.len() == *length
            }
            BodyEnd::Chunked(chunks) => {
                let content = |content: &[u8]| body.extend_from_slice(content);
                chunks.feed(bytes, content).ok_or(HttpError::NotHttp)?;
                chunks.is_done()
            }
            BodyEnd::Close => {
                body.extend_from_slice(bytes);
                false
            }
        };
        if body.len() > LONGEST_BODY {
            return Err(HttpError::BodyTooLong);
        }
        Ok(is_whole.then(|| self.response.clone()))
    }
}

impl BodyEnd {
    /// What the header fields say about the body.
    fn announced(fields: &[httparse::Header<'_>]) -> Result<BodyEnd, HttpError> {
        let values = |name: &'static str| {
            let is_it = move |field: &&httparse::Header<'_>| field.name.eq_ignore_ascii_case(name);
            fields.iter().filter(is_it).map(|field| field.value.trim_ascii())
        };
        if let Some(codings) = values("transfer-encoding").next_back() {
            let is_chunked = codings.to_ascii_lowercase().ends_with(b"chunked");
            return Ok(if is_chunked {
                BodyEnd::Chunked(ChunkedDecoder::default())
            } else {
                BodyEnd::Close
            });
        }
        let Some(length) = values("content-length").next() else { return Ok(BodyEnd::Close) };
        let is_one = values("content-length").all(|other| other == length);
        let digits = str::from_utf8(length).ok().filter(|digits| {
            is_one && !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
        });
        match digits.ok_or(HttpError::NotHttp)?.parse() {
            Ok(length) if length <= LONGEST_BODY => Ok(BodyEnd::Length(length)),
            _ => Err(HttpError::BodyTooLong),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads these bytes at once, then byte by byte, each time until the connection ends.
    fn read(bytes: &[u8]) -> Result<HttpResponse, HttpError> {
        let in_pieces = |size: usize| {
            let mut reader = HttpResponseReader::default();
            for piece in bytes.chunks(size) {
                if let Some(response) = reader.take(piece)? {
                    return Ok(response);
                }
            }
            reader.at_the_end()
        };
        let whole = in_pieces(bytes.len().max(1));
        assert_eq!(in_pieces(1), whole, "{}", String::from_utf8_lossy(bytes));
        whole
    }

    #[test]
    fn a_response_ends_where_its_head_says() {
        let response = |status: &str, body: &str| {
            Ok(HttpResponse { status: status.to_owned(), body: body.into() })
        };
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
        for (bytes, expected) in [
            ("HTTP/1.0 200 OK\r\nA: b\r\n\r\n{}", response("200 OK", "{}")),
            ("HTTP/1.1 403 Forbidden\r\n\r\nno\r\n\r\n", response("403 Forbidden", "no\r\n\r\n")),
            ("HTTP/1.1 503\r\n\r\n", response("503", "")),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}more", response("200 OK", "{}")),
            ("HTTP/1.1 204 No Content\r\n\r\nmore", response("204 No Content", "")),
            (chunked, response("200 OK", "{}")),
            (
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
                response("200 OK", "x"),
            ),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", Err(HttpError::HalfAResponse)),
            (&chunked[..chunked.len() - 2], Err(HttpError::HalfAResponse)),
            ("HTTP/1.1 200 OK\r\n", Err(HttpError::HalfAResponse)),
            ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Err(HttpError::NotHttp)),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                Err(HttpError::NotHttp),
            ),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n", Err(HttpError::BodyTooLong)),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
                Err(HttpError::BodyTooLong),
            ),
            ("HTTP/1.1 OK\r\n\r\n", Err(HttpError::NotHttp)),
            ("SSH-2.0-x y\r\n\r\n", Err(HttpError::NotHttp)),
            ("\x15\x03\x01\x00\x02\x02\x46", Err(HttpError::SpeaksTls)),
            ("", Err(HttpError::NoResponse)),
        ] {
            assert_eq!(read(bytes.as_bytes()), expected, "{bytes}");
        }
        let long = |field: &str| format!("HTTP/1.1 200 OK\r\n{field}\r\n\r\n");
        let head = long(&format!("A: {}", "b".repeat(LONGEST_HEAD)));
        let fields = long(&["A: b"; MOST_FIELDS + 1].join("\r\n"));
        let informational = "HTTP/1.1 100 Continue\r\n\r\n".repeat(1000);
        for bytes in [head.as_str(), &head[..head.len() - 4], &fields, &informational] {
            let seen = read(bytes.as_bytes());
            assert_eq!(seen.unwrap_err(), HttpError::HeadTooLong, "{} bytes", bytes.len());
        }
        let body = long("A: b") + &"x".repeat(LONGEST_BODY + 1);
        let mut reader = HttpResponseReader::default();
        let read: Result<Vec<_>, _> =
            body.as_bytes().chunks(1 << 16).map(|piece| reader.take(piece)).collect();
        assert_eq!(read.unwrap_err(), HttpError::BodyTooLong);
    }
}
