//! The end of a chunked request body (RFC 9112 section 7.1), found in whatever pieces it comes. The content is not kept.

use crate::head::Refusal;

/// Extensions of one chunk, or all trailers, may not be longer: as large as a head may be.
const LONGEST_LINES: usize = crate::head::LONGEST;

/// How far the body has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In a chunk's size; whether a digit has come.
    Size(bool),
    /// After the size, up to the line's CR.
    Extension,
    /// Before the LF of the size line.
    SizeEnd,
    /// In the chunk's content.
    Content,
    /// Before the CR after the content.
    ContentCr,
    /// Before the LF after the content.
    ContentLf,
    /// At the start of a trailer line, or of the empty line that ends it all.
    LineStart,
    /// In a trailer line.
    Trailer,
    /// Before a trailer line's LF.
    TrailerEnd,
    /// Before the very last LF.
    LastLf,
}

/// A chunked body that is being received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunked {
    state: State,
    /// Bytes that are left of the chunk.
    left: u64,
    /// Bytes of extensions or trailers so far.
    lines: usize,
}

impl Chunked {
    /// Before the first chunk.
    pub(crate) fn new() -> Chunked {
        Chunked { state: State::Size(false), left: 0, lines: 0 }
    }

    /// Takes what is the body's from the front of `input`: how many bytes, and whether they end it.
    pub(crate) fn feed(&mut self, input: &[u8]) -> Result<(usize, bool), Refusal> {
        let mut at = 0;
        while at < input.len() {
            if self.state == State::Content {
                let here = self.left.min((input.len() - at) as u64);
                self.left -= here;
                at += here as usize;
                if self.left == 0 {
                    self.state = State::ContentCr;
                }
                continue;
            }
            let byte = input[at];
            at += 1;
            if self.state == State::LastLf && byte == b'\n' {
                return Ok((at, true));
            }
            self.state = self.after(byte)?;
        }
        Ok((at, false))
    }

    /// The state after a byte that is not content.
    fn after(&mut self, byte: u8) -> Result<State, Refusal> {
        Ok(match (self.state, byte) {
            (State::Size(_), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = (byte as char).to_digit(16).map_or(0, u64::from);
                self.left = self.left.checked_mul(16).ok_or(Refusal::Malformed)? + digit;
                State::Size(true)
            }
            (State::Size(true) | State::Extension, b'\r') => State::SizeEnd,
            (State::Size(true), b';' | b' ' | b'\t') => {
                self.lines = 0;
                State::Extension
            }
            (State::SizeEnd, b'\n') if self.left > 0 => State::Content,
            (State::SizeEnd, b'\n') => {
                self.lines = 0;
                State::LineStart
            }
            (State::ContentCr, b'\r') => State::ContentLf,
            (State::ContentLf, b'\n') => State::Size(false),
            (State::LineStart, b'\r') => State::LastLf,
            (State::Trailer, b'\r') => State::TrailerEnd,
            (State::TrailerEnd, b'\n') => State::LineStart,
            (State::Extension, byte) if byte != b'\n' => self.line(State::Extension)?,
            (State::LineStart | State::Trailer, byte) if byte != b'\n' => self.line(State::Trailer)?,
            _ => return Err(Refusal::Malformed),
        })
    }

    /// One more byte of a line that nobody needs.
    fn line(&mut self, state: State) -> Result<State, Refusal> {
        self.lines += 1;
        if self.lines > LONGEST_LINES { Err(Refusal::TooLarge) } else { Ok(state) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(input: &str) -> Result<(usize, bool), Refusal> {
        Chunked::new().feed(input.as_bytes())
    }

    #[test]
    fn a_body_ends_at_its_empty_chunk() {
        assert_eq!(feed("0\r\n\r\nGET"), Ok((5, true)));
        assert_eq!(feed("3\r\nabc\r\n0\r\n\r\n"), Ok((13, true)));
        assert_eq!(feed("3;name=\"v\"\r\nabc\r\n000\r\nTrailer: 1\r\n\r\n"), Ok((36, true)));
        assert_eq!(feed("a\r\n0\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n"), Ok((20, true)));
        assert_eq!(feed("3\r\nab"), Ok((5, false)));
    }

    #[test]
    fn what_is_not_chunked_is_refused() {
        for input in ["\r\n", "x\r\n", "3\n", "3\r\nabcd", "3\r\nabc\n", "-1\r\n", "0\r\n\n", "11111111111111111\r\n"] {
            assert_eq!(feed(input), Err(Refusal::Malformed), "{input:?}");
        }
        let endless = format!("0\r\n{}", "t".repeat(LONGEST_LINES + 1));
        assert_eq!(feed(&endless), Err(Refusal::TooLarge));
    }
}
