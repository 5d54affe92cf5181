//! A report as text for a terminal: sections with a blank line between them, tables in columns.
//!
//! Widths are of characters, each one column wide on a terminal. Nothing is ever cut: a cell wider than its column moves the
//! rest of its row. Where there is no room, a table whose columns have ranks leaves some out and names them; any other is
//! printed in parts, one below the other.

use std::fmt::Write as _;

use crate::sparkline;
use crate::tree::{
    ColumnBand, DataTable, ListItem, NamedFact, ReportSection, ReportTree, SectionBlock, TableCell, TableColumn,
};
use crate::width::{self, Width, columns_of, flow, wrap};

/// The longest bar.
const BAR: f64 = 40.0;
/// Under a title.
const INDENT: usize = 2;

/// The whole report.
pub fn whole(report: &ReportTree, width: Width) -> String {
    let table = report.table.iter().map(|table| TableLayout::new(table, 0, width).text());
    around(report, &table.collect::<String>(), width)
}

/// The report with this in the place of its table: first the command line that repeats it, then what was measured.
pub(crate) fn around(report: &ReportTree, table: &str, width: Width) -> String {
    let gap = if table.is_empty() { "" } else { "\n" };
    let opening = format!("{}\n{}{gap}", width::command(&report.command_line, width), facts(&report.facts, width));
    opening + table + &closing(report, width)
}

/// What stands after the table.
fn closing(report: &ReportTree, width: Width) -> String {
    let (shown, left_out) = report.table.as_ref().map(|table| fitting(table, width)).unwrap_or_default();
    let columns = report.table.iter().flat_map(|table| shown.iter().map(|at| &table.columns[*at]));
    let own = report.glossary.iter().map(|(word, is)| ((*word).to_owned(), *is));
    let words = words(columns).into_iter().chain(own).map(|(word, is)| NamedFact::new(word, [is.to_owned()]));
    let mut parts = vec![report.table.as_ref().map_or(String::new(), |table| no_room(table, &left_out, width))];
    parts.extend(report.sections.iter().map(|one| section(one, width)));
    parts.push(facts(&words.collect::<Vec<_>>(), width));
    parts.push(format!("{}\n", report.total_time));
    parts.iter().filter(|part| !part.is_empty()).fold(String::new(), |text, part| text + "\n" + part)
}

/// Sections with a blank line between them.
pub fn sections(sections: &[ReportSection], width: Width) -> String {
    sections.iter().map(|one| section(one, width)).collect::<Vec<_>>().join("\n")
}

/// Names in front, what they name behind.
pub fn facts(facts: &[NamedFact], width: Width) -> String {
    let widest = facts.iter().map(|fact| columns_of(&fact.name)).max().unwrap_or(0);
    let mut text = String::new();
    for fact in facts {
        for (at, line) in fact.lines.iter().enumerate() {
            wrap(&mut text, width, &format!("{:<widest$}  ", if at == 0 { &fact.name } else { "" }), line);
        }
    }
    text
}

/// The words of these columns that need one, with what they mean: a band's once.
pub(crate) fn words<'a>(columns: impl Iterator<Item = &'a TableColumn>) -> Vec<(String, &'static str)> {
    let mut words: Vec<(String, &'static str)> = Vec::new();
    for column in columns {
        let of_band = column.band.as_ref().map(|band| (band.title.clone(), band.meaning));
        for (word, meaning) in of_band.into_iter().chain([(column.name.clone(), column.meaning)]) {
            if !meaning.is_empty() && !words.iter().any(|(known, _)| *known == word) {
                words.push((word, meaning));
            }
        }
    }
    words
}

fn section(section: &ReportSection, width: Width) -> String {
    let mut text = if section.title.is_empty() { String::new() } else { width::broken(&section.title, width) };
    let indent = " ".repeat(if section.title.is_empty() { 0 } else { INDENT });
    for block in &section.blocks {
        match block {
            SectionBlock::Paragraph(line) => flow(&mut text, width, &indent, indent.len() + 2, [line.as_str()]),
            SectionBlock::List(items) => list(&mut text, items, &indent, width),
            SectionBlock::Table(table) => text.push_str(&TableLayout::new(table, indent.len(), width).text()),
            SectionBlock::Curves(curves) => text.push_str(&sparkline::lines(curves, width)),
            SectionBlock::Verbatim(lines) => lines.lines().for_each(|line| _ = writeln!(text, "{indent}{line}")),
        }
    }
    text
}

/// Labels in front, where there are any; hints below.
fn list(text: &mut String, items: &[ListItem], indent: &str, width: Width) {
    let widest = items.iter().map(|item| columns_of(&item.label)).max().unwrap_or(0);
    for item in items {
        for (at, line) in item.lines.iter().enumerate() {
            let label = if at == 0 { item.label.as_str() } else { "" };
            let before = if widest > 0 { format!("{indent}{label:<widest$}  ") } else { indent.to_owned() };
            flow(text, width, &before, columns_of(&before) + 2, [line.as_str()]);
        }
        for hint in &item.hints {
            flow(text, width, &format!("{indent}  → "), indent.len() + 4, [hint.as_str()]);
        }
    }
}

/// A bar of that part of the longest; a dot where some are too few for a square.
pub(crate) fn bar(part: f64) -> String {
    match (part * BAR).round() as usize {
        0 if part > 0.0 => "·".to_owned(),
        squares => "■".repeat(squares),
    }
}

/// Right-aligned.
pub(crate) fn right(text: &str, width: usize) -> String {
    format!("{text:>width$}")
}

/// `title` between two bars, `width` wide.
pub(crate) fn band(title: &str, width: usize) -> String {
    let bars = width.saturating_sub(columns_of(title) + 2);
    format!("{} {title} {}", "─".repeat(bars / 2), "─".repeat(bars - bars / 2))
}

/// Two columns apart where a band begins or ends, one elsewhere; in a table that is as wide as its cells one more.
fn gap(before: &TableColumn, column: &TableColumn) -> usize {
    1 + usize::from(column.width == 0) + usize::from(before.band != column.band)
}

fn span(table: &DataTable, columns: &[usize], widths: &[usize]) -> usize {
    let gaps = columns.windows(2).map(|pair| gap(&table.columns[pair[0]], &table.columns[pair[1]]));
    columns.iter().map(|at| widths[*at]).sum::<usize>() + gaps.sum::<usize>()
}

/// The columns that there is room for, and those that are left out: the weightiest first, and behind one that has no room one
/// that has.
fn fitting(table: &DataTable, width: Width) -> (Vec<usize>, Vec<usize>) {
    let all: Vec<usize> = (0..table.columns.len()).filter(|at| !table.columns[*at].is_constant).collect();
    let rank = |at: &usize| table.columns[*at].rank;
    let widths: Vec<usize> = table.columns.iter().map(|column| column.width).collect();
    let mut ranks: Vec<u8> = all.iter().map(rank).filter(|rank| *rank > 0).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let mut kept = vec![0];
    for next in ranks {
        kept.push(next);
        let columns: Vec<usize> = all.iter().copied().filter(|at| kept.contains(&rank(at))).collect();
        if !width.fits(span(table, &columns, &widths)) {
            kept.pop();
        }
    }
    all.into_iter().partition(|at| kept.contains(&rank(at)))
}

/// Which columns a table has no room for, and how to see them; nothing where it has all.
fn no_room(table: &DataTable, left_out: &[usize], width: Width) -> String {
    let Some(columns) = width.columns().filter(|_| !left_out.is_empty()) else { return String::new() };
    let names: Vec<String> = left_out.iter().map(|at| table.columns[*at].full_name()).collect();
    let how = "longtail report --width 0 shows all of the last study";
    let mut text = String::new();
    flow(&mut text, width, "", 2, [format!("no room at {columns} columns for {}: {how}", names.join(", ")).as_str()]);
    text
}

/// A table and the room it has.
struct TableLayout<'a> {
    table: &'a DataTable,
    indent: usize,
    width: Width,
    shown: Vec<usize>,
    widths: Vec<usize>,
}

impl<'a> TableLayout<'a> {
    fn new(table: &'a DataTable, indent: usize, width: Width) -> TableLayout<'a> {
        let (shown, _) = fitting(table, width);
        let fitted = |(at, column): (usize, &TableColumn)| {
            let cells = table.rows.iter().filter_map(|row| row.cells.get(at)).map(|cell| columns_of(&cell.text));
            if column.width > 0 { column.width } else { cells.fold(columns_of(&column.name), usize::max) }
        };
        let widths = table.columns.iter().enumerate().map(fitted).collect();
        let mut layout = TableLayout { table, indent, width, shown, widths };
        layout.make_room_for_bands();
        layout
    }

    /// Where cells set the width, a band's title does so too.
    fn make_room_for_bands(&mut self) {
        for columns in self.shown.chunk_by(|a, b| self.table.columns[*a].band == self.table.columns[*b].band) {
            let last = columns[columns.len() - 1];
            let Some(ColumnBand { title, .. }) = &self.table.columns[last].band else { continue };
            if self.table.columns[last].width == 0 {
                let needed = columns_of(title) + 4;
                self.widths[last] += needed.saturating_sub(span(self.table, columns, &self.widths));
            }
        }
    }

    fn fits(&self, columns: &[usize]) -> bool {
        self.width.fits(self.indent + span(self.table, columns, &self.widths))
    }

    /// The table, in parts one below the other where it is too wide. Where its first column takes most of the room, that
    /// stands on a line above the others.
    fn text(&self) -> String {
        let (lead, rest) = self.shown.split_at(self.table.lead.min(self.shown.len()));
        if self.fits(&self.shown) || self.table.columns.iter().any(|column| column.rank > 0) {
            return self.part(&self.shown, true);
        }
        if self.table.lead == 1 && !self.width.fits(2 * (self.indent + span(self.table, lead, &self.widths))) {
            return self.under_their_names(rest);
        }
        let columns = &self.table.columns;
        let is_one = |a: &usize, b: &usize| {
            let (before, column) = (&columns[*a], &columns[*b]);
            column.is_joined || (column.band.is_some() && column.band == before.band)
        };
        let mut parts: Vec<Vec<usize>> = Vec::new();
        for unit in rest.chunk_by(is_one) {
            match parts.last_mut() {
                Some(part) if self.fits(&[part.as_slice(), unit].concat()) => part.extend(unit),
                _ => parts.push([lead, unit].concat()),
            }
        }
        let last = parts.len().saturating_sub(1);
        parts.iter().enumerate().map(|(at, part)| self.part(part, at == last)).collect()
    }

    fn part(&self, columns: &[usize], has_notes: bool) -> String {
        let mut text = self.head(columns);
        for row in &self.table.rows {
            let shown = self.line(columns, &row.cells);
            let note = if has_notes { row.bar.map_or_else(|| row.note.clone(), bar) } else { String::new() };
            let beside = format!("{shown}  {note}");
            if note.is_empty() || self.width.fits(columns_of(&beside)) {
                _ = writeln!(text, "{}", beside.trim_end());
            } else {
                _ = writeln!(text, "{}", shown.trim_end());
                wrap(&mut text, self.width, &" ".repeat(self.indent + 4), &note);
            }
        }
        text
    }

    /// Bands, where there are any, and names.
    fn head(&self, shown: &[usize]) -> String {
        let columns = &self.table.columns;
        let mut bands = " ".repeat(self.indent);
        for (at, under) in shown.chunk_by(|a, b| columns[*a].band == columns[*b].band).enumerate() {
            let inner = span(self.table, under, &self.widths);
            let place = shown.iter().position(|one| *one == under[0]).unwrap_or(0);
            if at > 0 {
                bands.push_str(&" ".repeat(gap(&columns[shown[place - 1]], &columns[under[0]])));
            }
            match &columns[under[0]].band {
                Some(ColumnBand { title, suffix, .. }) => {
                    let has_room = columns_of(title) + 2 <= inner || suffix.is_empty();
                    bands.push_str(&band(if has_room { title } else { suffix }, inner));
                }
                None => bands.push_str(&" ".repeat(inner)),
            }
        }
        let names: Vec<TableCell> = columns.iter().map(|column| TableCell::from(column.name.as_str())).collect();
        let lines = [bands, self.line(shown, &names)];
        let shown = lines.iter().map(|line| line.trim_end()).filter(|line| !line.is_empty());
        shown.flat_map(|line| [line, "\n"]).collect()
    }

    /// One line.
    fn line(&self, shown: &[usize], cells: &[TableCell]) -> String {
        let mut line = " ".repeat(self.indent);
        for (place, at) in shown.iter().enumerate() {
            let (column, width) = (&self.table.columns[*at], self.widths[*at]);
            let text = cells.get(*at).map_or("", |cell| cell.text.as_str());
            if place > 0 {
                line.push_str(&" ".repeat(gap(&self.table.columns[shown[place - 1]], column)));
            }
            _ = if self.table.is_left(*at) { write!(line, "{text:<width$}") } else { write!(line, "{text:>width$}") };
        }
        line
    }

    fn under_their_names(&self, columns: &[usize]) -> String {
        let indent = " ".repeat(self.indent);
        let mut text = self.head(columns);
        for row in &self.table.rows {
            let name = row.cells.first().map_or("", |cell| cell.text.trim_end());
            if !name.is_empty() {
                _ = writeln!(text, "{indent}{name}");
            }
            _ = writeln!(text, "{indent}{}", self.line(columns, &row.cells).trim_end());
        }
        text
    }
}
