//! Headers that change the protocol: understood, or refused.
//!
//! A header of the user's may say how the body is framed, what becomes of the connection, or that
//! another protocol is to follow. Sent without being understood, such a header makes the server and
//! longtail disagree about where a request or a response ends, and every request after it is
//! measured wrongly. This file alone decides which of them are understood; flags, requests files of
//! every format and the command lines of other tools all come here.

use crate::{RequestError, excerpt};

/// One request's header fields, and what else is known of it.
pub(crate) struct TypedHead<'a> {
    /// Names and values, in order; no value where a default header is to be left out.
    pub(crate) fields: Vec<(&'a str, Option<&'a [u8]>)>,
    /// Bytes of the body; `None` if the headers have to say (a raw request).
    pub(crate) body: Option<usize>,
    /// Whether it says HTTP/1.0, where a connection ends with the response unless a header keeps
    /// it.
    pub(crate) is_http_1_0: bool,
    /// Whether the flags let the run keep its connections.
    pub(crate) keep_alive: bool,
}

/// How a request's body is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestBody {
    /// By its Content-Length where it has one; else there is none.
    Length(Option<u64>),
    /// In chunks.
    Chunked,
}

/// What the headers of a request mean for the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestProtocol {
    /// How its body is framed.
    pub(crate) body: RequestBody,
    /// Whether the connection is to carry another request.
    pub(crate) keeps_connection: bool,
}

/// Fields that a request may have only once (RFC 9110 section 5.3, RFC 6265 section 5.4): servers
/// differ in which of two they take.
const ONCE: [&str; 17] = [
    "authorization",
    "content-encoding",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "from",
    "host",
    "if-modified-since",
    "if-unmodified-since",
    "max-forwards",
    "proxy-authorization",
    "range",
    "referer",
    "user-agent",
];

/// Fields that are refused whatever their value, and why.
const REFUSED: [(&str, &str); 5] = [
    (
        "upgrade",
        "asks the server to speak another protocol, and longtail speaks HTTP/1.1 only: leave it \
         out",
    ),
    (
        "http2-settings",
        "asks the server to speak HTTP/2, and longtail speaks HTTP/1.1 only: leave it out",
    ),
    (
        "expect",
        "makes a client wait for the server's word before it sends the body, and longtail sends \
         both at once: leave it out",
    ),
    (
        "trailer",
        "announces fields after a chunked body, and longtail sends none there: leave it out",
    ),
    (
        "proxy-connection",
        "is for a proxy, and longtail never uses one: leave it out (-k closes connections)",
    ),
];

/// Fields by which the connection or the body is framed: another generator frames them itself.
pub(crate) fn frames(name: &str) -> bool {
    ["connection", "content-length", "transfer-encoding"]
        .iter()
        .any(|field| name.eq_ignore_ascii_case(field))
}

impl TypedHead<'_> {
    /// What the headers mean for the protocol.
    ///
    /// # Errors
    /// If one of them contradicts another, the body or the flags, or asks for what longtail does
    /// not do: one line with what to do.
    pub(crate) fn understood(&self) -> Result<RequestProtocol, RequestError> {
        self.check_names()?;
        for name in ONCE {
            self.once(name)?;
        }
        if let Some(host) = self.once("host")? {
            check_host(host)?;
        }
        let keeps_connection = self.keeps_connection()?;
        self.check_te()?;
        Ok(RequestProtocol { body: self.framing()?, keeps_connection })
    }

    fn check_names(&self) -> Result<(), RequestError> {
        for (name, value) in &self.fields {
            let refused = REFUSED.iter().find(|(field, _)| name.eq_ignore_ascii_case(field));
            if let (Some((_, why)), Some(value)) = (refused, value) {
                return Err(header_error(name, value, why));
            }
        }
        Ok(())
    }

    /// The values of a field, where it has a value.
    fn values(&self, wanted: &str) -> impl Iterator<Item = &[u8]> {
        let fields = self.fields.iter().filter(move |(name, _)| name.eq_ignore_ascii_case(wanted));
        fields.filter_map(|(_, value)| *value)
    }

    /// The value of a field that may be there only once.
    fn once(&self, name: &str) -> Result<Option<&[u8]>, RequestError> {
        let mut values = self.values(name);
        let first = values.next();
        match (first, values.next()) {
            // (Not their values: they may be secrets.)
            (Some(_), Some(_)) => Err(RequestError::new(format!(
                "{} is given twice, and a request has one: leave one of them out",
                title_case(name)
            ))),
            _ => Ok(first),
        }
    }

    /// Whether the connection is to be kept, by the flags and by `Connection`.
    fn keeps_connection(&self) -> Result<bool, RequestError> {
        let mut closes = false;
        let mut keeps = false;
        for value in self.values("connection") {
            for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                match option.to_ascii_lowercase().as_slice() {
                    b"" => {}
                    b"close" => closes = true,
                    b"keep-alive" => keeps = true,
                    b"te" if self.values("te").next().is_some() => {}
                    _ => return Err(header_error("Connection", value, &unknown_option(option))),
                }
            }
        }
        if closes && keeps {
            return Err(RequestError::new(
                "Connection says both close and keep-alive: leave one of them out",
            ));
        }
        let hint = self.values("keep-alive").next();
        if !self.keep_alive || closes {
            let by =
                if closes { "Connection: close" } else { "-k (a new connection for each request)" };
            if keeps {
                return Err(RequestError::new(format!(
                    "'Connection: keep-alive' contradicts {by}: leave one of them out"
                )));
            }
            if let Some(hint) = hint {
                let hint = excerpt(hint);
                return Err(RequestError::new(format!(
                    "'Keep-Alive: {hint}' contradicts {by}: leave one of them out"
                )));
            }
            return Ok(false);
        }
        Ok(keeps || !self.is_http_1_0)
    }

    /// `TE: trailers` is allowed, because trailers are read; codings are not, because none is
    /// decoded.
    fn check_te(&self) -> Result<(), RequestError> {
        for value in self.values("te") {
            if !value.trim_ascii().eq_ignore_ascii_case(b"trailers") {
                return Err(header_error(
                    "TE",
                    value,
                    "asks for a transfer coding that longtail does not read: write 'TE: \
                     trailers', or leave it out",
                ));
            }
        }
        Ok(())
    }

    fn framing(&self) -> Result<RequestBody, RequestError> {
        let length = self.once("content-length")?;
        if let Some(coding) = self.once("transfer-encoding")? {
            if !coding.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                return Err(header_error(
                    "Transfer-Encoding",
                    coding,
                    "is a coding that longtail does not make: write 'Transfer-Encoding: chunked', \
                     or leave it out",
                ));
            }
            if length.is_some() {
                return Err(RequestError::new(
                    "Transfer-Encoding and Content-Length are both there, and a body is framed by \
                     one of them: leave one out",
                ));
            }
            if self.is_http_1_0 {
                return Err(RequestError::new(
                    "HTTP/1.0 has no Transfer-Encoding: write HTTP/1.1, or give a Content-Length",
                ));
            }
            return Ok(RequestBody::Chunked);
        }
        let Some(length) = length else {
            let is_left_out =
                self.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-length"));
            if is_left_out && self.body.is_some_and(|body| body > 0) {
                return Err(RequestError::new(
                    "'Content-Length:' leaves the length out, and then nothing says where the \
                     body ends: leave that header out, or add 'Transfer-Encoding: chunked'",
                ));
            }
            return Ok(RequestBody::Length(None));
        };
        let number = decimal(length).ok_or_else(|| {
            header_error(
                "Content-Length",
                length,
                "is not a number of bytes: correct it, or leave it out",
            )
        })?;
        match self.body {
            Some(body) if body as u64 != number => Err(RequestError::new(format!(
                "Content-Length says {number} and the body has {}: leave the header out, and \
                 longtail sends the right one",
                bytes(body as u64)
            ))),
            _ => Ok(RequestBody::Length(Some(number))),
        }
    }
}

fn header_error(name: &str, value: &[u8], why: &str) -> RequestError {
    RequestError::new(format!("'{}: {}' {why}", excerpt(name), excerpt(value)))
}

/// Why an option of `Connection` is refused.
fn unknown_option(option: &[u8]) -> String {
    if option.eq_ignore_ascii_case(b"upgrade") {
        return REFUSED[0].1.to_owned();
    }
    let option = excerpt(option);
    format!(
        "has the option '{option}', which longtail does not know: write close or keep-alive, or \
         leave it out"
    )
}

/// Refuses a Host header that is no host: a URL, a list, words.
fn check_host(host: &[u8]) -> Result<(), RequestError> {
    let is_host = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+;=:%[]".contains(byte);
    if host.iter().all(is_host) {
        return Ok(());
    }
    Err(header_error("Host", host, "is no host: write NAME or NAME:PORT, without http:// and path"))
}

/// A number in digits alone.
pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(text.trim_ascii()).ok()?;
    digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn bytes(count: u64) -> String {
    format!("{count} byte{}", if count == 1 { "" } else { "s" })
}

/// `content-length` as it is usually written.
fn title_case(name: &str) -> String {
    let word = |word: &str| format!("{}{}", word[..1].to_ascii_uppercase(), &word[1..]);
    name.split('-').map(word).collect::<Vec<_>>().join("-")
}
