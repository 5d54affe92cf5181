//! Open loop: how many of the requests due in the window were sent in it.

use model::{Diagnostic, Run};

use super::{Assessment, by};

/// Applies to an open loop in which no request waited for a free connection or was skipped for lack
/// of one: such a request waits for the server, not for the generator.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let tally = &run.tally;
    let counts = &run.tally.counts;
    let unsent = counts.total() - counts.attempted() + tally.unfinished.not_sent;
    let none_waited = tally.queued.count == 0 && unsent == 0;
    (none_waited && tally.due() > 0).then(|| of(run))
}

/// The same, even if requests waited.
pub(super) fn of(run: &Run) -> Diagnostic {
    Diagnostic::SentInTime { sent: run.tally.sent_in_window, due: run.tally.due() }
}

/// Grade, sentence and hint.
pub(super) fn assess(sent: u64, due: u64) -> Assessment {
    let grade = by(1.0 - sent as f64 / (due as f64).max(1.0), 0.005, 0.02);
    let sentence = format!("{sent} of {due} requests were sent in time");
    let hint = "this is not the load that was asked for: use more connections (-c), more \
            --generator-threads, or a lower rate";
    Assessment::new(grade, sentence, hint).of_the_generator()
}
