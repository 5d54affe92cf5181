//! Some responses came without a time stamp of the kernel's, so that our late reading is in their
//! times.

use model::{Diagnostic, Run};

use super::{Assessment, Grade};
use crate::words::counted;

/// Asked where stamps were asked for.
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
        "{} of {of} have no time stamp of the kernel's: their times include how late \
            we read them",
        counted(answers, "response")
    );
    let hint = "use --timestamps user where they are to be all alike";
    Assessment::new(grade, sentence, hint)
}
