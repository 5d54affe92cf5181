//! The run ended early.

use model::{Diagnostic, EndedBy};

use super::{Assessment, Grade};

/// Applies to each run.
pub(super) fn ask(ended_by: Option<EndedBy>) -> Option<Diagnostic> {
    ended_by.map(|by| Diagnostic::Interrupted { by })
}

/// Grade, sentence and hint.
pub(super) fn assess(by: EndedBy) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence = format!("{by}: the run is shorter than planned");
    let hint = match by {
        EndedBy::User => "run again to the end",
        EndedBy::Server => {
            "the server's last lines and its log may say why; the figures cover the time before it \
             ended, and its end"
        }
    };
    Assessment::new(grade, sentence, hint)
}
