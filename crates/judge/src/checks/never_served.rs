//! Some connections got no response in the whole window, though it was long enough for many.

use model::{Diagnostic, Run};

use super::{Assessment, Grade};

/// A connection may get no response by chance in a short window, but not in one that is long enough
/// for this many responses on each.
const ROUNDS: f64 = 10.0;

/// Applies to a closed loop that never pauses. Little's law does not find this: it holds for the
/// connections that are served.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let each = &run.tally.per_connection;
    let never = each.iter().filter(|responses| **responses == 0).count() as u32;
    let connections = each.len() as u32;
    let round = f64::from(connections) / run.completed_rate().max(1e-9);
    let is_long = run.measured.as_secs_f64() >= ROUNDS * round;
    (never > 0 && never < connections && is_long && run.tally.counts.failed() == 0)
        .then_some(Diagnostic::NeverServed { never, connections })
}

/// Grade, sentence and hint.
pub(super) fn assess(never: u32, connections: u32) -> Assessment {
    let sentence = format!("{never} of {connections} connections were never served");
    let hint = "do other kept-alive connections hold all threads, so that none is left for these? \
            Or do these wait to be accepted? Compare with -k, and look at the server's backlog";
    Assessment::new(Grade::Doubtful, sentence, hint)
}
