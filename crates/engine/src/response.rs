//! One connection's response, fed as the bytes come: in whatever pieces, the result is the same.

use model::{AppTime, BadResponse};

use crate::chunked::ChunkedDecoder;
use crate::head::{BodyFraming, HeadCache, ResponseHead};

/// A whole response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedResponse {
    /// Status code.
    pub status: u16,
    /// Whether the connection can carry another request.
    pub keep_alive: bool,
    /// The worker that answered, as an index into [`HeadCache::workers`].
    pub worker: Option<u16>,
    /// What the app says of its time, as [`ResponseHead::app_time`].
    pub app_time: Option<AppTime>,
    /// Its bytes, head included.
    pub bytes: u64,
    /// Of those the content: without the head, and without what chunks are wrapped in.
    pub body_bytes: u64,
}

impl ReceivedResponse {
    /// The response that `head` begins and its bytes in all, where the head says how long its body is.
    pub(crate) fn of(head: &ResponseHead) -> Option<(ReceivedResponse, usize)> {
        let body_bytes = match head.framing {
            BodyFraming::Length(length) => length,
            BodyFraming::Empty if head.status >= 200 => 0,
            _ => return None,
        };
        // (A length of 2^64 - 1 is no lie that one could tell from the head.)
        let bytes = (head.length as u64).checked_add(body_bytes)?;
        let ResponseHead { status, keep_alive, worker, app_time, .. } = *head;
        let response = ReceivedResponse { status, keep_alive, worker, app_time, bytes, body_bytes };
        (head.status >= 200).then_some((response, usize::try_from(bytes).ok()?))
    }
}

/// What became of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedResult {
    /// The response is not complete yet.
    More,
    /// It is complete, after so many of the bytes.
    Done(ReceivedResponse, usize),
}

#[derive(Clone, Debug)]
enum ReadState {
    Head,
    Length(ResponseHead, u64),
    Chunked(ResponseHead, ChunkedDecoder),
    /// With the bytes of the content so far.
    UntilClose(ResponseHead, u64),
}

/// Reads one response after the other.
#[derive(Clone, Debug)]
pub struct ResponseReader {
    state: ReadState,
    /// The start of a head that came in pieces.
    partial: Vec<u8>,
    /// Bytes of the present response so far; 0 between two.
    bytes: u64,
    hint: u8,
    /// Whether the request was HEAD, so that the response has no body.
    to_head: bool,
}

impl Default for ResponseReader {
    fn default() -> ResponseReader {
        ResponseReader { state: ReadState::Head, partial: Vec::new(), bytes: 0, hint: 0, to_head: false }
    }
}

impl ResponseReader {
    /// Bytes of the unfinished response so far.
    pub fn received(&self) -> u64 {
        self.bytes
    }

    /// Says whether the next response is one to a HEAD request, which has no body whatever its head says (RFC 9110
    /// section 9.3.2).
    #[inline]
    pub fn expect(&mut self, to_head: bool) {
        self.to_head = to_head;
    }

    /// Forgets an unfinished response: the connection is a new one.
    pub fn reset(&mut self) {
        self.state = ReadState::Head;
        self.partial.clear();
        self.bytes = 0;
    }

    /// Takes the next bytes of the connection.
    ///
    /// # Errors
    /// Where they can not be (part of) a response.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8], heads: &mut HeadCache) -> Result<FeedResult, BadResponse> {
        match self.whole(bytes, heads) {
            Some(response) => Ok(FeedResult::Done(*response, bytes.len())),
            None => self.feed_piece(bytes, heads),
        }
    }

    /// The common case: a read brought a whole response, and its head is as the one before.
    #[inline]
    pub(crate) fn whole<'h>(&self, bytes: &[u8], heads: &'h HeadCache) -> Option<&'h ReceivedResponse> {
        let is_between_two = self.bytes == 0 && !self.to_head;
        if is_between_two { heads.whole(bytes, self.hint) } else { None }
    }

    /// Where the head of this connection's last response is remembered.
    #[inline]
    pub(crate) fn hint(&self) -> u8 {
        self.hint
    }

    fn feed_piece(&mut self, bytes: &[u8], heads: &mut HeadCache) -> Result<FeedResult, BadResponse> {
        let mut at = 0;
        loop {
            match &mut self.state {
                ReadState::Head => {
                    let before = self.partial.len();
                    let head = if before == 0 {
                        heads.read(&bytes[at..], &mut self.hint)?
                    } else {
                        self.partial.extend_from_slice(&bytes[at..]);
                        heads.read(&self.partial, &mut self.hint)?
                    };
                    let Some(head) = head else {
                        if before == 0 {
                            self.partial.extend_from_slice(&bytes[at..]);
                        }
                        self.bytes += (bytes.len() - at) as u64;
                        return Ok(FeedResult::More);
                    };
                    at += head.length - before;
                    self.bytes += (head.length - before) as u64;
                    self.partial.clear();
                    if head.status == 101 {
                        return Err(BadResponse::SwitchedProtocol);
                    }
                    if head.status < 200 {
                        // An interim response (100, 103): the real one follows (RFC 9110 section 15.2).
                        continue;
                    }
                    let framing = if self.to_head { BodyFraming::Empty } else { head.framing };
                    self.state = match framing {
                        BodyFraming::Empty => return Ok(FeedResult::Done(self.done(head, 0, 0), at)),
                        BodyFraming::Length(length) => ReadState::Length(head, length),
                        BodyFraming::Chunked => ReadState::Chunked(head, ChunkedDecoder::new()),
                        BodyFraming::UntilClose => ReadState::UntilClose(head, 0),
                    };
                }
                ReadState::Length(head, left) => {
                    let take = (*left).min((bytes.len() - at) as u64);
                    *left -= take;
                    at += take as usize;
                    let (head, done) = (*head, *left == 0);
                    self.bytes += take;
                    let BodyFraming::Length(length) = head.framing else { unreachable!("its head says a length") };
                    return Ok(if done { FeedResult::Done(self.done(head, 0, length), at) } else { FeedResult::More });
                }
                ReadState::Chunked(head, chunked) => {
                    let take = chunked.feed(&bytes[at..]).ok_or(BadResponse::ChunkedBody)?;
                    at += take;
                    let (head, done, content) = (*head, chunked.is_done(), chunked.content());
                    self.bytes += take as u64;
                    return Ok(if done { FeedResult::Done(self.done(head, 0, content), at) } else { FeedResult::More });
                }
                ReadState::UntilClose(_, content) => {
                    *content += (bytes.len() - at) as u64;
                    self.bytes += (bytes.len() - at) as u64;
                    return Ok(FeedResult::More);
                }
            }
        }
    }

    /// The connection has ended: the response that it completes, if it does.
    pub fn end(&mut self) -> Option<ReceivedResponse> {
        match self.state {
            ReadState::UntilClose(head, content) => Some(self.done(head, 0, content)),
            _ => None,
        }
    }

    #[inline]
    fn done(&mut self, head: ResponseHead, more_bytes: u64, body_bytes: u64) -> ReceivedResponse {
        let bytes = self.bytes + more_bytes;
        self.bytes = 0;
        self.state = ReadState::Head;
        let ResponseHead { status, keep_alive, worker, app_time, .. } = head;
        ReceivedResponse { status, keep_alive, worker, app_time, bytes, body_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A stream of one response, its status and the length of its content.
    fn any_response() -> impl Strategy<Value = (Vec<u8>, u16, u64)> {
        let body = prop::collection::vec(any::<u8>(), 0..200);
        let status = prop_oneof![Just(200u16), Just(302), Just(404), Just(503)];
        (body, status, 0..4u8, prop::collection::vec(1usize..40, 1..6), any::<bool>()).prop_map(
            |(body, status, kind, cuts, interim)| {
                let mut bytes = Vec::new();
                let mut content = if kind == 2 { 0 } else { body.len() as u64 };
                if interim {
                    bytes.extend_from_slice(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
                }
                bytes.extend_from_slice(format!("HTTP/1.1 {status} X\r\nServer: x\r\n").as_bytes());
                match kind {
                    0 => {
                        bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
                        bytes.extend_from_slice(&body);
                    }
                    1 => {
                        bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
                        let mut rest = &body[..];
                        content = 0;
                        for cut in cuts {
                            let (chunk, tail) = rest.split_at(cut.min(rest.len()));
                            content += chunk.len() as u64;
                            if !chunk.is_empty() {
                                bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                                bytes.extend_from_slice(chunk);
                                bytes.extend_from_slice(b"\r\n");
                            }
                            rest = tail;
                        }
                        bytes.extend_from_slice(b"0\r\n\r\n");
                    }
                    2 => bytes.extend_from_slice(b"Content-Length: 0\r\n\r\n"),
                    _ => {
                        bytes.extend_from_slice(b"\r\n");
                        bytes.extend_from_slice(&body);
                    }
                }
                (bytes, status, content)
            },
        )
    }

    /// Feeds `bytes` cut at `sizes`, then ends the connection.
    fn read(bytes: &[u8], sizes: &[usize]) -> Result<Option<ReceivedResponse>, BadResponse> {
        let (mut reader, mut heads) = (ResponseReader::default(), HeadCache::new(""));
        let mut rest = bytes;
        for size in sizes.iter().chain(std::iter::repeat(&bytes.len())) {
            if rest.is_empty() {
                break;
            }
            let (piece, tail) = rest.split_at((*size).min(rest.len()));
            if let FeedResult::Done(response, _) = reader.feed(piece, &mut heads)? {
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
            prop_assert_eq!(whole.status, status);
            prop_assert_eq!((whole.bytes, whole.body_bytes), (bytes.len() as u64, content));
            prop_assert_eq!(read(&bytes, &sizes).unwrap(), Some(whole));
        }

        #[test]
        fn noise_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300), sizes in prop::collection::vec(1usize..30, 0..20)) {
            let _ = read(&bytes, &sizes);
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
        let (mut reader, mut heads) = (ResponseReader::default(), HeadCache::new(""));
        let two = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1";
        let FeedResult::Done(first, used) = reader.feed(two, &mut heads).unwrap() else { panic!("incomplete") };
        assert_eq!((first.bytes, &two[used..]), (40, &b"HTTP/1.1"[..]));
    }

    #[test]
    fn a_response_to_head_has_no_body() {
        let (mut reader, mut heads) = (ResponseReader::default(), HeadCache::new(""));
        reader.expect(true);
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        assert!(matches!(reader.feed(head, &mut heads), Ok(FeedResult::Done(_, n)) if n == head.len()));
        // The same bytes, now remembered, in answer to a GET.
        reader.expect(false);
        assert_eq!(reader.feed(head, &mut heads), Ok(FeedResult::More));
    }

    #[test]
    fn another_protocol_is_no_response() {
        let switched = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n";
        assert_eq!(read(switched, &[]), Err(BadResponse::SwitchedProtocol));
        assert_eq!(read(switched, &[7, 20]), Err(BadResponse::SwitchedProtocol));
    }

    #[test]
    fn a_body_cut_short_is_no_response() {
        assert_eq!(read(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok", &[]), Ok(None));
    }
}
