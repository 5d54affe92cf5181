//! The kernel's count of responses differs from ours.

use model::{Diagnostic, Run};

use super::{Assessment, Grade};
use crate::words::counted;

/// Applies where the kernel's tracepoints were read. Over TLS they see no responses; requests that
/// we gave up may have been answered.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let kernel = run.kernel.as_ref()?.answers();
    let client = run.tally.all_responses();
    let is_ours = (client..=run.tally.all_requests()).contains(&kernel);
    (kernel > 0 && !is_ours).then_some(Diagnostic::KernelCountDiffers { kernel, client })
}

/// Grade, sentence and hint.
pub(super) fn assess(kernel: u64, client: u64) -> Assessment {
    let grade = Grade::Doubtful;
    let sentence = format!(
        "the kernel's tracepoints saw {}, but {client} came back",
        counted(kernel, "response")
    );
    let hint = "is anything else sending to this server, or does it answer in several \
            rounds?";
    Assessment::new(grade, sentence, hint)
}
