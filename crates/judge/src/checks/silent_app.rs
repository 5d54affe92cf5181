//! Some responses don't say how long the app took, so the breakdown leaves them out.

use model::{Diagnostic, Run};

use super::{Assessment, Grade};
use crate::words::counted;

/// Applies where the app stamps its responses.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let answers = run.app_times.as_ref()?.silent;
    let of = run.tally.counts.good();
    (answers > 0).then_some(Diagnostic::SilentApp { answers, of })
}

/// Grade, sentence and hint.
pub(super) fn assess(answers: u64, of: u64) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence = format!(
        "{} (of {of}) do not say when the app began and ended",
        counted(answers, "response")
    );
    let hint = "the breakdown of the response time covers the other responses only";
    Assessment::new(grade, sentence, hint)
}
