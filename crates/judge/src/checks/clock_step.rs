//! Whether the wall clock, with which the kernel stamps arrivals, was set during the run.

use model::{Diagnostic, Run, number};

use super::{Assessment, Grade, if_any};

/// Applies where the wall clock was watched.
pub(super) fn ask(run: &Run) -> Option<Diagnostic> {
    run.generator.clock_steps.map(|steps| Diagnostic::ClockStep { steps })
}

/// Grade, sentence and hint.
pub(super) fn assess(steps: u32) -> Assessment {
    let grade = if_any(steps.into(), Grade::Failed);
    let times = number::count_of(steps, "time");
    let sentence = format!("the wall clock was set {times} during the run");
    let hint = "use --timestamps user, or run again when nothing sets the clock";
    Assessment::new(grade, sentence, hint)
}
