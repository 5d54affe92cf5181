//! Some connections got far less than others.

use model::{Diagnostic, Run};

use super::{Assessment, Grade};
use crate::words::counted;

/// Below this value of Jain's index the server is reported as unfair.
const FAIR: f64 = 0.9;

/// Applies to a sweep's run.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let jain = run.fairness().filter(|jain| *jain < FAIR)?;
    let each = &run.tally.per_connection;
    Some(Diagnostic::Unfair {
        jain,
        fewest: each.iter().min().copied().unwrap_or(0),
        most: each.iter().max().copied().unwrap_or(0),
    })
}

/// Grade, sentence and hint.
pub(super) fn assess(jain: f64, fewest: u64, most: u64) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence = format!(
        "the server was unfair: one connection got {}, another {most} (Jain's index \
            {jain:.2})",
        counted(fewest, "response")
    );
    let hint = "a server that keeps serving the same connection starves the others; \
            compare with -k";
    Assessment::new(grade, sentence, hint)
}
