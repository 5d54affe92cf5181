//! What a report has beyond the answer, before it is laid out: a tree of sections that is built
//! once and rendered as text, Markdown, HTML or CSV. Nothing here knows about lines, spaces or
//! widths.

use std::borrow::Cow;

use model::Nanos;

use crate::number::{self, NONE};

/// The report of one study.
#[derive(Default)]
pub(crate) struct ReportTree {
    /// The command line that repeats the study.
    pub(crate) command_line: String,
    /// What was measured and where, beyond what the answer says.
    pub(crate) facts: Vec<NamedFact>,
    /// The table of runs.
    pub(crate) table: DataTable,
    /// Everything else, in the order in which readers ask for it.
    pub(crate) sections: Vec<ReportSection>,
    /// Words that are no heading of the table, with their meanings.
    pub(crate) glossary: Vec<(&'static str, &'static str)>,
    /// How long it all took.
    pub(crate) total_time: Nanos,
}

/// A fact about what was measured: its name and its lines.
#[derive(Clone)]
pub struct NamedFact {
    pub(crate) name: Cow<'static, str>,
    pub(crate) lines: Vec<String>,
}

/// A title and the blocks under it.
pub struct ReportSection {
    pub(crate) title: String,
    pub(crate) blocks: Vec<SectionBlock>,
    /// Whether it is of second interest: Markdown leaves it out and HTML folds it.
    pub(crate) is_detail: bool,
}

/// A block under a title.
pub(crate) enum SectionBlock {
    /// Sentences.
    Paragraph(String),
    List(Vec<ListItem>),
    Table(DataTable),
    /// What another program printed, unchanged.
    Verbatim(String),
}

/// An item of more lines than this shows the first, and folds the others.
pub(crate) const MOST_LINES: usize = 2;

/// An item of a list.
#[derive(Default)]
pub struct ListItem {
    /// The run that it is about; empty if that is clear.
    pub(crate) label: String,
    pub(crate) lines: Vec<String>,
    /// What to do about it.
    pub(crate) hints: Vec<String>,
}

/// A table.
#[derive(Clone, Default)]
pub struct DataTable {
    pub(crate) columns: Vec<TableColumn>,
    pub(crate) rows: Vec<TableRow>,
    /// How many columns say what a row is about. They are repeated in each part of a table that is
    /// too wide.
    pub(crate) lead: usize,
    /// What heads the notes of the rows where they are a column; empty if they speak for themselves.
    pub(crate) notes: String,
}

/// A column. Where a table is split it stays with those under the same band.
#[derive(Clone, Default)]
pub struct TableColumn {
    pub(crate) name: String,
    /// Its name in CSV; empty if it is the same.
    pub(crate) key: String,
    pub(crate) band: Option<ColumnBand>,
    /// Its unit, where neither name nor band says it. Markdown has no bands.
    pub(crate) unit: &'static str,
    /// What its name means; empty if that is clear, or where its band says it.
    pub(crate) meaning: &'static str,
    /// Whether only CSV has it, because it says the same in each row.
    pub(crate) is_constant: bool,
    /// Where an answer's table is too wide, the columns with the highest number leave first, all of
    /// one number together. Those with 0 stay.
    pub(crate) leaves: u8,
}

/// A heading over neighbouring columns.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ColumnBand {
    pub(crate) title: String,
    /// What follows a column's name in formats without bands.
    pub(crate) suffix: Cow<'static, str>,
    /// What all its columns mean, as in [`TableColumn`].
    pub(crate) meaning: &'static str,
}

/// A row of a table; it may have fewer cells than there are columns.
#[derive(Clone, Default)]
pub struct TableRow {
    pub(crate) cells: Vec<TableCell>,
    /// A note at its end.
    pub(crate) note: String,
}

/// A cell: what is shown, and the number behind it where it is one.
#[derive(Clone, Default)]
pub struct TableCell {
    pub(crate) text: String,
    pub(crate) value: Option<f64>,
}

impl TableCell {
    /// A number as `shown` prints it; a dash if there is none.
    pub fn number(value: Option<f64>, shown: impl Fn(f64) -> String) -> TableCell {
        TableCell { text: value.map_or_else(|| NONE.to_owned(), shown), value }
    }

    /// A time, in a column of milliseconds.
    pub fn time(time: Option<Nanos>) -> TableCell {
        TableCell {
            text: number::or_none(time, number::milliseconds),
            value: time.map(Nanos::as_millis_f64),
        }
    }

    /// How many.
    pub fn count(count: impl Into<u64>) -> TableCell {
        TableCell::counted(Some(count.into()))
    }

    /// How many; a dash where that is not known.
    pub(crate) fn counted(count: Option<u64>) -> TableCell {
        TableCell {
            text: number::or_none(count, |n| n.to_string()),
            value: count.map(|n| n as f64),
        }
    }
}

impl<T: Into<String>> From<T> for TableCell {
    fn from(text: T) -> TableCell {
        TableCell { text: text.into(), value: None }
    }
}

impl TableRow {
    /// A row of these cells.
    pub fn new(cells: impl IntoIterator<Item = impl Into<TableCell>>) -> TableRow {
        TableRow { cells: cells.into_iter().map(Into::into).collect(), ..TableRow::default() }
    }

    /// The same with a note.
    #[must_use]
    pub fn noted(self, note: impl Into<String>) -> TableRow {
        TableRow { note: note.into(), ..self }
    }
}

impl TableColumn {
    /// A column of this name.
    pub fn new(name: impl Into<String>) -> TableColumn {
        TableColumn { name: name.into(), ..TableColumn::default() }
    }

    /// The same under a band.
    #[must_use]
    pub fn under(self, band: &ColumnBand) -> TableColumn {
        TableColumn { band: Some(band.clone()), ..self }
    }

    /// The same column, but one that leaves a narrow table as its field `leaves` says.
    #[must_use]
    pub fn leaving(self, leaves: u8) -> TableColumn {
        TableColumn { leaves, ..self }
    }

    /// Its name in formats without bands.
    pub(crate) fn full_name(&self) -> String {
        let suffix = self.band.as_ref().map_or("", |band| &*band.suffix);
        let name = format!("{} {suffix}", self.name.trim());
        let unit = if self.unit.is_empty() { String::new() } else { format!(", {}", self.unit) };
        name.trim_end().to_owned() + &unit
    }
}

impl ColumnBand {
    /// A title, and what follows a column's name in formats without bands.
    pub fn new(title: impl Into<String>, suffix: impl Into<Cow<'static, str>>) -> ColumnBand {
        ColumnBand { title: title.into(), suffix: suffix.into(), meaning: "" }
    }
}

impl DataTable {
    /// A table with these headings, of which the first says what a row is about.
    pub fn new<'a>(
        names: impl IntoIterator<Item = &'a str>,
        rows: impl IntoIterator<Item = TableRow>,
    ) -> DataTable {
        DataTable::of_columns(names.into_iter().map(TableColumn::new), rows)
    }

    /// A table with these columns, of which the first says what a row is about.
    pub fn of_columns(
        columns: impl IntoIterator<Item = TableColumn>,
        rows: impl IntoIterator<Item = TableRow>,
    ) -> DataTable {
        DataTable {
            columns: columns.into_iter().collect(),
            rows: rows.into_iter().collect(),
            lead: 1,
            notes: String::new(),
        }
    }

    /// The same table with those of its columns that stay.
    pub(crate) fn with_columns(self, stays: &[bool]) -> DataTable {
        fn kept<T>(all: Vec<T>, stays: &[bool]) -> Vec<T> {
            all.into_iter().zip(stays).filter_map(|(one, stays)| stays.then_some(one)).collect()
        }
        let rows = self.rows.into_iter();
        DataTable {
            lead: stays.iter().take(self.lead).filter(|stays| **stays).count(),
            columns: kept(self.columns, stays),
            notes: self.notes,
            rows: rows.map(|row| TableRow { cells: kept(row.cells, stays), ..row }).collect(),
        }
    }

    /// The same table with only the unit of each band's title: `ms` for `response time, ms`.
    pub(crate) fn with_units_for_bands(mut self) -> DataTable {
        for band in self.columns.iter_mut().filter_map(|column| column.band.as_mut()) {
            if let Some((_, unit)) = band.title.rsplit_once(", ") {
                band.title = unit.to_owned();
            }
        }
        self
    }

    /// Whether a column has words that say what a row is about, which are aligned left.
    pub(crate) fn is_left(&self, at: usize) -> bool {
        let is_number = |row: &TableRow| row.cells.get(at).is_some_and(|cell| cell.value.is_some());
        at < self.lead && !self.rows.iter().any(is_number)
    }
}

impl NamedFact {
    /// A fact of these lines; empty ones are left out.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        lines: impl IntoIterator<Item = String>,
    ) -> NamedFact {
        NamedFact {
            name: name.into(),
            lines: lines.into_iter().filter(|line| !line.is_empty()).collect(),
        }
    }

    /// A word and what it means.
    pub(crate) fn word(word: &str, meaning: &str) -> NamedFact {
        NamedFact::new(word.to_owned(), [meaning.to_owned()])
    }
}

impl ListItem {
    /// One line.
    pub fn new(line: impl Into<String>) -> ListItem {
        ListItem { lines: vec![line.into()], ..ListItem::default() }
    }

    /// Lines about what the label names.
    pub fn labelled(label: impl Into<String>, lines: impl IntoIterator<Item = String>) -> ListItem {
        ListItem { label: label.into(), lines: lines.into_iter().collect(), ..ListItem::default() }
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> ListItem {
        self.hints.push(hint.into());
        self
    }
}

impl ReportSection {
    /// An empty section that is always shown.
    pub fn new(title: impl Into<String>) -> ReportSection {
        ReportSection { title: title.into(), blocks: Vec::new(), is_detail: false }
    }

    /// An empty section of second interest.
    pub fn detail(title: impl Into<String>) -> ReportSection {
        ReportSection { is_detail: true, ..ReportSection::new(title) }
    }

    fn with(mut self, block: SectionBlock, is_empty: bool) -> ReportSection {
        if !is_empty {
            self.blocks.push(block);
        }
        self
    }

    /// The same with a paragraph for each of these; an empty one is left out.
    #[must_use]
    pub fn paragraphs(
        mut self,
        texts: impl IntoIterator<Item = impl Into<String>>,
    ) -> ReportSection {
        let texts = texts.into_iter().map(Into::into).filter(|text: &String| !text.is_empty());
        self.blocks.extend(texts.map(SectionBlock::Paragraph));
        self
    }

    /// The same with a list, where there is anything to list.
    #[must_use]
    pub fn list(self, items: impl IntoIterator<Item = ListItem>) -> ReportSection {
        let items: Vec<ListItem> = items.into_iter().collect();
        let is_empty = items.is_empty();
        self.with(SectionBlock::List(items), is_empty)
    }

    /// The same with a list of single lines.
    #[must_use]
    pub fn lines(self, lines: impl IntoIterator<Item = impl Into<String>>) -> ReportSection {
        self.list(lines.into_iter().map(ListItem::new))
    }

    /// The same with a table, where it has rows.
    #[must_use]
    pub fn table(self, table: DataTable) -> ReportSection {
        let is_empty = table.rows.is_empty();
        self.with(SectionBlock::Table(table), is_empty)
    }

    /// The same with what another program printed.
    pub(crate) fn verbatim(self, text: &str) -> ReportSection {
        self.with(SectionBlock::Verbatim(text.to_owned()), text.is_empty())
    }

    /// The section, unless it is empty.
    pub fn filled(self) -> Option<ReportSection> {
        (!self.blocks.is_empty()).then_some(self)
    }
}
