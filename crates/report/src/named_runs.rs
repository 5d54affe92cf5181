//! What the runs of a study are called, in every table and sentence.

use model::comparison::ComparisonRun;
use model::{BodyRun, Diagnostic, Grade, Run, Study, SweepStudy, Verdict};

/// A run and what it is called.
pub(crate) struct NamedRun<'a> {
    /// `1.5x`, `tcp4 s10`, where there are several passes `1.5x run 2`; of a comparison `B, block 3`; empty of a load.
    pub(crate) name: String,
    pub(crate) run: &'a Run,
}

/// Whether the run's figures must not be shown.
pub(crate) fn is_hidden(run: &Run) -> bool {
    run.judgement.as_ref().is_some_and(|judgement| judgement.verdict == Verdict::Invalid && !judgement.forced)
}

/// Checks of a run that were not passed, the worst first, and its warnings, each with how it came out.
pub(crate) fn diagnostics(run: &Run) -> impl Iterator<Item = (&Diagnostic, Grade)> {
    let judgement = run.judgement.iter();
    let checks = judgement.flat_map(|it| it.troubles().into_iter().map(|check| (check, it.grade(check))));
    checks.chain(run.warnings.iter().map(|warning| (warning, warning.grade())))
}

/// The runs of a study, in the order in which they are printed.
pub(crate) fn named_runs(study: &Study) -> Vec<NamedRun<'_>> {
    match study {
        Study::Sweep(it) => it.runs.iter().map(|run| NamedRun { name: name_in_sweep(it, run), run }).collect(),
        Study::Load(it) => vec![NamedRun { name: String::new(), run: &it.run }],
        Study::Bodies(it) => {
            let name = |row: &BodyRun| format!("{} {}{}", row.socket, row.body, pass(&row.run, it.plan.repeat));
            it.sorted().into_iter().map(|row| NamedRun { name: name(row), run: &row.run }).collect()
        }
        Study::Compare(it) => {
            let again = |run: &ComparisonRun| if run.attempt > 1 { ", again" } else { "" };
            let name = |run: &ComparisonRun| format!("{}, block {}{}", it.plan.letter(run.arm), run.block, again(run));
            it.runs.iter().map(|row| NamedRun { name: name(row), run: &row.run }).collect()
        }
    }
}

pub(crate) fn name_in_sweep(study: &SweepStudy, run: &Run) -> String {
    format!("{}{}", run.in_multiples(), pass(run, study.plan.repeat))
}

fn pass(run: &Run, passes: u32) -> String {
    if passes > 1 { format!(" run {}", run.repeat) } else { String::new() }
}
