//! Some responses do not say what the app took, so they count in no app time.

use model::{Diagnostic, Run};

use super::{Assessment, Grade};
use crate::words::counted;

/// Asked where the app stamps its responses.
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
    let hint = "the times of the app are those of the others";
    Assessment::new(grade, sentence, hint)
}
