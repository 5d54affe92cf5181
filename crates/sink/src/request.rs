//! Reads requests from a connection's bytes, in whatever pieces they arrive: the head, and the
//! length of the body. Bodies are read and dropped. A parsed head is a pure function of its bytes,
//! so [`HeadMemo`] may reuse it for the next one.

use std::mem::MaybeUninit;

use model::app_time::STAMPS;
use model::{ChunkedDecoder, Nanos};

/// The longest head, in bytes, including the final empty line.
pub(crate) const LONGEST: usize = 64 * 1024;
/// The most header fields.
const MOST_FIELDS: usize = 128;

/// Why a request is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is not HTTP/1, or contradicts itself (400).
    Malformed,
    /// Its head is too long (431).
    TooLarge,
}

/// Where the body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestFraming {
    /// There is no body.
    Bodiless,
    /// After this many bytes, more than 0.
    Length(u64),
    /// After its last chunk.
    Chunked,
}

/// What happens to the connection after the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionFate {
    /// It stays open, the default of HTTP/1.1.
    KeepAlive,
    /// It stays open, and an HTTP/1.0 client must be told so.
    KeepAliveSaid,
    /// It is closed.
    Close,
}

/// What matters in a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestHead {
    /// Bytes of the head, including empty lines before it and the one after it.
    pub(crate) length: usize,
    /// What is asked for.
    pub(crate) route: RequestRoute,
    /// Where the body ends.
    pub(crate) framing: RequestFraming,
    /// What happens to the connection.
    pub(crate) fate: ConnectionFate,
    /// HEAD: the response has no body.
    pub(crate) bodiless_response: bool,
    /// The client asks when its request got its slot and gave it back.
    pub(crate) asks_for_stamps: bool,
    /// The client waits for 100 Continue before it sends the body.
    pub(crate) expects_continue: bool,
}

/// The head at the start of `bytes`; `None` if it may be incomplete.
fn parse(bytes: &[u8]) -> Result<Option<RequestHead>, Refusal> {
    let mut fields = [const { MaybeUninit::uninit() }; MOST_FIELDS];
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(bytes, &mut fields) {
        Ok(httparse::Status::Complete(length)) => understand(&request, length).map(Some),
        Ok(httparse::Status::Partial) => Ok(None),
        Err(httparse::Error::TooManyHeaders) => Err(Refusal::TooLarge),
        Err(_) => Err(Refusal::Malformed),
    }
}

fn understand(request: &httparse::Request<'_, '_>, length: usize) -> Result<RequestHead, Refusal> {
    let is_1_1 = request.version == Some(1);
    let mut content_length = None;
    let mut chunked = false;
    let mut close = false;
    let mut keep_alive = false;
    let mut expects_continue = false;
    let mut asks_for_stamps = false;
    for field in request.headers.iter() {
        if field.name.eq_ignore_ascii_case("content-length") {
            let value = number(field.value)?;
            // RFC 9112 section 6.3: different lengths are an unrecoverable error.
            if content_length.is_some_and(|earlier| earlier != value) {
                return Err(Refusal::Malformed);
            }
            content_length = Some(value);
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            if chunked || !field.value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                return Err(Refusal::Malformed);
            }
            chunked = true;
        } else if field.name.eq_ignore_ascii_case("connection") {
            for option in field.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                close |= option.eq_ignore_ascii_case(b"close");
                keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            }
        } else if field.name.eq_ignore_ascii_case(STAMPS) {
            asks_for_stamps = true;
        } else if field.name.eq_ignore_ascii_case("expect") {
            expects_continue = field.value.trim_ascii().eq_ignore_ascii_case(b"100-continue");
        }
    }
    let framing = match (chunked, content_length) {
        (false, None | Some(0)) => RequestFraming::Bodiless,
        (false, Some(bytes)) => RequestFraming::Length(bytes),
        (true, None) if is_1_1 => RequestFraming::Chunked,
        // RFC 9112 section 6.1: both headers, or chunks from HTTP/1.0, allow request smuggling.
        (true, _) => return Err(Refusal::Malformed),
    };
    let fate = match (close, is_1_1, keep_alive) {
        (true, _, _) | (_, false, false) => ConnectionFate::Close,
        (_, true, _) => ConnectionFate::KeepAlive,
        (_, false, true) => ConnectionFate::KeepAliveSaid,
    };
    Ok(RequestHead {
        length,
        route: RequestRoute::of(request.path.unwrap_or("/")),
        framing,
        fate,
        bodiless_response: request.method == Some("HEAD"),
        asks_for_stamps,
        expects_continue: expects_continue && is_1_1 && framing != RequestFraming::Bodiless,
    })
}

/// A Content-Length: digits only.
fn number(value: &[u8]) -> Result<u64, Refusal> {
    let text = std::str::from_utf8(value.trim_ascii()).map_err(|_| Refusal::Malformed)?;
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Refusal::Malformed);
    }
    text.parse().map_err(|_| Refusal::Malformed)
}

/// What to do with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestRoute {
    /// `/_ledger`: the counts, at once, without a slot.
    Ledger,
    /// `/sleep<seconds>`, such as `/sleep0.1`: hold a slot that long.
    Sleep(Nanos),
    /// Anything else: hold a slot for the delay of the settings.
    Content,
}

impl RequestRoute {
    /// The route of a request target in origin form or absolute form (RFC 9112 section 3.2).
    pub(crate) fn of(target: &str) -> RequestRoute {
        let path = path(target);
        if path == "/_ledger" {
            return RequestRoute::Ledger;
        }
        let sleep = path.strip_prefix("/sleep").map(str::parse::<Nanos>);
        match sleep {
            Some(Ok(duration)) => RequestRoute::Sleep(duration),
            _ => RequestRoute::Content,
        }
    }
}

/// The target without scheme, authority and query.
fn path(target: &str) -> &str {
    let after_scheme = target.strip_prefix("http://").or_else(|| target.strip_prefix("https://"));
    let path = match after_scheme {
        Some(rest) => rest.find('/').map_or("/", |slash| &rest[slash..]),
        None => target,
    };
    path.split('?').next().unwrap_or(path)
}

/// The last head of any connection: a load generator sends the same one again and again, and
/// comparing a hundred bytes is cheaper than parsing them.
#[derive(Debug, Default)]
pub(crate) struct HeadMemo {
    last: Option<RequestHead>,
    bytes: Vec<u8>,
}

impl HeadMemo {
    /// Like [`parse`], and remembers the result.
    pub(crate) fn parse(&mut self, bytes: &[u8]) -> Result<Option<RequestHead>, Refusal> {
        if self.last.is_some() && bytes.starts_with(&self.bytes) {
            return Ok(self.last);
        }
        let parsed = parse(bytes)?;
        if let Some(head) = parsed {
            self.last = parsed;
            self.bytes.clear();
            self.bytes.extend_from_slice(&bytes[..head.length]);
        }
        Ok(parsed)
    }
}

/// How far a request has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadProgress {
    /// The client waits for 100 Continue (RFC 9110, section 10.1.1).
    WantsContinue,
    /// It is complete; with the number of its bytes: head, body and framing.
    Whole(RequestHead, u64),
    /// It is refused.
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

    /// Takes bytes from the front of `input`. Returns how many it took, and how far the request is;
    /// `None` if more bytes are needed. Bytes after a complete request, and those of an incomplete
    /// head, are left for the next call. After a refusal the reader must not be used any more.
    pub(crate) fn feed(
        &mut self,
        input: &[u8],
        memo: &mut HeadMemo,
    ) -> (usize, Option<ReadProgress>) {
        self.try_feed(input, memo)
            .unwrap_or_else(|refusal| (input.len(), Some(ReadProgress::Refused(refusal))))
    }

    fn try_feed(
        &mut self,
        input: &[u8],
        memo: &mut HeadMemo,
    ) -> Result<(usize, Option<ReadProgress>), Refusal> {
        let mut taken = 0;
        if matches!(self.stage, ReadStage::Head) {
            // A head that arrives in pieces is parsed again with each, so that an invalid one is
            // refused as early as possible. The limit on its length keeps that cheap.
            let Some(head) = memo.parse(&input[..input.len().min(LONGEST)])? else {
                return if input.len() < LONGEST { Ok((0, None)) } else { Err(Refusal::TooLarge) };
            };
            taken = head.length;
            self.bytes = taken as u64;
            match head.framing {
                RequestFraming::Bodiless => return Ok((taken, Some(self.whole(head)))),
                RequestFraming::Length(bytes) => self.stage = ReadStage::Length(head, bytes),
                RequestFraming::Chunked => {
                    self.stage = ReadStage::Chunked(head, ChunkedDecoder::default());
                }
            }
            if taken == input.len() && head.expects_continue {
                return Ok((taken, Some(ReadProgress::WantsContinue)));
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
        Ok((taken + of_body, ended.map(|head| self.whole(head))))
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

    #[test]
    fn a_remembered_head_equals_a_parsed_one() {
        let mut memo = HeadMemo::default();
        let texts = [
            "GET /sleep1 HTTP/1.1\r\n\r\n",
            "GET /sleep1 HTTP/1.1\r\na: b\r\n\r\n",
            "HEAD / HTTP/1.0\r\n\r\n",
        ];
        for text in [0, 0, 1, 0, 1, 1, 2, 0].map(|i: usize| texts[i]) {
            let followed = format!("{text}GET /");
            assert_eq!(memo.parse(followed.as_bytes()), parse(text.as_bytes()));
        }
    }

    /// The requests in `pieces`, and the refusal that ends them, if any.
    fn read<'a>(
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> (Vec<(RequestHead, u64)>, Option<Refusal>) {
        let mut memo = HeadMemo::default();
        let mut reader = RequestReader::new();
        let mut requests = Vec::new();
        let mut unread = Vec::new();
        for piece in pieces {
            unread.extend_from_slice(piece);
            while !unread.is_empty() {
                let (taken, progress) = reader.feed(&unread, &mut memo);
                unread.drain(..taken);
                match progress {
                    Some(ReadProgress::Whole(head, bytes)) => requests.push((head, bytes)),
                    Some(ReadProgress::Refused(refusal)) => return (requests, Some(refusal)),
                    None => break,
                    Some(ReadProgress::WantsContinue) => assert!(unread.is_empty()),
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
            prop_oneof![
                Just("Host: a\r\n"),
                Just("Connection: close\r\n"),
                Just("a:\tb \n"),
                Just("c:\r\n")
            ],
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
        (line, fields, body)
            .prop_map(|(line, fields, body)| format!("{line}{}{body}", fields.concat()))
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
        fn pieces_are_read_like_the_whole(bytes in any_bytes(), cuts in prop::collection::vec(any::<Index>(), 0..12)) {
            let whole = read([bytes.as_slice()]);
            prop_assert_eq!(&read(cut(&bytes, &cuts)), &whole);
            prop_assert_eq!(&read(bytes.chunks(1)), &whole);
        }

        #[test]
        fn every_byte_belongs_to_one_request(requests in prop::collection::vec(any_request(), 0..6)) {
            let text = requests.concat();
            let (read, refusal) = read([text.as_bytes()]);
            // HTTP/1.0 has no chunks.
            if refusal.is_none() {
                prop_assert_eq!(read.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>(), requests.iter().map(|r| r.len() as u64).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn each_request_is_read_as_the_table_says_whole_and_byte_by_byte() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/requests.txt");
        testkit::golden::expect_rows(file, |given| {
            let text: String = serde_json::from_str(given).unwrap();
            let whole = read([text.as_bytes()]);
            assert_eq!(read(text.as_bytes().chunks(1)), whole, "{given}");
            let of = |(head, bytes): &(RequestHead, u64)| {
                (head.route, head.fate, head.framing, head.expects_continue, *bytes)
            };
            (whole.0.iter().map(of).collect::<Vec<_>>(), whole.1)
        });
        assert_eq!(RequestRoute::of(""), RequestRoute::Content);
    }

    #[test]
    fn a_head_may_have_64_kib_and_not_a_byte_more() {
        let with = |length: usize| {
            let empty = "GET / HTTP/1.1\r\na: \r\n\r\n".len();
            format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "b".repeat(length - empty))
        };
        let largest = with(LONGEST);
        let too_large = with(LONGEST + 1);
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
        assert_eq!(
            RequestReader::new().feed(head.as_bytes(), &mut memo).1,
            Some(ReadProgress::WantsContinue)
        );
        assert_eq!(RequestReader::new().feed(format!("{head}a").as_bytes(), &mut memo).1, None);
    }
}
