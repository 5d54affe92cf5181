//! Why there is nothing to send: the mistakes a user can fix, each as one line that says how.
//!
//! Text of the user's goes through `excerpt` before it is part of an error, so that no message is longer than a
//! line, whatever a file holds.

use thiserror::Error;

/// Characters of the user's text that an error repeats.
const EXCERPT: usize = 100;

/// Why a target, a flag or a requests file cannot be used: one line, with a hint.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct RequestError(String);

impl RequestError {
    /// The line.
    pub fn new(text: impl Into<String>) -> RequestError {
        RequestError(text.into())
    }

    /// The same with where in a file it is: the line, from 1; of a raw request its first.
    pub(crate) fn at_line(self, line: usize) -> RequestError {
        RequestError(format!("line {line}: {self}"))
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
