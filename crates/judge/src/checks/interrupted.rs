//! The run was ended before its time.

use model::{Diagnostic, EndedBy};

use super::{Assessment, Grade};

/// Asked of each run.
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
            "the server's last lines and its log may say why; the figures are of the part before \
             and of its end"
        }
    };
    Assessment::new(grade, sentence, hint)
}
