//! More than the theoretical maximum was measured, so the service time is not what was given.

use model::theory::ServiceTime;
use model::{Diagnostic, Nanos, Run};

use super::{Assessment, Grade};

/// Above this multiple of the theoretical maximum, a rate is no rounding error.
const ABOVE: f64 = 1.02;

/// Applies if there is a theoretical maximum. Responses may come in batches, and one batch more
/// or less in the window changes the rate by as much as one service time would.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let ratio = run.of_maximum()?;
    let service_time = run.forecast.as_ref().map_or(Nanos::ZERO, |forecast| forecast.service_time);
    let batch = service_time.as_secs_f64() / run.measured.as_secs_f64().max(1e-9);
    (ratio > ABOVE + batch).then_some(Diagnostic::AboveMaximum { ratio })
}

/// Whether the excess is explained: the service time isn't known that precisely, or the limit
/// already says that the server handles more requests at once than was stated (`takes_more`).
pub(super) fn is_explained(ratio: f64, alone: Option<&ServiceTime>, takes_more: bool) -> bool {
    let least =
        alone.map_or(1.0, |alone| alone.low.as_secs_f64() / alone.mean.as_secs_f64().max(1e-9));
    takes_more || ratio * least <= ABOVE
}

/// Grade, sentence and hint.
pub(super) fn assess(ratio: f64) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence = format!("the rate is {:.0} % of the theoretical maximum", ratio * 100.0);
    let hint = "is -d the time that the app really takes, and are workers and threads right?";
    Assessment::new(grade, sentence, hint)
}
