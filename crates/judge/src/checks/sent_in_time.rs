//! Open loop: how many of the requests that were due in the window, and could be, were sent in it.

use model::{Diagnostic, Outcome, Run};

use super::{Assessment, by};

/// A share of requests sent late that makes no difference.
pub(crate) const LATE: f64 = 0.005;

/// Applies to an open loop in which no request waited for a free connection or was skipped for lack
/// of one: such a request waits for the server, not for the generator.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    if none_waited(run) { of(run) } else { None }
}

/// Whether no request waited for a free connection or was skipped for lack of one, as none does in
/// a closed loop.
pub(crate) fn none_waited(run: &Run) -> bool {
    let tally = &run.tally;
    let counts = &run.tally.counts;
    let unsent = counts.total() - counts.attempted() + tally.unfinished.not_sent;
    tally.queued.count == 0 && unsent == 0
}

/// The same, even if requests waited. Requests whose connect failed are left out: they could not be
/// sent because of the server, which may be restarting. `None` if there were no others.
pub(super) fn of(run: &Run) -> Option<Diagnostic> {
    let counts = &run.tally.counts;
    let not_taken = [Outcome::Refused, Outcome::NoRoute, Outcome::ConnectTimedOut];
    let not_taken: u64 = not_taken.into_iter().map(|outcome| counts.of(outcome)).sum();
    let due = run.tally.due().saturating_sub(not_taken);
    (due > 0).then_some(Diagnostic::SentInTime { sent: run.tally.sent_in_window, due })
}

/// Grade, sentence and hint.
pub(super) fn assess(sent: u64, due: u64) -> Assessment {
    let grade = by(1.0 - sent as f64 / (due as f64).max(1.0), LATE, 0.02);
    let sentence = format!("{sent} of {due} requests were sent in time");
    let hint = "this is not the load that was asked for: use more connections (-c), more \
            --generator-threads, or a lower rate";
    Assessment::new(grade, sentence, hint).of_the_generator()
}
