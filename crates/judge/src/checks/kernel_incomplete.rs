//! The kernel's tracepoints did not follow everything.

use model::{Diagnostic, Run};

use super::{Assessment, Grade};
use crate::words::counted;

/// Applies where the kernel's tracepoints were read.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let view = run.kernel.as_ref()?;
    let unfollowed = view.unfollowed;
    let lost = view.lost;
    (unfollowed > 0 || lost > 0).then_some(Diagnostic::KernelIncomplete { unfollowed, lost })
}

/// Grade, sentence and hint.
pub(super) fn assess(unfollowed: u64, lost: u64) -> Assessment {
    let grade = Grade::Note;
    let sentence = format!(
        "the kernel's tracepoints missed a part of {}, and had no room for {lost} \
            events",
        counted(unfollowed, "response")
    );
    let hint = "does the server use io_uring, or respond before it has read the whole request? The \
            waits are those of the other responses";
    Assessment::new(grade, sentence, hint)
}
