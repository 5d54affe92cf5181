//! A request's head, once it is whole: what of it decides how the request is read and answered. It is a pure function
//! of the head's bytes, which is why [`HeadMemo`] may reuse it for the next head of the same bytes.

use std::mem::MaybeUninit;

use model::Nanos;
use model::anatomy::STAMPS;

/// The longest head, in bytes, with the empty line that ends it.
pub(crate) const LONGEST: usize = 64 * 1024;
/// The most header fields.
const MOST_FIELDS: usize = 128;

/// Why a request is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is not HTTP/1, or contradicts itself: 400.
    Malformed,
    /// Its head is too long: 431.
    TooLarge,
}

/// Where the body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestFraming {
    /// There is none.
    Bodiless,
    /// After so many bytes, more than 0.
    Length(u64),
    /// After its last chunk.
    Chunked,
}

/// What happens to the connection after the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionFate {
    /// It stays, as HTTP/1.1 has it.
    KeepAlive,
    /// It stays, and an HTTP/1.0 client has to be told.
    KeepAliveSaid,
    /// It is closed.
    Close,
}

/// What of a head matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestHead {
    /// Bytes of the head, empty lines before it and the one after it included.
    pub(crate) length: usize,
    /// What is asked for.
    pub(crate) route: RequestRoute,
    /// Where the body ends.
    pub(crate) framing: RequestFraming,
    /// What happens to the connection.
    pub(crate) fate: ConnectionFate,
    /// HEAD: the answer has no body.
    pub(crate) bodiless_answer: bool,
    /// The client wants to know when its request got a slot and gave it back.
    pub(crate) asks_for_stamps: bool,
    /// The client wants to be told to go on before it sends the body.
    pub(crate) expects_continue: bool,
}

/// The head that `bytes` begin with; `None` where they could be the beginning of one.
fn parse(bytes: &[u8]) -> Result<Option<RequestHead>, Refusal> {
    let mut fields = [const { MaybeUninit::uninit() }; MOST_FIELDS];
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(bytes, &mut fields) {
        Ok(httparse::Status::Complete(length)) => understand(&request, length).map(Some),
        Ok(httparse::Status::Partial) => Ok(None),
        Err(httparse::Error::TooManyHeaders) => Err(Refusal::TooLarge),
        Err(_) => Err(Refusal::Malformed),
    }
}

fn understand(request: &httparse::Request<'_, '_>, length: usize) -> Result<RequestHead, Refusal> {
    let newest = request.version == Some(1);
    let mut content_length = None;
    let mut chunked = false;
    let (mut close, mut keep_alive, mut expects_continue) = (false, false, false);
    let mut asks_for_stamps = false;
    for field in request.headers.iter() {
        if field.name.eq_ignore_ascii_case("content-length") {
            let value = number(field.value)?;
            // RFC 9112 section 6.3: differing lengths are an error that cannot be recovered from.
            if content_length.is_some_and(|earlier| earlier != value) {
                return Err(Refusal::Malformed);
            }
            content_length = Some(value);
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            if chunked || !field.value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                return Err(Refusal::Malformed);
            }
            chunked = true;
        } else if field.name.eq_ignore_ascii_case("connection") {
            for option in field.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                close |= option.eq_ignore_ascii_case(b"close");
                keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            }
        } else if field.name.eq_ignore_ascii_case(STAMPS) {
            asks_for_stamps = true;
        } else if field.name.eq_ignore_ascii_case("expect") {
            expects_continue = field.value.trim_ascii().eq_ignore_ascii_case(b"100-continue");
        }
    }
    let framing = match (chunked, content_length) {
        (false, None | Some(0)) => RequestFraming::Bodiless,
        (false, Some(bytes)) => RequestFraming::Length(bytes),
        (true, None) if newest => RequestFraming::Chunked,
        // RFC 9112 section 6.1: both, or chunks from HTTP/1.0, are how requests are smuggled.
        (true, _) => return Err(Refusal::Malformed),
    };
    let fate = match (close, newest, keep_alive) {
        (true, _, _) | (_, false, false) => ConnectionFate::Close,
        (_, true, _) => ConnectionFate::KeepAlive,
        (_, false, true) => ConnectionFate::KeepAliveSaid,
    };
    Ok(RequestHead {
        length,
        route: RequestRoute::of(request.path.unwrap_or("/")),
        framing,
        fate,
        bodiless_answer: request.method == Some("HEAD"),
        asks_for_stamps,
        expects_continue: expects_continue && newest && framing != RequestFraming::Bodiless,
    })
}

/// A Content-Length: digits only.
fn number(value: &[u8]) -> Result<u64, Refusal> {
    let text = std::str::from_utf8(value.trim_ascii()).map_err(|_| Refusal::Malformed)?;
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Refusal::Malformed);
    }
    text.parse().map_err(|_| Refusal::Malformed)
}

/// What to do with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestRoute {
    /// `/_ledger`: the counts, at once, without a slot.
    Ledger,
    /// `/sleep<seconds>`, such as `/sleep0.1`: hold a slot that long.
    Sleep(Nanos),
    /// Anything else: hold a slot for the delay of the settings.
    Content,
}

impl RequestRoute {
    /// The route of a request target in origin form or absolute form (RFC 9112 section 3.2).
    pub(crate) fn of(target: &str) -> RequestRoute {
        let path = path(target);
        if path == "/_ledger" {
            return RequestRoute::Ledger;
        }
        let sleep = path.strip_prefix("/sleep").map(str::parse::<Nanos>);
        match sleep {
            Some(Ok(duration)) => RequestRoute::Sleep(duration),
            _ => RequestRoute::Content,
        }
    }
}

/// The target without scheme, authority and query.
fn path(target: &str) -> &str {
    let after_scheme = target.strip_prefix("http://").or_else(|| target.strip_prefix("https://"));
    let path = match after_scheme {
        Some(rest) => rest.find('/').map_or("/", |slash| &rest[slash..]),
        None => target,
    };
    path.split('?').next().unwrap_or(path)
}

/// The last head seen, of whatever connection: a load generator sends the same one again and again, and comparing
/// a hundred bytes is cheaper than parsing them.
#[derive(Debug, Default)]
pub(crate) struct HeadMemo {
    last: Option<RequestHead>,
    bytes: Vec<u8>,
}

impl HeadMemo {
    /// As [`parse`], and remembers.
    pub(crate) fn parse(&mut self, bytes: &[u8]) -> Result<Option<RequestHead>, Refusal> {
        if self.last.is_some() && bytes.starts_with(&self.bytes) {
            return Ok(self.last);
        }
        let parsed = parse(bytes)?;
        if let Some(head) = parsed {
            self.last = parsed;
            self.bytes.clear();
            self.bytes.extend_from_slice(&bytes[..head.length]);
        }
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> RequestHead {
        parse(text.as_bytes()).unwrap().expect(text)
    }

    #[test]
    fn the_connections_fate_and_the_body_are_found_in_the_head() {
        use ConnectionFate::{Close, KeepAlive, KeepAliveSaid};
        use RequestFraming::{Bodiless, Chunked, Length};
        for (text, fate, framing, expects_continue) in [
            ("GET / HTTP/1.1", KeepAlive, Bodiless, false),
            ("GET / HTTP/1.1\r\nConnection: Close", Close, Bodiless, false),
            ("GET / HTTP/1.1\r\nconnection: te, close", Close, Bodiless, false),
            ("GET / HTTP/1.0", Close, Bodiless, false),
            ("GET / HTTP/1.0\r\nConnection: Keep-Alive", KeepAliveSaid, Bodiless, false),
            ("POST / HTTP/1.1\r\nContent-Length: 7", KeepAlive, Length(7), false),
            ("POST / HTTP/1.1\r\nContent-Length: 0", KeepAlive, Bodiless, false),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked", KeepAlive, Chunked, false),
            ("PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1", KeepAlive, Length(1), true),
            ("PUT / HTTP/1.1\r\nExpect: 100-continue", KeepAlive, Bodiless, false),
        ] {
            let head = head(&format!("{text}\r\n\r\n"));
            assert_eq!((head.fate, head.framing, head.expects_continue), (fate, framing, expects_continue), "{text}");
        }
    }

    #[test]
    fn contradictions_are_refused() {
        for fields in [
            "Content-Length: 1\r\nContent-Length: 2",
            "Content-Length: +1",
            "Content-Length: ",
            "Content-Length: 99999999999999999999",
            "Content-Length: 1\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: gzip, chunked",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "no colon",
        ] {
            let text = format!("POST / HTTP/1.1\r\n{fields}\r\n\r\n");
            assert_eq!(parse(text.as_bytes()), Err(Refusal::Malformed), "{fields}");
        }
    }

    #[test]
    fn a_head_remembered_is_a_head_parsed() {
        let mut memo = HeadMemo::default();
        let texts = ["GET /sleep1 HTTP/1.1\r\n\r\n", "GET /sleep1 HTTP/1.1\r\na: b\r\n\r\n", "HEAD / HTTP/1.0\r\n\r\n"];
        for text in [0, 0, 1, 0, 1, 1, 2, 0].map(|i: usize| texts[i]) {
            let followed = format!("{text}GET /");
            assert_eq!(memo.parse(followed.as_bytes()), parse(text.as_bytes()));
        }
        assert_eq!(head(texts[0]).route, RequestRoute::Sleep(Nanos::from_secs(1)));
    }

    #[test]
    fn a_sleep_is_in_seconds_and_any_other_target_is_served() {
        for target in ["/sleep0.1", "/sleep.1?n=7", "http://localhost:9292/sleep0.1"] {
            assert_eq!(RequestRoute::of(target), RequestRoute::Sleep(Nanos::from_millis(100)), "{target}");
        }
        for target in ["/", "*", "", "/sleep", "/sleepless", "/sleep-1", "http://host", "host:443", "/_ledger/x"] {
            assert_eq!(RequestRoute::of(target), RequestRoute::Content, "{target}");
        }
        assert_eq!(RequestRoute::of("/_ledger?now"), RequestRoute::Ledger);
    }
}
