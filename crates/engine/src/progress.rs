//! What others see of a lane while it runs: its progress, its tally when somebody asks, and a
//! journal of single requests.
//!
//! A lane never waits for a reader. It stores its progress in a place of its own, and clones its
//! tally once each time somebody asks. Records are handed over in batches; those for which the
//! reader is too slow are dropped and counted.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Mutex, PoisonError};

use model::{AppTime, BadResponse, Exchange, Nanos, Tally};
use serde::{Deserialize, Serialize};

use crate::load_spec::LoadSpec;

/// The lanes' progress.
#[derive(Debug, Default)]
pub struct RunProgress {
    lanes: Vec<LaneProgress>,
    start: AtomicU64,
    /// Longest wait for a response.
    timeout: Nanos,
    /// Whether requests become due by a schedule.
    is_open_loop: bool,
    /// Requests per second that become due, if it is the same rate all the time.
    constant_rate: Option<f64>,
}

/// What a run still waits for when it sends no measured request any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastResponses {
    /// Measured requests without a response so far.
    pub out: u64,
    /// Open loop: requests that were due and still wait for a connection.
    pub queued: u64,
}

/// One lane's progress, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct LaneProgress {
    connected: AtomicU64,
    ended: AtomicU64,
    /// One more than [`LastResponses::out`]; 0 while there is more to be sent.
    out: AtomicU64,
    queued: AtomicU64,
    asked: AtomicBool,
    answer: Mutex<Option<Tally>>,
}

impl LaneProgress {
    /// Shows how many connections are open before the run.
    pub fn show_connected(&self, connected: u64) {
        self.connected.store(connected, Ordering::Relaxed);
    }

    /// Shows how many requests have ended.
    pub fn show_ended(&self, ended: u64) {
        self.ended.store(ended, Ordering::Relaxed);
    }

    /// Shows how many requests have ended, and the tally if somebody has asked for it.
    #[inline]
    pub fn show(&self, ended: u64, tally: impl FnOnce() -> Tally) {
        self.ended.store(ended, Ordering::Relaxed);
        if self.asked.load(Ordering::Relaxed) {
            self.answer(tally());
        }
    }

    /// Shows that it has nothing more to send except what is queued, and what it waits for.
    pub(crate) fn show_last_responses(&self, last: LastResponses) {
        self.queued.store(last.queued, Ordering::Relaxed);
        self.out.store(last.out + 1, Ordering::Relaxed);
    }

    /// What it waits for; `None` while there is more to be sent.
    fn last_responses(&self) -> Option<LastResponses> {
        let out = self.out.load(Ordering::Relaxed).checked_sub(1)?;
        Some(LastResponses { out, queued: self.queued.load(Ordering::Relaxed) })
    }

    /// Whether somebody has asked for the tally.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    #[cold]
    fn answer(&self, tally: Tally) {
        self.asked.store(false, Ordering::Relaxed);
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(tally);
    }
}

impl RunProgress {
    /// Room for `lanes` lanes.
    pub fn new(lanes: u32) -> RunProgress {
        RunProgress {
            lanes: (0..lanes.max(1)).map(|_| LaneProgress::default()).collect(),
            ..RunProgress::default()
        }
    }

    /// With this load's timeout and kind of loop, to show how its last responses are waited for.
    #[must_use]
    pub fn of_load(self, spec: &LoadSpec) -> RunProgress {
        let pace = &spec.load.pace;
        RunProgress {
            timeout: spec.load.timeout,
            is_open_loop: pace.is_open(),
            constant_rate: pace.constant_rate(),
            ..self
        }
    }

    /// Longest wait for a response.
    pub fn timeout(&self) -> Nanos {
        self.timeout
    }

    /// Whether requests become due by a schedule.
    pub fn is_open_loop(&self) -> bool {
        self.is_open_loop
    }

    /// Requests per second that become due, if it is the same rate all the time.
    pub fn constant_rate(&self) -> Option<f64> {
        self.constant_rate
    }

    /// What the run waits for, once no lane has anything more to send; `None` before, and where
    /// generators elsewhere make the load, which do not tell.
    pub fn last_responses(&self) -> Option<LastResponses> {
        self.lanes.iter().try_fold(LastResponses::default(), |sum, lane| {
            let lane = lane.last_responses()?;
            Some(LastResponses { out: sum.out + lane.out, queued: sum.queued + lane.queued })
        })
    }

    /// When the run began, on its clock; the clock's origin before.
    pub fn start(&self) -> Nanos {
        Nanos(self.start.load(Ordering::Relaxed))
    }

    /// Notes when the run began.
    pub fn set_start(&self, start: Nanos) {
        self.start.store(start.0, Ordering::Relaxed);
    }

    /// Connections that were opened before the run; 0 if the run itself opens them.
    pub fn connected(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.connected.load(Ordering::Relaxed)).sum()
    }

    /// Requests ended so far in all lanes, warm-up included.
    pub fn ended(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.ended.load(Ordering::Relaxed)).sum()
    }

    /// The merged tallies of all lanes, as of about the last call; `None` if some lane has not
    /// shown its tally yet. Each call asks again, which costs each lane a copy of its tally (about
    /// 1 MB), so once a second is often enough.
    pub fn tally(&self) -> Option<Tally> {
        let answers: Option<Vec<Tally>> = self
            .lanes
            .iter()
            .map(|lane| lane.answer.lock().unwrap_or_else(PoisonError::into_inner).clone())
            .collect();
        for lane in &self.lanes {
            lane.asked.store(true, Ordering::Relaxed);
        }
        answers?.into_iter().reduce(|mut all, tally| {
            all.merge(&tally);
            all
        })
    }

    /// The progress of each lane, or of each generator on another machine.
    pub fn lanes(&self) -> &[LaneProgress] {
        &self.lanes
    }
}

/// Records in a batch.
const BATCH: usize = 1024;
/// Bytes of responses in a batch, about.
const BATCH_BYTES: usize = 1024 * 1024;
/// A batch is handed over when it is this old, even if it is not full.
const OLDEST: Nanos = Nanos::from_millis(100);

/// One request, as the journal has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// The request's number in the run, from 0.
    pub number: u64,
    /// What became of it.
    pub exchange: Exchange,
    /// What was wrong with the response, where it was a bad one.
    pub reason: Option<BadResponse>,
    /// The raw bytes of the response, head included, where they were asked for and are not more
    /// than 2 MiB.
    pub response: Option<Box<[u8]>>,
    /// How the kernel and the app know it; `None` if that was not asked for, if no response came,
    /// or if a generator on another machine sent it.
    #[serde(skip)]
    pub trace: Option<RequestTrace>,
}

/// How others know a request: the kernel, which knows connections by their ports, and the app.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestTrace {
    /// Our end's port.
    pub port: u16,
    /// Which request on its connection, from 0.
    pub number: u64,
    /// When the connection began to be opened.
    pub opened: Nanos,
    /// What the app said, on its own clock (its host's `CLOCK_MONOTONIC`).
    pub app: Option<AppTime>,
}

impl RequestTrace {
    /// Returns the trace of the request whose response has just come, and moves on to the next
    /// request of the connection.
    pub(crate) fn next(&mut self, app: Option<AppTime>) -> RequestTrace {
        let trace = RequestTrace { app, ..*self };
        self.number += 1;
        trace
    }
}

/// What the reader of a journal gets: records of one lane, in order of completion.
pub type RecordBatch = Vec<RequestRecord>;

/// A lane's end of the journal.
#[derive(Debug)]
pub(crate) struct Journal {
    reader: SyncSender<RecordBatch>,
    batch: RecordBatch,
    since: Nanos,
    bytes: usize,
    dropped: u64,
}

impl Journal {
    /// Nothing in it yet.
    pub(crate) fn new(reader: SyncSender<RecordBatch>) -> Journal {
        Journal {
            reader,
            batch: Vec::with_capacity(BATCH),
            since: Nanos::ZERO,
            bytes: 0,
            dropped: 0,
        }
    }

    pub(crate) fn record(&mut self, record: RequestRecord) {
        if self.batch.is_empty() {
            self.since = record.exchange.ended;
        }
        self.bytes += record.response.as_ref().map_or(0, |bytes| bytes.len());
        self.batch.push(record);
        if self.batch.len() >= BATCH || self.bytes >= BATCH_BYTES {
            self.hand_over();
        }
    }

    /// Hands over a batch that has been here too long.
    #[inline]
    pub(crate) fn age(&mut self, now: Nanos) {
        if !self.batch.is_empty() && now.saturating_sub(self.since) >= OLDEST {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        self.bytes = 0;
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        if let Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) =
            self.reader.try_send(batch)
        {
            self.dropped += batch.len() as u64;
            self.batch = batch;
            self.batch.clear();
        }
    }

    /// Hands over the rest, this time waiting for the reader, and tells how many records were
    /// dropped.
    pub(crate) fn close(self) -> u64 {
        let rest = self.batch.len() as u64;
        let is_sent = rest == 0 || self.reader.send(self.batch).is_ok();
        self.dropped + if is_sent { 0 } else { rest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Outcome;
    use std::sync::mpsc::sync_channel;

    fn record(number: u64) -> RequestRecord {
        let time = Nanos(number);
        let exchange = Exchange {
            due: time,
            sent: time,
            ended: time,
            received_bytes: 0,
            outcome: Outcome::Answered(200),
        };
        RequestRecord { number, exchange, reason: None, response: None, trace: None }
    }

    #[test]
    fn a_slow_reader_loses_records_that_are_counted() {
        let (sender, reader) = sync_channel(1);
        let mut journal = Journal::new(sender);
        for number in 0..3 * BATCH as u64 + 5 {
            journal.record(record(number));
        }
        let first = reader.recv().unwrap();
        let dropped = std::thread::scope(|scope| {
            let rest =
                scope.spawn(move || reader.iter().map(|batch| batch.len() as u64).sum::<u64>());
            let dropped = journal.close();
            (dropped, rest.join().unwrap())
        });
        assert_eq!(first.len(), BATCH);
        assert_eq!(dropped, (2 * BATCH as u64, 5));
    }

    #[test]
    fn an_old_batch_is_handed_over_though_it_is_small() {
        let (sender, reader) = sync_channel(4);
        let mut journal = Journal::new(sender);
        journal.record(record(7));
        journal.age(Nanos::from_millis(50));
        assert!(reader.try_recv().is_err());
        journal.age(Nanos::from_millis(101));
        assert_eq!(reader.try_recv().unwrap().len(), 1);
    }
}
