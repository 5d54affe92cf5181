//! The steps of a run, or the tenths of a ramp, each as a run of its own.

use model::{Run, StepRecord};

use crate::run_summary::{RunContext, SummaryRun};

/// A step of a run as a run of its own.
#[derive(Clone, Debug)]
pub(crate) struct SummaryStep<'a> {
    pub(crate) step: &'a StepRecord,
    run: Run,
    context: RunContext<'a>,
}

impl<'a> SummaryStep<'a> {
    /// The steps of a run, in order of time; none where it has none, or says nothing of the server.
    pub(crate) fn all_of(run: &SummaryRun<'a>) -> Vec<SummaryStep<'a>> {
        if run.is_hidden() {
            return Vec::new();
        }
        let of_step = |step: &'a StepRecord| SummaryStep {
            step,
            run: run.run.of_step(step),
            context: run.context,
        };
        run.run.steps.iter().map(of_step).collect()
    }

    /// Its figures, as columns take them from a run.
    pub(crate) fn view(&self) -> SummaryRun<'_> {
        SummaryRun::of(self.step.in_words(), &self.run, self.context)
    }
}
