//! A report as text for a terminal: parts with a blank line between them, tables in columns, lines
//! broken at spaces.
//!
//! Widths count characters, each of which takes one column of a terminal. Nothing is cut or left
//! out of a report: a table that is too wide is printed in parts, one below the other, and a word
//! that is too long runs over the edge. An answer's table gives up columns instead, and says which
//! ([`narrowed`]).

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::tree::{
    DataTable, ListItem, NamedFact, ReportSection, ReportTree, SectionBlock, TableCell, TableColumn,
};

/// Indent under a title.
const INDENT: usize = 2;
/// Spaces between two columns.
const GAP: usize = 2;

/// Parts of a report with a blank line between them; empty ones are left out.
pub(crate) fn joined(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Sections with a blank line between them.
pub fn sections(sections: &[ReportSection], width: Width) -> String {
    joined(sections.iter().map(|one| section(one, width)))
}

/// A line for each fact, its name in front.
pub fn facts(facts: &[NamedFact], width: Width) -> String {
    let widest = facts.iter().map(|fact| columns_of(&fact.name)).max().unwrap_or(0);
    let mut text = String::new();
    for fact in facts {
        for (at, line) in fact.lines.iter().enumerate() {
            wrap(
                &mut text,
                width,
                &format!("{:<widest$}  ", if at == 0 { &fact.name } else { "" }),
                line,
            );
        }
    }
    text
}

/// What the words of a report mean: first the headings of its table, then its glossary.
pub(crate) fn glossary(report: &ReportTree, width: Width) -> String {
    let columns = report.table.columns.iter().filter(|column| !column.is_constant);
    let of_columns = columns.flat_map(|column| {
        let of_band = column.band.as_ref().map(|band| NamedFact::word(&band.title, band.meaning));
        of_band.into_iter().chain([NamedFact::word(&column.name, column.meaning)])
    });
    words(
        of_columns
            .chain(report.glossary.iter().map(|(word, meaning)| NamedFact::word(word, meaning))),
        width,
    )
}

/// Words with their meanings, each once. Words without a meaning are left out.
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
    let mut text =
        if section.title.is_empty() { String::new() } else { broken(&section.title, width) };
    let indent = " ".repeat(if section.title.is_empty() { 0 } else { INDENT });
    for block in &section.blocks {
        match block {
            SectionBlock::Paragraph(line) => {
                flow(&mut text, width, &indent, indent.len() + 2, line);
            }
            SectionBlock::List(items) => list(&mut text, items, &indent, width),
            SectionBlock::Table(table) => text.push_str(&self::table(table, indent.len(), width)),
            SectionBlock::Verbatim(lines) => {
                for line in lines.lines() {
                    verbatim(&mut text, &indent, line, width);
                }
            }
        }
    }
    text
}

/// A line that another program printed, as it is where there is room for it.
fn verbatim(text: &mut String, indent: &str, line: &str, width: Width) {
    if width.fits(indent.len() + columns_of(line)) {
        _ = writeln!(text, "{indent}{line}");
    } else {
        wrap(text, width, indent, line);
    }
}

/// The items of a list, with labels in front and hints below.
fn list(text: &mut String, items: &[ListItem], indent: &str, width: Width) {
    let widest = items.iter().map(|item| columns_of(&item.label)).max().unwrap_or(0);
    for item in items {
        for (at, line) in item.lines.iter().enumerate() {
            let label = if at == 0 { item.label.as_str() } else { "" };
            let before =
                if widest > 0 { format!("{indent}{label:<widest$}  ") } else { indent.to_owned() };
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

/// `title` between two bars, `width` wide; without bars if there is no room.
pub(crate) fn band(title: &str, width: usize) -> String {
    match width.saturating_sub(columns_of(title) + 2) {
        0 | 1 => right(title, width),
        bars => format!("{} {title} {}", "─".repeat(bars / 2), "─".repeat(bars - bars / 2)),
    }
}

/// A table whose columns are as wide as their cells. One that is too wide is split into parts, one
/// below the other.
pub fn table(table: &DataTable, indent: usize, width: Width) -> String {
    let shown: Vec<usize> =
        (0..table.columns.len()).filter(|at| !table.columns[*at].is_constant).collect();
    let layout = TableLayout::of(table, &shown, indent, width);
    if layout.fits(&shown) {
        return layout.part(&shown, true);
    }
    let parts = layout.parts(&shown);
    let last = parts.len().saturating_sub(1);
    parts.iter().enumerate().map(|(at, part)| layout.part(part, at == last)).collect()
}

/// A table that dropped columns to fit the width, and the names of what it dropped.
pub struct NarrowedTable {
    /// The table with the columns that stay.
    pub table: DataTable,
    /// What was dropped, in the order of the columns: the name of a column, or that of a band all
    /// of whose columns were.
    pub left: Vec<String>,
    /// Of each column of the whole table, whether it is in this one.
    pub stays: Vec<bool>,
}

/// The table without the columns for which there is no room. Columns that must stay are kept even
/// where they are too wide.
pub fn narrowed(table: &DataTable, indent: usize, width: Width) -> NarrowedTable {
    let all = table.columns.clone();
    let mut stays = vec![true; all.len()];
    let mut narrowed = table.clone();
    while !width.fits(columns_with_notes(&narrowed, indent)) {
        let with_units = narrowed.clone().with_units_for_bands();
        if width.fits(columns_with_notes(&with_units, indent)) {
            narrowed = with_units;
            break;
        }
        let staying = all.iter().zip(&stays).filter(|(_, stays)| **stays);
        let next = staying.map(|(column, _)| column.leaves).max().unwrap_or(0);
        if next == 0 {
            break;
        }
        for (column, stays) in all.iter().zip(&mut stays) {
            *stays &= column.leaves != next;
        }
        narrowed = table.clone().with_columns(&stays);
    }
    // One that left early may have room in the place of a wider one that left after it.
    let left: BTreeSet<u8> =
        all.iter().zip(&stays).filter(|(_, stays)| !**stays).map(|(it, _)| it.leaves).collect();
    for leaves in left {
        let is_one = |(column, stays): (&TableColumn, &bool)| *stays || column.leaves == leaves;
        let wider: Vec<bool> = all.iter().zip(&stays).map(is_one).collect();
        let with_it = table.clone().with_columns(&wider);
        if width.fits(columns_with_notes(&with_it, indent)) {
            (narrowed, stays) = (with_it, wider);
        }
    }
    NarrowedTable { table: narrowed, left: names_of_leaving(&all, &stays), stays }
}

fn names_of_leaving(columns: &[TableColumn], stays: &[bool]) -> Vec<String> {
    let numbered: Vec<(usize, &TableColumn)> = columns.iter().enumerate().collect();
    let mut names = Vec::new();
    for group in numbered.chunk_by(|(_, a), (_, b)| a.band == b.band) {
        match &group[0].1.band {
            Some(band) if group.iter().all(|(at, _)| !stays[*at]) => {
                names.push(without_unit(&band.title).to_owned());
            }
            Some(_) | None => {
                let leaving = group.iter().filter(|(at, _)| !stays[*at]);
                for (_, column) in leaving {
                    let name = without_unit(column.name.trim()).to_owned();
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
            }
        }
    }
    names
}

/// The name of a column or of a band where names are listed: `interval` for `interval, %`, `CPU` for
/// `CPU ms`.
fn without_unit(name: &str) -> &str {
    let name = name.split_once(", ").map_or(name, |(name, _)| name);
    name.strip_suffix(" ms").unwrap_or(name)
}

/// Columns of the widest line, the notes beside the rows included.
fn columns_with_notes(table: &DataTable, indent: usize) -> usize {
    let text = self::table(table, indent, Width::ANY);
    text.lines().map(columns_of).max().unwrap_or(0)
}

/// A table, the widths of its columns, and the room it has.
struct TableLayout<'a> {
    table: &'a DataTable,
    indent: usize,
    width: Width,
    widths: Vec<usize>,
}

impl<'a> TableLayout<'a> {
    fn of(table: &'a DataTable, shown: &[usize], indent: usize, width: Width) -> TableLayout<'a> {
        let widest = |(at, column): (usize, &TableColumn)| {
            let cells = table.rows.iter().filter_map(|row| row.cells.get(at));
            cells.map(|cell| columns_of(&cell.text)).fold(columns_of(&column.name), usize::max)
        };
        let widths = table.columns.iter().enumerate().map(widest).collect();
        let mut layout = TableLayout { table, indent, width, widths };
        // A band that is wider than its columns widens the last column.
        for under in shown.chunk_by(|a, b| table.columns[*a].band == table.columns[*b].band) {
            let last = under[under.len() - 1];
            if let Some(band) = &table.columns[last].band {
                layout.widths[last] += columns_of(&band.title).saturating_sub(layout.span(under));
            }
        }
        layout
    }

    /// The columns of each part of a table that is too wide: those that say what a row is about, and
    /// as many others as fit. Those under one band stay together if they can.
    fn parts(&self, shown: &[usize]) -> Vec<Vec<usize>> {
        let columns = &self.table.columns;
        // Without its first column a row would have no name.
        let lead = self.table.lead.max(1);
        let (lead, rest): (Vec<usize>, Vec<usize>) = shown.iter().partition(|at| **at < lead);
        let is_one = |a: &usize, b: &usize| {
            columns[*a].band.is_some() && columns[*a].band == columns[*b].band
        };
        let mut units: Vec<&[usize]> = Vec::new();
        for unit in rest.chunk_by(is_one) {
            if self.fits(&[lead.as_slice(), unit].concat()) {
                units.push(unit);
            } else {
                units.extend(unit.chunks(1));
            }
        }
        let mut parts: Vec<Vec<usize>> = Vec::new();
        for unit in units {
            match parts.last_mut() {
                Some(part) if self.fits(&[part.as_slice(), unit].concat()) => part.extend(unit),
                _ => parts.push([lead.as_slice(), unit].concat()),
            }
        }
        parts
    }

    fn span(&self, columns: &[usize]) -> usize {
        columns.iter().map(|at| self.widths[*at] + GAP).sum::<usize>().saturating_sub(GAP)
    }

    /// The layout of these columns alone: a band is only as wide as those of them under it.
    fn only(&self, columns: &[usize]) -> TableLayout<'a> {
        TableLayout::of(self.table, columns, self.indent, self.width)
    }

    fn fits(&self, columns: &[usize]) -> bool {
        self.width.fits(self.indent + self.only(columns).span(columns))
    }

    fn part(&self, columns: &[usize], has_notes: bool) -> String {
        self.only(columns).lines(columns, has_notes)
    }

    fn lines(&self, columns: &[usize], has_notes: bool) -> String {
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

    /// Bands, if there are any, and headings.
    fn head(&self, shown: &[usize]) -> String {
        let columns = &self.table.columns;
        let over = |under: &[usize]| match &columns[under[0]].band {
            Some(title) => band(&title.title, self.span(under)),
            None => " ".repeat(self.span(under)),
        };
        let bands: Vec<String> =
            shown.chunk_by(|a, b| columns[*a].band == columns[*b].band).map(over).collect();
        let bands = " ".repeat(self.indent) + &bands.join(&" ".repeat(GAP));
        let names: Vec<TableCell> =
            columns.iter().map(|column| TableCell::from(column.name.as_str())).collect();
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

/// The widest line in columns; the default is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Width(Option<usize>);

impl Width {
    /// No limit.
    pub const ANY: Width = Width(None);
    /// The narrowest limit: narrower terminals get lines of this width.
    pub const LEAST: usize = 40;

    /// At most so many columns, but never less than [`Width::LEAST`].
    pub fn of(columns: usize) -> Width {
        Width(Some(columns.max(Width::LEAST)))
    }

    /// The same limit, or this one where that is narrower.
    #[must_use]
    pub fn at_most(self, columns: usize) -> Width {
        Width::of(self.0.unwrap_or(columns).min(columns))
    }

    /// The columns, if there is a limit.
    pub fn columns(self) -> Option<usize> {
        self.0
    }

    /// Whether a line of so many columns fits.
    pub fn fits(self, columns: usize) -> bool {
        self.0.is_none_or(|most| columns <= most)
    }
}

/// Columns of a text on one line.
pub(crate) fn columns_of(text: &str) -> usize {
    text.chars().count()
}

/// A line and its line end, broken at spaces where it is too wide; continuations are indented by
/// two.
pub fn broken(line: &str, width: Width) -> String {
    let mut text = String::new();
    flow(&mut text, width, "", 2, line);
    text
}

/// `line` after `before`, broken at spaces; continuations are indented by the length of `before`,
/// and by two more where the line itself is indented.
pub fn wrap(text: &mut String, width: Width, before: &str, line: &str) {
    let own_indent = line.len() - line.trim_start().len();
    let before = format!("{before}{}", &line[..own_indent]);
    let hang = columns_of(&before) + if own_indent > 0 { 2 } else { 0 };
    flow(text, width, &before, hang, line.trim_start());
}

/// `line` after `before`: unbroken where it fits on this line or the next, else broken at spaces;
/// continuations are indented by `hang`.
pub(crate) fn flow(text: &mut String, width: Width, before: &str, hang: usize, line: &str) {
    let gap = |before: &str| if before.is_empty() || before.ends_with(' ') { "" } else { " " };
    let fits = |before: &str, part: &str| {
        width.fits(columns_of(before) + gap(before).len() + columns_of(part))
    };
    let is_whole = width.fits(hang + columns_of(line)) || fits(before, line);
    // A command to paste stays on one line if there is one that is wide enough.
    let has_room = |command: &str| width.fits(hang + columns_of(command));
    let parts = if is_whole { vec![line] } else { with_commands(line, has_room) };
    let mut current = before.to_owned();
    for part in parts {
        if !fits(&current, part) && columns_of(&current) > hang {
            _ = writeln!(text, "{}", current.trim_end());
            current = " ".repeat(hang);
        }
        current += gap(&current);
        current += part;
    }
    _ = writeln!(text, "{}", current.trim_end());
}

/// The pieces of a line that must not be broken: commands in backticks that fit, and those of
/// [`unbroken`].
fn with_commands(line: &str, fits: impl Fn(&str) -> bool) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while let Some(begin) = rest.find('`') {
        let Some(length) = rest[begin + 1..].find('`') else { break };
        let end = begin + length + 2;
        let end = rest[end..].find(' ').map_or(rest.len(), |space| end + space);
        // What is glued to the command, such as a bracket before it, stays with it.
        let begin = rest[..begin].rfind(' ').map_or(0, |space| space + 1);
        let command = &rest[begin..end];
        pieces.extend(unbroken(&rest[..begin]));
        if fits(command) {
            pieces.push(command);
        } else {
            pieces.extend(unbroken(command));
        }
        rest = &rest[end..];
    }
    pieces.extend(unbroken(rest));
    pieces
}

/// The pieces of a line that must not be broken: words, numbers with their units as in `3 %`, and
/// short parts of a line that has several, as in `closed loop · timeout 30 s`.
fn unbroken(piece: &str) -> impl Iterator<Item = &str> {
    piece.trim().split(" · ").enumerate().flat_map(|(at, part)| {
        let separator = (at > 0).then_some("·");
        let is_short = at > 0 && columns_of(part) <= SHORT_PART;
        let words = if is_short { vec![part] } else { words_with_units(part).collect() };
        separator.into_iter().chain(words)
    })
}

/// Columns of a part of a line that is not broken.
const SHORT_PART: usize = 16;

fn words_with_units(part: &str) -> impl Iterator<Item = &str> {
    let mut rest = part.trim();
    std::iter::from_fn(move || {
        let is_end = |at: &usize| {
            let unit = rest[at + 1..].split(' ').next().unwrap_or_default();
            let unit = unit.trim_end_matches(|it: char| it.is_ascii_punctuation() && it != '%');
            let is_number = |text: &str| text.ends_with(|it: char| it.is_ascii_digit());
            let before = &rest[..*at];
            let is_of_number = is_number(before) && (UNITS.contains(&unit) || unit == "x");
            // `2 x 5`
            let is_of_size = before.strip_suffix(" x").is_some_and(is_number);
            !(is_of_number || is_of_size)
        };
        let end = rest.match_indices(' ').map(|(at, _)| at).find(is_end).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after.trim_start();
        (!word.is_empty()).then_some(word)
    })
}

/// Units that stay on the line of their number.
const UNITS: [&str; 17] = [
    "%", "ns", "µs", "ms", "s", "min", "h", "B", "kB", "MB", "GB", "KiB", "MiB", "GiB", "MiB/s",
    "CPU", "CPUs",
];

/// A shell comment, each line with its `#`.
pub(crate) fn comment(indent: &str, words: &str, width: Width) -> String {
    let before = format!("{indent}#");
    let mut text = String::new();
    let mut line = before.clone();
    for word in unbroken(words) {
        if !width.fits(columns_of(&line) + 1 + columns_of(word)) && line != before {
            _ = writeln!(text, "{line}");
            line.clone_from(&before);
        }
        line.push(' ');
        line.push_str(word);
    }
    text + &line + "\n"
}

/// A command line broken between words, with `\` at the line ends so that a shell reads it as one.
pub(crate) fn command(line: &str, width: Width) -> String {
    command_lines("", line, width)
}

/// The same, indented.
pub fn command_lines(indent: &str, line: &str, width: Width) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut columns = 0;
    for word in flags_with_values(shell_words(line), indent.len() + 4, width) {
        let word = word.as_str();
        let more = columns_of(word);
        match lines.last_mut() {
            // Each line but the last ends in ` \`.
            Some(line) if width.fits(columns + 1 + more + 2) => {
                line.extend([" ", word]);
                columns += 1 + more;
            }
            Some(_) => {
                let before = indent_of_word(word, indent.len() + 4, width);
                lines.push(" ".repeat(before) + word);
                columns = before + more;
            }
            None => {
                lines.push(format!("{indent}{word}"));
                columns = indent.len() + more;
            }
        }
    }
    lines.join(" \\\n") + "\n"
}

/// The words of a command line, a flag and its value as one where a line of their own, indented by
/// `indent`, has room for both, or no line has room for the value. What follows a flag is taken for
/// its value unless it is a flag.
pub(crate) fn flags_with_values(words: Vec<&str>, indent: usize, width: Width) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut is_flag_before = false;
    for word in words {
        let is_value = is_flag_before && !word.starts_with('-');
        let is_flag = word.starts_with('-') && word != "--" && !word.contains('=');
        // Each line but the last ends in ` \`.
        let both = pieces.last().map(|flag| indent + columns_of(flag) + 1 + columns_of(word) + 2);
        match pieces.last_mut() {
            Some(flag)
                if is_value
                    && (both.is_some_and(|both| width.fits(both))
                        || !width.fits(LEAST_INDENT + columns_of(word) + 2)) =>
            {
                flag.extend([" ", word]);
            }
            _ => pieces.push(word.to_owned()),
        }
        is_flag_before = is_flag;
    }
    pieces
}

/// How far a line that goes on is indented at least: a word in the first column looks like a command.
const LEAST_INDENT: usize = 2;

/// How far a word of a command line is indented on a line of its own: a word cannot be broken, but
/// it can begin further left, so that the ` \` behind it still fits.
pub(crate) fn indent_of_word(word: &str, most: usize, width: Width) -> usize {
    let room = width.columns().unwrap_or(usize::MAX).saturating_sub(columns_of(word) + 2);
    // A word that fits in no line is broken by the terminal wherever it begins.
    if room < LEAST_INDENT { most } else { room.min(most) }
}

/// The words of a command line as a shell splits them, with their quotes.
pub(crate) fn shell_words(line: &str) -> Vec<&str> {
    let mut quote = None;
    let mut is_escaped = false;
    let parts = line.split(move |c| {
        let is_end = c == ' ' && quote.is_none() && !is_escaped;
        match quote {
            _ if is_escaped => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            Some(open) if c == open => quote = None,
            _ => {}
        }
        // In single quotes a backslash is a backslash.
        is_escaped = c == '\\' && quote != Some('\'') && !is_escaped;
        is_end
    });
    parts.filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "0123456789 0123456789 0123456789 0123456789";

    #[test]
    fn a_command_in_backticks_is_not_broken_where_a_line_has_room_for_it() {
        let wrapped = |columns, line: &str| {
            let mut text = String::new();
            wrap(&mut text, Width::of(columns), "  Try  ", line);
            text
        };
        let line = "if so, theory says what would do: `longtail predict -w2 -c 40`, or so.";
        assert_eq!(
            wrapped(50, line),
            "  Try  if so, theory says what would do:\n       `longtail predict -w2 -c 40`, or so.\n"
        );
        let long = line.replace("-c 40", "--service 101ms --cpus 2 -c 40");
        assert!(wrapped(50, &long).lines().all(|line| line.len() <= 50), "no line has room for it");
    }

    #[test]
    fn a_long_line_is_broken_at_spaces_and_hangs_under_its_beginning() {
        let word = "x".repeat(200);
        let narrow = Width::of(40);
        for (width, before, line, expected) in [
            (
                narrow,
                "load     ",
                TEXT.to_owned(),
                "load     0123456789 0123456789\n         0123456789 0123456789\n".to_owned(),
            ),
            (
                narrow,
                "",
                format!("  {TEXT}"),
                "  0123456789 0123456789 0123456789\n    0123456789\n".to_owned(),
            ),
            // What fits is as it was.
            (narrow, "a  ", "b  c".to_owned(), "a  b  c\n".to_owned()),
            (Width::ANY, "  ", format!("{TEXT}  {TEXT}"), format!("  {TEXT}  {TEXT}\n")),
            // A word that is too long stays whole, and starts a new line only after another word.
            (Width::of(110), "  ", format!("at {word}"), format!("  at\n  {word}\n")),
            (narrow, "  ", word.clone(), format!("  {word}\n")),
        ] {
            let mut text = String::new();
            wrap(&mut text, width, before, &line);
            assert_eq!(text, expected);
        }
        assert_eq!(
            Width::of(1).columns(),
            Some(Width::LEAST),
            "fewer columns than the least are the least"
        );
    }

    #[test]
    fn a_number_keeps_its_unit() {
        let parts: Vec<&str> =
            unbroken("p99 3251 → 418 ms (-87 %), 5 min each: 23.0 KiB").collect();
        assert_eq!(parts, ["p99", "3251", "→", "418 ms", "(-87 %),", "5 min", "each:", "23.0 KiB"]);
        let parts: Vec<&str> = unbroken("50 connections, 50 requests · timeout 30 s").collect();
        assert_eq!(parts, ["50", "connections,", "50", "requests", "·", "timeout 30 s"]);
    }

    #[test]
    fn a_command_line_is_broken_where_a_shell_parts_its_words() {
        let line = r"longtail sweep -w2 -C 'a  very long name.rb' --url 'it'\''s one word of a shell' -- ruby x.rb";
        let text = command(line, Width::of(40));
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        assert_eq!(text.replace(" \\\n    ", " "), format!("{line}\n"));
        assert!(
            text.contains("'a  very long name.rb'")
                && text.contains(r"'it'\''s one word of a shell'"),
            "{text}"
        );
        assert_eq!(command(line, Width::ANY), format!("{line}\n"));
    }

    #[test]
    fn a_flag_and_its_value_stay_together_where_they_fit() {
        let line = "longtail load -c 2 --method HEAD --keep http://127.0.0.1:7304/ --for 30s";
        for columns in 30..80 {
            let text = command(line, Width::of(columns));
            assert!(text.contains("--method HEAD") && text.contains("--for 30s"), "{text}");
            assert_eq!(text.replace(" \\\n    ", " "), format!("{line}\n"));
        }
    }

    #[test]
    fn a_word_that_hardly_fits_begins_further_left() {
        for length in 60..=76 {
            let word = "x".repeat(length);
            let text = command(&format!("longtail sweep --puma {word} -k"), Width::of(80));
            assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        }
        // No line has room for this one.
        let word = format!("'{}'", "x y ".repeat(20));
        assert_eq!(
            command(&format!("longtail load --mix {word} -k"), Width::of(80)),
            format!("longtail load \\\n    --mix {word} \\\n    -k\n")
        );
    }
}
