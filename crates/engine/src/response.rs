//! Reads the responses of one connection as the bytes come; how they are cut into pieces does not
//! matter.

use model::{BadResponse, ChunkedDecoder, ExpectedEnd, PartialResponse};

use crate::head::{BodyFraming, HeadCache, ResponseHead};

/// A whole response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedResponse {
    /// Its head.
    pub head: ResponseHead,
    /// Its bytes, head and interim responses included.
    pub bytes: u64,
    /// Bytes of the body: without the head, and without the framing of chunks.
    pub body_bytes: u64,
}

/// What comes next of the response that is being read.
#[derive(Clone, Debug, Default)]
enum ReadState {
    #[default]
    Head,
    /// This many bytes of its body.
    Length(u64),
    Chunked(ChunkedDecoder),
    UntilClose,
}

/// Reads one response after the other.
#[derive(Clone, Debug, Default)]
pub struct ResponseReader {
    state: ReadState,
    /// The head, once it was read.
    head: Option<ResponseHead>,
    /// The start of a head that came in pieces.
    partial: Vec<u8>,
    /// Bytes of the present response so far; 0 between two.
    bytes: u64,
    /// Bytes of the body among them.
    body_bytes: u64,
    /// Where the head of the last response is cached.
    pub(crate) hint: u8,
    /// Whether the request was HEAD, so that the response has no body.
    to_head: bool,
    /// Whether the request before it was.
    was_to_head: bool,
}

impl ResponseReader {
    /// Bytes of the unfinished response so far.
    pub fn received(&self) -> u64 {
        self.bytes
    }

    /// The start of a head that has not come whole yet.
    pub(crate) fn begun_head(&self) -> &[u8] {
        &self.partial
    }

    /// How far the unfinished response has come; `None` between two.
    pub(crate) fn part(&self) -> Option<PartialResponse> {
        if self.bytes == 0 {
            return None;
        }
        let until = match &self.state {
            ReadState::Head => return Some(PartialResponse::Head { bytes: self.bytes }),
            ReadState::Length(left) => ExpectedEnd::Bytes(self.body_bytes.saturating_add(*left)),
            ReadState::Chunked(_) => ExpectedEnd::LastChunk,
            ReadState::UntilClose => ExpectedEnd::EndOfConnection,
        };
        let status = self.head?.status;
        Some(PartialResponse::Body { status, bytes: self.body_bytes, until })
    }

    /// Says whether the next response is one to a HEAD request, which has no body whatever its head
    /// says (RFC 9110 section 9.3.2).
    #[inline]
    pub fn expect(&mut self, to_head: bool) {
        self.was_to_head = self.to_head;
        self.to_head = to_head;
    }

    /// Why these bytes, which came with `response` and follow its end, are an error.
    #[cold]
    pub(crate) fn reason_of_rest(&self, response: &ReceivedResponse, rest: &[u8]) -> BadResponse {
        if rest.starts_with(b"HTTP/1.") {
            return BadResponse::TrailingBytes;
        }
        match response.head.status {
            _ if self.to_head => BadResponse::BodyToHead,
            204 | 304 => BadResponse::BodyByStatus,
            _ => BadResponse::TrailingBytes,
        }
    }

    /// Why bytes are an error that are no HTTP, and came where the next response on a connection
    /// should begin: they belong to the response before.
    #[cold]
    pub(crate) fn reason_after_another(&self) -> BadResponse {
        if self.was_to_head { BadResponse::BodyToHead } else { BadResponse::TrailingBytes }
    }

    /// Forgets an unfinished response: a new connection begins.
    pub fn reset(&mut self) {
        self.state = ReadState::Head;
        self.partial.clear();
        self.bytes = 0;
        self.body_bytes = 0;
    }

    /// The common case: `bytes` are a whole response with the same head as the one before.
    #[inline]
    pub(crate) fn whole(&self, bytes: &[u8], heads: &HeadCache) -> Option<ReceivedResponse> {
        if self.bytes > 0 || self.to_head {
            return None;
        }
        let head = *heads.whole(bytes, self.hint)?;
        Some(ReceivedResponse {
            head,
            bytes: bytes.len() as u64,
            body_bytes: (bytes.len() - head.length) as u64,
        })
    }

    /// Takes the next bytes of the connection: the response that they complete, and how many of
    /// them it took; `None` if it goes on.
    ///
    /// # Errors
    /// If they cannot be (part of) a response.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        heads: &mut HeadCache,
    ) -> Result<Option<(ReceivedResponse, usize)>, BadResponse> {
        let mut at = 0;
        while matches!(self.state, ReadState::Head) {
            match self.read_head(&bytes[at..], heads)? {
                Some(taken) => at += taken,
                None => return Ok(None),
            }
        }
        let rest = &bytes[at..];
        let (taken, content, is_done) = match &mut self.state {
            ReadState::Length(left) => {
                let taken = (*left).min(rest.len() as u64);
                *left -= taken;
                (taken, taken, *left == 0)
            }
            ReadState::Chunked(decoder) => {
                let mut content = 0;
                let taken = decoder.feed(rest, |piece| content += piece.len() as u64);
                (taken.ok_or(BadResponse::ChunkedBody)? as u64, content, decoder.is_done())
            }
            ReadState::UntilClose | ReadState::Head => {
                (rest.len() as u64, rest.len() as u64, false)
            }
        };
        self.bytes += taken;
        self.body_bytes += content;
        let response = if is_done { self.finished() } else { None };
        Ok(response.map(|response| (response, at + taken as usize)))
    }

    /// Reads a head, the final response's or an interim one's; how many of the bytes it took, or
    /// `None` if it needs more.
    fn read_head(
        &mut self,
        bytes: &[u8],
        heads: &mut HeadCache,
    ) -> Result<Option<usize>, BadResponse> {
        let before = self.partial.len();
        let head = if before == 0 {
            heads.read(bytes, &mut self.hint)?
        } else {
            self.partial.extend_from_slice(bytes);
            heads.read(&self.partial, &mut self.hint)?
        };
        let Some(head) = head else {
            if before == 0 {
                self.partial.extend_from_slice(bytes);
            }
            self.bytes += bytes.len() as u64;
            return Ok(None);
        };
        let taken = head.length - before;
        self.bytes += taken as u64;
        self.partial.clear();
        if head.status == 101 {
            return Err(BadResponse::SwitchedProtocol);
        }
        // After an interim response (100, 103) the real one follows (RFC 9110 section 15.2).
        if head.status >= 200 {
            self.head = Some(head);
            let framing = if self.to_head { BodyFraming::Length(0) } else { head.framing };
            self.state = match framing {
                BodyFraming::Length(length) => ReadState::Length(length),
                BodyFraming::Chunked => ReadState::Chunked(ChunkedDecoder::default()),
                BodyFraming::UntilClose => ReadState::UntilClose,
            };
        }
        Ok(Some(taken))
    }

    /// The connection has ended: the response that this completes, if it does.
    pub fn end(&mut self) -> Option<ReceivedResponse> {
        if matches!(self.state, ReadState::UntilClose) { self.finished() } else { None }
    }

    /// The response that is complete now; the next one begins.
    fn finished(&mut self) -> Option<ReceivedResponse> {
        let response = ReceivedResponse {
            head: self.head.take()?,
            bytes: self.bytes,
            body_bytes: self.body_bytes,
        };
        self.reset();
        Some(response)
    }
}

/// The body of the whole response `raw`, chunks joined; `None` if it is no whole response. For
/// checks afterwards, never called by a lane.
pub fn response_body(raw: &[u8]) -> Option<Vec<u8>> {
    let mut heads = HeadCache::new("");
    let mut rest = raw;
    loop {
        let head = heads.read(rest, &mut 0).ok()??;
        rest = &rest[head.length..];
        if head.status < 200 {
            continue;
        }
        if head.framing != BodyFraming::Chunked {
            return Some(rest.to_vec());
        }
        let mut decoder = ChunkedDecoder::default();
        let mut body = Vec::new();
        decoder.feed(rest, |content| body.extend_from_slice(content))?;
        return decoder.is_done().then_some(body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A stream of one response, its status and the length of its content.
    fn any_response() -> impl Strategy<Value = (Vec<u8>, u16, u64)> {
        let status = prop_oneof![Just(200u16), Just(302), Just(404), Just(503)];
        let interim = prop_oneof![Just(""), Just("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")];
        let chunks = prop::collection::vec("(?s).{1,40}", 0..6);
        (interim, status, "(?s).{0,100}", chunks, 0..4u8).prop_map(
            |(interim, status, body, chunks, kind)| {
                let chunk = |chunk: &String| format!("{:x}\r\n{chunk}\r\n", chunk.len());
                let (rest, content) = match kind {
                    0 => (format!("Content-Length: {}\r\n\r\n{body}", body.len()), body.len()),
                    1 => {
                        let all: String = chunks.iter().map(chunk).collect();
                        (
                            format!("Transfer-Encoding: chunked\r\n\r\n{all}0\r\n\r\n"),
                            chunks.concat().len(),
                        )
                    }
                    2 => ("Content-Length: 0\r\n\r\n".to_owned(), 0),
                    _ => (format!("\r\n{body}"), body.len()),
                };
                (
                    format!("{interim}HTTP/1.1 {status} X\r\nServer: x\r\n{rest}").into_bytes(),
                    status,
                    content as u64,
                )
            },
        )
    }

    /// Feeds `bytes` cut at `sizes`, then ends the connection.
    fn read(bytes: &[u8], sizes: &[usize]) -> Result<Option<ReceivedResponse>, BadResponse> {
        let mut reader = ResponseReader::default();
        let mut heads = HeadCache::new("");
        let mut rest = bytes;
        for size in sizes.iter().chain(std::iter::repeat(&bytes.len())) {
            if rest.is_empty() {
                break;
            }
            let (piece, tail) = rest.split_at((*size).min(rest.len()));
            if let Some((response, _)) = reader.feed(piece, &mut heads)? {
                return Ok(Some(response));
            }
            rest = tail;
        }
        Ok(reader.end())
    }

    proptest! {
        #[test]
        fn in_pieces_is_as_whole((bytes, status, content) in any_response(), sizes in prop::collection::vec(1usize..30, 0..80)) {
            let whole = read(&bytes, &[]).unwrap().unwrap();
            prop_assert_eq!(whole.head.status, status);
            prop_assert_eq!((whole.bytes, whole.body_bytes), (bytes.len() as u64, content));
            prop_assert_eq!(read(&bytes, &sizes).unwrap(), Some(whole));
            let mut reader = ResponseReader::default();
            let mut heads = HeadCache::new("");
            for _ in 0..2 {
                let recognised = reader.whole(&bytes, &heads);
                let read = reader.feed(&bytes, &mut heads);
                prop_assert!(recognised.is_none_or(|response| read == Ok(Some((response, bytes.len())))));
            }
        }

        #[test]
        fn a_damaged_response_is_judged_alike_in_pieces((mut bytes, _, _) in any_response(), at in any::<prop::sample::Index>(), byte in any::<u8>(), sizes in prop::collection::vec(1usize..30, 0..20)) {
            let place = at.index(bytes.len());
            bytes[place] = byte;
            prop_assert_eq!(read(&bytes, &sizes), read(&bytes, &[]));
        }
    }

    #[test]
    fn the_next_responses_bytes_are_left() {
        let mut reader = ResponseReader::default();
        let mut heads = HeadCache::new("");
        let two = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1";
        let Some((first, used)) = reader.feed(two, &mut heads).unwrap() else {
            panic!("incomplete")
        };
        assert_eq!((first.bytes, &two[used..]), (40, &b"HTTP/1.1"[..]));
    }

    #[test]
    fn a_response_to_head_has_no_body() {
        let mut reader = ResponseReader::default();
        let mut heads = HeadCache::new("");
        reader.expect(true);
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        assert!(matches!(reader.feed(head, &mut heads), Ok(Some((_, n))) if n == head.len()));
        // The same bytes, now remembered, in response to a GET.
        reader.expect(false);
        assert_eq!(reader.feed(head, &mut heads), Ok(None));
    }

    #[test]
    fn bytes_that_follow_a_response_are_a_forbidden_body_or_unknown() {
        for (to_head, head, rest, reason) in [
            (true, "200 OK", "hello", BadResponse::BodyToHead),
            (true, "200 OK", "HTTP/1.1 200 OK", BadResponse::TrailingBytes),
            (false, "204 X", "hello", BadResponse::BodyByStatus),
            (false, "304 X", "hello", BadResponse::BodyByStatus),
            (false, "200 OK", "hello", BadResponse::TrailingBytes),
        ] {
            let mut reader = ResponseReader::default();
            reader.expect(to_head);
            let bytes = format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\n\r\n{rest}");
            let read = reader.feed(bytes.as_bytes(), &mut HeadCache::new(""));
            let (response, used) = read.unwrap().expect("a whole response");
            let judged = reader.reason_of_rest(&response, &bytes.as_bytes()[used..]);
            assert_eq!(judged, reason, "{head} {rest}");
            // The body comes later, where the response to the next request should begin.
            reader.expect(false);
            assert_eq!(reader.reason_after_another() == BadResponse::BodyToHead, to_head);
        }
    }

    #[test]
    fn a_damaged_or_unfinished_response_is_judged_alike_wherever_it_is_cut() {
        for (bytes, expected) in [
            // What follows a damaged head makes no difference.
            (
                &b"HTTP/1.1 200 X\r\nServer: x\r\n\rX7\r\n\tbody"[..],
                Err(BadResponse::MalformedHead),
            ),
            (
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
                Err(BadResponse::SwitchedProtocol),
            ),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok", Ok(None)),
        ] {
            for sizes in [&[][..], &[29, 3], &[7, 20]] {
                assert_eq!(read(bytes, sizes), expected);
            }
        }
    }

    #[test]
    fn the_body_follows_the_last_head_with_its_chunks_joined() {
        for (raw, body) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", Some("ok")),
            (
                "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
                Some("ok"),
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
                Some("abcde"),
            ),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", None),
        ] {
            assert_eq!(response_body(raw.as_bytes()).as_deref(), body.map(str::as_bytes), "{raw}");
        }
    }
}
