//! The server closed kept-alive connections, so that some requests include a new connect.

use model::broken::ordinal;
use model::{Diagnostic, Run, SilentClosings};

use super::{Assessment, Grade};
use crate::words::counted;

/// Applies where connections are kept alive.
pub(super) fn ask(run: &Run, keep_alive: bool) -> Option<Diagnostic> {
    let closed = run.tally.closed_by_server;
    let after_answers = run.tally.broken.silent_closings.and_then(SilentClosings::every);
    (keep_alive && closed > 0).then_some(Diagnostic::ConnectionsClosed { closed, after_answers })
}

/// Grade, sentence and hint.
pub(super) fn assess(closed: u64, after_answers: Option<u64>) -> Assessment {
    let grade = Grade::Doubtful;
    let after = after_answers.map_or_else(String::new, |answers| {
        let answer = ordinal(answers);
        format!(", each after its {answer} response and without announcing it (Connection: close)")
    });
    let closed = counted(closed, "connection");
    let sentence = format!("the server closed {closed} that should have stayed open{after}");
    let hint = "their next requests include a connect; use -k to compare without keep-alive";
    Assessment::new(grade, sentence, hint)
}
