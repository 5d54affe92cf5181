//! Writes the request log and checks responses while a load goes on, on a thread of its own.
//!
//! Lanes hand over batches, with the raw bytes of responses where those are checked, and never wait
//! for this thread: they drop and count what it is too slow for. If the log is a pipe whose reader
//! stops, the run goes on, and its figures wait only for a moment.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

use engine::{RecordBatch, RequestRecord, RunProgress};
use minicbor::Decoder;
use minicbor::data::Type;
use model::{Clock as _, Nanos, SystemClock};
use ring::digest::{SHA256, digest};
use sweep::RequestJournal;

use crate::exit::{Mistake, unwritable};
use crate::files;
use crate::terminal::{PIECE, takes_more};

/// With several lanes: no record is still missing that is older than the newest by this much.
const SETTLING: Nanos = Nanos::from_millis(500);

const HINT: &str = "give --log a file that you can write";

/// How long the log's reader gets after the run for what it has not read.
const LAST_LINES: Nanos = Nanos::from_secs(5);
/// How often the end of the run is looked for while nobody reads the log.
const POLL_INTERVAL: Nanos = Nanos::from_millis(20);

/// The log: a line for each request.
struct RequestLog {
    out: File,
    path: PathBuf,
    /// Whether it is a table, and not attack.cr's lines: `request 99 status=200
    /// latency=1006.335446ms`.
    is_csv: bool,
}

impl RequestLog {
    fn open(path: &Path, is_stdout: bool) -> io::Result<RequestLog> {
        let mut out = if is_stdout {
            File::from(io::stdout().as_fd().try_clone_to_owned()?)
        } else {
            files::create(path)?
        };
        let is_csv = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("csv"));
        if is_csv {
            out.write_all(report::logs::csv_header().as_bytes())?;
        }
        Ok(RequestLog { out, path: path.to_owned(), is_csv })
    }

    /// Writes lines, and waits for their reader: without limit during the run, and for
    /// [`LAST_LINES`] once it is `over`.
    fn write(&mut self, lines: &str, over: &mut RunEnd<'_>) -> io::Result<()> {
        for piece in lines.as_bytes().chunks(PIECE) {
            while !takes_more(&self.out, POLL_INTERVAL) {
                if over.is_long_ago() {
                    return Err(io::Error::other(format!(
                        "nobody has read it for {LAST_LINES} after the run"
                    )));
                }
            }
            self.out.write_all(piece)?;
        }
        Ok(())
    }
}

/// When the run was over.
struct RunEnd<'a> {
    over: &'a AtomicBool,
    clock: SystemClock,
    /// When that was first seen.
    seen: Option<Nanos>,
}

impl RunEnd<'_> {
    /// Whether it has been over for [`LAST_LINES`].
    fn is_long_ago(&mut self) -> bool {
        let now = self.clock.now();
        self.over.load(Ordering::Relaxed) && now >= *self.seen.get_or_insert(now) + LAST_LINES
    }
}

/// Writes the log and checks responses.
pub(crate) struct Recorder {
    log: Option<RequestLog>,
    checkers: Vec<Checker>,
    lines: String,
    /// Why the log could not be written to its end.
    pub(crate) failed: Option<Mistake>,
}

impl Recorder {
    /// A recorder for this log, which may be stdout, and these checks; `None` if there is
    /// nothing to record.
    ///
    /// # Errors
    /// If the log cannot be written.
    pub(crate) fn open(
        log: Option<&Path>,
        is_stdout: bool,
        checks: &[Check],
    ) -> Result<Option<Recorder>, Mistake> {
        if log.is_none() && checks.is_empty() {
            return Ok(None);
        }
        let open =
            |path| RequestLog::open(path, is_stdout).map_err(|why| unwritable(path, &why, HINT));
        Ok(Some(Recorder {
            log: log.map(open).transpose()?,
            checkers: checks.iter().cloned().map(Checker::new).collect(),
            lines: String::with_capacity(1 << 17),
            failed: None,
        }))
    }

    /// Whether all checks hold.
    pub(crate) fn checks_hold(&self) -> bool {
        self.checkers.iter().all(|checker| checker.result().0)
    }
}

impl RequestJournal for Recorder {
    /// The records of several lanes are sorted before they are written.
    fn record(
        &mut self,
        batches: &Receiver<RecordBatch>,
        lanes: u32,
        progress: &RunProgress,
        over: &AtomicBool,
    ) {
        let mut end = RunEnd { over, clock: SystemClock::start(), seen: None };
        let mut waiting = RecordBatch::new();
        while let Ok(batch) = batches.recv() {
            for record in &batch {
                for checker in &mut self.checkers {
                    checker.check(record);
                }
            }
            if self.log.is_none() {
                continue;
            }
            if lanes == 1 {
                self.write(&batch, progress.start(), &mut end);
                continue;
            }
            // A lane hands over records that are 100 ms old, so none older than this is still to
            // come.
            waiting
                .extend(batch.into_iter().map(|record| RequestRecord { response: None, ..record }));
            waiting.sort_by_key(|record| record.exchange.ended);
            let newest = waiting.last().map_or(Nanos::ZERO, |record| record.exchange.ended);
            let settled =
                waiting.partition_point(|record| record.exchange.ended + SETTLING < newest);
            let later = waiting.split_off(settled);
            self.write(&waiting, progress.start(), &mut end);
            waiting = later;
        }
        self.write(&waiting, progress.start(), &mut end);
    }

    fn checks(&self) -> Vec<String> {
        let results = self.checkers.iter().map(Checker::result);
        results
            .map(|(holds, text)| format!("{}{text}", if holds { "" } else { "FAILED " }))
            .collect()
    }
}

impl Recorder {
    /// Writes a line for each request, as long as the log can be written.
    fn write(&mut self, batch: &[RequestRecord], start: Nanos, end: &mut RunEnd<'_>) {
        let Some(log) = &mut self.log else { return };
        let lines = &mut self.lines;
        lines.clear();
        for RequestRecord { number, exchange, reason, .. } in batch {
            if log.is_csv {
                report::logs::write_csv(lines, *number, exchange, *reason, start);
            } else {
                // attack.cr's numbers begin at 1.
                report::logs::write_attack_line(lines, number + 1, exchange, *reason);
            }
        }
        if let Err(why) = log.write(lines, end) {
            // A reader of stdout that has gone (`| head`) is no error. The load goes on in either
            // case.
            if why.kind() != io::ErrorKind::BrokenPipe {
                self.failed = Some(Mistake::Unwritten { path: log.path.clone(), why, hint: HINT });
            }
            self.log = None;
        }
    }
}

/// Different bodies, or counters, that are distinguished; more are only counted.
const KEPT: usize = 1_000_000;

/// What is expected of every good response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// This status.
    Status(u16),
    /// A body of so many bytes.
    Length(u64),
    /// A body with this SHA-256, in hexadecimal digits.
    Hash(String),
    /// The same body as all others.
    SameBody,
    /// A CBOR body with a counter: `{…, reply: {arg: <4 bytes, little endian>}}`.
    CborCounter,
}

impl Check {
    /// Whether it needs the bytes of the responses.
    pub(crate) fn needs_responses(&self) -> bool {
        !matches!(self, Check::Status(_))
    }

    /// The status that it wants.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Check::Status(status) => Some(*status),
            Check::Length(_) | Check::Hash(_) | Check::SameBody | Check::CborCounter => None,
        }
    }
}

impl FromStr for Check {
    type Err = String;

    fn from_str(text: &str) -> Result<Check, String> {
        let check = match text.split_once('=').unwrap_or((text, "")) {
            ("status", value) => {
                value.parse().ok().filter(|s| (100..=999).contains(s)).map(Check::Status)
            }
            ("length", value) => value.parse().ok().map(Check::Length),
            ("sha256", hex)
                if hex.len() == 64 && hex.bytes().all(|digit| digit.is_ascii_hexdigit()) =>
            {
                Some(Check::Hash(hex.to_ascii_lowercase()))
            }
            ("same-body", "") => Some(Check::SameBody),
            ("cbor-counter", "") => Some(Check::CborCounter),
            _ => None,
        };
        check.ok_or_else(|| {
            format!("'{text}' is no check: write status=200, length=1024, sha256=HEX, same-body or cbor-counter")
        })
    }
}

fn sha256(body: &[u8]) -> String {
    digest(&SHA256, body).as_ref().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// One check and what it has seen.
struct Checker {
    check: Check,
    checked: u64,
    wrong: u64,
    /// The first wrong response.
    example: Option<String>,
    /// Different bodies, by their SHA-256.
    bodies: HashSet<String>,
    counters: HashSet<u32>,
    largest: Option<u32>,
    duplicates: u64,
}

impl Checker {
    fn new(check: Check) -> Checker {
        let bodies = HashSet::new();
        let counters = HashSet::new();
        Checker {
            check,
            checked: 0,
            wrong: 0,
            example: None,
            bodies,
            counters,
            largest: None,
            duplicates: 0,
        }
    }

    /// Checks a request's response, if there was one; a request without a response is counted as
    /// failed already.
    fn check(&mut self, record: &RequestRecord) {
        let model::Outcome::Answered(status) = record.exchange.outcome else { return };
        let wrong = match self.check {
            Check::Status(expected) => (status != expected).then(|| format!("status {status}")),
            _ if !record.exchange.outcome.is_good() => return,
            _ => match record.response.as_deref().map(engine::response_body) {
                None => Some("more than 2 MiB, which is not looked into".to_owned()),
                Some(None) => Some("no body that can be read".to_owned()),
                Some(Some(body)) => self.wrong_body(&body),
            },
        };
        self.checked += 1;
        if let Some(why) = wrong {
            self.wrong += 1;
            self.example.get_or_insert_with(|| format!("request {}: {why}", record.number));
        }
    }

    /// What is wrong with a body.
    fn wrong_body(&mut self, body: &[u8]) -> Option<String> {
        let bytes = body.len();
        match &self.check {
            Check::Status(_) => None,
            Check::Length(expected) => {
                (bytes as u64 != *expected).then(|| format!("{bytes} bytes"))
            }
            Check::Hash(expected) => {
                (sha256(body) != *expected).then(|| format!("another body of {bytes} bytes"))
            }
            Check::SameBody => {
                if self.bodies.len() < KEPT {
                    self.bodies.insert(sha256(body));
                }
                None
            }
            Check::CborCounter => {
                let Some(counter) = counter_of(body) else { return Some("no counter".to_owned()) };
                self.largest = self.largest.max(Some(counter));
                if self.counters.len() < KEPT && !self.counters.insert(counter) {
                    self.duplicates += 1;
                }
                None
            }
        }
    }

    /// Whether the check holds, and what was seen, in one line. Without any response it does not
    /// hold.
    fn result(&self) -> (bool, String) {
        let Checker { check, checked, wrong, example, bodies, counters, largest, duplicates } =
            self;
        let example = example.as_ref().map(|example| format!(" ({example})")).unwrap_or_default();
        let right = checked - wrong;
        let text = match check {
            Check::Status(status) => {
                format!("status {status}: {right} of {checked} responses{example}")
            }
            Check::Length(length) => {
                format!("{length} bytes: {right} of {checked} bodies{example}")
            }
            Check::Hash(_) => format!("sha256: {right} of {checked} bodies{example}"),
            Check::SameBody => {
                format!("same body: {} different in {checked} responses{example}", bodies.len())
            }
            Check::CborCounter => {
                // Gaps below the largest counter: responses to other clients, or lost ones.
                let smallest = counters.iter().min().copied().unwrap_or(0);
                let span = largest.map_or(0, |largest| u64::from(largest - smallest) + 1);
                let gaps = span.saturating_sub(counters.len() as u64);
                let largest = largest.map_or_else(|| "-".to_owned(), |largest| largest.to_string());
                format!(
                    "Max counter value seen: {largest} - in {checked} responses, {duplicates} duplicates, {gaps} gaps, {wrong} without{example}"
                )
            }
        };
        (*checked > 0 && *wrong == 0 && bodies.len() <= 1 && *duplicates == 0, text)
    }
}

/// The counter of a load sink's body, `{"reply": {"arg": counter}}`: a byte string of four bytes,
/// an array of them, or a number.
fn counter_of(body: &[u8]) -> Option<u32> {
    let reply = cbor_entry(Decoder::new(body), "reply")?;
    let mut counter = cbor_entry(reply, "arg")?;
    match counter.datatype().ok()? {
        Type::Bytes => Some(u32::from_le_bytes(counter.bytes().ok()?.try_into().ok()?)),
        Type::Array | Type::ArrayIndef => {
            let bytes: Vec<u8> = counter.array_iter().ok()?.collect::<Result<_, _>>().ok()?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        }
        _ => counter.u32().ok(),
    }
}

/// The value of that key in a CBOR map.
fn cbor_entry<'b>(mut map: Decoder<'b>, name: &str) -> Option<Decoder<'b>> {
    let entries = map.map().ok()?;
    for _ in 0..entries.unwrap_or(u64::MAX) {
        if map.str().ok()? == name {
            return Some(map);
        }
        map.skip().ok()?;
    }
    None
}

#[cfg(test)]
mod tests {
    use model::{Exchange, Nanos, Outcome};

    use super::*;

    fn answer(number: u64, body: &[u8]) -> RequestRecord {
        let mut raw =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
        raw.extend_from_slice(body);
        let exchange = Exchange {
            due: Nanos::ZERO,
            sent: Nanos::ZERO,
            ended: Nanos(1),
            received_bytes: raw.len() as u32,
            outcome: Outcome::Answered(200),
        };
        RequestRecord { number, exchange, reason: None, response: Some(raw.into()), trace: None }
    }

    fn counted(counter: u32) -> Vec<u8> {
        let mut body = b"\xa2\x66status\x67replied\x65reply\xa1\x63arg\x44".to_vec();
        body.extend_from_slice(&counter.to_le_bytes());
        body
    }

    fn result(check: &str, bodies: &[Vec<u8>]) -> (bool, String) {
        let mut checker = Checker::new(check.parse().unwrap());
        for (number, body) in bodies.iter().enumerate() {
            checker.check(&answer(number as u64, body));
        }
        checker.result()
    }

    #[test]
    fn a_rising_counter_is_followed() {
        let bodies: Vec<_> = [5, 6, 8, 8, 9].map(counted).to_vec();
        let (holds, text) = result("cbor-counter", &bodies);
        assert_eq!(
            text,
            "Max counter value seen: 9 - in 5 responses, 1 duplicates, 1 gaps, 0 without"
        );
        assert!(!holds);
        assert!(result("cbor-counter", &[counted(1), counted(2)]).0);
        assert!(!result("cbor-counter", &[b"ok".to_vec()]).0);
    }

    #[test]
    fn bodies_are_compared_whole() {
        assert!(result("same-body", &[b"a".to_vec(), b"a".to_vec()]).0);
        assert!(!result("same-body", &[b"a".to_vec(), b"b".to_vec()]).0);
        assert!(result("length=2", &[b"ok".to_vec()]).0);
        let (holds, text) = result("length=2", &[b"ok".to_vec(), b"oops".to_vec()]);
        assert_eq!((holds, text.as_str()), (false, "2 bytes: 1 of 2 bodies (request 1: 4 bytes)"));
        let hash = "2689367b205c16ce32ed4200942b8b8b1e262dfc70d9bc9fbc77c49699a4f1df";
        assert!(result(&format!("sha256={hash}"), &[b"ok".to_vec()]).0);
    }
}
