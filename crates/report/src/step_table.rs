//! The steps of a load whose rate changes by plan, or the tenths of a ramp: a row each.

use model::Quantile;

use crate::run_column::{RunColumn, RunTable};
use crate::run_columns::{FAILED, OFFERED, P50, P95, P99, RATE};
use crate::run_summary::SummaryRun;
use crate::run_tables::answer_cell;
use crate::steps::SummaryStep;
use crate::tree::{DataTable, TableCell, TableColumn, TableRow};

/// Headings and columns, and when each leaves a narrow table.
static COLUMNS: &[(&str, &RunColumn, u8)] = &[
    ("offered/s", &OFFERED, 3),
    ("completed/s", &RATE, 0),
    ("failed", &FAILED, 0),
    ("p50 ", &P50, 2),
    ("p95 ", &P95, 4),
    ("p99 ", &P99, 0),
];

/// A row for each step; without rows where there are none.
pub(crate) fn table(run: &SummaryRun<'_>) -> DataTable {
    let steps = SummaryStep::all_of(run);
    if steps.is_empty() {
        return DataTable::default();
    }
    let of_columns = COLUMNS.iter().map(|(name, column, leaves)| TableColumn {
        band: column.band.map(|band| band(RunTable::Load)),
        ..TableColumn::new(*name).leaving(*leaves)
    });
    let backlog = TableColumn {
        meaning: "requests that were due and not answered when the step ended",
        ..TableColumn::new("backlog").leaving(5)
    };
    let step = TableColumn::new("rate");
    let headings = std::iter::once(step).chain(of_columns).chain([backlog]);
    DataTable::of_columns(headings, steps.iter().map(row))
}

fn row(step: &SummaryStep<'_>) -> TableRow {
    let view = step.view();
    let figures = COLUMNS.iter().map(|(_, column, _)| TableCell::from(answer_cell(&view, column)));
    let name = TableCell::from(step.step.in_words());
    let backlog = TableCell::count(step.step.backlog_at_end);
    let cells = std::iter::once(name).chain(figures).chain([backlog]);
    let is_shown = view.range_of_few(0.99).is_some();
    TableRow::new(cells).noted(if is_shown { "" } else { why_missing(&view) })
}

/// Why its p99 is missing.
fn why_missing(step: &SummaryRun<'_>) -> &'static str {
    match step.run.response_time(0.99) {
        Quantile::Time(_) | Quantile::NotPrinted => "",
        Quantile::TooFew => "too few for p99",
        Quantile::Unanswered => "failures hide p99",
        Quantile::Growing => "times keep growing",
    }
}
