//! The runs of a study as CSV, a line a run, for a spreadsheet or a plot: the table of a full report.
//!
//! Numbers are not rounded as tables are, times are in ms, parts of a whole are fractions, words are in lower case. What is not known is empty, and so are the figures of an invalid run.

use model::Study;

use crate::number::NONE;
use crate::run_columns;
use crate::tree::{TableCell, TableColumn};

/// The names of the columns and all rows.
pub fn whole(study: &Study) -> String {
    let table = run_columns::table(study);
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
