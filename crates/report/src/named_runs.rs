//! What the runs of a study are called, in every table and sentence.

use model::comparison::{ComparisonRun, ComparisonStudy};
use model::{BodiesStudy, Judgement, Run, Study, SweepStudy, Verdict};

/// A run and what it is called.
pub(crate) struct NamedRun<'a> {
    /// `1.5x`, `tcp4 s10`, where there are several passes `1.5x run 2`; of a comparison `B, block 3`; empty of a load.
    pub(crate) name: String,
    pub(crate) run: &'a Run,
}

/// Whether the run's figures must not be shown.
pub(crate) fn hides(judgement: Option<&Judgement>) -> bool {
    judgement.is_some_and(|judgement| judgement.verdict == Verdict::Invalid && !judgement.forced)
}

/// The runs of a study, in the order in which they are printed.
pub(crate) fn named_runs(study: &Study) -> Vec<NamedRun<'_>> {
    match study {
        Study::Sweep(study) => of_sweep(study),
        Study::Load(study) => vec![NamedRun { name: String::new(), run: &study.run }],
        Study::Bodies(study) => of_bodies(study),
        Study::Compare(study) => of_comparison(study),
    }
}

pub(crate) fn of_sweep(study: &SweepStudy) -> Vec<NamedRun<'_>> {
    study.runs.iter().map(|run| NamedRun { name: name_in_sweep(study, run), run }).collect()
}

pub(crate) fn name_in_sweep(study: &SweepStudy, run: &Run) -> String {
    format!("{}{}", run.in_multiples(), pass(run, study.plan.repeat))
}

/// In the order of the plan.
pub(crate) fn of_bodies(study: &BodiesStudy) -> Vec<NamedRun<'_>> {
    let name = |socket, body, run| format!("{socket} {body}{}", pass(run, study.plan.repeat));
    study
        .sorted()
        .into_iter()
        .map(|row| NamedRun { name: name(row.socket, row.body, &row.run), run: &row.run })
        .collect()
}

pub(crate) fn of_comparison(study: &ComparisonStudy) -> Vec<NamedRun<'_>> {
    study.runs.iter().map(|row| NamedRun { name: name_in_comparison(study, row), run: &row.run }).collect()
}

/// `B, block 3`, and where it was repeated `B, block 3, again`.
pub(crate) fn name_in_comparison(study: &ComparisonStudy, run: &ComparisonRun) -> String {
    let again = if run.attempt > 1 { ", again" } else { "" };
    format!("{}, block {}{again}", study.plan.letter(run.arm), run.block)
}

fn pass(run: &Run, passes: u32) -> String {
    if passes > 1 { format!(" run {}", run.repeat) } else { String::new() }
}
