//! The server closed kept-alive connections, so that some requests include a new connect.

use model::{Diagnostic, Run};

use super::{Assessment, Grade};
use crate::words::counted;

/// Asked where connections were to be kept.
pub(super) fn ask(run: &Run, keep_alive: bool) -> Option<Diagnostic> {
    let closed = run.tally.closed_by_server;
    (keep_alive && closed > 0).then_some(Diagnostic::ConnectionsClosed { closed })
}

/// Grade, sentence and hint.
pub(super) fn assess(closed: u64) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence =
        format!("the server closed {} that should have stayed open", counted(closed, "connection"));
    let hint = "their next requests include a connect; use -k to compare without keep-alive";
    Assessment::new(grade, sentence, hint)
}
