//! Open loop: whether the generator fell further and further behind.

use model::{Diagnostic, LagSlope, Nanos, Run};

use super::{Assessment, Grade, SIGNIFICANT, SMALL, by};

/// Applies to an open loop that was sampled.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let LagSlope { slope, in_errors, grown } = run.statistics.as_ref()?.lag_slope?;
    Some(Diagnostic::LagSlope { slope, in_errors, grown })
}

fn grade(slope: f64, in_errors: f64, grown: Nanos) -> Grade {
    if in_errors < SIGNIFICANT || grown <= SMALL {
        return Grade::Passed;
    }
    by(slope, 0.0, 0.001)
}

/// Grade, sentence and hint.
pub(super) fn assess(slope: f64, in_errors: f64, grown: Nanos) -> Assessment {
    let grade = grade(slope, in_errors, grown);
    let sentence = format!(
        "the generator's own lag grew by {:.3} ms, {:.3} ms per second",
        grown.as_millis_f64(),
        slope * 1e3
    );
    let hint = "use more --generator-threads on cores of their own, fewer connections, or a \
            lower rate";
    Assessment::new(grade, sentence, hint).of_the_generator()
}
