//! The columns of `run_columns` laid out: the table of a full report, the answer's table, CSV, and
//! the JSON of a run.

use model::Study;
use serde::{Serialize, Serializer};

use crate::classes::SummaryClass;
use crate::json_object::JsonObject;
use crate::number::NONE;
use crate::run_column::{ColumnPresence, FigureMark, RunColumn, RunTable};
use crate::run_columns::{CLASS, COLUMNS, IN_ANSWER, IN_JSON, OF_CLASS, OF_RUN_OF_CLASS, P50};
use crate::run_summary::{SummaryRun, SummaryVerdict};
use crate::tree::{ColumnBand, DataTable, TableCell, TableColumn, TableRow};

/// The table of a study's runs in a full report.
pub(crate) fn table(study: &Study) -> DataTable {
    let table = RunTable::of(study);
    let runs = SummaryRun::all_of(study);
    let columns = columns_of(table, &runs);
    let rows = runs.iter().map(|run| TableRow::new(columns.iter().map(|column| column.cell(run))));
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
fn columns_of(table: RunTable, runs: &[SummaryRun<'_>]) -> Vec<&'static RunColumn> {
    COLUMNS
        .iter()
        .copied()
        .filter(|column| column.tables.contains(&table))
        .filter(|column| (column.presence)(runs) != ColumnPresence::Nowhere)
        .collect()
}

/// The names of that table's columns and a line for each run, as CSV. The lines of the classes of
/// its requests follow that of the run, which has no class.
pub fn csv(study: &Study) -> String {
    let table = RunTable::of(study);
    let runs = SummaryRun::all_of(study);
    let columns = columns_of(table, &runs);
    let headings = columns.iter().map(|column| column.heading(table, &runs));
    let mut lines = vec![csv_line(headings.map(|heading| csv_name(&heading)))];
    for run in &runs {
        lines.push(csv_line(columns.iter().map(|column| csv_cell(&column.cell(run)))));
        for class in SummaryClass::all_of(run) {
            let view = class.view();
            lines.push(csv_line(columns.iter().map(|column| class_cell(column, run, &view))));
        }
    }
    lines.concat()
}

/// What the line of a class of a run has in this column.
fn class_cell(column: &RunColumn, run: &SummaryRun<'_>, class: &SummaryRun<'_>) -> String {
    let is_among = |list: &[&RunColumn]| list.iter().any(|other| std::ptr::eq(*other, column));
    match class.class {
        // A name is no word of ours: capitals stay.
        Some(class) if is_among(&[&CLASS]) => quoted(class.name),
        _ if is_among(OF_CLASS) => csv_cell(&column.cell(class)),
        _ if is_among(OF_RUN_OF_CLASS) => csv_cell(&column.cell(run)),
        _ => String::new(),
    }
}

fn csv_line(fields: impl Iterator<Item = String>) -> String {
    fields.collect::<Vec<_>>().join(",") + "\n"
}

fn csv_name(column: &TableColumn) -> String {
    if column.key.is_empty() { quoted(&column.full_name()) } else { column.key.clone() }
}

fn csv_cell(cell: &TableCell) -> String {
    match cell.value {
        Some(value) => value.to_string(),
        None if cell.text == NONE => String::new(),
        None => quoted(&cell.text.to_lowercase()),
    }
}

/// As RFC 4180 has it.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Verdicts of runs that say nothing of the server, and the word in place of their times.
pub(crate) const NO_FIGURE: [(SummaryVerdict, &str); 2] =
    [(SummaryVerdict::Invalid, "INVALID"), (SummaryVerdict::GeneratorBound, "GENERATOR-BOUND")];

/// The answer's table: a row a run.
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
            // No time of a run that says nothing of the server; p50 is the first.
            let known = columns.iter().take_while(|column| !std::ptr::eq(**column, &raw const P50));
            TableRow::new(known.map(|column| answer_cell(run, column))).noted(*word)
        }
        None => TableRow::new(columns.iter().map(|column| answer_cell(run, column))),
    }
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
