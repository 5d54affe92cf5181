//! Of some responses the kernel's part is not known, or is not in order with the client's and the
//! app's.

use model::{Diagnostic, Run};

use super::{Assessment, Grade};
use crate::words::counted;

/// Asked where the kernel's stamps are joined with ours.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let paths = run.kernel.as_ref()?.paths.as_ref()?;
    let (unmatched, impossible) = (paths.unmatched, paths.impossible);
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
        "the kernel's stamps of {} (of {of}) are unknown, and of {impossible} out of \
            order with ours and the app's",
        counted(unmatched, "response")
    );
    let hint = "where the response time went is of the others alone";
    Assessment::new(grade, sentence, hint)
}
