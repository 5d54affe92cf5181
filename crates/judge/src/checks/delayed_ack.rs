//! The end of each response came as late after its beginning as a kernel delays an acknowledgement.

use model::{Diagnostic, Nanos, Run, Tally};

use super::{Assessment, Grade};

/// Linux acknowledges what came alone after 40 ms at the soonest (`TCP_DELACK_MIN`); not all
/// responses need wait for it.
const DELAYED: std::ops::RangeInclusive<Nanos> = Nanos::from_millis(30)..=Nanos::from_millis(60);
/// Bytes: a longer response takes its time for other reasons.
const SMALL_RESPONSE: u64 = 16 << 10;

/// Asked of each run.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    of(&run.tally)
}

/// Small responses whose end comes as late as a delayed acknowledgement.
pub(super) fn of(tally: &Tally) -> Option<Diagnostic> {
    let waited = tally.phases.read.mean().filter(|waited| DELAYED.contains(waited))?;
    let is_small = tally.received_bytes / tally.phases.read.count.max(1) <= SMALL_RESPONSE;
    is_small.then_some(Diagnostic::DelayedAck { waited })
}

/// Grade, sentence and hint.
pub(super) fn assess(waited: Nanos) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence = format!(
        "responses end {:.0} ms after they begin, as long as Linux delays an \
            acknowledgement",
        waited.as_millis_f64()
    );
    let hint = "a server that writes head and body apart without TCP_NODELAY waits for that \
            (Nagle's algorithm): set TCP_NODELAY there, or write both at once";
    Assessment::new(grade, sentence, hint)
}
