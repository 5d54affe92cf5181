//! Open loop: all connections were busy, and requests waited for one.

use model::{Diagnostic, Nanos, Run};

use super::{Assessment, Grade};
use crate::words::{brief, counted};

/// Applies to a load.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let queued = run.tally.queued;
    (queued.count > 0)
        .then_some(Diagnostic::QueuedInGenerator { requests: queued.count, longest: queued.max })
}

/// Grade, sentence and hint.
pub(super) fn assess(requests: u64, longest: Nanos) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence = format!(
        "{} waited for a free connection, up to {}",
        counted(requests, "request"),
        brief(longest)
    );
    let hint = "that wait is part of their response time, not of their service time; more \
            connections (-c) would pass it on to the server";
    Assessment::new(grade, sentence, hint)
}
