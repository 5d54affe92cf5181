//! Response heads: parsed once, then recognised.
//!
//! A server answers the same request with the same head, byte for byte, except for a date that
//! changes once a second and the worker's name. So a lane keeps the last few heads with what was
//! parsed from them, and a head that starts with the same bytes is that head. Same bytes, same
//! parse: nothing is guessed. Everything else goes through `httparse`.

use std::collections::HashMap;

use model::app_time::STAMPS;
use model::{AppTime, BadResponse, Nanos, Outcome, Redirect};

/// Heads that a lane remembers.
pub(crate) const CACHED_HEADS: usize = 16;
/// A longer head is refused.
const LONGEST: usize = 64 * 1024;
/// More header fields than this are refused.
const FIELDS: usize = 256;
/// Bytes of a `Location` that are kept and compared.
const LONGEST_LOCATION: usize = 2048;
/// Bytes of a `Server` header that are kept.
const LONGEST_SERVER_NAME: usize = 80;
/// Worker names that are distinguished; later ones count as unnamed (a request id is no worker).
const WORKERS: usize = 4096;

/// Metrics of `Server-Timing` that time the whole app, the most reliable first. Others time parts
/// of it, or something else.
const WHOLE: [&str; 3] = ["app", "total", "process_action.action_controller"];
/// Metrics that are the time between a proxy and the app, computed from `X-Request-Start`.
const QUEUE: [&str; 3] = ["queue", "request_queue", "queue_time"];

/// How the body's end is found (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// It has this many bytes; 0 if there is no body.
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
    /// The times that the app reports, if they are read; stamps are on the clock that processes
    /// of a host share.
    pub app_time: Option<AppTime>,
    /// The queue time that the app computed, if it said that and it was to be read.
    pub queue_time: Option<Nanos>,
}

impl ResponseHead {
    /// Bytes of the body, if the head alone says how many; `None` for an interim response, too.
    fn body_bytes(&self) -> Option<u64> {
        match self.framing {
            BodyFraming::Length(length) if self.status >= 200 => Some(length),
            _ => None,
        }
    }
}

/// A head that was seen before.
#[derive(Debug)]
pub(crate) struct CachedHead {
    bytes: Box<[u8]>,
    pub(crate) head: ResponseHead,
    /// Its number among all heads that were ever cached, from 1. It tells this head from those that
    /// had the same index before.
    pub(crate) serial: u64,
    /// Bytes of the whole response; 0 if the head does not say.
    pub(crate) length: usize,
    /// The same where the response is good, has the wanted length, and leaves the connection open;
    /// else 0.
    fast_path_length: usize,
}

impl CachedHead {
    fn new(bytes: &[u8], head: ResponseHead, serial: u64, wanted_bytes: Option<u64>) -> CachedHead {
        let body_bytes = head.body_bytes();
        // (Saturating: the head may claim a length of 2^64 - 1.)
        let length =
            body_bytes.and_then(|body| usize::try_from(body.checked_add(head.length as u64)?).ok());
        let is_as_wanted = wanted_bytes.is_none() || wanted_bytes == body_bytes;
        let is_fast = Outcome::Answered(head.status).is_good() && is_as_wanted && head.keep_alive;
        let length = length.unwrap_or(0);
        let fast_path_length = if is_fast { length } else { 0 };
        CachedHead { bytes: bytes[..head.length].into(), head, serial, length, fast_path_length }
    }
}

/// The first redirect that a lane met.
#[derive(Debug)]
struct FirstRedirect {
    status: u16,
    /// Its `Location`, or the first bytes of it.
    location: Option<Box<[u8]>>,
    /// Whether a later one had another status or led elsewhere.
    has_others: bool,
}

/// The heads and workers that one lane has seen.
#[derive(Debug, Default)]
pub struct HeadCache {
    worker_header: String,
    /// Whether the times that the app reports are read. Then no head is like the one before, and
    /// each is parsed.
    pub(crate) reads_app_times: bool,
    /// Length of the body that a good response must have, if that is known.
    pub(crate) wanted_bytes: Option<u64>,
    heads: Vec<CachedHead>,
    /// Heads ever cached.
    cached: u64,
    workers: HashMap<String, u16>,
    first_redirect: Option<FirstRedirect>,
    /// What the server calls itself.
    server_name: Option<Box<str>>,
}

/// Whether the last coding of `Transfer-Encoding` is chunked, so that the body has an end.
fn ends_chunked(value: &[u8]) -> bool {
    let last = value.rsplit(|byte| *byte == b',').next().unwrap_or_default();
    last.trim_ascii().eq_ignore_ascii_case(b"chunked")
}

/// Whether `Connection` says that the connection goes on; `None` if it says nothing of that.
fn says_keep_alive(value: &[u8]) -> Option<bool> {
    let mut keep_alive = None;
    for token in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
        if token.eq_ignore_ascii_case(b"close") {
            keep_alive = Some(false);
        } else if token.eq_ignore_ascii_case(b"keep-alive") {
            keep_alive = Some(true);
        }
    }
    keep_alive
}

/// The value of a `Server` header, as far as it is kept.
fn name_of_server(value: &[u8]) -> Box<str> {
    let name = String::from_utf8_lossy(&value[..value.len().min(LONGEST_SERVER_NAME)]);
    name.chars().filter(|c| !c.is_control()).collect::<String>().trim().into()
}

/// Where the body ends. `is_chunked` is what `Transfer-Encoding` says, if there is one.
fn framing_of(status: u16, is_chunked: Option<bool>, content_length: Option<u64>) -> BodyFraming {
    if status < 200 || status == 204 || status == 304 {
        return BodyFraming::Length(0);
    }
    // Transfer-Encoding overrides Content-Length (RFC 9112 section 6.3, rule 3).
    match (is_chunked, content_length) {
        (Some(true), _) => BodyFraming::Chunked,
        (Some(false), _) | (None, None) => BodyFraming::UntilClose,
        (None, Some(length)) => BodyFraming::Length(length),
    }
}

/// Whether these bytes begin with a known head. musl compares byte by byte: in a static binary that
/// was half of all instructions of the request loop.
#[inline]
fn begins_with(bytes: &[u8], head: &[u8]) -> bool {
    if cfg!(target_env = "musl") { begins_with_words(bytes, head) } else { bytes.starts_with(head) }
}

/// The same, eight bytes at a time, without the C library.
#[inline]
fn begins_with_words(bytes: &[u8], head: &[u8]) -> bool {
    let Some(beginning) = bytes.get(..head.len()) else { return false };
    let (words, rest) = beginning.as_chunks::<8>();
    let (head_words, head_rest) = head.as_chunks::<8>();
    let are_same =
        |(one, other): (&[u8; 8], &[u8; 8])| u64::from_ne_bytes(*one) == u64::from_ne_bytes(*other);
    words.iter().zip(head_words).all(are_same)
        && rest.iter().zip(head_rest).all(|(one, other)| one == other)
}

impl HeadCache {
    /// Nothing seen yet. `worker_header` is the field in which a worker names itself (empty: none).
    pub fn new(worker_header: &str) -> HeadCache {
        HeadCache { worker_header: worker_header.to_ascii_lowercase(), ..HeadCache::default() }
    }

    /// The names of the workers seen so far, and the index of each.
    pub fn workers(&self) -> &HashMap<String, u16> {
        &self.workers
    }

    /// The head that `bytes` begins with; `None` if it is not complete yet.
    ///
    /// `hint` is where this connection's last head is cached, and is brought up to date.
    ///
    /// # Errors
    /// If no continuation of `bytes` would be a head that we accept.
    #[inline]
    pub fn read(
        &mut self,
        bytes: &[u8],
        hint: &mut u8,
    ) -> Result<Option<ResponseHead>, BadResponse> {
        match self.cached_at(*hint, bytes) {
            Some(known) => Ok(Some(known.head)),
            None => self.recall_or_parse(bytes, hint),
        }
    }

    /// The head of `bytes`, if they are one whole response whose head is the one cached at `hint`.
    #[inline]
    pub(crate) fn whole(&self, bytes: &[u8], hint: u8) -> Option<&ResponseHead> {
        self.cached_at(hint, bytes)
            .filter(|known| known.length == bytes.len())
            .map(|known| &known.head)
    }

    /// As [`HeadCache::whole`], if the response is good, has the wanted length, and leaves the
    /// connection open.
    #[inline]
    pub(crate) fn fast_path(&self, bytes: &[u8], hint: u8) -> Option<&CachedHead> {
        self.cached_at(hint, bytes).filter(|known| known.fast_path_length == bytes.len())
    }

    #[inline]
    fn cached_at(&self, hint: u8, bytes: &[u8]) -> Option<&CachedHead> {
        self.heads.get(usize::from(hint)).filter(|known| begins_with(bytes, &known.bytes))
    }

    #[cold]
    fn recall_or_parse(
        &mut self,
        bytes: &[u8],
        hint: &mut u8,
    ) -> Result<Option<ResponseHead>, BadResponse> {
        if let Some(index) = self.heads.iter().position(|known| bytes.starts_with(&known.bytes)) {
            *hint = index as u8;
            return Ok(Some(self.heads[index].head));
        }
        let Some(head) = self.parse(bytes)? else {
            return if bytes.len() > LONGEST { Err(BadResponse::LongHead) } else { Ok(None) };
        };
        // A head with the app's times never comes again.
        if head.app_time.is_none() && head.queue_time.is_none() {
            // The oldest head makes room.
            let index = self.cached as usize % CACHED_HEADS;
            self.cached += 1;
            let cached = CachedHead::new(bytes, head, self.cached, self.wanted_bytes);
            match self.heads.get_mut(index) {
                Some(oldest) => *oldest = cached,
                None => self.heads.push(cached),
            }
            *hint = index as u8;
        }
        Ok(Some(head))
    }

    fn parse(&mut self, bytes: &[u8]) -> Result<Option<ResponseHead>, BadResponse> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS];
        let mut response = httparse::Response::new(&mut fields);
        let Some(length) = parsed_length(&mut response, bytes)? else { return Ok(None) };
        let status = response
            .code
            .filter(|code| (100..=999).contains(code))
            .ok_or(BadResponse::StatusLine)?;
        let mut keep_alive = response.version == Some(1);
        let mut content_length = None;
        let mut transfer_coding = None;
        let mut worker = None;
        let mut stamps = None;
        let mut timing = None;
        let mut queue_time = None;
        let mut location = None;
        for field in response.headers.iter() {
            if field.name.eq_ignore_ascii_case("content-length") {
                let value = content_length_of(field.value)?;
                if content_length.is_some_and(|other| other != value) {
                    return Err(BadResponse::ContentLength);
                }
                content_length = Some(value);
            } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
                transfer_coding = Some(ends_chunked(field.value));
            } else if field.name.eq_ignore_ascii_case("connection") {
                keep_alive = says_keep_alive(field.value).unwrap_or(keep_alive);
            } else if Redirect::is_one(status) && field.name.eq_ignore_ascii_case("location") {
                location = location.or(Some(field.value));
            } else if !self.worker_header.is_empty()
                && field.name.eq_ignore_ascii_case(&self.worker_header)
            {
                worker = std::str::from_utf8(field.value).ok().map(str::trim);
            } else if self.reads_app_times && field.name.eq_ignore_ascii_case(STAMPS) {
                stamps = app_stamps(field.value);
            } else if self.reads_app_times && field.name.eq_ignore_ascii_case("server-timing") {
                timing = timing.or_else(|| server_timing(field.value, &WHOLE));
                queue_time = queue_time.or_else(|| server_timing(field.value, &QUEUE));
            } else if self.server_name.is_none() && field.name.eq_ignore_ascii_case("server") {
                self.server_name = Some(name_of_server(field.value));
            }
        }
        let framing = framing_of(status, transfer_coding, content_length);
        keep_alive &= framing != BodyFraming::UntilClose;
        let worker = worker.and_then(|name| self.worker(name));
        if Redirect::is_one(status) {
            self.note_redirect(status, location);
        }
        Ok(Some(ResponseHead {
            length,
            status,
            framing,
            keep_alive,
            worker,
            app_time: stamps.or(timing.map(AppTime::Took)),
            queue_time,
        }))
    }

    /// Keeps the first redirect, and notes whether a later one differs. Parsed heads are enough: a
    /// head that is recognised repeats one of them.
    fn note_redirect(&mut self, status: u16, location: Option<&[u8]>) {
        let location = location.map(|bytes| &bytes[..bytes.len().min(LONGEST_LOCATION)]);
        if let Some(first) = &mut self.first_redirect {
            let is_same = first.status == status && first.location.as_deref() == location;
            first.has_others |= !is_same;
        } else {
            let location = location.map(Box::from);
            self.first_redirect = Some(FirstRedirect { status, location, has_others: false });
        }
    }

    /// Where redirects lead, if there were any.
    pub(crate) fn redirect(&self) -> Option<Redirect> {
        let FirstRedirect { status, location, has_others } = self.first_redirect.as_ref()?;
        Some(Redirect::of(*status, location.as_deref(), *has_others))
    }

    /// What the server calls itself, if it does.
    pub(crate) fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    fn worker(&mut self, name: &str) -> Option<u16> {
        let known = self.workers.get(name).copied();
        if known.is_some() || self.workers.len() >= WORKERS {
            return known;
        }
        let index = self.workers.len() as u16;
        self.workers.insert(name.to_owned(), index);
        Some(index)
    }
}

/// Parses a head into `response`; its length, or `None` if it is not complete.
fn parsed_length<'b>(
    response: &mut httparse::Response<'_, 'b>,
    bytes: &'b [u8],
) -> Result<Option<usize>, BadResponse> {
    match response.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length > LONGEST => Err(BadResponse::LongHead),
        Ok(httparse::Status::Complete(length)) => Ok(Some(length)),
        Ok(httparse::Status::Partial) => Ok(None),
        Err(error) => Err(reason(error, bytes)),
    }
}

/// Why the parser refused a head that begins with `bytes`.
#[cold]
fn reason(error: httparse::Error, bytes: &[u8]) -> BadResponse {
    match error {
        httparse::Error::TooManyHeaders => BadResponse::LongHead,
        httparse::Error::Status => BadResponse::StatusLine,
        httparse::Error::HeaderName | httparse::Error::HeaderValue => malformed(bytes),
        // Either a head with a line that does not end, or noise that begins with a lone carriage
        // return.
        httparse::Error::NewLine if bytes.trim_ascii_start().starts_with(b"HTTP/1.") => {
            malformed(bytes)
        }
        _ => BadResponse::NotHttp,
    }
}

/// Why a head is malformed: because a field continues on the next line, or anything else. The first
/// line that is not a field decides, so it does not matter how many bytes came after it.
fn malformed(bytes: &[u8]) -> BadResponse {
    let first = bytes.split(|byte| *byte == b'\n').skip(1).find(|line| !is_field(line));
    let is_folded = first.is_some_and(|line| matches!(line.first(), Some(b' ' | b'\t')));
    if is_folded { BadResponse::FoldedLine } else { BadResponse::MalformedHead }
}

/// Whether a line is a field by its grammar (RFC 9112 section 5), its line feed left out.
fn is_field(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let is_visible = |byte: &u8| *byte == b'\t' || *byte >= b' ' && *byte != 0x7f;
    let colon = line.iter().position(|byte| *byte == b':');
    colon.is_some_and(|at| {
        at > 0 && line[..at].iter().all(is_token) && line[at..].iter().all(is_visible)
    })
}

fn content_length_of(value: &[u8]) -> Result<u64, BadResponse> {
    // (Rust would accept a sign; HTTP does not.)
    let digits = std::str::from_utf8(value.trim_ascii()).ok().filter(|text| !text.starts_with('+'));
    digits.and_then(|text| text.parse().ok()).ok_or(BadResponse::ContentLength)
}

/// Parses the value of `x-app-stamps`.
fn app_stamps(value: &[u8]) -> Option<AppTime> {
    let text = std::str::from_utf8(value).ok()?;
    let mut words = text.split_ascii_whitespace().map(|word| word.parse().ok().map(Nanos));
    match (words.next()??, words.next()??, words.next()) {
        (started, ended, None) => Some(AppTime::Stamps { started, ended }),
        _ => None,
    }
}

/// The duration of the first of these metrics that is in a `Server-Timing` field, which has
/// milliseconds: `db;dur=53, app;dur=47.2` (W3C, Server Timing).
fn server_timing(value: &[u8], names: &[&str]) -> Option<Nanos> {
    let text = std::str::from_utf8(value).ok()?;
    let took = |name: &str| text.split(',').find_map(|metric| duration_of(metric, name));
    names.iter().find_map(|name| took(name))
}

/// The duration of a metric that has this name.
fn duration_of(metric: &str, name: &str) -> Option<Nanos> {
    let mut words = metric.split(';').map(str::trim);
    if words.next()? != name {
        return None;
    }
    let milliseconds = words.find_map(|word| {
        let (key, value) = word.split_once('=')?;
        let value = value.trim().trim_matches('"');
        key.trim().eq_ignore_ascii_case("dur").then(|| value.parse::<f64>().ok()).flatten()
    })?;
    // A negative duration, or a day and more, is not believed.
    (0.0..86_400_000.0).contains(&milliseconds).then(|| Nanos::from_secs_f64(milliseconds / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparing_by_words_is_comparing_bytes() {
        let bytes: Vec<u8> = (0..40).collect();
        for length in 0..=40 {
            let head = bytes[..length].to_vec();
            assert!(begins_with_words(&bytes, &head), "{length}");
            assert!(length == 0 || !begins_with_words(&bytes[..length - 1], &head), "{length}");
            for at in 0..length {
                let mut other = head.clone();
                other[at] ^= 1;
                assert!(!begins_with_words(&bytes, &other), "{length}, {at}");
            }
        }
    }

    fn read(text: &str) -> Result<Option<ResponseHead>, BadResponse> {
        HeadCache::new("x-worker-pid").read(text.as_bytes(), &mut 0)
    }

    #[test]
    fn a_head_is_understood_as_rfc_9112_says_and_lies_are_refused() {
        for row in include_str!("head_cases.txt").lines().filter(|row| !row.starts_with('#')) {
            let (text, expected) = row.split_once(" => ").unwrap();
            let text = text.replace("\\r", "\r").replace("\\n", "\n").replace("\\t", "\t");
            let text =
                text.replace("\\x01", "\x01").replace("\\x03", "\x03").replace("\\x15", "\x15");
            let app =
                |said: Option<AppTime>| said.map_or("none".to_owned(), |said| format!("{said:?}"));
            let found = match text.split_once(": ").unwrap_or_default() {
                ("x-app-stamps", value) => app(app_stamps(value.as_bytes())),
                ("server-timing", value) => {
                    app(server_timing(value.as_bytes(), &WHOLE).map(AppTime::Took))
                }
                _ => match read(&text) {
                    Ok(None) => "goes on".to_owned(),
                    Ok(Some(head)) => {
                        format!(
                            "{:?} {}",
                            head.framing,
                            if head.keep_alive { "keeps" } else { "closes" }
                        )
                    }
                    Err(reason) => format!("{reason:?}"),
                },
            };
            assert_eq!(found, expected, "{text:?}");
        }
        for fields in [format!("X: {}", "x".repeat(70_000)), "X: 1\r\n".repeat(300)] {
            assert_eq!(
                read(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n")),
                Err(BadResponse::LongHead)
            );
        }
        assert_eq!(app_stamps(&[0xff, b' ', b'1']), None);
    }

    #[test]
    fn workers_get_an_index_each_and_are_remembered_with_their_head() {
        let mut heads = HeadCache::new("X-Worker-Pid");
        let text =
            |pid| format!("HTTP/1.1 200 OK\r\nx-worker-pid: {pid}\r\nContent-Length: 1\r\n\r\n");
        let mut hint = 0;
        for (pid, index) in [(11, 0), (22, 1), (11, 0), (22, 1), (22, 1)] {
            assert_eq!(
                heads.read(text(pid).as_bytes(), &mut hint).unwrap().unwrap().worker,
                Some(index)
            );
        }
        assert_eq!(heads.workers(), &HashMap::from([("11".to_owned(), 0), ("22".to_owned(), 1)]));
    }

    #[test]
    fn the_apps_times_are_read_only_if_they_are_asked_for() {
        let text = |n: u64| {
            format!(
                "HTTP/1.1 200 OK\r\nX-App-Stamps: {n} {}\r\nServer-Timing: app;dur=7\r\nContent-Length: 1\r\n\r\n",
                n + 5
            )
        };
        let mut heads = HeadCache { reads_app_times: true, ..HeadCache::new("") };
        let mut hint = 0;
        for n in [100, 100, 300] {
            let head = heads.read(text(n).as_bytes(), &mut hint).unwrap().unwrap();
            let stamps = AppTime::Stamps { started: Nanos(n), ended: Nanos(n + 5) };
            assert_eq!((head.app_time, head.framing), (Some(stamps), BodyFraming::Length(1)));
        }
        let head = heads
            .read(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", &mut hint)
            .unwrap()
            .unwrap();
        assert_eq!(head.app_time, None, "each response speaks for itself");
        let queued = b"HTTP/1.1 200 OK\r\nServer-Timing: queue;dur=12.5, app;dur=7\r\nContent-Length: 1\r\n\r\n";
        let head = heads.read(queued, &mut hint).unwrap().unwrap();
        assert_eq!(head.queue_time, Some(Nanos::from_micros(12_500)));
        assert_eq!(head.app_time, Some(AppTime::Took(Nanos::from_millis(7))));
        assert_eq!(read(&text(1)).unwrap().unwrap().app_time, None);
    }
}
