//! Writes the request log, and has responses checked, while a load goes on, on a thread of its own.
//!
//! Lanes hand over batches, with the raw bytes of responses where those are checked, and never wait
//! for this thread: they drop and count what it is too slow for. If the log is a pipe whose reader
//! stops, the run goes on, and its figures wait only for a moment.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

use engine::{RecordBatch, RequestRecord, RunProgress};
use model::{Clock as _, Nanos, SystemClock};
use sweep::{RequestJournal, ResponseCheck, ResponseChecker};

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
            out.write_all(report::request_logs::csv_header().as_bytes())?;
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
    checkers: Vec<ResponseChecker>,
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
        checks: &[ResponseCheck],
    ) -> Result<Option<Recorder>, Mistake> {
        if log.is_none() && checks.is_empty() {
            return Ok(None);
        }
        let open =
            |path| RequestLog::open(path, is_stdout).map_err(|why| unwritable(path, &why, HINT));
        Ok(Some(Recorder {
            log: log.map(open).transpose()?,
            checkers: checks.iter().cloned().map(ResponseChecker::new).collect(),
            lines: String::with_capacity(1 << 17),
            failed: None,
        }))
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
            // A lane hands over records at an age of 100 ms, so none older than SETTLING is still
            // to come.
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
        self.checkers.iter().map(|checker| checker.result().line()).collect()
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
                report::request_logs::write_csv(lines, *number, exchange, *reason, start);
            } else {
                // attack.cr's numbers begin at 1.
                report::request_logs::write_attack_line(lines, number + 1, exchange, *reason);
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
