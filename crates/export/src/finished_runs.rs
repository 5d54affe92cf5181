//! All runs that are over ([`FinishedRuns`]): their metrics, and the totals with the run that goes
//! on.

use crate::family::MetricFamily;
use crate::figures::{LiveRun, live};

/// The runs that are over.
#[derive(Default)]
pub struct FinishedRuns {
    /// Requests that have ended in them, warm-up included.
    requests_ended: u64,
    runs: u64,
    families: Vec<MetricFamily>,
}

impl FinishedRuns {
    /// Adds a run in which `requests_ended` requests have ended, with its metrics.
    pub fn add(&mut self, requests_ended: u64, families: Vec<MetricFamily>) {
        self.requests_ended += requests_ended;
        self.runs += 1;
        let before = std::mem::take(&mut self.families);
        self.families = MetricFamily::merged(before.into_iter().chain(families));
    }

    /// The metrics of all of them.
    pub fn families(&self) -> &[MetricFamily] {
        &self.families
    }

    /// The live metrics: the totals of all runs, and the run that goes on, in which `ended_in_run`
    /// requests have ended so far.
    pub fn totals(&self, ended_in_run: u64, run: Option<&LiveRun>) -> Vec<MetricFamily> {
        live(self.requests_ended + ended_in_run, self.runs, run)
    }
}
