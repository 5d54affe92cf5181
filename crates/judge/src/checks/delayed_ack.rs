//! From their first byte to their last, responses take about as long as a kernel delays an
//! acknowledgement.

use model::{Diagnostic, Nanos, Run, Tally};

use super::{Assessment, Grade};

/// Linux delays an acknowledgement by 40 ms or more (`TCP_DELACK_MIN`); the mean may be lower,
/// because not every response has to wait for one.
const DELAYED: std::ops::RangeInclusive<Nanos> = Nanos::from_millis(30)..=Nanos::from_millis(60);
/// Bytes. A larger response may take that long for other reasons.
const SMALL_RESPONSE: u64 = 16 << 10;

/// Applies to each run.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    of(&run.tally)
}

/// Applies if responses are small and take as long as a delayed acknowledgement.
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
    let hint = "a server that writes head and body separately without TCP_NODELAY waits for it \
            (Nagle's algorithm): set TCP_NODELAY, or write both at once";
    Assessment::new(grade, sentence, hint)
}
