//! Reads a chunked body: where it ends, and what is in its chunks (RFC 9112 section 7.1).

/// A larger size cannot be true.
const LARGEST_CHUNK: u64 = 1 << 48;
/// The longest line of size digits, extensions or trailers.
const LONGEST_LINE: u32 = 64 * 1024;

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ChunkState {
    #[default]
    Size,
    Extension,
    SizeEnd,
    Body,
    BodyCr,
    BodyLf,
    TrailerStart,
    Trailer,
    TrailerEnd,
    LastLf,
    Done,
}

/// Decodes a chunked body that arrives in pieces of any size.
#[derive(Clone, Debug, Default)]
pub struct ChunkedDecoder {
    state: ChunkState,
    left: u64,
    digits: u32,
    line: u32,
}

impl ChunkedDecoder {
    /// Whether the body has ended.
    pub fn is_done(&self) -> bool {
        self.state == ChunkState::Done
    }

    /// Decodes bytes up to the end of the body, passes the contents of chunks to `content`, and
    /// returns how many bytes it took. `None` if this is not a chunked body.
    pub fn feed(&mut self, bytes: &[u8], mut content: impl FnMut(&[u8])) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() && self.state != ChunkState::Done {
            if self.state == ChunkState::Body {
                let take = self.left.min((bytes.len() - at) as u64) as usize;
                content(&bytes[at..at + take]);
                at += take;
                self.left -= take as u64;
                if self.left == 0 {
                    self.state = ChunkState::BodyCr;
                }
                continue;
            }
            self.state = self.next(bytes[at])?;
            at += 1;
        }
        Some(at)
    }

    #[inline]
    fn next(&mut self, byte: u8) -> Option<ChunkState> {
        self.line += 1;
        if self.line > LONGEST_LINE {
            return None;
        }
        Some(match (self.state, byte) {
            (ChunkState::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                self.left = self.left * 16 + u64::from((byte as char).to_digit(16)?);
                self.digits += 1;
                if self.left > LARGEST_CHUNK {
                    return None;
                }
                ChunkState::Size
            }
            (ChunkState::Size, b'\r') if self.digits > 0 => ChunkState::SizeEnd,
            // Blanks after the size are not allowed, but common.
            (ChunkState::Size, b';' | b' ' | b'\t') if self.digits > 0 => ChunkState::Extension,
            (ChunkState::Extension, b'\r') => ChunkState::SizeEnd,
            (ChunkState::Extension, byte) if byte != b'\n' => ChunkState::Extension,
            (ChunkState::SizeEnd, b'\n') => {
                self.line = 0;
                self.digits = 0;
                if self.left == 0 { ChunkState::TrailerStart } else { ChunkState::Body }
            }
            (ChunkState::BodyCr, b'\r') => ChunkState::BodyLf,
            (ChunkState::BodyLf, b'\n') => {
                self.line = 0;
                ChunkState::Size
            }
            (ChunkState::TrailerStart, b'\r') => ChunkState::LastLf,
            (ChunkState::LastLf, b'\n') => ChunkState::Done,
            (ChunkState::Trailer, b'\r') => ChunkState::TrailerEnd,
            (ChunkState::TrailerStart | ChunkState::Trailer, byte) if byte != b'\n' => {
                ChunkState::Trailer
            }
            (ChunkState::TrailerEnd, b'\n') => ChunkState::TrailerStart,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_end_is_refused() {
        for endless in
            [format!("3;{}", "x".repeat(100_000)), format!("0\r\n{}", "t: 1\r\n".repeat(20_000))]
        {
            assert_eq!(ChunkedDecoder::default().feed(endless.as_bytes(), |_| ()), None);
        }
    }
}
