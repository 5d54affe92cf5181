//! What is written and checked while a load goes on, on a thread of its own: a line a request, and the answers.
//!
//! Lanes hand over batches and never wait for this thread. What it has not kept up with is dropped by them and counted.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;

use engine::{RecordBatch, RequestRecord, RunProgress};
use model::Nanos;
use rustix::fs::OFlags;
use rustix::io::Errno;
use sweep::RequestJournal;

use crate::load::checks::{Check, Checker};
use crate::mistake::{Mistake, unwritable};
use crate::store::is_fifo;

/// Several lanes: what is older than this, compared with the newest, is complete.
const SETTLING: Nanos = Nanos::from_millis(500);

const HINT: &str = "give --log a file that you can write";

/// Where one line a request goes.
struct RequestLog {
    out: Box<dyn Write + Send>,
    path: PathBuf,
    /// Whether it is a table, and not attack.cr's lines: `request 99 status=200 latency=1006.335446ms`.
    is_csv: bool,
}

impl RequestLog {
    fn open(path: &Path, is_stdout: bool) -> io::Result<RequestLog> {
        let file: Box<dyn Write + Send> = if is_stdout { Box::new(io::stdout()) } else { Box::new(create(path)?) };
        let mut out = Box::new(BufWriter::with_capacity(1 << 16, file));
        let is_csv = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("csv"));
        if is_csv {
            out.write_all(report::request_log::csv_header().as_bytes())?;
        }
        Ok(RequestLog { out, path: path.to_owned(), is_csv })
    }
}

/// Writes and checks.
pub(crate) struct Recorder {
    log: Option<RequestLog>,
    checkers: Vec<Checker>,
    lines: String,
    /// Where a log could not be written to its end.
    pub(crate) failed: Option<Mistake>,
}

impl Recorder {
    /// A recorder for this log, which may be stdout, and these checks; `None` where there is nothing to record.
    ///
    /// # Errors
    /// Where the log cannot be written.
    pub(crate) fn open(log: Option<&Path>, is_stdout: bool, checks: &[Check]) -> Result<Option<Recorder>, Mistake> {
        if log.is_none() && checks.is_empty() {
            return Ok(None);
        }
        let open = |path| RequestLog::open(path, is_stdout).map_err(|why| unwritable(path, &why, HINT));
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
    /// Lines of several lanes are put into one order before they are written.
    fn record(&mut self, batches: &Receiver<RecordBatch>, lanes: u32, progress: &RunProgress) {
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
                self.write(&batch, progress.start());
                continue;
            }
            // A lane hands over what is 100 ms old, so nothing older than this is still to come.
            waiting.extend(batch.into_iter().map(|record| RequestRecord { answer: None, ..record }));
            waiting.sort_by_key(|record| record.exchange.ended);
            let newest = waiting.last().map_or(Nanos::ZERO, |record| record.exchange.ended);
            let settled = waiting.partition_point(|record| record.exchange.ended + SETTLING < newest);
            let later = waiting.split_off(settled);
            self.write(&waiting, progress.start());
            waiting = later;
        }
        self.write(&waiting, progress.start());
    }

    fn checks(&self) -> Vec<String> {
        let results = self.checkers.iter().map(Checker::result);
        results.map(|(holds, text)| format!("{}{text}", if holds { "" } else { "FAILED " })).collect()
    }
}

impl Recorder {
    /// Writes a line a request, as long as the log can be written.
    fn write(&mut self, batch: &[RequestRecord], start: Nanos) {
        let Some(log) = &mut self.log else { return };
        let lines = &mut self.lines;
        lines.clear();
        for RequestRecord { number, exchange, reason, .. } in batch {
            if log.is_csv {
                report::request_log::write_csv(lines, *number, exchange, *reason, start);
            } else {
                // attack.cr's numbers begin at 1.
                report::request_log::write_attack_line(lines, number + 1, exchange, *reason);
            }
        }
        if let Err(why) = log.out.write_all(lines.as_bytes()).and_then(|()| log.out.flush()) {
            // A reader of stdout that has gone (`| head`) is no mistake. The load goes on in either case.
            if why.kind() != io::ErrorKind::BrokenPipe {
                self.failed = Some(unwritable(&log.path, &why, HINT));
            }
            self.log = None;
        }
    }
}

/// The file. Of a pipe that nobody reads an error, where one would wait without end.
fn create(path: &Path) -> io::Result<File> {
    if is_fifo(path) {
        let tried = OpenOptions::new().write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path);
        if tried.as_ref().is_err_and(|why| why.raw_os_error() == Some(Errno::NXIO.raw_os_error())) {
            return Err(io::Error::other("it is a pipe that nobody reads"));
        }
        // With a reader there it opens at once; and `tried` keeps it open meanwhile.
        let file = OpenOptions::new().write(true).open(path);
        drop(tried);
        return file;
    }
    File::create(path)
}
