//! CPU time that the hypervisor gave to other machines.

use model::{Diagnostic, Run};

use super::{Assessment, by};
use crate::words::percent;

/// Applies where the kernel reports it.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    run.generator.steal.map(|share| Diagnostic::Steal { share })
}

/// Grade, sentence and hint.
pub(super) fn assess(share: f64) -> Assessment {
    let grade = by(share, 0.01, 0.05);
    let sentence = format!("the hypervisor took {} of the CPU time", percent(share));
    let hint = "use a machine with dedicated cores";
    Assessment::new(grade, sentence, hint)
}
