//! One server's life, as an experiment plans it: what is started, how, and what it is asked for.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use model::{Pace, PlannedEvent, ServerPlan, StreamPlan};

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
    /// What is done to it in the middle of each run.
    pub(crate) during: Option<PlannedEvent>,
}

impl Block {
    /// A closed loop on a server as it is found.
    pub(crate) fn closed(
        server: ServerPlan,
        stream: StreamPlan,
        cool_down: bool,
        repeat: u32,
    ) -> Block {
        Block {
            server,
            stream,
            pace: Pace::Closed,
            env: BTreeMap::new(),
            dir: None,
            cool_down,
            repeat,
            during: None,
        }
    }
}
