//! Response heads: parsed once, recognised after.
//!
//! A server answers the same request with the same head, byte for byte, but for a date once a second and a name per worker.
//! So a lane keeps the last few heads with what was parsed from them, and a head that starts with the same bytes is that
//! head. Same bytes, same parse: nothing is guessed. Everything else goes through `httparse`.

use std::collections::HashMap;

use model::anatomy::STAMPS;
use model::{AppTime, BadResponse, Outcome};

use crate::alike::Alike;
use crate::app_time;
use crate::response::ReceivedResponse;

/// Heads that a lane remembers.
const MEMORY: usize = 16;
/// A longer head is refused.
const LONGEST: usize = 64 * 1024;
/// More header fields than this are refused.
const FIELDS: usize = 256;
/// Worker names that are told apart; later ones count as unnamed (a request id is no worker).
const WORKERS: usize = 4096;

/// How the body's end is found (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// There is no body.
    Empty,
    /// It has this many bytes.
    Length(u64),
    /// It is chunked.
    Chunked,
    /// It ends with the connection.
    UntilClose,
}

/// What matters of a response head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// Bytes of the head, its empty line included.
    pub length: usize,
    /// Status code, 100 to 999.
    pub status: u16,
    /// How the body's end is found.
    pub framing: BodyFraming,
    /// Whether the connection can carry another request.
    pub keep_alive: bool,
    /// The worker that answered, as an index into [`HeadCache::workers`].
    pub worker: Option<u16>,
    /// What the app says of its time, where that is read; stamps are on the clock that processes share.
    pub app_time: Option<AppTime>,
}

/// A head that was seen before.
#[derive(Debug)]
struct CachedHead {
    bytes: Box<[u8]>,
    head: ResponseHead,
    /// The response that it begins, where the head alone says where that ends, and how long it is. (Not of an interim response.)
    whole: Option<(ReceivedResponse, usize)>,
    /// The length of that response where it is a usual one: good, as long as wanted, and its connection goes on. Else 0.
    usual: usize,
    /// The usual answers that began with it.
    answers: u64,
}

impl CachedHead {
    fn new(bytes: &[u8], head: ResponseHead, wanted_bytes: Option<u64>) -> CachedHead {
        let whole = ReceivedResponse::of(&head);
        let is_usual = |response: &ReceivedResponse| {
            Outcome::Answered(response.status).is_good()
                && wanted_bytes.is_none_or(|wanted| wanted == response.body_bytes)
                && response.keep_alive
        };
        let usual = whole.filter(|(response, _)| is_usual(response)).map_or(0, |(_, length)| length);
        CachedHead { bytes: bytes[..head.length].into(), head, whole, usual, answers: 0 }
    }

    /// What its usual answers have in common.
    fn alike(&self) -> Alike {
        let mut alike = Alike::default();
        if let Some((response, _)) = &self.whole {
            alike.add(response, self.answers);
        }
        alike
    }
}

/// The heads and workers that one lane has seen.
#[derive(Debug)]
pub struct HeadCache {
    worker_header: String,
    reads_app_times: bool,
    memory: Vec<CachedHead>,
    oldest: usize,
    /// The content that a good answer must have, where that is known.
    wanted_bytes: Option<u64>,
    /// The usual answers of heads that are not remembered any more.
    forgotten: Alike,
    workers: Vec<String>,
    worker_index: HashMap<String, u16>,
}

impl HeadCache {
    /// Nothing seen yet. `worker_header` is the field in which a worker names itself (empty: none).
    pub fn new(worker_header: &str) -> HeadCache {
        HeadCache {
            worker_header: worker_header.to_ascii_lowercase(),
            reads_app_times: false,
            memory: Vec::with_capacity(MEMORY),
            oldest: 0,
            wanted_bytes: None,
            forgotten: Alike::default(),
            workers: Vec::new(),
            worker_index: HashMap::new(),
        }
    }

    /// Whether what the app says of its time is read. Then no head is as the one before, and each is parsed.
    #[must_use]
    pub fn reading_app_times(self, reads: bool) -> HeadCache {
        HeadCache { reads_app_times: reads, ..self }
    }

    /// How long the content of a good answer has to be.
    #[must_use]
    pub(crate) fn wanting(self, wanted_bytes: Option<u64>) -> HeadCache {
        HeadCache { wanted_bytes, ..self }
    }

    /// The names of the workers seen so far.
    pub fn workers(&self) -> &[String] {
        &self.workers
    }

    /// The head that `bytes` begins with; `None` where it is not complete yet.
    ///
    /// `hint` is where this connection's last head is remembered, and is brought up to date.
    ///
    /// # Errors
    /// Where no continuation of `bytes` would be a head that we accept.
    #[inline]
    pub fn read(&mut self, bytes: &[u8], hint: &mut u8) -> Result<Option<ResponseHead>, BadResponse> {
        if let Some(known) = self.memory.get(usize::from(*hint))
            && bytes.starts_with(&known.bytes)
        {
            return Ok(Some(known.head));
        }
        self.recall_or_parse(bytes, hint)
    }

    /// The response that `bytes` are from the first to the last, where its head is the one remembered at `hint`.
    #[inline]
    pub(crate) fn whole(&self, bytes: &[u8], hint: u8) -> Option<&ReceivedResponse> {
        let known = self.memory.get(usize::from(hint))?;
        let (response, length) = known.whole.as_ref()?;
        (bytes.len() == *length && bytes.starts_with(&known.bytes)).then_some(response)
    }

    /// Whether `bytes` are, from the first to the last, a usual answer whose head is the one remembered at `hint`: a good one, as long as
    /// is wanted, after which its connection goes on. It is counted with its head.
    #[inline]
    pub(crate) fn is_usual(&mut self, bytes: &[u8], hint: u8) -> bool {
        match self.memory.get_mut(usize::from(hint)) {
            Some(known) if known.usual == bytes.len() && bytes.starts_with(&known.bytes) => {
                known.answers += 1;
                true
            }
            _ => false,
        }
    }

    /// What all [usual](HeadCache::is_usual) answers so far have in common.
    pub(crate) fn alike(&self) -> Alike {
        let mut alike = self.forgotten.clone();
        self.memory.iter().for_each(|known| alike.merge(&known.alike()));
        alike
    }

    #[cold]
    fn recall_or_parse(&mut self, bytes: &[u8], hint: &mut u8) -> Result<Option<ResponseHead>, BadResponse> {
        if let Some(place) = self.memory.iter().position(|known| bytes.starts_with(&known.bytes)) {
            *hint = place as u8;
            return Ok(Some(self.memory[place].head));
        }
        let Some(head) = self.parse(bytes)? else {
            return if bytes.len() > LONGEST { Err(BadResponse::LongHead) } else { Ok(None) };
        };
        // It will not come again.
        if head.app_time.is_some() {
            return Ok(Some(head));
        }
        let remembered = CachedHead::new(bytes, head, self.wanted_bytes);
        if self.memory.len() < MEMORY {
            *hint = self.memory.len() as u8;
            self.memory.push(remembered);
        } else {
            *hint = self.oldest as u8;
            self.forgotten.merge(&self.memory[self.oldest].alike());
            self.memory[self.oldest] = remembered;
            self.oldest = (self.oldest + 1) % MEMORY;
        }
        Ok(Some(head))
    }

    fn parse(&mut self, bytes: &[u8]) -> Result<Option<ResponseHead>, BadResponse> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS];
        let mut response = httparse::Response::new(&mut fields);
        let length = match response.parse(bytes) {
            Ok(httparse::Status::Complete(length)) if length > LONGEST => return Err(BadResponse::LongHead),
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(error) => return Err(reason(error, bytes)),
        };
        let status = response.code.filter(|code| (100..=999).contains(code)).ok_or(BadResponse::StatusLine)?;
        let mut keep_alive = response.version == Some(1);
        let (mut content_length, mut transfer_coding, mut worker) = (None, None, None);
        let (mut stamps, mut timing) = (None, None);
        for field in response.headers.iter() {
            if field.name.eq_ignore_ascii_case("content-length") {
                let value = content_length_of(field.value)?;
                if content_length.is_some_and(|other| other != value) {
                    return Err(BadResponse::ContentLength);
                }
                content_length = Some(value);
            } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
                transfer_coding = Some(last_token(field.value).eq_ignore_ascii_case(b"chunked"));
            } else if field.name.eq_ignore_ascii_case("connection") {
                for token in field.value.split(|b| *b == b',').map(<[u8]>::trim_ascii) {
                    keep_alive = match token {
                        token if token.eq_ignore_ascii_case(b"close") => false,
                        token if token.eq_ignore_ascii_case(b"keep-alive") => true,
                        _ => keep_alive,
                    };
                }
            } else if !self.worker_header.is_empty() && field.name.eq_ignore_ascii_case(&self.worker_header) {
                worker = std::str::from_utf8(field.value).ok().map(str::trim).map(str::to_owned);
            } else if self.reads_app_times && field.name.eq_ignore_ascii_case(STAMPS) {
                stamps = app_time::stamps(field.value);
            } else if self.reads_app_times && field.name.eq_ignore_ascii_case("server-timing") {
                timing = timing.or_else(|| app_time::server_timing(field.value));
            }
        }
        let framing = match (transfer_coding, content_length) {
            _ if status < 200 || status == 204 || status == 304 => BodyFraming::Empty,
            // Transfer-Encoding overrides Content-Length (RFC 9112 section 6.3, rule 3).
            (Some(true), _) => BodyFraming::Chunked,
            (Some(false), _) | (None, None) => BodyFraming::UntilClose,
            (None, Some(0)) => BodyFraming::Empty,
            (None, Some(n)) => BodyFraming::Length(n),
        };
        keep_alive &= framing != BodyFraming::UntilClose;
        let worker = worker.and_then(|name| self.worker(name));
        Ok(Some(ResponseHead { length, status, framing, keep_alive, worker, app_time: stamps.or(timing) }))
    }

    fn worker(&mut self, name: String) -> Option<u16> {
        if let Some(index) = self.worker_index.get(&name) {
            return Some(*index);
        }
        if self.workers.len() >= WORKERS {
            return None;
        }
        let index = self.workers.len() as u16;
        self.workers.push(name.clone());
        self.worker_index.insert(name, index);
        Some(index)
    }
}

/// What the parser stumbled over, of a head that begins with `bytes`.
#[cold]
fn reason(error: httparse::Error, bytes: &[u8]) -> BadResponse {
    match error {
        httparse::Error::TooManyHeaders => BadResponse::LongHead,
        httparse::Error::Status => BadResponse::StatusLine,
        httparse::Error::HeaderName | httparse::Error::HeaderValue => malformed(bytes),
        // A line that does not end, of a head; or noise that begins with half an end of a line.
        httparse::Error::NewLine if bytes.trim_ascii_start().starts_with(b"HTTP/1.") => malformed(bytes),
        _ => BadResponse::NotHttp,
    }
}

/// Of a head that is against the grammar: whether it is because a field goes on in the next line.
fn malformed(bytes: &[u8]) -> BadResponse {
    let head = bytes.windows(4).position(|end| end == b"\r\n\r\n").map_or(bytes, |end| &bytes[..end]);
    let is_folded = head.windows(2).any(|pair| matches!(pair, b"\n " | b"\n\t"));
    if is_folded { BadResponse::FoldedLine } else { BadResponse::MalformedHead }
}

fn content_length_of(value: &[u8]) -> Result<u64, BadResponse> {
    let digits = value.trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(BadResponse::ContentLength);
    }
    std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok()).ok_or(BadResponse::ContentLength)
}

fn last_token(value: &[u8]) -> &[u8] {
    value.rsplit(|b| *b == b',').next().unwrap_or(value).trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<ResponseHead>, BadResponse> {
        HeadCache::new("x-worker-pid").read(text.as_bytes(), &mut 0)
    }

    fn framing(fields: &str) -> BodyFraming {
        read(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n")).unwrap().unwrap().framing
    }

    #[test]
    fn the_bodys_end_is_found_as_rfc_9112_says() {
        assert_eq!(framing("Content-Length: 5\r\n"), BodyFraming::Length(5));
        assert_eq!(framing("content-length: 0\r\n"), BodyFraming::Empty);
        assert_eq!(framing("Content-Length: 5\r\nContent-Length: 5\r\n"), BodyFraming::Length(5));
        assert_eq!(framing("Transfer-Encoding: gzip, chunked\r\nContent-Length: 5\r\n"), BodyFraming::Chunked);
        assert_eq!(framing("Transfer-Encoding: gzip\r\n"), BodyFraming::UntilClose);
        assert_eq!(framing(""), BodyFraming::UntilClose);
        for status in ["204 No Content", "304 Not Modified"] {
            let head = read(&format!("HTTP/1.1 {status}\r\nContent-Length: 5\r\n\r\n")).unwrap().unwrap();
            assert_eq!(head.framing, BodyFraming::Empty);
        }
    }

    #[test]
    fn keep_alive_follows_version_and_connection() {
        let keep_alive = |text: &str| read(text).unwrap().unwrap().keep_alive;
        assert!(keep_alive("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"));
        assert!(!keep_alive("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n"));
        assert!(keep_alive("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\n"));
        assert!(!keep_alive("HTTP/1.1 200 OK\r\nConnection: upgrade, close\r\nContent-Length: 1\r\n\r\n"));
        assert!(!keep_alive("HTTP/1.1 200 OK\r\n\r\n"), "a body that ends with the connection ends it");
    }

    #[test]
    fn lies_are_refused() {
        assert_eq!(
            read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"),
            Err(BadResponse::ContentLength)
        );
        assert_eq!(read("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"), Err(BadResponse::ContentLength));
        assert_eq!(
            read("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n"),
            Err(BadResponse::ContentLength)
        );
        assert_eq!(read("SSH-2.0-OpenSSH_9.2\r\n"), Err(BadResponse::NotHttp));
        for noise in ["HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.7 200 OK\r\n\r\n", "\rnoise", "\x15\x03\x01", "<html>"] {
            assert_eq!(read(noise), Err(BadResponse::NotHttp), "{noise:?}");
        }
        for status in ["099 Low", "1000 High", "abc", "-200 OK", "200 O\x01K", "200\rOK"] {
            assert_eq!(read(&format!("HTTP/1.1 {status}\r\n\r\n")), Err(BadResponse::StatusLine), "{status:?}");
        }
        for line in ["no colon", "X y: 1", "X: \x01", ": 1", "\rX: 1"] {
            assert_eq!(
                read(&format!("HTTP/1.1 200 OK\r\n{line}\r\n\r\n")),
                Err(BadResponse::MalformedHead),
                "{line:?}"
            );
        }
        for line in ["X: 1\r\n folded", "X: 1\r\n\tfolded", " folded: 1"] {
            assert_eq!(read(&format!("HTTP/1.1 200 OK\r\n{line}\r\n\r\n")), Err(BadResponse::FoldedLine), "{line:?}");
        }
        assert_eq!(read(&format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(70_000))), Err(BadResponse::LongHead));
        assert_eq!(read(&format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: 1\r\n".repeat(300))), Err(BadResponse::LongHead));
    }

    #[test]
    fn workers_get_an_index_each_and_are_remembered_with_their_head() {
        let mut heads = HeadCache::new("X-Worker-Pid");
        let text = |pid| format!("HTTP/1.1 200 OK\r\nx-worker-pid: {pid}\r\nContent-Length: 1\r\n\r\n");
        let mut hint = 0;
        for (pid, index) in [(11, 0), (22, 1), (11, 0), (22, 1), (22, 1)] {
            assert_eq!(heads.read(text(pid).as_bytes(), &mut hint).unwrap().unwrap().worker, Some(index));
        }
        assert_eq!(heads.workers(), ["11", "22"]);
    }

    #[test]
    fn what_an_app_says_of_its_time_is_read_only_where_it_is_asked() {
        let text = |n: u64| {
            format!(
                "HTTP/1.1 200 OK\r\nX-App-Stamps: {n} {}\r\nServer-Timing: app;dur=7\r\nContent-Length: 1\r\n\r\n",
                n + 5
            )
        };
        let (mut heads, mut hint) = (HeadCache::new("").reading_app_times(true), 0);
        for n in [100, 100, 300] {
            let head = heads.read(text(n).as_bytes(), &mut hint).unwrap().unwrap();
            let stamps = AppTime::Stamps { started: model::Nanos(n), ended: model::Nanos(n + 5) };
            assert_eq!((head.app_time, head.framing), (Some(stamps), BodyFraming::Length(1)));
        }
        let head = heads.read(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", &mut hint).unwrap().unwrap();
        assert_eq!(head.app_time, None, "each answer speaks for itself");
        assert_eq!(read(&text(1)).unwrap().unwrap().app_time, None);
    }

    #[test]
    fn more_heads_than_the_memory_holds_are_parsed_right_all_the_same() {
        let mut heads = HeadCache::new("");
        let mut hint = 0;
        for n in (1..100u64).chain(1..100) {
            let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {n}\r\n\r\n");
            assert_eq!(heads.read(text.as_bytes(), &mut hint).unwrap().unwrap().framing, BodyFraming::Length(n));
        }
    }

    #[test]
    fn a_usual_answer_is_whole_good_as_long_as_wanted_and_keeps_its_connection() {
        let answer = |status: &str, fields: &str, content: &str| format!("HTTP/1.1 {status}\r\n{fields}\r\n{content}");
        let is_usual = |text: &str| {
            let mut heads = HeadCache::new("x-worker-pid").wanting(Some(2));
            let mut hint = 0;
            assert!(!heads.is_usual(text.as_bytes(), hint), "a head that was never seen");
            heads.read(text.as_bytes(), &mut hint).unwrap().unwrap();
            let more = format!("{text}H");
            assert!(
                !heads.is_usual(&text.as_bytes()[..text.len() - 1], hint) && !heads.is_usual(more.as_bytes(), hint)
            );
            heads.is_usual(text.as_bytes(), hint)
        };
        assert!(is_usual(&answer("200 OK", "content-length: 2\r\n", "ok")));
        assert!(is_usual(&answer("302 Found", "content-length: 2\r\n", "ok")));
        assert!(!is_usual(&answer("200 OK", "content-length: 3\r\n", "oks")));
        assert!(!is_usual(&answer("404 Not Found", "content-length: 2\r\n", "ok")));
        assert!(!is_usual(&answer("200 OK", "content-length: 2\r\nconnection: close\r\n", "ok")));
        assert!(!is_usual(&answer("200 OK", "transfer-encoding: chunked\r\n", "2\r\nok\r\n0\r\n\r\n")));
        assert!(!is_usual(&answer("103 Early Hints", "", "")));
    }

    #[test]
    fn usual_answers_are_counted_though_their_heads_are_forgotten() {
        let mut heads = HeadCache::new("x-worker-pid");
        let answer =
            |worker: usize| format!("HTTP/1.1 200 OK\r\nx-worker-pid: {worker}\r\ncontent-length: 2\r\n\r\nok");
        for worker in 0..3 * MEMORY {
            let (text, mut hint) = (answer(worker), 0);
            heads.read(text.as_bytes(), &mut hint).unwrap();
            (0..=worker).for_each(|_| assert!(heads.is_usual(text.as_bytes(), hint)));
        }
        let alike = heads.alike();
        let all: u64 = (1..=3 * MEMORY as u64).sum();
        assert_eq!((alike.by_status.values().sum::<u64>(), alike.body_bytes), (all, 2 * all));
        assert!(alike.by_worker.iter().all(|(worker, answers)| *answers == u64::from(*worker) + 1));
        assert_eq!(alike.by_worker.len(), 3 * MEMORY);
    }
}
