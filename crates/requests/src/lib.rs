//! What to send: from flags and files to rendered bytes, before the start.
//!
//! A [`TargetUrl`] says where, a [`RequestTemplate`] says what, and [`RequestTemplate::render`]
//! makes the bytes of both. A requests file or a mix ([`parse`]) makes many. Pure functions, but
//! for those that read a file or stdin ([`read_file`], [`read_headers`], [`read_body`],
//! [`read_log`]): nothing here opens a socket, reads a clock or prints, and nothing of it runs once
//! the load has started. What comes out is the model's `RequestMix`, which also says which request
//! is the n-th.

mod classes;
mod compressed;
mod file;
mod file_name;
mod log_line;
mod mix;
mod protocol_headers;
mod replay;
mod target;
mod template;
mod varying;

use model::secret::masked_word;
use thiserror::Error;

pub use file::{
    FileDefaults, RenderedRequests, RequestsFormat, parse, parse_inline_mix, read_body, read_file,
    read_headers,
};
pub use file_name::{STDIN, name_of};
pub use http::Method;
pub use log_line::{DurationUnit, LogFormat};
pub use replay::{ReplayDefaults, ReplayedLog, parse_log, read_log};
pub use target::TargetUrl;
pub use template::{RenderedRequest, RequestHeader, RequestTemplate, method};

/// Characters of the user's text that an error repeats.
const EXCERPT: usize = 100;

/// Why there is nothing to send, a mistake that the user can fix: one line, with a hint. The user's
/// text in it goes through `excerpt`, so it stays a line, whatever a file holds.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct RequestError(String);

impl RequestError {
    /// The line.
    pub fn new(text: impl Into<String>) -> RequestError {
        RequestError(text.into())
    }

    /// The same, with the number of its line in the file, from 1; of a raw request, the first line.
    pub(crate) fn at_line(self, line: usize) -> RequestError {
        RequestError(format!("line {line}: {self}"))
    }

    /// The same for requests typed inline: they were parsed as lines, so `line N` is `request N`.
    pub(crate) fn of_inline(self) -> RequestError {
        match self.0.strip_prefix("line ") {
            Some(rest) => RequestError(format!("request {rest}")),
            None => self,
        }
    }
}

/// The user's text, short, without its secrets, and without anything that would break a line or
/// confuse a terminal.
pub(crate) fn excerpt(text: impl AsRef<[u8]>) -> String {
    // Much more than is shown, because secrets are recognised by the text around them; but a line
    // of a gigabyte is not copied.
    let bytes = text.as_ref();
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(64 * EXCERPT)]);
    let text = masked_word(text.trim());
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
