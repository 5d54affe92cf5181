//! What a column of runs is: its names, what it means, the figure it takes from a run, and how that
//! figure is written in a table, in CSV and in JSON.

use std::collections::BTreeMap;

use model::comparison::Metric;
use model::{Nanos, Study};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::number::{self, NONE};
use crate::run_summary::{SummaryRun, SummaryVerdict, millis, range_of_few, rounded};
use crate::tree::{ColumnBand, TableCell, TableColumn};

/// The tables of a full report with a row for each run. CSV is made from the same tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunTable {
    Sweep,
    /// A sweep whose load another generator made: its figures are what that generator printed.
    OtherGenerator,
    Bodies,
    Comparison,
    Load,
}

impl RunTable {
    /// The table of a study's runs.
    pub(crate) fn of(study: &Study) -> RunTable {
        match study {
            Study::Sweep(study) if study.plan.with.is_some() => RunTable::OtherGenerator,
            Study::Sweep(_) => RunTable::Sweep,
            Study::Bodies(_) => RunTable::Bodies,
            Study::Compare(_) => RunTable::Comparison,
            // Each trial is a load.
            Study::Load(_) | Study::Capacity(_) => RunTable::Load,
        }
    }
}

/// A column: declared once, shown wherever its figure is wanted.
pub(crate) struct RunColumn {
    /// Its heading in a full report.
    pub(crate) name: &'static str,
    /// Its name in CSV; empty if the heading will do.
    pub(crate) csv: &'static str,
    /// Its unit, for formats without bands (Markdown); empty if the heading says it.
    pub(crate) unit: &'static str,
    /// What the heading means; empty if that is plain, or where the band says it.
    pub(crate) meaning: fn(RunTable) -> &'static str,
    /// The heading over it and its neighbours.
    pub(crate) band: Option<fn(RunTable) -> ColumnBand>,
    pub(crate) figure: FigureSource,
    /// How a number is written; counts, times and words are written the same in every column.
    pub(crate) shown: fn(f64) -> String,
    /// The mark that may follow its figure in the answer.
    pub(crate) mark: FigureMark,
    /// Whether it is shown even for an invalid run, because it was asked for and not measured.
    pub(crate) stays_when_invalid: bool,
    /// The tables that have it.
    pub(crate) tables: &'static [RunTable],
    /// Where it is shown, given the figures of these runs.
    pub(crate) presence: fn(&[SummaryRun<'_>]) -> ColumnPresence,
}

/// A column without a name, from which the others are made.
pub(crate) const PLAIN: RunColumn = RunColumn {
    name: "",
    csv: "",
    unit: "",
    meaning: |_| "",
    band: None,
    figure: FigureSource::Of(|_| RunFigure::Unknown),
    shown: number::significant,
    mark: FigureMark::Never,
    stays_when_invalid: false,
    tables: &[],
    presence: |_| ColumnPresence::Shown,
};

/// Where a column's figure comes from.
#[derive(Clone, Copy)]
pub(crate) enum FigureSource {
    Of(fn(&SummaryRun<'_>) -> RunFigure),
    /// The response time at this quantile.
    Percentile(f64),
}

/// The mark that follows a figure in the answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FigureMark {
    Never,
    /// `?` after a percentile with a wide interval, or of which the generator may be a part.
    Uncertain,
    /// `?` after a percentile by which arms are compared, if the run alone has too few responses for it.
    Compared(Metric),
    /// `~` after a rate that was limited by CPUs which server and generator share.
    SharedCpus,
}

/// Where a column is shown, in the tables that have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnPresence {
    Shown,
    /// It says the same in each row.
    CsvOnly,
    /// No run has such a figure.
    Nowhere,
}

impl ColumnPresence {
    /// Shown where this holds, else in CSV alone.
    pub(crate) fn shown_if(holds: bool) -> ColumnPresence {
        if holds { ColumnPresence::Shown } else { ColumnPresence::CsvOnly }
    }
}

/// The figure of one run in a column.
pub(crate) enum RunFigure {
    Unknown,
    Count(u64),
    /// A measured number. JSON has it to a thousandth.
    Number(f64),
    /// A number that the user chose, which JSON has as it is.
    Chosen(f64),
    Time(Nanos),
    /// The range in which a percentile lies when there are too few responses for a single figure.
    Range([Nanos; 2]),
    Word(String),
    /// How many there are of each kind, by name.
    Counts(BTreeMap<String, u64>),
    /// Several figures that only JSON has.
    Json(Box<RawValue>),
    /// There is none, so JSON leaves out its key.
    LeftOut,
}

impl RunFigure {
    /// Several figures for JSON.
    ///
    /// # Panics
    /// Never: the values of a summary have only keys that are strings.
    pub(crate) fn json(value: &impl Serialize) -> RunFigure {
        let written = serde_json::value::to_raw_value(value);
        RunFigure::Json(written.expect("a figure can always be written"))
    }

    /// Like [`RunFigure::json`], for a map: if it is empty, JSON leaves out the key.
    pub(crate) fn json_unless_empty<T: Serialize>(map: &BTreeMap<&str, T>) -> RunFigure {
        if map.is_empty() { RunFigure::LeftOut } else { RunFigure::json(map) }
    }

    /// The figure as a number; a time in milliseconds.
    pub(crate) fn value(&self) -> Option<f64> {
        match self {
            RunFigure::Count(count) => Some(*count as f64),
            RunFigure::Number(number) | RunFigure::Chosen(number) => Some(*number),
            RunFigure::Time(time) => Some(time.as_millis_f64()),
            RunFigure::Unknown
            | RunFigure::Range(_)
            | RunFigure::Word(_)
            | RunFigure::Counts(_)
            | RunFigure::Json(_)
            | RunFigure::LeftOut => None,
        }
    }

    /// The time, where it is one.
    pub(crate) fn time(&self) -> Option<Nanos> {
        if let RunFigure::Time(time) = self { Some(*time) } else { None }
    }

    fn text(&self, shown: fn(f64) -> String) -> String {
        match self {
            RunFigure::Count(count) => count.to_string(),
            RunFigure::Number(number) | RunFigure::Chosen(number) => shown(*number),
            RunFigure::Time(time) => number::milliseconds(*time),
            RunFigure::Range(ends) => range_of_few(*ends),
            RunFigure::Word(word) => word.clone(),
            RunFigure::Counts(counts) => {
                let each: Vec<String> =
                    counts.iter().map(|(what, count)| format!("{what}: {count}")).collect();
                each.join(", ")
            }
            RunFigure::Unknown | RunFigure::Json(_) | RunFigure::LeftOut => NONE.to_owned(),
        }
    }
}

impl Serialize for RunFigure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            RunFigure::Count(count) => serializer.serialize_u64(*count),
            RunFigure::Number(number) => serializer.serialize_f64(rounded(*number)),
            RunFigure::Chosen(number) => serializer.serialize_f64(*number),
            RunFigure::Time(time) => serializer.serialize_f64(millis(*time)),
            RunFigure::Word(word) => serializer.serialize_str(word),
            RunFigure::Counts(counts) => counts.serialize(serializer),
            RunFigure::Json(written) => written.serialize(serializer),
            RunFigure::Unknown | RunFigure::Range(_) | RunFigure::LeftOut => {
                serializer.serialize_none()
            }
        }
    }
}

impl From<u32> for RunFigure {
    fn from(count: u32) -> RunFigure {
        RunFigure::Count(count.into())
    }
}

impl From<u64> for RunFigure {
    fn from(count: u64) -> RunFigure {
        RunFigure::Count(count)
    }
}

impl From<f64> for RunFigure {
    fn from(number: f64) -> RunFigure {
        RunFigure::Number(number)
    }
}

impl From<Nanos> for RunFigure {
    fn from(time: Nanos) -> RunFigure {
        RunFigure::Time(time)
    }
}

impl From<String> for RunFigure {
    fn from(word: String) -> RunFigure {
        RunFigure::Word(word)
    }
}

impl From<&str> for RunFigure {
    fn from(word: &str) -> RunFigure {
        RunFigure::Word(word.to_owned())
    }
}

impl<T: Into<RunFigure>> From<Option<T>> for RunFigure {
    fn from(figure: Option<T>) -> RunFigure {
        figure.map_or(RunFigure::Unknown, Into::into)
    }
}

impl RunColumn {
    /// Its figure of a run.
    pub(crate) fn figure(&self, run: &SummaryRun<'_>) -> RunFigure {
        match self.figure {
            FigureSource::Of(figure) => figure(run),
            FigureSource::Percentile(quantile) => match run.percentile(quantile) {
                Some(time) => RunFigure::Time(time),
                None => run.range_of_few(quantile).map_or(RunFigure::Unknown, RunFigure::Range),
            },
        }
    }

    /// Its figure in tables: none for an invalid run, unless `stays_when_invalid`.
    pub(crate) fn shown_figure(&self, run: &SummaryRun<'_>) -> RunFigure {
        if run.is_hidden() && !self.stays_when_invalid {
            return RunFigure::Unknown;
        }
        self.figure(run)
    }

    /// The number of that figure.
    pub(crate) fn value(&self, run: &SummaryRun<'_>) -> Option<f64> {
        self.shown_figure(run).value()
    }

    /// A cell of a table: the figure as text, and the number behind it.
    pub(crate) fn cell(&self, run: &SummaryRun<'_>) -> TableCell {
        let figure = self.shown_figure(run);
        TableCell { text: figure.text(self.shown), value: figure.value() }
    }

    /// A cell with a number computed from several runs, such as their median.
    pub(crate) fn cell_of(&self, value: Option<f64>) -> TableCell {
        TableCell::number(value, self.shown)
    }

    /// The mark after its figure of a run; a range has its mark already.
    pub(crate) fn mark_of(&self, run: &SummaryRun<'_>) -> &'static str {
        match (self.mark, self.figure) {
            (FigureMark::Uncertain, FigureSource::Percentile(quantile))
                if run.is_uncertain(quantile) =>
            {
                "?"
            }
            (FigureMark::Compared(metric), _) if run.is_compared_of_few(metric) => "?",
            (FigureMark::SharedCpus, _) if run.verdict == SummaryVerdict::SharedCpus => "~",
            (_, _) => "",
        }
    }

    /// The 95 % interval of its figure, if it is a percentile and the interval is known.
    pub(crate) fn interval(&self, run: &SummaryRun<'_>) -> Option<[Option<Nanos>; 2]> {
        match self.figure {
            FigureSource::Percentile(quantile) => run.interval(quantile),
            FigureSource::Of(_) => None,
        }
    }

    /// The column in a full report of these runs.
    pub(crate) fn heading(&self, table: RunTable, runs: &[SummaryRun<'_>]) -> TableColumn {
        TableColumn {
            key: self.csv.to_owned(),
            band: self.band.map(|band| band(table)),
            meaning: (self.meaning)(table),
            is_constant: (self.presence)(runs) == ColumnPresence::CsvOnly,
            ..TableColumn::new(self.name)
        }
    }
}
