//! The server's threads: all are taken, by requests that wait.

use model::{Limit, Run};

use crate::words::share;

/// Threads are the limit where they do about what they can at the most; where they do less,
/// something behind them is.
const BUSY: f64 = 0.8;

/// Whether they are, of a run on a server of `slots` slots.
pub(crate) fn of_run(run: &Run, slots: u32) -> Option<Limit> {
    let of_maximum = run.of_maximum().filter(|share| *share >= BUSY)?;
    Some(Limit::Threads { slots, connections: run.connections, of_maximum })
}

pub(super) fn evidence(slots: u32, connections: u32, of_maximum: f64) -> String {
    let percent = of_maximum * 100.0;
    format!(
        "{connections} connections want {slots} threads, and these do {percent:.0} % of what they can"
    )
}

pub(super) fn sentence(slots: u32, of_maximum: f64) -> String {
    format!(
        "The threads are the limit: all {slots} are busy, and they do {} of what {slots} can.",
        share(of_maximum.min(1.0))
    )
}
