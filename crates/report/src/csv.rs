//! The runs of a study as CSV, a line a run, for a spreadsheet or a plot: the main table of a report, and a load's figures.
//!
//! Numbers are not rounded as tables are, times are in ms, parts of a whole are fractions, words are in lower case. What is not known is empty, and so are the figures of an invalid run.

use model::Study;

use crate::number::NONE;
use crate::summary::{Summary, SummaryRun};
use crate::tree::{DataTable, TableCell, TableColumn, TableRow};

/// The names of the columns and all rows.
pub fn whole(study: &Study) -> String {
    match crate::report(study).table {
        Some(table) => written(&table),
        None => written(&figures(&Summary::of(study, None).runs)),
    }
}

/// What a load says of itself, in the words of a sweep's table.
fn figures(runs: &[SummaryRun]) -> DataTable {
    type Figure = (&'static str, fn(&SummaryRun) -> Option<f64>);
    let figures: [Figure; 14] = [
        ("connections", |run| Some(f64::from(run.connections))),
        ("seconds", |run| Some(run.seconds)),
        ("offered_per_s", |run| run.rate.offered),
        ("sent_per_s", |run| run.rate.sent),
        ("rate_per_s", |run| run.rate.completed),
        ("mean_ms", |run| run.response_ms.mean),
        ("p50_ms", |run| run.response_ms.p50),
        ("p90_ms", |run| run.response_ms.p90),
        ("p95_ms", |run| run.response_ms.p95),
        ("p99_ms", |run| run.response_ms.p99),
        ("p99.9_ms", |run| run.response_ms.p999),
        ("max_ms", |run| run.response_ms.max),
        ("requests", |run| run.requests.planned.map(|n| n as f64)),
        ("errors", |run| run.requests.failed.map(|n| n as f64)),
    ];
    let columns = figures.iter().map(|(name, _)| TableColumn { key: (*name).to_owned(), ..TableColumn::default() });
    let row = |run: &SummaryRun| {
        TableRow::new(figures.iter().map(|(_, figure)| TableCell::number(figure(run), |value| value.to_string())))
    };
    DataTable::of_columns(columns, runs.iter().map(row))
}

fn written(table: &DataTable) -> String {
    let name =
        |column: &TableColumn| if column.key.is_empty() { quoted(&column.full_name()) } else { column.key.clone() };
    let cell = |cell: &TableCell| match cell.value {
        Some(value) => value.to_string(),
        None if cell.text == NONE => String::new(),
        None => quoted(&cell.text.to_lowercase()),
    };
    let head = table.columns.iter().map(name).collect::<Vec<_>>().join(",");
    let lines = table.rows.iter().map(|row| row.cells.iter().map(cell).collect::<Vec<_>>().join(","));
    std::iter::once(head).chain(lines).map(|line| line + "\n").collect()
}

/// As RFC 4180 has it.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}
