//! The main table of a report as CSV, a line a run, for a spreadsheet or a plot.
//!
//! Numbers are not rounded as tables are, times are in ms, parts of a whole are fractions, words are in lower case. What is not known is empty, and so are the figures of an invalid run.

use crate::number::NONE;
use crate::tree::{ReportTree, TableCell, TableColumn};

/// The names of the columns and all rows.
pub fn whole(report: &ReportTree) -> String {
    let Some(table) = &report.table else { return String::new() };
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
