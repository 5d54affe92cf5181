//! Open loop: more was offered than the server can do, so response times depend on how long the run
//! was.

use model::{Backlog, Diagnostic, Run};

use super::{Assessment, Grade};

/// Applies to an open loop that was sampled.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let statistics = run.statistics.as_ref()?;
    let Backlog { growth: growth_per_s, at_end, .. } = statistics.backlog?;
    statistics.is_overload(&run.tally).then(|| Diagnostic::Growing {
        growth: statistics.growth(),
        growth_per_s,
        at_end,
    })
}

/// Grade, sentence and hint.
pub(super) fn assess(growth: Option<f64>, growth_per_s: f64, at_end: u64) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence = format!(
        "more was offered than the server can do: the backlog, as it was sampled, grew by \
            {growth_per_s:.1} requests per second, to {at_end}, and {}",
        growth.map_or("the longest response times with it".to_owned(), |growth| format!(
            "response times by {growth:.3} s from what was due in one second to what was due in the \
             next"
        ))
    );
    let hint = "there is no steady state, and so no percentile of it: offer less (--rate)";
    Assessment::new(grade, sentence, hint)
}
