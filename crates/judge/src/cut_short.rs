//! Whether a study ended early.

use model::{Diagnostic, Run, Study};

/// Whether the user, or the end of the server, cut the study short.
pub fn is_cut_short(study: &Study) -> bool {
    is_interrupted(study) || study.runs().iter().any(|run| is_shorter(run))
}

/// Whether the user, or the end of the server, ended this run early.
pub fn is_shorter(run: &Run) -> bool {
    run.warnings.iter().any(|warning| matches!(warning, Diagnostic::Interrupted { .. }))
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
