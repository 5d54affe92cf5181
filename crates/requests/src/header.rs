//! A header as a user gives it: set, left out, or sent empty.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, HeaderValue};

use crate::error::{RequestError, excerpt};

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
        HeaderValue::from_bytes(value).map_err(|_| RequestError::HeaderValue(excerpt(name)))?;
        Ok(RequestHeader { value: Some(value.to_vec()), ..RequestHeader::without(name)? })
    }

    /// Says that the header of this name is not sent.
    ///
    /// # Errors
    /// Where the name is not a token.
    pub fn without(name: &str) -> Result<RequestHeader, RequestError> {
        HeaderName::from_bytes(name.as_bytes()).map_err(|_| RequestError::HeaderName(excerpt(name)))?;
        Ok(RequestHeader { name: name.to_owned(), value: None })
    }

    /// A header as curl takes it: `Name: value` sets it, `Name:` leaves it out, `Name;` sends it empty.
    ///
    /// # Errors
    /// Where it is none of these, or name or value are not allowed.
    pub fn parse(line: impl AsRef<[u8]>) -> Result<RequestHeader, RequestError> {
        let line = line.as_ref();
        let name = |bytes: &[u8]| {
            String::from_utf8(bytes.trim_ascii_start().to_vec()).map_err(|_| RequestError::HeaderName(excerpt(bytes)))
        };
        if let Some(colon) = line.iter().position(|byte| *byte == b':') {
            return match line[colon + 1..].trim_ascii() {
                [] => RequestHeader::without(&name(&line[..colon])?),
                value => RequestHeader::new(&name(&line[..colon])?, value),
            };
        }
        match line.trim_ascii_end().strip_suffix(b";") {
            Some(rest) => RequestHeader::new(&name(rest)?, ""),
            None => Err(RequestError::Header(excerpt(line))),
        }
    }

    /// The Authorization header of `user:password` (RFC 7617).
    ///
    /// # Errors
    /// Where there is no colon.
    pub fn basic_auth(user_and_password: impl AsRef<[u8]>) -> Result<RequestHeader, RequestError> {
        let credentials = user_and_password.as_ref();
        if !credentials.contains(&b':') {
            return Err(RequestError::Credentials);
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

#[cfg(test)]
mod tests {
    use super::*;

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
    }

    #[test]
    fn bytes_above_ascii_are_values() {
        assert_eq!(RequestHeader::parse(b"X: \xe9".as_slice()).unwrap().value(), Some(&b"\xe9"[..]));
    }

    #[test]
    fn a_header_cannot_smuggle_another_one_in() {
        for line in ["X: a\r\nY: b", "X: a\nb", "X: a\0b", "X: a\rb"] {
            assert!(matches!(RequestHeader::parse(line), Err(RequestError::HeaderValue(_))), "{line:?}");
        }
        for line in ["X\r\nY: b", "a b: c", "a : c", ": c", ";", "é: c"] {
            assert!(matches!(RequestHeader::parse(line), Err(RequestError::HeaderName(_))), "{line:?}");
        }
        for line in ["", "text", "a=b"] {
            assert!(matches!(RequestHeader::parse(line), Err(RequestError::Header(_))), "{line:?}");
        }
    }

    #[test]
    fn basic_auth_is_base64_of_user_colon_password() {
        // The example of RFC 7617 section 2.
        let header = RequestHeader::basic_auth("Aladdin:open sesame").unwrap();
        assert_eq!(header.value(), Some(&b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="[..]));
        assert!(matches!(RequestHeader::basic_auth("Aladdin"), Err(RequestError::Credentials)));
    }
}
