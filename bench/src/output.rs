//! All that is printed: results to stdout, progress to stderr where that is a terminal; and text
//! tables, names to the left, figures to the right, each column as wide as its widest cell.

use std::io::{self, IsTerminal as _, Write as _};

/// A table in the making.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

/// What stands where there is no figure.
pub(crate) const NONE: &str = "-";

impl Table {
    /// With the lines of its head; each line has a cell for each column, between `|`.
    pub(crate) fn new(head: &[&str]) -> Table {
        Table {
            rows: head.iter().map(|line| line.split('|').map(str::to_owned).collect()).collect(),
        }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The text, each line with its end.
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

/// A figure, or the sign that there is none.
pub(crate) fn shown<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), text)
}

/// Prints to stdout; a reader that has gone is no error.
pub(crate) fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// A line on stderr.
pub(crate) fn note(text: &str) {
    clear();
    let _ = writeln!(io::stderr().lock(), "bench: {text}");
}

/// What goes on, in place of what went on; nothing where nobody looks.
pub(crate) fn progress(text: &str) {
    if io::stderr().is_terminal() {
        let _ = write!(io::stderr().lock(), "\r\x1b[K{text}");
    }
}

/// Takes that line away.
pub(crate) fn clear() {
    progress("");
}
