//! Some of the app's time stamps lie outside their request, so they can't be part of its response
//! time.

use model::{Diagnostic, Run};

use super::{Assessment, Grade};
use crate::words::counted;

/// Applies where the app stamps its responses.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let answers = run.app_times.as_ref()?.impossible;
    let of = run.tally.counts.good();
    (answers > 0).then_some(Diagnostic::ImpossibleStamps { answers, of })
}

/// Grade, sentence and hint.
pub(super) fn assess(answers: u64, of: u64) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence = format!(
        "in {} (of {of}) the app's time stamps lie outside the request",
        counted(answers, "response")
    );
    let hint = "are responses cached, or stamped by another machine's or namespace's clock? Stamps are ns of \
             CLOCK_MONOTONIC";
    Assessment::new(grade, sentence, hint)
}
