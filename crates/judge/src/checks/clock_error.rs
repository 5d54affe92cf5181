//! Generators on other machines: how far off the least certain clock may be.

use model::{Diagnostic, Nanos, Run};

use super::{Assessment, Grade};

/// With a larger error, what the server saw can't be lined up in time with what the client saw.
const LARGEST_CLOCK_ERROR: Nanos = Nanos::from_millis(5);

/// Applies where a clock was compared.
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
        "the generators' clocks are known to within {:.3} ms ('{name}' is the least certain)",
        error.as_millis_f64()
    );
    let hint = "response times are not affected; what server and generator saw at the same instant may \
            appear that far apart: use a shorter network path to the generator";
    Assessment::new(grade, sentence, hint)
}
