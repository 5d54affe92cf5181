//! Runs with the names under which reports show them.

use model::comparison::ComparisonRun;
use model::{BodyRun, CapacityStudy, CapacityTrial, Diagnostic, Run, Study, SweepStudy, Verdict};

use crate::checks::{Grade, grade};
use crate::verdict::{grade_in, troubles};

/// A run and its name.
pub struct NamedRun<'a> {
    /// `1.5x`, `tcp4 s10`; with several passes `1.5x run 2`; in a comparison `main, block 3`; empty
    /// for a load.
    pub name: String,
    /// The run.
    pub run: &'a Run,
}

/// Whether the run's figures must not be shown.
pub fn is_hidden(run: &Run) -> bool {
    run.judgement
        .as_ref()
        .is_some_and(|judgement| judgement.verdict == Verdict::Invalid && !judgement.forced)
}

/// The checks that a run did not pass, the worst first, and its warnings, each with its grade.
pub fn diagnostics(run: &Run) -> impl Iterator<Item = (&Diagnostic, Grade)> {
    let judgement = run.judgement.iter();
    let checks =
        judgement.flat_map(|it| troubles(it).into_iter().map(|check| (check, grade_in(it, check))));
    checks.chain(run.warnings.iter().map(|warning| (warning, grade(warning))))
}

/// The runs of a study, in the order in which they are printed.
pub fn named_runs(study: &Study) -> Vec<NamedRun<'_>> {
    match study {
        Study::Sweep(it) => {
            it.runs.iter().map(|run| NamedRun { name: name_in_sweep(it, run), run }).collect()
        }
        Study::Load(it) => vec![NamedRun { name: String::new(), run: &it.run }],
        Study::Bodies(it) => {
            let name = |row: &BodyRun| {
                format!("{} {}{}", row.socket, row.body, pass(&row.run, it.plan.repeat))
            };
            it.sorted().into_iter().map(|row| NamedRun { name: name(row), run: &row.run }).collect()
        }
        Study::Compare(it) => {
            let again = |run: &ComparisonRun| if run.attempt > 1 { ", again" } else { "" };
            let name = |run: &ComparisonRun| {
                format!("{}, block {}{}", it.plan.called(run.arm), run.block, again(run))
            };
            it.runs.iter().map(|row| NamedRun { name: name(row), run: &row.run }).collect()
        }
        Study::Capacity(it) => {
            let of_sizes = it.sizes.iter().flat_map(|size| {
                trials(&size.search).map(move |row| NamedRun {
                    name: format!("{}, {}", size.size, row.name),
                    ..row
                })
            });
            trials(it).chain(of_sizes).collect()
        }
    }
}

/// The trials of a search.
fn trials(search: &CapacityStudy) -> impl Iterator<Item = NamedRun<'_>> {
    let name = |(at, trial): (usize, &CapacityTrial)| {
        format!("trial {}, {}/s", at + 1, model::number::significant(trial.rate))
    };
    let trials = search.trials.iter().enumerate();
    trials.map(move |row| NamedRun { name: name(row), run: &row.1.run })
}

/// `1.5x`; with several passes `1.5x run 2`.
pub fn name_in_sweep(study: &SweepStudy, run: &Run) -> String {
    format!("{}{}", run.in_multiples(), pass(run, study.plan.repeat))
}

fn pass(run: &Run, passes: u32) -> String {
    if passes > 1 { format!(" run {}", run.repeat) } else { String::new() }
}
