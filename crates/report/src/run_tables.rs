//! The columns of `run_columns` laid out: the table of a full report, the answer's table, and the
//! JSON of a run. `formats/csv.rs` writes the same columns as CSV.

use model::Study;
use serde::{Serialize, Serializer};

use crate::json_object::JsonObject;
use crate::run_column::{ColumnPresence, FigureMark, RunColumn, RunTable};
use crate::run_columns::{COLUMNS, IN_ANSWER, IN_JSON, P50};
use crate::run_summary::{SummaryRun, SummaryVerdict};
use crate::tree::{ColumnBand, DataTable, TableCell, TableColumn, TableRow};

/// The table of a study's runs in a full report.
pub(crate) fn table(study: &Study) -> DataTable {
    let table = RunTable::of(study);
    let runs = SummaryRun::all_of(study);
    let columns = columns_of(table, &runs);
    let rows =
        runs.iter().map(|run| TableRow::new(columns.iter().map(|column| full_cell(run, column))));
    DataTable {
        lead: match table {
            RunTable::Sweep | RunTable::OtherGenerator | RunTable::Comparison => 4,
            RunTable::Bodies => 5,
            RunTable::Load => 2,
        },
        ..DataTable::of_columns(columns.iter().map(|column| column.heading(table, &runs)), rows)
    }
}

/// The columns of these runs' table.
pub(crate) fn columns_of(table: RunTable, runs: &[SummaryRun<'_>]) -> Vec<&'static RunColumn> {
    COLUMNS
        .iter()
        .copied()
        .filter(|column| column.tables.contains(&table))
        .filter(|column| (column.presence)(runs) != ColumnPresence::Nowhere)
        .collect()
}

/// Verdicts of runs that say nothing of the server, and the word in place of their times.
pub(crate) const NO_FIGURE: [(SummaryVerdict, &str); 2] =
    [(SummaryVerdict::Invalid, "INVALID"), (SummaryVerdict::GeneratorBound, "GENERATOR-BOUND")];

/// The answer's table: a row for each run.
pub(crate) fn answer(runs: &[SummaryRun<'_>]) -> DataTable {
    let shown: Vec<(&str, &RunColumn, u8)> = IN_ANSWER
        .iter()
        .copied()
        .filter(|(_, column, _)| (column.presence)(runs) == ColumnPresence::Shown)
        .collect();
    let columns: Vec<&RunColumn> = shown.iter().map(|(_, column, _)| *column).collect();
    let headings =
        shown.iter().map(|(name, column, leaves)| answer_heading(name, column).leaving(*leaves));
    let rows = runs.iter().map(|run| answer_row(run, &columns));
    // Its labels are aligned right, as figures are.
    DataTable { lead: 0, ..DataTable::of_columns(headings, rows) }
}

pub(crate) fn answer_heading(name: &str, column: &RunColumn) -> TableColumn {
    // Figures stay aligned below it, with a mark or without.
    let room_for_mark = if column.mark == FigureMark::Never { "" } else { " " };
    TableColumn {
        unit: column.unit,
        band: column.band.map(|band| ColumnBand { meaning: "", ..band(RunTable::Sweep) }),
        ..TableColumn::new(format!("{name}{room_for_mark}"))
    }
}

fn answer_row(run: &SummaryRun<'_>, columns: &[&RunColumn]) -> TableRow {
    match NO_FIGURE.iter().find(|(verdict, _)| *verdict == run.verdict) {
        Some((_, word)) => {
            // A run that says nothing about the server has no times, of which p50 is the first.
            let known = columns.iter().take_while(|column| !std::ptr::eq(**column, &raw const P50));
            TableRow::new(known.map(|column| answer_cell(run, column))).noted(*word)
        }
        None => TableRow::new(columns.iter().map(|column| answer_cell(run, column))),
    }
}

/// A figure in a full report, with its mark if arms are compared by it though few responses of the run
/// tell of it.
fn full_cell(run: &SummaryRun<'_>, column: &RunColumn) -> TableCell {
    let mut cell = column.cell(run);
    if let FigureMark::Compared(_) = column.mark {
        cell.text += column.mark_of(run);
    }
    cell
}

/// A figure and its mark, or room for one.
pub(crate) fn answer_cell(run: &SummaryRun<'_>, column: &RunColumn) -> String {
    let text = column.cell(run).text;
    let has_room = column.mark != FigureMark::Never;
    match column.mark_of(run) {
        "" if has_room && !text.ends_with('?') => text + " ",
        mark => text + mark,
    }
}

impl Serialize for SummaryRun<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = JsonObject::default();
        for (path, column) in IN_JSON {
            object.insert(path, column.figure(self));
        }
        object.serialize(serializer)
    }
}
