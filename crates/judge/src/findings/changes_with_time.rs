//! The server becomes slower or faster over time, or with the requests it has served, rather than
//! with load.

use model::{Nanos, Run, SweepStudy};
use serde::{Deserialize, Serialize};

use super::{Finding, others_compute};
use crate::words::brief;

/// The mean response time of the first load, when it ran first and when it was repeated at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangesWithTime {
    /// Connections of that load.
    pub connections: u32,
    /// The mean response time in the first run.
    #[serde(rename = "first_ns")]
    pub first: Nanos,
    /// The same when the run was repeated at the end.
    #[serde(rename = "again_ns")]
    pub again: Nanos,
}

/// Two runs of one load that differ by a smaller share than this have not changed.
const NOTABLE: f64 = 0.15;
/// Two that differ by less than this have not changed either: a busy machine causes as much.
const LEAST: Nanos = Nanos::from_millis(1);

/// Judges a sweep whose first load was repeated at the end.
pub(super) fn of(study: &SweepStudy) -> Option<Finding> {
    let again = study.first_load_again.as_deref().filter(|run| run.is_evidence())?;
    let same = |run: &&Run| run.connections == again.connections && run.is_evidence();
    let first = study.runs.iter().find(same)?;
    // A different distribution of connections over the workers, or other processes on the CPUs,
    // would explain different times.
    let dealt = |run: &Run| run.watch.as_ref()?.held_connections(run.connections);
    let is_disturbed = |run: &Run| others_compute::busy_others(run).is_some();
    if dealt(first) != dealt(again) || is_disturbed(first) || is_disturbed(again) {
        return None;
    }
    let then = first.tally.response_time.mean()?;
    let now = again.tally.response_time.mean()?;
    let apart = Nanos(then.0.abs_diff(now.0));
    let is_notable = apart >= LEAST && apart.0 as f64 >= NOTABLE * then.min(now).0 as f64;
    is_notable
        .then(|| ChangesWithTime { connections: again.connections, first: then, again: now }.into())
}

impl ChangesWithTime {
    pub(super) fn sentence(&self) -> String {
        let ChangesWithTime { first, again, .. } = self;
        let [then, now] = [*first, *again].map(brief);
        if again > first {
            return format!(
                "It becomes slower over time or with requests served, not with load: {then} in the \
                 first run, {now} when it was repeated at the end. It may be a leak, a cache or a \
                 growing table."
            );
        }
        format!(
            "It becomes faster over time or with requests served, not with load: {then} in the \
             first run, {now} when it was repeated at the end. It may be a cache or a compiler that \
             warms up: use a longer --warm-up."
        )
    }
}
