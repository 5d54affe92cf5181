//! One record a request, off the lane's time: a lane hands over what it has in batches, and never waits for a reader.
//!
//! What does not fit because the reader is too slow is dropped and counted: memory stays bounded, and the log says
//! what it lacks.

use std::sync::mpsc::{SyncSender, TrySendError};

use model::{AppTime, BadResponse, Exchange, Nanos};
use serde::{Deserialize, Serialize};

/// Records in a batch.
const BATCH: usize = 1024;
/// Bytes of answers in a batch, about.
const BATCH_BYTES: usize = 1024 * 1024;
/// A batch that is not full is handed over when it is this old.
const OLDEST: Nanos = Nanos::from_millis(100);

/// One request, as the journal has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// The request's number in the run, from 0.
    pub number: u64,
    /// What became of it.
    pub exchange: Exchange,
    /// What was wrong with the answer, where it was a bad response.
    pub reason: Option<BadResponse>,
    /// The raw bytes of the answer, head included, where they were asked for and are not more than 2 MiB.
    pub answer: Option<Box<[u8]>>,
    /// How others know it, where that was asked for and it was answered; not known of a generator elsewhere.
    #[serde(skip)]
    pub trace: Option<RequestTrace>,
}

/// What a request is to others: the kernel, which knows connections by their ports, and the app.
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
    /// That of the answer which has come now; from here on this is of the one after it.
    pub(crate) fn next(&mut self, app: Option<AppTime>) -> RequestTrace {
        let trace = RequestTrace { app, ..*self };
        self.number += 1;
        trace
    }
}

/// What the reader of a journal gets: records in order of completion, of one lane.
pub type RecordBatch = Vec<RequestRecord>;

/// A lane's end of the journal.
#[derive(Debug)]
pub(crate) struct Journal {
    reader: Option<SyncSender<RecordBatch>>,
    batch: RecordBatch,
    since: Nanos,
    bytes: usize,
    dropped: u64,
}

impl Journal {
    /// A journal for `reader`; without one, nothing is kept.
    pub(crate) fn new(reader: Option<SyncSender<RecordBatch>>) -> Journal {
        let room = if reader.is_some() { BATCH } else { 0 };
        Journal { reader, batch: Vec::with_capacity(room), since: Nanos::ZERO, bytes: 0, dropped: 0 }
    }

    #[inline]
    pub(crate) fn is_kept(&self) -> bool {
        self.reader.is_some()
    }

    pub(crate) fn record(&mut self, record: RequestRecord) {
        if self.batch.is_empty() {
            self.since = record.exchange.ended;
        }
        self.bytes += record.answer.as_ref().map_or(0, |answer| answer.len());
        self.batch.push(record);
        if self.batch.len() >= BATCH || self.bytes >= BATCH_BYTES {
            self.hand_over();
        }
    }

    /// Hands over what has been here too long.
    #[inline]
    pub(crate) fn age(&mut self, now: Nanos) {
        if !self.batch.is_empty() && now.saturating_sub(self.since) >= OLDEST {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let Some(reader) = &self.reader else { return };
        self.bytes = 0;
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        match reader.try_send(batch) {
            Ok(()) => {}
            Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) => {
                self.dropped += batch.len() as u64;
                self.batch = batch;
                self.batch.clear();
            }
        }
    }

    /// Hands over the rest, now waiting for the reader; how many records were dropped before.
    pub(crate) fn close(mut self) -> u64 {
        if let Some(reader) = self.reader.take()
            && !self.batch.is_empty()
        {
            let rest = self.batch.len() as u64;
            self.dropped += reader.send(self.batch).map_or(rest, |()| 0);
        }
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Outcome;
    use std::sync::mpsc::sync_channel;

    fn record(number: u64) -> RequestRecord {
        let time = Nanos(number);
        let exchange =
            Exchange { due: time, sent: time, ended: time, received_bytes: 0, outcome: Outcome::Answered(200) };
        RequestRecord { number, exchange, reason: None, answer: None, trace: None }
    }

    #[test]
    fn a_slow_reader_loses_records_that_are_counted() {
        let (sender, reader) = sync_channel(1);
        let mut journal = Journal::new(Some(sender));
        for number in 0..3 * BATCH as u64 + 5 {
            journal.record(record(number));
        }
        let first = reader.recv().unwrap();
        let dropped = std::thread::scope(|scope| {
            let rest = scope.spawn(move || reader.iter().map(|batch| batch.len() as u64).sum::<u64>());
            let dropped = journal.close();
            (dropped, rest.join().unwrap())
        });
        assert_eq!(first.len(), BATCH);
        assert_eq!(dropped, (2 * BATCH as u64, 5));
    }

    #[test]
    fn an_old_batch_is_handed_over_though_it_is_small() {
        let (sender, reader) = sync_channel(4);
        let mut journal = Journal::new(Some(sender));
        journal.record(record(7));
        journal.age(Nanos::from_millis(50));
        assert!(reader.try_recv().is_err());
        journal.age(Nanos::from_millis(101));
        assert_eq!(reader.try_recv().unwrap().len(), 1);
    }
}
