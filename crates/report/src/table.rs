//! Right-aligned columns under a head of two lines: bands over groups of columns, then the columns' names.
//!
//! Widths are of characters, each one column wide on a terminal. Nothing is ever cut: a cell wider than its column
//! moves the rest of its row.

/// A column: its name, its cells' width (the space before them not included) and the band it stands under.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) width: usize,
    pub(crate) band: Option<&'static str>,
}

/// Two columns apart where a band begins or ends, one elsewhere.
fn gap(columns: &[Column], at: usize) -> usize {
    match at {
        0 => 0,
        _ => 1 + usize::from(columns[at - 1].band != columns[at].band),
    }
}

/// The two lines of the head, without trailing space.
pub(crate) fn head(columns: &[Column]) -> String {
    let mut bands = String::new();
    let mut at = 0;
    while at < columns.len() {
        let end = at + columns[at..].iter().take_while(|column| column.band == columns[at].band).count();
        let inner: usize = columns[at..end].iter().map(|column| column.width).sum::<usize>() + (end - at - 1);
        bands.push_str(&" ".repeat(gap(columns, at)));
        match columns[at].band {
            Some(title) => bands.push_str(&band(title, inner)),
            None => bands.push_str(&" ".repeat(inner)),
        }
        at = end;
    }
    let names: Vec<String> = columns.iter().map(|column| column.name.to_owned()).collect();
    format!("{}\n{}\n", bands.trim_end(), row(columns, &names))
}

/// One line.
pub(crate) fn row(columns: &[Column], cells: &[String]) -> String {
    assert_eq!(columns.len(), cells.len(), "a cell for each column");
    let mut line = String::new();
    for (at, (column, cell)) in columns.iter().zip(cells).enumerate() {
        line.push_str(&" ".repeat(gap(columns, at)));
        line.push_str(&right(cell, column.width));
    }
    line
}

/// `title` between two bars, `width` wide.
pub(crate) fn band(title: &str, width: usize) -> String {
    let bars = width.saturating_sub(title.chars().count() + 2);
    format!("{} {title} {}", "─".repeat(bars / 2), "─".repeat(bars - bars / 2))
}

/// Right-aligned.
pub(crate) fn right(text: &str, width: usize) -> String {
    format!("{text:>width$}")
}

/// Lines of cells of the same number, each column as wide as its widest cell, two spaces apart, `indent` before.
/// The first column is left-aligned, the others right-aligned.
pub(crate) fn fitted(indent: usize, lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| lines.iter().filter_map(|line| line.get(column)).map(|c| c.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for line in lines {
        let mut shown = " ".repeat(indent);
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let cell = if column == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") };
            shown.push_str(&cell);
        }
        text.push_str(shown.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_spans_its_columns_and_stands_apart_from_the_next() {
        let column = |name, band| Column { name, width: 5, band };
        let columns = [column("a", None), column("b", Some("x")), column("c", Some("x")), column("d", Some("y"))];
        let head = head(&columns);
        assert_eq!(head, "       ──── x ────  ─ y ─\n    a      b     c      d\n");
    }

    #[test]
    fn fitted_columns_are_as_wide_as_their_widest_cell() {
        let lines = [vec!["a".to_owned(), "1".to_owned()], vec!["bcd".to_owned(), "1234".to_owned()]];
        assert_eq!(fitted(1, &lines), " a       1\n bcd  1234\n");
    }
}
