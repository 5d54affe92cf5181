//! Why there is nothing to send: the mistakes a user can fix, each as one line that says how.
//!
//! Text of the user's goes through `excerpt` before it is part of an error, so that no message is longer than a
//! line, whatever a file holds.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Characters of the user's text that an error repeats.
const EXCERPT: usize = 100;

/// Why a target, a flag or a requests file cannot be used. Every message is one line, with a hint.
#[derive(Debug, Error)]
pub enum RequestError {
    /// Not a URL at all.
    #[error("'{0}' is no URL: write http://HOST:PORT/PATH, and a space in it as %20")]
    Url(String),
    /// A scheme other than http and https.
    #[error("'{0}' is neither http:// nor https://, and nothing else can be loaded: correct the part before ://")]
    Scheme(String),
    /// There is no host in it.
    #[error("'{0}' names no host: write http://HOST:PORT/PATH")]
    NoHost(String),
    /// The host is not one that can be resolved.
    #[error("the host of '{0}' is no name, IPv4 address or [IPv6 address]: correct it; write other scripts as xn--…")]
    Host(String),
    /// The port is none.
    #[error("the port of '{0}' is no number from 1 to 65535: correct it, or leave it out")]
    Port(String),
    /// The path is none, or has characters that a request line cannot carry.
    #[error("'{0}' is no path: start it with /, and write a space in it as %20")]
    Path(String),
    /// The method is not a token (RFC 9110 section 9.1).
    #[error("'{0}' is no method: write GET, POST, or another word without spaces")]
    Method(String),
    /// CONNECT makes a tunnel, whose answer never ends.
    #[error("CONNECT opens a tunnel and is no request to measure: use another method")]
    Connect,
    /// Not of the form of a header.
    #[error("'{0}' is no header: write 'Name: value', or 'Name:' to leave it out, or 'Name;' to send it empty")]
    Header(String),
    /// A header's name is not a token (RFC 9110 section 5.1).
    #[error("'{0}' is no header's name: use letters, digits and - only, and no space before the colon")]
    HeaderName(String),
    /// A header's value has a line end or another control character.
    #[error("the value of the header '{0}' has a line end or a control character in it: leave that out")]
    HeaderValue(String),
    /// No colon between user and password.
    #[error("the credentials have no colon: write user:password")]
    Credentials,
    /// The name of a format is unknown.
    #[error("'{0}' is no format of a requests file: write json, plain, raw or list")]
    Format(String),

    /// Trouble in a file.
    #[error("'{}': {trouble}", .path.display())]
    In {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        trouble: Box<RequestError>,
    },
    /// Trouble at a line of a file.
    #[error("line {line}: {trouble}")]
    At {
        /// The line, from 1; of a raw request, its first.
        line: usize,
        /// What is wrong there.
        trouble: Box<RequestError>,
    },
    /// The system refused to read a file.
    #[error("'{path}' cannot be read ({why}): correct the path, or let this user read it")]
    Unreadable {
        /// Which.
        path: String,
        /// What the system said.
        why: io::Error,
    },
    /// Larger than 1 GiB.
    #[error("the requests file is larger than 1 GiB: use a part of it")]
    FileTooLarge,
    /// Larger than 64 MiB.
    #[error("the request is larger than 64 MiB: make its body smaller")]
    RequestTooLarge,
    /// All together larger than 2 GiB.
    #[error("up to here the requests take more than 2 GiB of memory: use a part of the file, or smaller bodies")]
    RenderedTooLarge,
    /// Not one request.
    #[error("there is no request in it: write a URL a line, or give another file")]
    NoRequests,
    /// Its first line is of no format.
    #[error("'{0}' begins no format that is known: write a URL or a path, a line as GET URL, or a JSON object")]
    Unrecognised(String),
    /// The line is not UTF-8.
    #[error("the line is not UTF-8: save the file as UTF-8, and write other bytes of a URL as %XX")]
    NotUtf8,
    /// A request without a host, and no target.
    #[error("'{0}' does not say which host: write http://HOST:PORT before it, or give the target's URL too")]
    NoTarget(String),
    /// A request to somewhere else.
    #[error("'{url}' goes to {origin}, and the target is {target}: one origin a run, so give it a file of its own")]
    OtherOrigin {
        /// The request's URL or Host.
        url: String,
        /// Where that goes.
        origin: String,
        /// Where the others go.
        target: String,
    },
    /// A JSON line that is none, or not a request's.
    #[error(r#"column {column}: {why}: write {{"method":"GET","url":"http://…"}} and all of it on one line"#)]
    Json {
        /// The column, from 1.
        column: usize,
        /// What the parser said.
        why: String,
    },
    /// A JSON line's body is not base64.
    #[error("the body is not base64 ({0}): encode it, as jq's @base64 does")]
    Base64(base64::DecodeError),
    /// A line of the plain format that has no request above it and is none.
    #[error("'{0}' begins no request: write METHOD URL; headers come next, then @FILE for a body, then an empty line")]
    RequestLine(String),
    /// A line `@` alone.
    #[error("@ without a path: write the body's file behind it, or leave the line out")]
    NoBodyPath,
    /// A raw request against the grammar.
    #[error("the request that begins here is not HTTP/1.1 ({0}): correct it, or name the file's format")]
    RawGrammar(httparse::Error),
    /// A raw head ends in the middle.
    #[error("the head of the request that begins here has no end: put an empty line behind its last header")]
    RawHeadCut,
    /// Line ends of an editor.
    #[error("a line of this request's head ends with LF alone: HTTP wants CR LF, and raw requests go out as they are")]
    RawLineEnd,
    /// Not a number, or two that differ.
    #[error("the Content-Length of this request is not one number: correct it")]
    RawLength,
    /// A body that ends in the middle.
    #[error("Content-Length says {said} bytes of body and {there} are left: correct it, or complete the body")]
    RawBodyCut {
        /// What the head says.
        said: u64,
        /// Bytes to the end of the file.
        there: u64,
    },
    /// A raw request in chunks.
    #[error("Transfer-Encoding does not work in a requests file: give the body whole, with a Content-Length")]
    RawTransferEncoding,
    /// Flags that would change raw requests.
    #[error("raw requests go out byte for byte: leave out the flags for method, headers, body and user")]
    RawIsFixed,
}

impl RequestError {
    pub(crate) fn at_line(self, line: usize) -> RequestError {
        RequestError::At { line, trouble: Box::new(self) }
    }
}

/// The user's text, short, and without anything that would break a line or confuse a terminal.
pub(crate) fn excerpt(text: impl AsRef<[u8]>) -> String {
    // Four bytes are the longest character, so that much is enough, and a line of a gigabyte is not copied.
    let bytes = text.as_ref();
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * (EXCERPT + 1))]);
    let mut chars = text.trim().chars();
    let mut shown = String::new();
    for char in chars.by_ref().take(EXCERPT) {
        if char.is_control() || matches!(char, '\u{2028}' | '\u{2029}') {
            shown.extend(char.escape_default());
        } else {
            shown.push(char);
        }
    }
    if chars.next().is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_short_and_one_line() {
        assert_eq!(excerpt("a\r\nb\u{1b}[31m"), "a\\r\\nb\\u{1b}[31m");
        assert_eq!(excerpt("é".repeat(1000)), format!("{}…", "é".repeat(EXCERPT)));
        assert_eq!(excerpt(b"\xff"), "\u{fffd}");
    }
}
