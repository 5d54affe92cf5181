//! The app's stamps of some responses lie outside their request, so they are no part of its time.

use model::{Diagnostic, Run};

use super::{Assessment, Grade};
use crate::words::counted;

/// Asked where the app stamps its responses.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let answers = run.app_times.as_ref()?.impossible;
    let of = run.tally.counts.good();
    (answers > 0).then_some(Diagnostic::ImpossibleStamps { answers, of })
}

/// Grade, sentence and hint.
pub(super) fn assess(answers: u64, of: u64) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence = format!(
        "the app's time stamps of {} (of {of}) lie outside the request",
        counted(answers, "response")
    );
    let hint = "is there a cache, or another machine's or namespace's clock? Stamps are ns of \
             CLOCK_MONOTONIC";
    Assessment::new(grade, sentence, hint)
}
