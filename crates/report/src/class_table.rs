//! The table of the classes of requests of a run.

use model::Study;

use crate::classes::SummaryClass;
use crate::number;
use crate::run_column::{FigureMark, RunColumn};
use crate::run_columns::{FAILED, MAX, P50, P95, P99, REQUESTS};
use crate::run_summary::SummaryRun;
use crate::tree::{ColumnBand, DataTable, ReportSection, TableCell, TableColumn, TableRow};

/// The most classes of an answer; those with the largest shares.
const MOST: usize = 8;

/// Headings and columns, and when each leaves a narrow table.
static COLUMNS: &[(&str, &RunColumn, u8)] = &[
    ("requests", &REQUESTS, 3),
    ("failed", &FAILED, 0),
    ("p50", &P50, 2),
    ("p95", &P95, 4),
    ("p99", &P99, 0),
    ("max", &MAX, 3),
];

/// The classes of a run that an answer shows, and a line for those that it leaves out; `None` where
/// there are none.
pub(crate) fn answer(run: &SummaryRun<'_>) -> Option<(DataTable, Option<String>)> {
    let classes = SummaryClass::all_of(run);
    if classes.is_empty() || run.mean().is_none() {
        return None;
    }
    let shown = &classes[..classes.len().min(MOST)];
    let rest = &classes[shown.len()..];
    let left_out = (!rest.is_empty()).then(|| {
        let share: f64 = rest.iter().filter_map(|class| class.share_of_response_time).sum();
        format!(
            "{} more, {} of the response time together: longtail report --full",
            number::count_of(rest.len() as u64, "class").replace("classs", "classes"),
            judge::words::share(share)
        )
    });
    Some((table(shown), left_out))
}

/// All classes of each run.
pub(crate) fn sections(study: &Study) -> Vec<ReportSection> {
    let runs = SummaryRun::all_of(study);
    let of_run = |run: &SummaryRun<'_>| {
        let classes = SummaryClass::all_of(run);
        let title = if run.label.is_empty() {
            "classes of requests; times in ms".to_owned()
        } else {
            format!("classes of requests, {}; times in ms", run.label)
        };
        (!classes.is_empty() && !run.is_hidden())
            .then(|| ReportSection::new(title).table(table(&classes)))
    };
    runs.iter().filter_map(of_run).collect()
}

fn table(classes: &[SummaryClass<'_>]) -> DataTable {
    let share = ColumnBand::new("share of", "share of");
    let of_columns = COLUMNS.iter().map(|(name, column, leaves)| TableColumn {
        band: column.band.map(|band| band(crate::run_column::RunTable::Load)),
        ..TableColumn::new(*name).leaving(*leaves)
    });
    let shares = ["requests", "time"].map(|name| TableColumn::new(name).under(&share));
    let headings = std::iter::once(TableColumn::new("class")).chain(of_columns).chain(shares);
    DataTable::of_columns(headings, classes.iter().map(row))
}

fn row(class: &SummaryClass<'_>) -> TableRow {
    let view = class.view();
    let figure = |(_, column, _): &(&str, &RunColumn, u8)| {
        let mut cell = column.cell(&view);
        match column.mark_of(&view) {
            "" if column.mark != FigureMark::Never && !cell.text.ends_with('?') => cell.text += " ",
            mark => cell.text += mark,
        }
        cell
    };
    let share = |share: Option<f64>| TableCell::number(share, judge::words::share);
    let shares = [class.share, class.share_of_response_time].map(share);
    let name = TableCell::from(class.name.to_owned());
    TableRow::new(std::iter::once(name).chain(COLUMNS.iter().map(figure)).chain(shares))
}
