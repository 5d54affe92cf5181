//! Whether a study ended early.

use model::{Diagnostic, Study};

/// Whether the user, or the end of the server, cut the study short.
pub fn is_cut_short(study: &Study) -> bool {
    let is_shorter = |warning: &Diagnostic| matches!(warning, Diagnostic::Interrupted { .. });
    let runs = study.runs();
    is_interrupted(study) || runs.iter().any(|run| run.warnings.iter().any(is_shorter))
}

/// Whether the user interrupted it. Always false for a load, whose command knows who ended it.
pub(crate) fn is_interrupted(study: &Study) -> bool {
    match study {
        Study::Sweep(study) => study.interrupted,
        Study::Bodies(study) => study.interrupted,
        Study::Compare(study) => study.interrupted,
        Study::Capacity(study) => study.interrupted,
        Study::Load(_) => false,
    }
}
