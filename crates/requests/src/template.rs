//! What to send: method, headers and body, and the bytes that they become for a target.
//!
//! Rendered once, before the start. The default headers are those of a plain GET; each gives way to the user's header
//! of the same name.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, HeaderValue, Method};
use model::Request;

use crate::error::{RequestError, excerpt};
use crate::target::TargetUrl;

/// A header of the user's. Name and value are such that they cannot break a request's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    name: String,
    /// `None`: not even the default is sent.
    value: Option<Vec<u8>>,
}

impl RequestHeader {
    /// A header with a value, which may be empty. The name keeps its case; space around the value goes.
    ///
    /// # Errors
    /// Where the name is not a token, or the value has a line end or another control character.
    pub fn new(name: &str, value: impl AsRef<[u8]>) -> Result<RequestHeader, RequestError> {
        let value = value.as_ref().trim_ascii();
        HeaderValue::from_bytes(value).map_err(|_| {
            let name = excerpt(name);
            RequestError::new(format!(
                "the value of the header '{name}' has a line end or a control character in it: leave that out"
            ))
        })?;
        Ok(RequestHeader { value: Some(value.to_vec()), ..RequestHeader::without(name)? })
    }

    /// Says that the header of this name is not sent.
    ///
    /// # Errors
    /// Where the name is not a token.
    pub fn without(name: &str) -> Result<RequestHeader, RequestError> {
        HeaderName::from_bytes(name.as_bytes()).map_err(|_| no_name(name))?;
        Ok(RequestHeader { name: name.to_owned(), value: None })
    }

    /// A header as curl takes it: `Name: value` sets it, `Name:` leaves it out, `Name;` sends it empty.
    ///
    /// # Errors
    /// Where it is none of these, or name or value are not allowed.
    pub fn parse(line: impl AsRef<[u8]>) -> Result<RequestHeader, RequestError> {
        let line = line.as_ref();
        let name = |bytes: &[u8]| String::from_utf8(bytes.trim_ascii_start().to_vec()).map_err(|_| no_name(bytes));
        if let Some(colon) = line.iter().position(|byte| *byte == b':') {
            return match line[colon + 1..].trim_ascii() {
                [] => RequestHeader::without(&name(&line[..colon])?),
                value => RequestHeader::new(&name(&line[..colon])?, value),
            };
        }
        match line.trim_ascii_end().strip_suffix(b";") {
            Some(rest) => RequestHeader::new(&name(rest)?, ""),
            None => Err(RequestError::new(format!(
                "'{}' is no header: write 'Name: value', or 'Name:' to leave it out, or 'Name;' to send it empty",
                excerpt(line)
            ))),
        }
    }

    /// The Authorization header of `user:password` (RFC 7617).
    ///
    /// # Errors
    /// Where there is no colon.
    pub fn basic_auth(user_and_password: impl AsRef<[u8]>) -> Result<RequestHeader, RequestError> {
        let credentials = user_and_password.as_ref();
        if !credentials.contains(&b':') {
            return Err(RequestError::new("the credentials have no colon: write user:password"));
        }
        RequestHeader::new("authorization", format!("Basic {}", STANDARD.encode(credentials)))
    }

    /// The name, in the case it was given in.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value; `None` where the header is to be left out.
    pub fn value(&self) -> Option<&[u8]> {
        self.value.as_deref()
    }

    /// Whether this is its name; case does not matter.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// A request but for its target.
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
}

/// A plain GET that keeps its connection.
impl Default for RequestTemplate {
    fn default() -> RequestTemplate {
        RequestTemplate { method: Method::GET, headers: Vec::new(), body: None, keep_alive: true }
    }
}

impl RequestTemplate {
    /// The bytes for `target`: the request line, the default headers, the user's, the body.
    pub fn render(&self, target: &TargetUrl) -> Request {
        let method = self.method.as_str();
        let mut bytes = Vec::with_capacity(256 + target.path.len() + self.body.as_ref().map_or(0, Vec::len));
        for part in [method, " ", &target.path, " HTTP/1.1\r\n"] {
            bytes.extend_from_slice(part.as_bytes());
        }
        let defaults = self.defaults(target);
        for (name, value) in &defaults {
            if self.headers.iter().any(|header| header.is(name)) {
                // In the default's place: Host belongs first (RFC 9110 section 7.2).
                self.headers.iter().filter(|header| header.is(name)).for_each(|header| field(&mut bytes, header));
            } else {
                line(&mut bytes, name, value);
            }
        }
        let placed = |header: &&RequestHeader| defaults.iter().any(|(name, _)| header.is(name));
        self.headers.iter().filter(|header| !placed(header)).for_each(|header| field(&mut bytes, header));
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(self.body.as_deref().unwrap_or_default());
        Request { bytes: bytes.into(), is_head: self.method == Method::HEAD }
    }

    /// Names and values that are sent where the user does not say otherwise.
    fn defaults(&self, target: &TargetUrl) -> Vec<(&'static str, Vec<u8>)> {
        let mut defaults = vec![
            ("host", target.authority.clone().into_bytes()),
            ("user-agent", concat!("longtail/", env!("CARGO_PKG_VERSION")).into()),
            ("accept", b"*/*".to_vec()),
        ];
        if let Some(Ok(header)) = target.credentials.as_ref().map(RequestHeader::basic_auth) {
            defaults.push(("authorization", header.value().unwrap_or_default().to_vec()));
        }
        // Methods that usually have a body say so when they have none (RFC 9110 section 8.6). With a
        // Transfer-Encoding of the user's there must be no length (RFC 9112 section 6.2).
        let expects_body = matches!(self.method, Method::POST | Method::PUT | Method::PATCH);
        let is_coded = self.headers.iter().any(|header| header.is("transfer-encoding") && header.value().is_some());
        if (self.body.is_some() || expects_body) && !is_coded {
            defaults.push(("content-length", self.body.as_ref().map_or(0, Vec::len).to_string().into_bytes()));
        }
        if !self.keep_alive {
            defaults.push(("connection", b"close".to_vec()));
        }
        defaults
    }

    /// This template for one request of a file: what the request says itself wins, header by header.
    pub(crate) fn with(&self, method: Method, own: Vec<RequestHeader>, body: Option<Vec<u8>>) -> RequestTemplate {
        let mut headers = self.headers.clone();
        headers.retain(|header| !own.iter().any(|other| other.is(header.name())));
        headers.extend(own);
        RequestTemplate { method, headers, body: body.or_else(|| self.body.clone()), keep_alive: self.keep_alive }
    }
}

/// A method by its name. Those of the standard may be written in lower case, as hey allows.
///
/// # Errors
/// Where it is not a token, or CONNECT.
pub fn method(name: &str) -> Result<Method, RequestError> {
    const KNOWN: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"];
    let known = KNOWN.into_iter().find(|known| known.eq_ignore_ascii_case(name));
    match Method::from_bytes(known.unwrap_or(name).as_bytes()) {
        Ok(Method::CONNECT) => Err(RequestError::new(CONNECT)),
        Ok(method) => Ok(method),
        Err(_) => Err(RequestError::new(format!(
            "'{}' is no method: write GET, POST, or another word without spaces",
            excerpt(name)
        ))),
    }
}

/// A tunnel's answer never ends.
pub(crate) const CONNECT: &str = "CONNECT opens a tunnel and is no request to measure: use another method";

fn no_name(name: impl AsRef<[u8]>) -> RequestError {
    let name = excerpt(name);
    RequestError::new(format!(
        "'{name}' is no header's name: use letters, digits and - only, and no space before the colon"
    ))
}

fn field(bytes: &mut Vec<u8>, header: &RequestHeader) {
    if let Some(value) = header.value() {
        line(bytes, header.name(), value);
    }
}

fn line(bytes: &mut Vec<u8>, name: &str, value: &[u8]) {
    for part in [name.as_bytes(), b": ", value, b"\r\n"] {
        bytes.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const AGENT: &str = concat!("user-agent: longtail/", env!("CARGO_PKG_VERSION"), "\r\n");

    fn target(url: &str) -> TargetUrl {
        TargetUrl::parse(url).unwrap()
    }

    fn rendered(template: &RequestTemplate) -> String {
        String::from_utf8(template.render(&target("http://h:1/x")).bytes.to_vec()).unwrap()
    }

    fn with_headers(lines: &[&str]) -> RequestTemplate {
        let headers = lines.iter().map(|line| RequestHeader::parse(line).unwrap()).collect();
        RequestTemplate { headers, ..RequestTemplate::default() }
    }

    #[test]
    fn a_request_has_what_its_user_said_and_defaults_where_he_said_nothing() {
        let of = |method: Method, body: &str, headers: &[&str]| {
            let body = (body != "-").then(|| body.as_bytes().to_vec());
            rendered(&RequestTemplate { method, body, ..with_headers(headers) })
        };
        for (method, body, headers, expected) in [
            (Method::GET, "-", &[][..], format!("host: h:1\r\n{AGENT}accept: */*\r\n\r\n")),
            (Method::GET, "", &["accept:", "User-Agent:"], "host: h:1\r\ncontent-length: 0\r\n\r\n".to_owned()),
            // A header of the user's takes the default's place, is left out, or is empty.
            (
                Method::GET,
                "-",
                &["X-A: 1", "HOST: other", "Accept: text/html", "Accept: text/plain"],
                format!("HOST: other\r\n{AGENT}Accept: text/html\r\nAccept: text/plain\r\nX-A: 1\r\n\r\n"),
            ),
            (Method::GET, "-", &["accept:", "User-Agent:"], "host: h:1\r\n\r\n".to_owned()),
            (Method::GET, "-", &["accept;", "User-Agent:"], "host: h:1\r\naccept: \r\n\r\n".to_owned()),
        ] {
            assert_eq!(of(method, body, headers), format!("GET /x HTTP/1.1\r\n{expected}"), "{headers:?}");
        }
        // A body has its length, and a POST without one says so.
        assert!(of(Method::POST, "a=1", &[]).ends_with("content-length: 3\r\n\r\na=1"));
        for method in [Method::POST, Method::PUT, Method::PATCH] {
            assert!(of(method, "-", &[]).contains("\r\ncontent-length: 0\r\n"));
        }
        for method in [Method::GET, Method::DELETE, Method::OPTIONS] {
            assert!(!of(method, "-", &[]).contains("content-length"));
        }
        // Nor beside a Transfer-Encoding of the user's.
        assert!(!of(Method::GET, "0\r\n\r\n", &["Transfer-Encoding: chunked"]).contains("content-length"));
        // Close is said where the connection ends, and not against the user.
        let closed = |headers| rendered(&RequestTemplate { keep_alive: false, ..with_headers(headers) });
        assert!(closed(&[]).ends_with("connection: close\r\n\r\n"));
        assert!(!closed(&["Connection: keep-alive"]).contains("close"));
    }

    #[test]
    fn the_urls_credentials_are_sent_unless_the_user_says_otherwise() {
        let url = target("http://Aladdin:open%20sesame@h/");
        let text = |headers| String::from_utf8(with_headers(headers).render(&url).bytes.to_vec()).unwrap();
        assert!(text(&[]).contains("\r\nauthorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"));
        let own = text(&["Authorization: Bearer x"]);
        assert!(own.contains("\r\nAuthorization: Bearer x\r\n") && !own.contains("Basic"), "{own}");
    }

    #[test]
    fn methods_of_http_are_in_upper_case() {
        assert_eq!(method("post").unwrap(), Method::POST);
        assert_eq!(method("Purge").unwrap().as_str(), "Purge");
    }

    proptest! {
        #[test]
        fn what_is_rendered_is_read_back_the_same(
            method_name in "[A-Z]{1,10}",
            path in "/[!$-;=@-Z_a-z~]{0,40}",
            headers in prop::collection::vec(("x-[!#$%&'*+.^_`|~0-9A-Za-z-]{1,20}", "[\\x21-\\x7e]([\\t -~]{0,40}[\\x21-\\x7e])?"), 0..8),
            body in prop::option::of(prop::collection::vec(any::<u8>(), 0..200)),
            keep_alive in any::<bool>(),
        ) {
            prop_assume!(method_name != "CONNECT");
            let template = RequestTemplate {
                method: method(&method_name).unwrap(),
                headers: headers.iter().map(|(name, value)| RequestHeader::new(name, value).unwrap()).collect(),
                body: body.clone(),
                keep_alive,
            };
            let request = template.render(&target("http://localhost:3000").at(&path).unwrap());
            let mut fields = [httparse::EMPTY_HEADER; 32];
            let mut parsed = httparse::Request::new(&mut fields);
            let head = parsed.parse(&request.bytes).unwrap().unwrap();
            prop_assert_eq!((parsed.method, parsed.path), (Some(&*method_name), Some(&*path)));
            prop_assert_eq!(&request.bytes[head..], body.as_deref().unwrap_or_default());
            let values = |name: &str| parsed.headers.iter().filter(|f| f.name == name).map(|f| f.value).collect::<Vec<_>>();
            prop_assert_eq!(values("host"), [b"localhost:3000"]);
            prop_assert_eq!(values("connection").is_empty(), keep_alive);
            if let Some(body) = &body {
                let length = body.len().to_string();
                prop_assert_eq!(values("content-length"), [length.as_bytes()]);
            }
            let own: Vec<_> = parsed.headers.iter().filter(|f| f.name.starts_with("x-")).map(|f| (f.name, f.value)).collect();
            let given: Vec<_> = headers.iter().map(|(name, value)| (&**name, value.as_bytes())).collect();
            prop_assert_eq!(own, given);
        }
    }

    fn parsed(line: &str) -> (String, Option<String>) {
        let header = RequestHeader::parse(line).unwrap_or_else(|error| panic!("{error}"));
        (header.name().to_owned(), header.value().map(|value| String::from_utf8(value.to_vec()).unwrap()))
    }

    #[test]
    fn a_header_is_set_left_out_or_empty_as_with_curl() {
        assert_eq!(parsed("X-Case: a: b "), ("X-Case".into(), Some("a: b".into())));
        assert_eq!(parsed("accept:"), ("accept".into(), None));
        assert_eq!(parsed("accept: "), ("accept".into(), None));
        assert_eq!(parsed("X-Empty;"), ("X-Empty".into(), Some(String::new())));
        assert_eq!(parsed("a:b"), ("a".into(), Some("b".into())));
        assert_eq!(RequestHeader::parse(b"X: \xe9".as_slice()).unwrap().value(), Some(&b"\xe9"[..]));
    }

    #[test]
    fn basic_auth_is_base64_of_user_colon_password() {
        // The example of RFC 7617 section 2.
        let header = RequestHeader::basic_auth("Aladdin:open sesame").unwrap();
        assert_eq!(header.value(), Some(&b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="[..]));
        assert!(RequestHeader::basic_auth("Aladdin").unwrap_err().to_string().contains("no colon"));
    }
}
