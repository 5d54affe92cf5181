//! CSV: a line for each run, with the columns of its study's table, and a line for each class of
//! its requests.

use model::Study;

use crate::classes::SummaryClass;
use crate::number::NONE;
use crate::run_column::{RunColumn, RunTable};
use crate::run_columns::{CLASS, OF_CLASS, OF_RUN_OF_CLASS};
use crate::run_summary::SummaryRun;
use crate::run_tables::columns_of;
use crate::tree::{TableCell, TableColumn};

/// The column names of a study's table and a line for each run, as CSV. Below the line of a run,
/// whose class is empty, are those of its request classes.
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
        // The user chose the name: it keeps its capitals.
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
