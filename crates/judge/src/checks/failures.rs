//! Requests without a good response.

use model::{Diagnostic, Run};

use super::{Assessment, Grade, by};

const AGAIN: &str = "run longer, or see whether the server answers at all";
const HINT: &str = "see the errors by kind: times are those of good responses only";

/// Applies to each run.
pub(super) fn ask(run: &Run) -> Diagnostic {
    let counts = &run.tally.counts;
    Diagnostic::Failures { failed: counts.failed(), planned: counts.total() }
}

fn sentence(failed: u64, planned: u64) -> String {
    match planned {
        0 => "no request that was due in the measured window has ended".to_owned(),
        _ => format!("{failed} of {planned} requests had no good response"),
    }
}

/// No requests, or all failed: nothing was measured.
fn grade(failed: u64, planned: u64) -> Grade {
    if failed == planned {
        return Grade::Failed;
    }
    by(failed as f64 / planned as f64, 0.005, 1.0)
}

/// Grade, sentence and hint.
pub(super) fn assess(failed: u64, planned: u64) -> Assessment {
    let grade = grade(failed, planned);
    let sentence = sentence(failed, planned);
    let hint = if planned == 0 { AGAIN } else { HINT };
    Assessment::new(grade, sentence, hint)
}
