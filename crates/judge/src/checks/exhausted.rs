//! Connects for which this machine had no port, descriptor or memory left.

use model::{Diagnostic, Run};

use super::{Assessment, Grade, if_any};

/// Applies where anything was sent.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    (run.tally.counts.attempted() > 0)
        .then_some(Diagnostic::Exhausted { connects: run.tally.exhausted })
}

/// Grade, sentence and hint.
pub(super) fn assess(connects: u64) -> Assessment {
    let grade = if_any(connects, Grade::Failed);
    let sentence = format!(
        "{connects} connects failed because this machine had no port, descriptor or \
            memory left"
    );
    let hint = "keep connections alive, spread them (load: --source-ip), or raise \
            net.ipv4.ip_local_port_range or ulimit -n";
    Assessment::new(grade, sentence, hint).of_the_generator()
}
