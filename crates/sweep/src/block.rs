//! What an experiment plans for one server: how to start it, and its load.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use model::{Pace, PlannedEvent, ServerPlan, StreamPlan};

/// One server from its start to its stop. (What `longtail compare` calls a block has one of these
/// for each arm.)
pub(crate) struct Block {
    /// The server, and how to start it.
    pub(crate) server: ServerPlan,
    /// The requests that are sent to it, unless a job says otherwise.
    pub(crate) stream: StreamPlan,
    /// When requests are due.
    pub(crate) pace: Pace,
    /// Environment variables for it, in addition to the context's.
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
    /// A closed loop on a server without an environment, folder or event of its own.
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
