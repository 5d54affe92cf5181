//! The largest share of the time that a lane waited for a CPU.

use model::{Diagnostic, Run};

use super::{Assessment, busiest_lane, by};
use crate::words::percent;

/// Applies where the kernel says how long each thread waited (`/proc/thread-self/schedstat`).
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    let share = busiest_lane(run, |lane| lane.run_queue)?;
    Some(Diagnostic::LaneRunQueue { share })
}

/// Grade, sentence and hint.
pub(super) fn assess(share: f64) -> Assessment {
    let grade = by(share, 0.02, 0.10);
    let sentence = format!("a generator thread waited for a CPU {} of the time", percent(share));
    let hint = "the generator competes for CPUs: use a quieter machine, or, if it has \
            several --generator-threads, fewer than there are free cores";
    Assessment::new(grade, sentence, hint).of_the_generator()
}
