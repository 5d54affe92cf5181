//! How much the generator's own lag may have raised a percentile, compared with the percentile's
//! sampling error.

use model::{Diagnostic, Nanos, Run};

use super::{Assessment, Grade, SMALL, by};
use crate::words::percentile;

/// Applies to the highest percentile up to p99 that has an interval.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let statistics = run.statistics.as_ref()?;
    let intervals = statistics.intervals.iter().rev();
    intervals.filter(|interval| interval.quantile <= 0.99).find_map(|interval| {
        let time = run.tally.response_time_at(interval.quantile).time()?;
        let width = time.saturating_sub(interval.without_generator?);
        Some(Diagnostic::Bracket {
            quantile: interval.quantile,
            width,
            half_interval: interval.high?.saturating_sub(interval.low?) / 2,
            of_response_time: width.0 as f64 / (time.0 as f64).max(1.0),
        })
    })
}

/// A width within the percentile's own confidence interval can't be noticed. Up to twice that,
/// sampling error dominates, and the grade is Doubtful at worst.
fn grade(width: Nanos, half_interval: Nanos, of_response_time: f64) -> Grade {
    if width <= half_interval.max(SMALL) {
        return Grade::Passed;
    }
    let worst = if width.0 > 2 * half_interval.0 { 0.20 } else { 1.0 };
    by(of_response_time, 0.05, worst)
}

/// Grade, sentence and hint.
pub(super) fn assess(
    quantile: f64,
    width: Nanos,
    half_interval: Nanos,
    of_response_time: f64,
) -> Assessment {
    let grade = grade(width, half_interval, of_response_time);
    let sentence = format!(
        "up to {:.3} ms of p{} may be longtail's own delay in sending and reading; its sampling \
         error is ±{:.3} ms",
        width.as_millis_f64(),
        percentile(quantile),
        half_interval.as_millis_f64()
    );
    let hint = "use more --generator-threads on cores of their own; in an open loop of `load`, --timing \
                spin helps, too";
    Assessment::new(grade, sentence, hint).of_the_generator()
}
