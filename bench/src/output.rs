//! Everything that is printed: results to stdout, progress to stderr if that is a terminal; and
//! text tables with names on the left and figures on the right, each column as wide as its widest
//! cell.

use std::io::{self, IsTerminal as _, Write as _};

/// A table that is being filled.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

/// The text for a missing figure.
pub(crate) const NONE: &str = "-";

impl Table {
    /// A table with these header lines, whose cells are separated by `|`.
    pub(crate) fn new(head: &[&str]) -> Table {
        Table {
            rows: head.iter().map(|line| line.split('|').map(str::to_owned).collect()).collect(),
        }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table as text.
    pub(crate) fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let wide =
            |at: usize| self.rows.iter().filter_map(|row| Some(row.get(at)?.chars().count())).max();
        let widths: Vec<usize> = (0..columns).map(|at| wide(at).unwrap_or_default()).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).enumerate();
            let text: String =
                cells
                    .map(|(at, (cell, width))| {
                        if at == 0 {
                            format!("{cell:<width$}")
                        } else {
                            format!("  {cell:>width$}")
                        }
                    })
                    .collect();
            format!("{}\n", text.trim_end())
        };
        self.rows.iter().map(line).collect()
    }
}

/// A figure, or [`NONE`].
pub(crate) fn shown<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), text)
}

/// Prints to stdout; a reader that has gone is not an error.
pub(crate) fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// A line on stderr.
pub(crate) fn note(text: &str) {
    clear();
    let _ = writeln!(io::stderr().lock(), "bench: {text}");
}

/// Replaces the progress line, if stderr is a terminal.
pub(crate) fn progress(text: &str) {
    if io::stderr().is_terminal() {
        let _ = write!(io::stderr().lock(), "\r\x1b[K{text}");
    }
}

/// Removes the progress line.
pub(crate) fn clear() {
    progress("");
}
