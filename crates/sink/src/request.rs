//! One request after the other out of a connection's bytes, in whatever pieces they come. Bodies are read and
//! dropped; nothing is answered here. Fed in pieces or whole, the same bytes give the same requests.

use model::ChunkedDecoder;

use crate::head::{HeadMemo, LONGEST, Refusal, RequestFraming, RequestHead};

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadProgress {
    /// There is more to come: of a head the rest, of a body all that was there is taken.
    Unfinished,
    /// As `Unfinished`, and the client waits to be told to send the body (RFC 9110 section 10.1.1).
    WantsContinue,
    /// This was its last byte; with all its bytes: head, body and the body's framing.
    Whole(RequestHead, u64),
    /// It will never be one.
    Refused(Refusal),
}

#[derive(Debug)]
enum ReadStage {
    Head,
    Length(RequestHead, u64),
    Chunked(RequestHead, ChunkedDecoder),
}

/// The reader of one connection.
#[derive(Debug)]
pub(crate) struct RequestReader {
    stage: ReadStage,
    /// Bytes of this request that were taken so far.
    bytes: u64,
}

impl RequestReader {
    /// Before the first request.
    pub(crate) fn new() -> RequestReader {
        RequestReader { stage: ReadStage::Head, bytes: 0 }
    }

    /// Takes bytes from the front of `input`: how many, and what they make of the request. Bytes after a whole request, and those of a
    /// head without its end, are left for the next call; after a refusal the reader is of no more use.
    pub(crate) fn feed(&mut self, input: &[u8], memo: &mut HeadMemo) -> (usize, ReadProgress) {
        self.try_feed(input, memo).unwrap_or_else(|refusal| (input.len(), ReadProgress::Refused(refusal)))
    }

    fn try_feed(&mut self, input: &[u8], memo: &mut HeadMemo) -> Result<(usize, ReadProgress), Refusal> {
        let mut taken = 0;
        if matches!(self.stage, ReadStage::Head) {
            // One that comes in pieces is parsed again with each, which its longest length keeps from costing much, so that what is no
            // request is refused as soon as it is known.
            let Some(head) = memo.parse(&input[..input.len().min(LONGEST)])? else {
                return if input.len() < LONGEST { Ok((0, ReadProgress::Unfinished)) } else { Err(Refusal::TooLarge) };
            };
            taken = head.length;
            self.bytes = taken as u64;
            match head.framing {
                RequestFraming::Bodiless => return Ok((taken, self.whole(head))),
                RequestFraming::Length(bytes) => self.stage = ReadStage::Length(head, bytes),
                RequestFraming::Chunked => self.stage = ReadStage::Chunked(head, ChunkedDecoder::default()),
            }
            if taken == input.len() && head.expects_continue {
                return Ok((taken, ReadProgress::WantsContinue));
            }
        }
        let rest = &input[taken..];
        let (of_body, ended) = match &mut self.stage {
            ReadStage::Head => unreachable!("the head was read above"),
            ReadStage::Length(head, left) => {
                let here = (*left).min(rest.len() as u64);
                *left -= here;
                (here as usize, (*left == 0).then_some(*head))
            }
            ReadStage::Chunked(head, chunked) => {
                let here = chunked.feed(rest, |_| ()).ok_or(Refusal::Malformed)?;
                (here, chunked.is_done().then_some(*head))
            }
        };
        self.bytes += of_body as u64;
        let progress = ended.map_or(ReadProgress::Unfinished, |head| self.whole(head));
        Ok((taken + of_body, progress))
    }

    /// Ends this request and gets ready for the next.
    fn whole(&mut self, head: RequestHead) -> ReadProgress {
        self.stage = ReadStage::Head;
        ReadProgress::Whole(head, self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::Index;

    /// The requests that `pieces` contain, the refusal that ends them if any, and whether one is unfinished.
    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<(RequestHead, u64)>, Option<Refusal>) {
        let mut memo = HeadMemo::default();
        let mut reader = RequestReader::new();
        let (mut requests, mut unread) = (Vec::new(), Vec::new());
        for piece in pieces {
            unread.extend_from_slice(piece);
            while !unread.is_empty() {
                let (taken, progress) = reader.feed(&unread, &mut memo);
                unread.drain(..taken);
                match progress {
                    ReadProgress::Whole(head, bytes) => requests.push((head, bytes)),
                    ReadProgress::Refused(refusal) => return (requests, Some(refusal)),
                    ReadProgress::Unfinished => break,
                    ReadProgress::WantsContinue => assert!(unread.is_empty()),
                }
            }
        }
        (requests, None)
    }

    fn any_request() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            4 => Just("GET /sleep0.1 HTTP/1.1\r\n"),
            1 => Just("HEAD / HTTP/1.0\r\n"),
            1 => Just("\r\nPOST /x HTTP/1.1\n"),
        ];
        let fields = prop::collection::vec(
            prop_oneof![Just("Host: a\r\n"), Just("Connection: close\r\n"), Just("a:\tb \n"), Just("c:\r\n")],
            0..3,
        );
        let body = prop_oneof![
            3 => Just("\r\n".to_owned()),
            1 => "[ -~]{0,20}".prop_map(|body| format!("Content-Length: {}\r\n\r\n{body}", body.len())),
            1 => ("[a-f0\r\n]{1,12}", "[ -~]{0,9}").prop_map(|(chunk, name)| format!(
                "Transfer-Encoding: chunked\r\n\r\n{:x};{name}\r\n{chunk}\r\n0\r\nt: 1\r\n\r\n",
                chunk.len()
            )),
        ];
        (line, fields, body).prop_map(|(line, fields, body)| format!("{line}{}{body}", fields.concat()))
    }

    fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
        let garbage = prop_oneof![
            prop::collection::vec(any::<u8>(), 0..60),
            "[GET /HP1.\r\n:a]{0,60}".prop_map(String::into_bytes)
        ];
        (prop::collection::vec(any_request(), 0..5), garbage).prop_map(|(requests, garbage)| {
            let mut bytes = requests.concat().into_bytes();
            bytes.extend(garbage);
            bytes
        })
    }

    fn cut<'a>(bytes: &'a [u8], cuts: &[Index]) -> Vec<&'a [u8]> {
        let mut at: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.sort_unstable();
        at.insert(0, 0);
        at.push(bytes.len());
        at.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn pieces_are_read_as_the_whole(bytes in any_bytes(), cuts in prop::collection::vec(any::<Index>(), 0..12)) {
            let whole = read([bytes.as_slice()]);
            prop_assert_eq!(&read(cut(&bytes, &cuts)), &whole);
            prop_assert_eq!(&read(bytes.chunks(1)), &whole);
        }

        #[test]
        fn every_byte_belongs_to_one_request(requests in prop::collection::vec(any_request(), 0..6)) {
            let text = requests.concat();
            let (read, refusal) = read([text.as_bytes()]);
            // HTTP/1.0 knows no chunks.
            if refusal.is_none() {
                prop_assert_eq!(read.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>(), requests.iter().map(|r| r.len() as u64).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn garbage_is_refused_as_soon_as_it_is_known() {
        for garbage in
            ["\x16\x03\x01\x02", "hello\r\n", "GET /\r\n", "GET / HTTP/2.0\r\n", "GET / HTTP/1.1\r\nx y\r\n\r\n"]
        {
            for pieces in [vec![garbage.as_bytes()], garbage.as_bytes().chunks(1).collect()] {
                assert_eq!(read(pieces), (vec![], Some(Refusal::Malformed)), "{garbage:?}");
            }
        }
    }

    #[test]
    fn a_head_may_have_64_kib_and_not_a_byte_more() {
        let with = |length: usize| {
            let empty = "GET / HTTP/1.1\r\na: \r\n\r\n".len();
            format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "b".repeat(length - empty))
        };
        let (largest, too_large) = (with(LONGEST), with(LONGEST + 1));
        for piece in [100, 1000, LONGEST, LONGEST + 1] {
            let (requests, refusal) = read(largest.as_bytes().chunks(piece));
            assert_eq!((requests.len(), refusal), (1, None));
            assert_eq!(read(too_large.as_bytes().chunks(piece)), (vec![], Some(Refusal::TooLarge)));
        }
        assert_eq!(read(["\r\n".repeat(LONGEST).as_bytes()]), (vec![], Some(Refusal::TooLarge)));
    }

    #[test]
    fn a_client_that_sends_the_body_unasked_is_not_asked_for_it() {
        let head = "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
        let mut memo = HeadMemo::default();
        assert_eq!(RequestReader::new().feed(head.as_bytes(), &mut memo).1, ReadProgress::WantsContinue);
        assert_eq!(RequestReader::new().feed(format!("{head}a").as_bytes(), &mut memo).1, ReadProgress::Unfinished);
    }
}
