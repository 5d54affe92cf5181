//! Generators on other machines: one generator's response times differ from those of all together.

use model::{Diagnostic, Nanos, Run};

use super::{Assessment, Grade};

/// A median that differs from the merged one by more than this share is reported.
const MEDIANS_APART: f64 = 0.1;
/// A generator with fewer responses than this is not compared.
const ENOUGH: u64 = 100;

/// The generator whose median is furthest from the merged one, if that is far enough to report.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let far = &run.generator.far;
    let merged = run.tally.response_time.quantile(0.5).filter(|_| far.len() > 1)?;
    let apart = |p50: Nanos| (p50.0 as f64 / (merged.0 as f64).max(1.0) - 1.0).abs();
    let known = far.iter().filter(|one| one.good >= ENOUGH).filter_map(|one| Some((one, one.p50?)));
    let (one, p50) = known.max_by(|(_, a), (_, b)| apart(*a).total_cmp(&apart(*b)))?;
    (apart(p50) > MEDIANS_APART).then(|| Diagnostic::GeneratorDiffers {
        name: one.name.clone(),
        p50,
        merged,
    })
}

/// Grade, sentence and hint.
pub(super) fn assess(name: &str, p50: Nanos, merged: Nanos) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence = format!(
        "'{name}' has a median of {:.3} ms; all generators together have {:.3} ms",
        p50.as_millis_f64(),
        merged.as_millis_f64()
    );
    let hint = "is its network path to the server longer, or its machine busier? The merged \
            percentiles mix both";
    Assessment::new(grade, sentence, hint)
}
