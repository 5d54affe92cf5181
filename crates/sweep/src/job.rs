//! What a study does: one server after the other, and the runs that each is asked for.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use model::{Ceiling, Nanos, Pace, Probe, ServerPlan, Stop, StreamPlan};

/// One server's life.
pub(crate) struct Block {
    /// The server, and how to start it.
    pub(crate) server: ServerPlan,
    /// What it is asked for, unless a job says otherwise.
    pub(crate) stream: StreamPlan,
    /// When requests are due.
    pub(crate) pace: Pace,
    /// Settings in its environment, beside those of the context.
    pub(crate) env: BTreeMap<OsString, OsString>,
    /// The folder that it runs in; `None` is the context's.
    pub(crate) dir: Option<PathBuf>,
    /// Whether each run is followed by a wait until it is idle again.
    pub(crate) cool_down: bool,
    /// Which pass over the plan, from 1.
    pub(crate) repeat: u32,
}

/// One run, and its place in the study.
#[derive(Clone)]
pub(crate) struct Job {
    /// What is asked.
    pub(crate) stream: StreamPlan,
    /// What is read of server and kernel meanwhile.
    pub(crate) probe: Probe,
    /// That in a word, where the study's runs differ in it.
    pub(crate) what: String,
    pub(crate) multiple: f64,
    pub(crate) connections: u32,
    pub(crate) ceiling: Option<Ceiling>,
    pub(crate) repeat: u32,
    /// Which of the study's runs, from 1.
    pub(crate) number: usize,
    pub(crate) of: usize,
    /// When the study began.
    pub(crate) begun: Nanos,
    /// Whether `of` is the most there may be: the study ends when its answer is clear.
    pub(crate) may_end_early: bool,
}

impl Job {
    /// How long the study will take from `now` on: as long for each run as for those that are done, with all that lies
    /// between; before there is one, as long as was asked for, or not known where each run has to start a server too.
    pub(crate) fn left(&self, now: Nanos) -> Option<Nanos> {
        let (done, left) = (self.number as u64 - 1, (self.of - self.number) as u64 + 1);
        match (self.stream.stop, done) {
            (_, 0) if self.may_end_early => None,
            (Stop::After(length), 0) => Some((length + self.stream.warm_up) * left),
            (Stop::RequestsPerConnection(_), 0) => None,
            _ => Some((now - self.begun) / done * left),
        }
    }
}
