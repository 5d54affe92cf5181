//! Some responses have no kernel time stamp, so their times include how late we read them.

use model::{Diagnostic, Run};

use super::{Assessment, Grade};
use crate::words::counted;

/// Applies where kernel stamps were requested.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    run.generator.clock_steps?;
    let stamped = run.tally.read_lag.count();
    let answered = run.tally.counts.answered();
    (stamped < answered)
        .then(|| Diagnostic::Unstamped { answers: answered - stamped, of: answered })
}

/// Grade, sentence and hint.
pub(super) fn assess(answers: u64, of: u64) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence = format!(
        "{} of {of} have no kernel time stamp: their times include how late \
            we read them",
        counted(answers, "response")
    );
    let hint = "use --timestamps user to time all responses alike";
    Assessment::new(grade, sentence, hint)
}
