//! What usual answers have in common, added up: all that begin with the same head are of one status, one length and one worker.

use std::collections::BTreeMap;

use crate::response::ReceivedResponse;

/// Usual answers, all of measured requests, by what their heads say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Alike {
    /// Their number by status code.
    pub(crate) by_status: BTreeMap<u16, u64>,
    /// By the worker's index.
    pub(crate) by_worker: BTreeMap<u16, u64>,
    /// Bytes of them all.
    pub(crate) bytes: u64,
    /// Of those the content.
    pub(crate) body_bytes: u64,
}

impl Alike {
    /// Adds so many answers that are as `response`.
    pub(crate) fn add(&mut self, response: &ReceivedResponse, answers: u64) {
        if answers == 0 {
            return;
        }
        *self.by_status.entry(response.status).or_default() += answers;
        if let Some(worker) = response.worker {
            *self.by_worker.entry(worker).or_default() += answers;
        }
        self.bytes += answers * response.bytes;
        self.body_bytes += answers * response.body_bytes;
    }

    /// Adds those of `other`.
    pub(crate) fn merge(&mut self, other: &Alike) {
        for (status, answers) in &other.by_status {
            *self.by_status.entry(*status).or_default() += answers;
        }
        for (worker, answers) in &other.by_worker {
            *self.by_worker.entry(*worker).or_default() += answers;
        }
        self.bytes += other.bytes;
        self.body_bytes += other.body_bytes;
    }
}
