//! Open loop: the backlog kept growing although the responses that arrived did not get slower, so
//! the cause is unknown.

use model::{Backlog, Diagnostic, Run};

use super::{Assessment, Grade};

/// Applies to an open loop that was sampled and is not overloaded.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let statistics = run.statistics.as_ref()?;
    let backlog @ Backlog { growth: growth_per_s, at_end, .. } = statistics.backlog?;
    (!statistics.is_overload(&run.tally) && backlog.grows())
        .then_some(Diagnostic::BacklogUnexplained { growth_per_s, at_end })
}

/// Grade, sentence and hint.
pub(super) fn assess(growth_per_s: f64, at_end: u64) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence = format!(
        "the backlog grew by {growth_per_s:.1} requests per second, to {at_end}, while \
            the responses that arrived did not get slower: this is an overload, or some \
            requests take longer than the run"
    );
    let hint = "run for several times as long as the slowest responses take (--for)";
    Assessment::new(grade, sentence, hint)
}
