//! The busiest lane's time on a CPU.

use model::{Diagnostic, LaneFacts, Run, Timing};

use super::{Assessment, busiest_lane, by};
use crate::words::percent;

/// Doesn't apply to threads that busy-poll on purpose.
pub(super) fn ask(run: &Run, timing: Timing) -> Option<Diagnostic> {
    let share = busiest_lane(run, LaneFacts::work).filter(|_| timing != Timing::Spin)?;
    Some(Diagnostic::LaneCpu { share })
}

/// Grade, sentence and hint.
pub(super) fn assess(share: f64) -> Assessment {
    let grade = by(share, 0.70, 0.90);
    let sentence = format!("the busiest generator thread used {} of a CPU", percent(share));
    let hint = "use more --generator-threads on cores of their own";
    Assessment::new(grade, sentence, hint).of_the_generator()
}
