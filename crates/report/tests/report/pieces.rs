//! The pieces of a sweep's report: a blank line parts its command line, its facts, the table, and what stands below it.

use model::{Run, SweepStudy};
use report::{Layout, sweep};

fn piece(study: &SweepStudy, layout: Layout, at: usize) -> String {
    sweep::whole(study, layout).splitn(4, "\n\n").nth(at).unwrap_or_default().to_owned()
}

/// The lines of the table, its head first.
pub(crate) fn table(study: &SweepStudy, layout: Layout) -> Vec<String> {
    piece(study, layout, 2).lines().map(str::to_owned).collect()
}

/// The row of `run` where it is the only one.
pub(crate) fn row(study: &SweepStudy, run: &Run, layout: Layout) -> String {
    let only = SweepStudy { runs: vec![run.clone()], ..study.clone() };
    table(&only, layout).pop().unwrap_or_default()
}

/// What stands below the table.
pub(crate) fn closing(study: &SweepStudy, layout: Layout) -> String {
    piece(study, layout, 3)
}
