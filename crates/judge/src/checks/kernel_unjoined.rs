//! For some responses the kernel's stamps are missing, or out of order with the client's and the
//! app's.

use model::{Diagnostic, Run};

use super::{Assessment, Grade};
use crate::words::counted;

/// Applies where the kernel's stamps are joined with ours.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let paths = run.kernel.as_ref()?.paths.as_ref()?;
    let unmatched = paths.unmatched;
    let impossible = paths.impossible;
    let of = run.tally.counts.good();
    (unmatched > 0 || impossible > 0).then_some(Diagnostic::KernelUnjoined {
        unmatched,
        impossible,
        of,
    })
}

/// Grade, sentence and hint.
pub(super) fn assess(unmatched: u64, impossible: u64, of: u64) -> Assessment {
    let grade = Grade::Note;
    let sentence = format!(
        "the kernel's stamps are missing for {} (of {of}), and for {impossible} they are out of \
            order with ours and the app's",
        counted(unmatched, "response")
    );
    let hint = "the breakdown of the response time covers the other responses only";
    Assessment::new(grade, sentence, hint)
}
