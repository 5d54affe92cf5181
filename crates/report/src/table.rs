//! Right-aligned columns under a head of two lines: bands over groups of columns, then the columns' names.
//!
//! Widths are of characters, each one column wide on a terminal. Nothing is ever cut: a cell wider than its column
//! moves the rest of its row. Where there is no room, a table of runs leaves columns out, and any other is parted.

use std::fmt::Write as _;

use crate::width::{Width, columns_of, wrap};

/// What stands over neighbouring columns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Band {
    pub(crate) title: &'static str,
    /// In its place where few of its columns are left.
    pub(crate) short: &'static str,
}

impl Band {
    /// One title for any number of columns.
    pub(crate) const fn of(title: &'static str) -> Band {
        Band { title, short: title }
    }
}

/// A column: its name, its cells' width (the space before them not included), the band it stands under, and when it goes.
#[derive(Clone)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) width: usize,
    pub(crate) band: Option<Band>,
    /// 0 never goes; of the others those with the highest number go first, and those with the same one together.
    pub(crate) rank: u8,
}

/// Two columns apart where a band begins or ends, one elsewhere.
fn gap(columns: &[&Column], at: usize) -> usize {
    match at {
        0 => 0,
        _ => 1 + usize::from(columns[at - 1].band != columns[at].band),
    }
}

fn width_of(columns: &[&Column]) -> usize {
    columns.iter().enumerate().map(|(at, column)| gap(columns, at) + column.width).sum()
}

/// The columns that there is room for, and those that are left out, each in their order: the weightiest first, and behind
/// one that has no room one that has.
pub(crate) fn fitting<T>(all: Vec<T>, column: fn(&T) -> &Column, width: Width) -> (Vec<T>, Vec<T>) {
    let mut ranks: Vec<u8> = all.iter().map(|one| column(one).rank).filter(|rank| *rank > 0).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let mut kept = vec![0];
    for rank in ranks {
        kept.push(rank);
        let columns: Vec<&Column> = all.iter().map(column).filter(|column| kept.contains(&column.rank)).collect();
        if !width.fits(width_of(&columns)) {
            kept.pop();
        }
    }
    all.into_iter().partition(|one| kept.contains(&column(one).rank))
}

/// The columns by number, in parts that fit: in each those without a band, and as many bands as there is room for.
pub(crate) fn parts(columns: &[Column], width: Width) -> Vec<Vec<usize>> {
    let (lead, rest): (Vec<usize>, Vec<usize>) = (0..columns.len()).partition(|at| columns[*at].band.is_none());
    let span = |part: &[usize]| width_of(&part.iter().map(|at| &columns[*at]).collect::<Vec<_>>());
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for band in rest.chunk_by(|a, b| columns[*a].band == columns[*b].band) {
        match parts.last_mut() {
            Some(part) if width.fits(span(&[part.as_slice(), band].concat())) => part.extend(band),
            _ => parts.push([&lead, band].concat()),
        }
    }
    parts
}

/// The two lines of the head, without trailing space.
pub(crate) fn head(columns: &[Column]) -> String {
    let all: Vec<&Column> = columns.iter().collect();
    let mut bands = String::new();
    let mut at = 0;
    while at < columns.len() {
        let end = at + columns[at..].iter().take_while(|column| column.band == columns[at].band).count();
        let inner: usize = columns[at..end].iter().map(|column| column.width).sum::<usize>() + (end - at - 1);
        bands.push_str(&" ".repeat(gap(&all, at)));
        match columns[at].band {
            Some(Band { title, short }) => {
                let has_room = columns_of(title) + 2 <= inner;
                bands.push_str(&band(if has_room { title } else { short }, inner));
            }
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
    let all: Vec<&Column> = columns.iter().collect();
    let mut line = String::new();
    for (at, (column, cell)) in columns.iter().zip(cells).enumerate() {
        line.push_str(&" ".repeat(gap(&all, at)));
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

/// Lines of cells of the same number, each column as wide as its widest cell and two spaces from the one before. The first
/// column is left-aligned, the others right-aligned.
pub(crate) struct Fitted<'a> {
    /// Spaces before each line.
    pub(crate) indent: usize,
    /// The head first.
    pub(crate) lines: &'a [Vec<String>],
    /// What is said beside each line; may be fewer, and empty.
    pub(crate) notes: &'a [String],
    /// So many columns stand at the left of each part where the table is too wide.
    pub(crate) lead: usize,
    /// Whether a part may begin at that column, the lead not counted.
    pub(crate) may_part: fn(usize) -> bool,
}

impl<'a> Fitted<'a> {
    /// A table that may be parted before any column but the first.
    pub(crate) fn new(lines: &'a [Vec<String>]) -> Fitted<'a> {
        Fitted { indent: 0, lines, notes: &[], lead: 1, may_part: |_| true }
    }

    /// The table, in parts one below the other where it is too wide. Where its first column takes most of the room, that
    /// stands on a line above the others.
    pub(crate) fn text(&self, width: Width) -> String {
        let columns = self.lines.iter().map(Vec::len).max().unwrap_or(0);
        let widest = |column: usize| self.lines.iter().filter_map(|line| line.get(column)).map(|c| columns_of(c)).max();
        let widths: Vec<usize> = (0..columns).map(|column| widest(column).unwrap_or(0)).collect();
        let span = |columns: &[usize]| {
            self.indent + columns.iter().map(|at| widths[*at] + if *at == 0 { 0 } else { 2 }).sum::<usize>()
        };
        let all: Vec<usize> = (0..columns).collect();
        let (lead, rest) = all.split_at(self.lead.min(columns));
        if width.fits(span(&all)) {
            return self.part(&all, &widths, width, self.notes);
        }
        if self.lead == 1 && !width.fits(2 * span(lead)) {
            return self.under_their_names(rest, &widths);
        }
        let mut parts: Vec<Vec<usize>> = Vec::new();
        for unit in rest.chunk_by(|_, next| !(self.may_part)(*next - lead.len())) {
            match parts.last_mut() {
                Some(part) if width.fits(span(&[part.as_slice(), unit].concat())) => part.extend(unit),
                _ => parts.push([lead, unit].concat()),
            }
        }
        let last = parts.len().saturating_sub(1);
        let part = |(at, part): (usize, &Vec<usize>)| {
            self.part(part, &widths, width, if at == last { self.notes } else { &[] })
        };
        parts.iter().enumerate().map(part).collect()
    }

    fn part(&self, columns: &[usize], widths: &[usize], width: Width, notes: &[String]) -> String {
        let mut text = String::new();
        for (at, line) in self.lines.iter().enumerate() {
            let shown = self.line(line, columns, widths);
            let note = notes.get(at).map_or("", String::as_str);
            let beside = format!("{shown}  {note}");
            // A line without anything on it says nothing.
            if beside.trim().is_empty() {
                continue;
            }
            if width.fits(columns_of(beside.trim_end())) {
                text.push_str(beside.trim_end());
                text.push('\n');
            } else {
                text.push_str(shown.trim_end());
                text.push('\n');
                wrap(&mut text, width, &" ".repeat(self.indent + 4), note);
            }
        }
        text
    }

    fn line(&self, line: &[String], columns: &[usize], widths: &[usize]) -> String {
        let mut shown = " ".repeat(self.indent);
        for at in columns {
            let (cell, width) = (line.get(*at).map_or("", String::as_str), widths[*at]);
            let cell = if *at == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") };
            shown.push_str(&cell);
        }
        shown
    }

    fn under_their_names(&self, columns: &[usize], widths: &[usize]) -> String {
        let indent = " ".repeat(self.indent);
        let mut text = String::new();
        for line in self.lines {
            let name = line[0].trim_end();
            if !name.is_empty() {
                _ = writeln!(text, "{indent}{name}");
            }
            text.push_str(self.line(line, columns, widths).trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: Option<Band> = Some(Band { title: "x y z", short: "x" });

    fn column(name: &'static str, band: Option<Band>) -> Column {
        Column { name, width: 5, band, rank: 0 }
    }

    #[test]
    fn a_band_spans_its_columns_and_stands_apart_from_the_next() {
        let columns = [column("a", None), column("b", X), column("c", X), column("d", Some(Band::of("y")))];
        let head = head(&columns);
        assert_eq!(head, "       ── x y z ──  ─ y ─\n    a      b     c      d\n");
    }

    #[test]
    fn a_band_with_few_columns_left_has_its_short_title() {
        assert_eq!(head(&[column("b", X)]), "─ x ─\n    b\n");
    }

    #[test]
    fn what_weighs_least_goes_first_and_what_belongs_together_goes_together() {
        let ranked = |name, width, rank| Column { name, width, band: None, rank };
        let kept = |columns: usize| {
            let all =
                vec![ranked("!", 1, 0), ranked("a", 30, 1), ranked("b", 20, 2), ranked("c", 20, 2), ranked("d", 8, 3)];
            let (kept, left_out) = fitting(all, |column| column, Width::of(columns));
            let names = |columns: Vec<Column>| columns.iter().map(|column| column.name).collect::<String>();
            (names(kept), names(left_out))
        };
        let is = |kept: &str, left_out: &str| (kept.to_owned(), left_out.to_owned());
        assert_eq!(kept(83), is("!abcd", ""));
        assert_eq!(kept(82), is("!abc", "d"));
        assert_eq!(kept(73), is("!ad", "bc"), "behind what has no room comes what has");
        assert_eq!(kept(40), is("!a", "bcd"));
    }

    fn cells(lines: &[&[&str]]) -> Vec<Vec<String>> {
        lines.iter().map(|line| line.iter().map(|cell| (*cell).to_owned()).collect()).collect()
    }

    #[test]
    fn fitted_columns_are_as_wide_as_their_widest_cell() {
        let lines = cells(&[&["a", "1"], &["bcd", "1234"]]);
        let table = Fitted { indent: 1, ..Fitted::new(&lines) };
        assert_eq!(table.text(Width::ANY), " a       1\n bcd  1234\n");
    }

    #[test]
    fn a_table_that_is_too_wide_is_parted_where_it_may_be() {
        let wide = "123456789012";
        let lines = cells(&[&["", "n", "±", "n", "±", "n", "±"], &["1x", wide, "1", wide, "2", wide, "3"]]);
        let table = Fitted { may_part: |at| at % 2 == 0, ..Fitted::new(&lines) };
        let expected = "
               n  ±             n  ±
1x  123456789012  1  123456789012  2
               n  ±
1x  123456789012  3
";
        assert_eq!(table.text(Width::of(40)), expected[1..]);
        assert_eq!(table.text(Width::ANY).lines().count(), 2);
    }

    #[test]
    fn a_note_without_room_beside_its_line_stands_below_it() {
        let lines = cells(&[&["name", "ms"], &["p99", "100"]]);
        let notes = [String::new(), "a note of more than a few words, and so".to_owned()];
        let table = Fitted { notes: &notes, ..Fitted::new(&lines) };
        assert_eq!(
            table.text(Width::of(40)),
            "name   ms\np99   100\n    a note of more than a few words, and\n    so\n"
        );
        assert_eq!(table.text(Width::ANY), format!("name   ms\np99   100  {}\n", notes[1]));
    }

    #[test]
    fn long_names_stand_above_their_figures() {
        let lines = cells(&[&["", "mean"], &["app.a_metric_with_a_name_of_its_own", "1.50"]]);
        let table = Fitted { indent: 2, ..Fitted::new(&lines) };
        let expected = "    mean\n  app.a_metric_with_a_name_of_its_own\n    1.50\n";
        assert_eq!(table.text(Width::of(40)), expected);
    }
}
