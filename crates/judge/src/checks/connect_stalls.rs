//! Connects that the kernel retried during the run because nobody answered, on the whole machine
//! (`TCPSynRetrans`).

use model::{Diagnostic, Nanos, Run};

use super::{Assessment, Grade, if_any};
use crate::connects;

/// The kernel counts for the whole machine: if all our connects were fast, the retries were another
/// program's.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let retried = run.generator.syn_retransmits?;
    let is_ours = retried == 0 || connects::has_stalled(&run.tally);
    let longest = connects::longest(&run.tally);
    is_ours.then_some(Diagnostic::ConnectStalls { retried, longest })
}

/// Grade, sentence and hint.
pub(super) fn assess(retried: u64, longest: Nanos) -> Assessment {
    let grade = if_any(retried, Grade::Doubtful);
    let sentence = format!(
        "the kernel retried {retried} connects; the longest took {:.2} s",
        longest.as_secs_f64()
    );
    let hint = "an accept queue or a SYN queue was full: raise the server's backlog, or open \
            fewer connections at once";
    Assessment::new(grade, sentence, hint)
}
