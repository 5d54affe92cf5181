//! A request's method, headers and body ([`RequestTemplate`]), and the bytes that they become for a
//! target.
//!
//! Rendered once, before the start. The default headers are those of a plain GET; each gives way to
//! the user's header of the same name.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, HeaderValue, Method};
use model::{QueueHeader, Request};

use crate::protocol_headers::{self, RequestBody, RequestProtocol, TypedHead};
use crate::target::TargetUrl;
use crate::{RequestError, excerpt};

/// A header of the user's, whose name and value cannot break a request's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    name: String,
    /// `None`: not even the default is sent.
    value: Option<Vec<u8>>,
}

impl RequestHeader {
    /// A header with a value, which may be empty. The name keeps its case; space around the value
    /// goes.
    ///
    /// # Errors
    /// If the name is not a token, or the value has a line end or another control character.
    pub fn new(name: &str, value: impl AsRef<[u8]>) -> Result<RequestHeader, RequestError> {
        RequestHeader::checked(name.as_bytes(), Some(value.as_ref().trim_ascii()))
    }

    fn checked(name: &[u8], value: Option<&[u8]>) -> Result<RequestHeader, RequestError> {
        let shown = excerpt(name);
        if value.is_some_and(|value| HeaderValue::from_bytes(value).is_err()) {
            return Err(RequestError::new(format!(
                "the value of the header '{shown}' has a line end or a control character in it: \
                 leave that out"
            )));
        }
        if let Some(pseudo) = name.strip_prefix(b":") {
            let pseudo = excerpt(pseudo);
            return Err(RequestError::new(format!(
                "':{pseudo}' is a pseudo-header of HTTP/2, and longtail speaks HTTP/1.1 only: \
                 give the URL, -m for the method, --host for the authority"
            )));
        }
        let token =
            HeaderName::from_bytes(name).ok().and_then(|_| String::from_utf8(name.to_vec()).ok());
        let name = token.ok_or_else(|| {
            RequestError::new(format!(
                "'{shown}' is no header's name: use letters, digits and - only, and no space \
                 before the colon"
            ))
        })?;
        Ok(RequestHeader { name, value: value.map(<[u8]>::to_vec) })
    }

    /// A header as curl takes it: `Name: value` sets it, `Name:` leaves it out, `Name;` sends it
    /// empty.
    ///
    /// # Errors
    /// If it has none of these forms, or name or value are not allowed.
    pub fn parse(line: impl AsRef<[u8]>) -> Result<RequestHeader, RequestError> {
        let line = line.as_ref().trim_ascii();
        let mut colons = (0..line.len()).filter(|at| line[*at] == b':');
        let first = colons.next();
        // The first colon of a pseudo-header is part of its name.
        let colon = if first == Some(0) { colons.next().or(first) } else { first };
        if let Some(colon) = colon {
            let value = line[colon + 1..].trim_ascii_start();
            return RequestHeader::checked(
                &line[..colon],
                Some(value).filter(|value| !value.is_empty()),
            );
        }
        let name = line.strip_suffix(b";").ok_or_else(|| {
            // It may be a token that was meant to follow a name: it is not repeated.
            RequestError::new(
                "a header has a colon, and this one has none: write 'Name: value', or 'Name:' to \
                 leave it out, or 'Name;' to send it empty",
            )
        })?;
        RequestHeader::checked(name, Some(b""))
    }

    /// The Authorization header of `user:password` (RFC 7617).
    ///
    /// # Errors
    /// If there is no colon.
    pub fn basic_auth(user_and_password: impl AsRef<[u8]>) -> Result<RequestHeader, RequestError> {
        let credentials = user_and_password.as_ref();
        if !credentials.contains(&b':') {
            return Err(RequestError::new("the credentials have no colon: write user:password"));
        }
        RequestHeader::new("authorization", format!("Basic {}", STANDARD.encode(credentials)))
    }

    /// The same header with another value.
    ///
    /// # Errors
    /// If the value has a line end or another control character.
    pub(crate) fn with_value(&self, value: &[u8]) -> Result<RequestHeader, RequestError> {
        RequestHeader::checked(self.name.as_bytes(), Some(value))
    }

    /// The name, in the case it was given in.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value; `None` if the header is to be left out.
    pub fn value(&self) -> Option<&[u8]> {
        self.value.as_deref()
    }

    /// Whether it frames the body or the connection: another generator does that by itself.
    pub fn frames(&self) -> bool {
        protocol_headers::frames(&self.name)
    }

    /// Whether this is its name; case does not matter.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// A request without its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestTemplate {
    /// The method.
    pub method: Method,
    /// The user's headers, in order. They replace, or remove, the default ones of the same name.
    pub headers: Vec<RequestHeader>,
    /// The body.
    pub body: Option<Vec<u8>>,
    /// Whether the connection is to carry another request.
    pub keep_alive: bool,
    /// The header that will say when the request is sent.
    pub queue_header: Option<QueueHeader>,
}

/// A plain GET that keeps its connection.
impl Default for RequestTemplate {
    fn default() -> RequestTemplate {
        RequestTemplate {
            method: Method::GET,
            headers: Vec::new(),
            body: None,
            keep_alive: true,
            queue_header: None,
        }
    }
}

/// A request as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedRequest {
    /// Its bytes.
    pub request: Request,
    /// Whether the connection is to carry another one: `-k`, its headers and its version count.
    pub keeps_connection: bool,
}

impl RequestTemplate {
    /// The bytes for `target`: the request line, the default headers, the user's, the body.
    ///
    /// # Errors
    /// If a header changes the protocol in a way that longtail does not support.
    pub fn render(&self, target: &TargetUrl) -> Result<RenderedRequest, RequestError> {
        let RequestProtocol { body: framing, keeps_connection } = self.protocol()?;
        let method = self.method.as_str();
        let mut bytes =
            Vec::with_capacity(256 + target.path.len() + self.body.as_ref().map_or(0, Vec::len));
        for part in [method, " ", &target.path, " HTTP/1.1\r\n"] {
            bytes.extend_from_slice(part.as_bytes());
        }
        let defaults = self.defaults(target);
        let mut fields = Vec::new();
        for default in &defaults {
            let before = fields.len();
            // In the place of the default: Host belongs first (RFC 9110 section 7.2).
            fields.extend(self.headers.iter().filter(|header| header.is(default.name())));
            if fields.len() == before {
                fields.push(default);
            }
        }
        let has_place =
            |header: &&RequestHeader| defaults.iter().any(|default| header.is(default.name()));
        fields.extend(self.headers.iter().filter(|header| !has_place(header)));
        // The flag takes the place of the user's own.
        fields.retain(|field| self.queue_header.is_none() || !field.is(QueueHeader::NAME));
        for field in fields {
            let Some(value) = field.value() else { continue };
            for part in [field.name().as_bytes(), b": ", value, b"\r\n"] {
                bytes.extend_from_slice(part);
            }
        }
        let mut queue_stamp = None;
        if let Some(header) = self.queue_header {
            bytes.extend_from_slice(format!("{}: ", QueueHeader::NAME).as_bytes());
            queue_stamp = Some(bytes.len() as u32);
            bytes.extend_from_slice(format!("{}\r\n", header.unstamped()).as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        let body = self.body.as_deref().unwrap_or_default();
        match framing {
            RequestBody::Length(_) => bytes.extend_from_slice(body),
            RequestBody::Chunked => chunk(body, &mut bytes),
        }
        let is_head = self.method == Method::HEAD;
        let request = Request { queue_stamp, ..Request::new(bytes, is_head) };
        Ok(RenderedRequest { request, keeps_connection })
    }

    /// Whether its requests leave their connection open for another one.
    ///
    /// # Errors
    /// As [`RequestTemplate::render`].
    pub fn keeps_connection(&self) -> Result<bool, RequestError> {
        self.protocol().map(|protocol| protocol.keeps_connection)
    }

    fn protocol(&self) -> Result<RequestProtocol, RequestError> {
        TypedHead {
            fields: self.headers.iter().map(|header| (header.name(), header.value())).collect(),
            body: Some(self.body.as_ref().map_or(0, Vec::len)),
            is_http_1_0: false,
            keep_alive: self.keep_alive,
        }
        .understood()
    }

    /// The default headers.
    fn defaults(&self, target: &TargetUrl) -> Vec<RequestHeader> {
        let header = |name: &str, value: &str| RequestHeader {
            name: name.to_owned(),
            value: Some(value.into()),
        };
        let mut defaults = vec![
            header("host", &target.authority),
            header("user-agent", concat!("longtail/", env!("CARGO_PKG_VERSION"))),
            header("accept", "*/*"),
        ];
        defaults.extend(
            target.credentials.as_ref().and_then(|user| RequestHeader::basic_auth(user).ok()),
        );
        // Methods that usually have a body say so when they have none (RFC 9110 section 8.6). With
        // a Transfer-Encoding of the user's there must be no length (RFC 9112 section 6.2).
        let expects_body = matches!(self.method, Method::POST | Method::PUT | Method::PATCH);
        let is_coded = self
            .headers
            .iter()
            .any(|header| header.is("transfer-encoding") && header.value().is_some());
        if (self.body.is_some() || expects_body) && !is_coded {
            defaults.push(header(
                "content-length",
                &self.body.as_ref().map_or(0, Vec::len).to_string(),
            ));
        }
        if !self.keep_alive {
            defaults.push(header("connection", "close"));
        }
        defaults
    }

    /// This template for one request of a file: what the request says itself wins, header by
    /// header.
    pub(crate) fn with(
        &self,
        method: Method,
        own: Vec<RequestHeader>,
        body: Option<Vec<u8>>,
    ) -> RequestTemplate {
        let mut headers = self.headers.clone();
        headers.retain(|header| !own.iter().any(|other| other.is(header.name())));
        headers.extend(own);
        RequestTemplate {
            method,
            headers,
            body: body.or_else(|| self.body.clone()),
            keep_alive: self.keep_alive,
            queue_header: self.queue_header,
        }
    }
}

/// Writes a body as one chunk and the last one (RFC 9112 section 7.1).
fn chunk(body: &[u8], out: &mut Vec<u8>) {
    if !body.is_empty() {
        out.extend_from_slice(format!("{:x}\r\n", body.len()).as_bytes());
        out.extend_from_slice(body);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
}

const STANDARD_METHODS: [&str; 9] =
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"];

/// Whether this is a method of the standard, in any case.
pub(crate) fn is_standard_method(name: &str) -> bool {
    STANDARD_METHODS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// A method by its name. Those of the standard may be written in lower case, as hey allows.
///
/// # Errors
/// If it is not a token, or CONNECT.
pub fn method(name: &str) -> Result<Method, RequestError> {
    let known = STANDARD_METHODS.into_iter().find(|known| known.eq_ignore_ascii_case(name));
    match Method::from_bytes(known.unwrap_or(name).as_bytes()) {
        Ok(Method::CONNECT) => Err(RequestError::new(CONNECT)),
        Ok(method) => Ok(method),
        Err(_) => Err(RequestError::new(format!(
            "'{}' is no method: write GET, POST, or another word without spaces",
            excerpt(name)
        ))),
    }
}

/// The response of a tunnel never ends.
pub(crate) const CONNECT: &str =
    "CONNECT opens a tunnel and is no request to measure: use another method";
