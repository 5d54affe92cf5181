//! Connections that the kernel dropped during the run because an accept queue was full, on the
//! whole machine.

use model::{Diagnostic, Run};

use super::{Assessment, Grade, if_any};
use crate::connects;

/// The kernel counts for the whole machine: if all our connects were fast, the drops were another
/// program's.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let dropped = run.generator.listen_overflows?;
    let is_ours = dropped == 0 || connects::has_stalled(&run.tally);
    is_ours.then_some(Diagnostic::ListenOverflows { dropped })
}

/// Grade, sentence and hint.
pub(super) fn assess(dropped: u64) -> Assessment {
    let grade = if_any(dropped, Grade::Doubtful);
    let sentence = format!(
        "full accept queues dropped {dropped} connects, counted for all servers on this \
            machine"
    );
    let hint = "raise the server's backlog and net.core.somaxconn: a dropped connect takes \
             1, 2, 3 … s";
    Assessment::new(grade, sentence, hint)
}
