//! Generators on other machines: how late the last of them started.

use model::{Diagnostic, Nanos, Run};

use super::{Assessment, by};

/// A generator that starts later than this did not start with the others.
const LATEST_START: Nanos = Nanos::from_millis(5);

/// Applies where there are such generators.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let known = run.generator.far.iter().filter(|one| one.lost.is_none());
    let latest = known.max_by_key(|one| one.started_late)?;
    Some(Diagnostic::LateStart { name: latest.name.clone(), late: latest.started_late })
}

/// Grade, sentence and hint.
pub(super) fn assess(name: &str, late: Nanos) -> Assessment {
    let grade = by(late.as_millis_f64(), LATEST_START.as_millis_f64(), 100.0);
    let sentence = format!(
        "the generators started within {:.3} ms of each other ('{name}' last)",
        late.as_millis_f64()
    );
    let hint = "is a generator's machine too busy, or the network path to it slow? The load did not start all \
            at once";
    Assessment::new(grade, sentence, hint)
}
