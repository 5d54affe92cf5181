//! Generators on other machines: how far off the clock that is known least well may be.

use model::{Diagnostic, Nanos, Run};

use super::{Assessment, Grade};

/// Clocks that are known less well put what the server and the client saw beside each other
/// wrongly.
const LARGEST_CLOCK_ERROR: Nanos = Nanos::from_millis(5);

/// Asked where a clock was compared.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let known = run.generator.far.iter().filter(|one| one.lost.is_none());
    let compared = known.filter_map(|one| Some((one, one.clock_error?)));
    let (worst, error) = compared.max_by_key(|(_, error)| *error)?;
    Some(Diagnostic::ClockError { name: worst.name.clone(), error })
}

/// Grade, sentence and hint.
pub(super) fn assess(name: &str, error: Nanos) -> Assessment {
    let grade = if error <= LARGEST_CLOCK_ERROR { Grade::Passed } else { Grade::Doubtful };
    let sentence = format!(
        "the generators' clocks are known to {:.3} ms ('{name}' least)",
        error.as_millis_f64()
    );
    let hint = "response times stand; what server and generator saw at the same instant may \
            be apart by as much: use a shorter way to the generator";
    Assessment::new(grade, sentence, hint)
}
