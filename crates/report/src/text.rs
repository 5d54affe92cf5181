//! A report as text for a terminal: parts with a blank line between them, tables in columns.
//!
//! Widths are of characters, each one column wide on a terminal. Nothing is ever cut or left out: a table that is too wide is printed in
//! parts, one below the other.

use std::fmt::Write as _;

use crate::tree::{DataTable, ListItem, NamedFact, ReportSection, ReportTree, SectionBlock, TableCell, TableColumn};
use crate::width::{self, Width, columns_of, flow, wrap};

/// Under a title.
const INDENT: usize = 2;
/// Between two columns.
const GAP: usize = 2;

/// Parts of a report with a blank line between them; empty ones are left out.
pub(crate) fn joined(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Sections with a blank line between them.
pub fn sections(sections: &[ReportSection], width: Width) -> String {
    joined(sections.iter().map(|one| section(one, width)))
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

/// What the words of a report mean: those of its table's columns, then its own.
pub(crate) fn glossary(report: &ReportTree, width: Width) -> String {
    let columns = report.table.columns.iter().filter(|column| !column.is_constant);
    let of_columns = columns.flat_map(|column| {
        let of_band = column.band.as_ref().map(|band| NamedFact::word(&band.title, band.meaning));
        of_band.into_iter().chain([NamedFact::word(&column.name, column.meaning)])
    });
    words(of_columns.chain(report.glossary.iter().map(|(word, meaning)| NamedFact::word(word, meaning))), width)
}

/// Words with what they mean, each once; one without a meaning is plain.
pub(crate) fn words(words: impl IntoIterator<Item = NamedFact>, width: Width) -> String {
    let mut explained: Vec<NamedFact> = Vec::new();
    for word in words {
        if !explained.iter().any(|known| known.name == word.name) && !word.lines.is_empty() {
            explained.push(word);
        }
    }
    facts(&explained, width)
}

fn section(section: &ReportSection, width: Width) -> String {
    let mut text = if section.title.is_empty() { String::new() } else { width::broken(&section.title, width) };
    let indent = " ".repeat(if section.title.is_empty() { 0 } else { INDENT });
    for block in &section.blocks {
        match block {
            SectionBlock::Paragraph(line) => flow(&mut text, width, &indent, indent.len() + 2, line),
            SectionBlock::List(items) => list(&mut text, items, &indent, width),
            SectionBlock::Table(table) => text.push_str(&self::table(table, indent.len(), width)),
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
            flow(text, width, &before, columns_of(&before) + 2, line);
        }
        for hint in &item.hints {
            flow(text, width, &format!("{indent}  → "), indent.len() + 4, hint);
        }
    }
}

/// Right-aligned.
pub(crate) fn right(text: &str, width: usize) -> String {
    format!("{text:>width$}")
}

/// `title` between two bars, `width` wide; alone where there is no room for them.
pub(crate) fn band(title: &str, width: usize) -> String {
    match width.saturating_sub(columns_of(title) + 2) {
        0 | 1 => right(title, width),
        bars => format!("{} {title} {}", "─".repeat(bars / 2), "─".repeat(bars - bars / 2)),
    }
}

/// A table in columns as wide as their cells; in parts one below the other where it is too wide.
pub(crate) fn table(table: &DataTable, indent: usize, width: Width) -> String {
    let shown: Vec<usize> = (0..table.columns.len()).filter(|at| !table.columns[*at].is_constant).collect();
    let widest = |(at, column): (usize, &TableColumn)| {
        let cells = table.rows.iter().filter_map(|row| row.cells.get(at)).map(|cell| columns_of(&cell.text));
        cells.fold(columns_of(&column.name), usize::max)
    };
    let mut layout =
        TableLayout { table, indent, width, widths: table.columns.iter().enumerate().map(widest).collect() };
    // A band that is wider than its columns widens the last of them.
    for under in shown.chunk_by(|a, b| table.columns[*a].band == table.columns[*b].band) {
        let last = under[under.len() - 1];
        if let Some(band) = &table.columns[last].band {
            layout.widths[last] += columns_of(&band.title).saturating_sub(layout.span(under));
        }
    }
    let (lead, rest): (Vec<usize>, Vec<usize>) = shown.iter().partition(|at| **at < table.lead);
    if layout.fits(&shown) {
        return layout.part(&shown, true);
    }
    let is_one =
        |a: &usize, b: &usize| table.columns[*a].band.is_some() && table.columns[*a].band == table.columns[*b].band;
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for unit in rest.chunk_by(is_one) {
        match parts.last_mut() {
            Some(part) if layout.fits(&[part.as_slice(), unit].concat()) => part.extend(unit),
            _ => parts.push([lead.as_slice(), unit].concat()),
        }
    }
    let last = parts.len().saturating_sub(1);
    parts.iter().enumerate().map(|(at, part)| layout.part(part, at == last)).collect()
}

/// A table, the widths of its columns, and the room it has.
struct TableLayout<'a> {
    table: &'a DataTable,
    indent: usize,
    width: Width,
    widths: Vec<usize>,
}

impl TableLayout<'_> {
    fn span(&self, columns: &[usize]) -> usize {
        columns.iter().map(|at| self.widths[*at] + GAP).sum::<usize>().saturating_sub(GAP)
    }

    fn fits(&self, columns: &[usize]) -> bool {
        self.width.fits(self.indent + self.span(columns))
    }

    fn part(&self, columns: &[usize], has_notes: bool) -> String {
        let mut text = self.head(columns);
        for row in &self.table.rows {
            let shown = self.line(columns, &row.cells);
            let note = if has_notes { row.note.as_str() } else { "" };
            let beside = format!("{shown}  {note}");
            if note.is_empty() || self.width.fits(columns_of(&beside)) {
                _ = writeln!(text, "{}", beside.trim_end());
            } else {
                _ = writeln!(text, "{}", shown.trim_end());
                wrap(&mut text, self.width, &" ".repeat(self.indent + 4), note);
            }
        }
        text
    }

    /// Bands, where there are any, and names.
    fn head(&self, shown: &[usize]) -> String {
        let columns = &self.table.columns;
        let over = |under: &[usize]| match &columns[under[0]].band {
            Some(title) => band(&title.title, self.span(under)),
            None => " ".repeat(self.span(under)),
        };
        let bands: Vec<String> = shown.chunk_by(|a, b| columns[*a].band == columns[*b].band).map(over).collect();
        let bands = " ".repeat(self.indent) + &bands.join(&" ".repeat(GAP));
        let names: Vec<TableCell> = columns.iter().map(|column| TableCell::from(column.name.as_str())).collect();
        let lines = [bands, self.line(shown, &names)];
        let shown = lines.iter().map(|line| line.trim_end()).filter(|line| !line.is_empty());
        shown.flat_map(|line| [line, "\n"]).collect()
    }

    /// One line, up to the last cell that the row has.
    fn line(&self, shown: &[usize], cells: &[TableCell]) -> String {
        let known = shown.iter().filter_map(|at| Some((*at, cells.get(*at)?.text.as_str())));
        let aligned = known.map(|(at, text)| {
            let width = self.widths[at];
            if self.table.is_left(at) { format!("{text:<width$}") } else { right(text, width) }
        });
        " ".repeat(self.indent) + &aligned.collect::<Vec<_>>().join(&" ".repeat(GAP))
    }
}
