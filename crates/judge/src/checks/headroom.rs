//! What this generator reaches, with these settings, against a server that takes no time.

use model::{Diagnostic, Run};

use super::{Assessment, by};

/// A run that was faster than this factor times its ceiling disproves the ceiling: it was measured
/// at a bad moment.
const DISPROVED: f64 = 1.1;

/// Applies where the ceiling was measured.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let rate = run.completed_rate();
    let ceiling_per_s = run.generator.ceiling?.rate_per_s;
    (rate > 0.0 && rate <= DISPROVED * ceiling_per_s)
        .then(|| Diagnostic::Headroom { ceiling_per_s, times: ceiling_per_s / rate })
}

/// Grade, sentence and hint.
pub(super) fn assess(ceiling_per_s: f64, times: f64) -> Assessment {
    let grade = by(1.0 / times.max(1e-9), 1.0 / 3.0, 1.0 / 1.2);
    let sentence = format!(
        "the generator reaches {ceiling_per_s:.0} requests/s without a server to wait \
            for, {times:.1} times this rate"
    );
    let hint = "this rate is near the generator's own limit: use more --generator-threads on \
            cores of their own, or a slower app";
    Assessment::new(grade, sentence, hint).of_the_generator()
}
