//! The server sent bytes that nobody had asked for on kept-alive connections, so we closed them.

use model::{Diagnostic, Run};

use super::{Assessment, Grade};
use crate::words::counted;

/// A warning if any connection was closed for that.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let closed = run.tally.closed_for_unasked;
    (closed > 0).then_some(Diagnostic::UnaskedBytes { closed })
}

/// Grade, sentence and hint.
pub(super) fn assess(closed: u64) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence = format!(
        "we closed {}: the server sent bytes between two requests",
        counted(closed, "connection")
    );
    let hint = "does it answer a request twice, send more than its Content-Length or a body to \
            HEAD, or answer a pause with 408? Their next requests include a connect";
    Assessment::new(grade, sentence, hint)
}
