//! The pieces of a sweep's full report: blank lines separate its command line, the answer, its
//! facts, the table, and what stands below the table.

use model::{Run, Study, SweepStudy};
use report::Width;

/// How a report is laid out.
pub(crate) type Layout = fn(&Study, Option<&str>, Width) -> String;

fn pieces(study: &SweepStudy, layout: Layout, width: Width) -> (String, String) {
    let text = layout(&study.clone().into(), None, width);
    let is_table = |piece: &&str| {
        piece.starts_with("Branch: ")
            || piece.lines().take(2).any(|line| line.contains("mult  conns"))
    };
    let table = text.split("\n\n").find(is_table).unwrap_or_default();
    let (_, closing) = text.split_once(&format!("{table}\n\n")).unwrap_or_default();
    (table.to_owned(), closing.to_owned())
}

/// The lines of the table, its head first.
pub(crate) fn table(study: &SweepStudy, layout: Layout) -> Vec<String> {
    pieces(study, layout, Width::ANY).0.lines().map(str::to_owned).collect()
}

/// The row of `run` where it is the only one.
pub(crate) fn row(study: &SweepStudy, run: &Run, layout: Layout) -> String {
    let only = SweepStudy { runs: vec![run.clone()], ..study.clone() };
    table(&only, layout).pop().unwrap_or_default()
}

/// What stands below the table.
pub(crate) fn closing(study: &SweepStudy) -> String {
    pieces(study, report::full, Width::ANY).1
}
