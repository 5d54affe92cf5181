//! The tables of the classes of requests: of a load, a row each; of several loads, the 99th
//! percentile of each class at each load.

use model::Study;

use crate::classes::SummaryClass;
use crate::number;
use crate::run_columns::{IN_ANSWER_OF_CLASS, P99};
use crate::run_summary::SummaryRun;
use crate::run_tables::{answer_cell, answer_heading};
use crate::tree::{ColumnBand, DataTable, ReportSection, TableColumn, TableRow};

/// The most classes of an answer; those with the largest shares.
const MOST: usize = 8;
/// The most loads beside each other in an answer; the highest ones.
const MOST_LOADS: usize = 6;

/// The classes that an answer shows.
pub(crate) struct ShownClasses {
    pub(crate) table: DataTable,
    /// A line for those that it leaves out.
    pub(crate) left_out: Option<String>,
}

/// The classes of the runs of a load or a sweep; `None` where there are none.
pub(crate) fn answer(runs: &[SummaryRun<'_>]) -> Option<ShownClasses> {
    let is_shown = |run: &&SummaryRun<'_>| {
        run.mean().is_some() && (runs.len() == 1 || run.is_the_servers())
    };
    let shown: Vec<&SummaryRun<'_>> = runs.iter().filter(is_shown).collect();
    // Passes over the same loads would be many columns: the last one stands for them.
    let last_pass = shown.iter().map(|run| run.run.repeat).max()?;
    let shown: Vec<&SummaryRun<'_>> =
        shown.into_iter().filter(|run| run.run.repeat == last_pass).collect();
    let classes = SummaryClass::all_of(shown.last()?);
    if classes.is_empty() {
        return None;
    }
    let kept = &classes[..classes.len().min(MOST)];
    let table = match shown.as_slice() {
        [_] => table(kept),
        loads => by_load(kept, &loads[loads.len().saturating_sub(MOST_LOADS)..]),
    };
    Some(ShownClasses { table, left_out: left_out(&classes[kept.len()..]) })
}

fn left_out(rest: &[SummaryClass<'_>]) -> Option<String> {
    let share: f64 = rest.iter().filter_map(|class| class.shares.response_time).sum();
    (!rest.is_empty()).then(|| {
        format!(
            "{} more {}, {} of the response time together: longtail report --full",
            rest.len(),
            if rest.len() == 1 { "class" } else { "classes" },
            judge::words::share(share)
        )
    })
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
        // The answer has the same table.
        let is_in_answer = runs.len() == 1
            && classes.len() <= MOST
            && matches!(study, Study::Load(_) | Study::Sweep(_));
        let section = ReportSection { is_detail: is_in_answer, ..ReportSection::new(title) };
        (!classes.is_empty() && !run.is_hidden()).then(|| section.table(table(&classes)))
    };
    runs.iter().filter_map(of_run).collect()
}

fn table(classes: &[SummaryClass<'_>]) -> DataTable {
    let headings = IN_ANSWER_OF_CLASS
        .iter()
        .map(|(name, column, leaves)| answer_heading(name, column).leaving(*leaves));
    let row = |class: &SummaryClass<'_>| {
        let view = class.view();
        TableRow::new(IN_ANSWER_OF_CLASS.iter().map(|(_, column, _)| answer_cell(&view, column)))
    };
    DataTable::of_columns(headings, classes.iter().map(row))
}

/// The 99th percentile of classes at each load.
fn by_load(classes: &[SummaryClass<'_>], loads: &[&SummaryRun<'_>]) -> DataTable {
    let band = ColumnBand::new("p99 at each load, ms", "p99 ms");
    let of_loads: Vec<Vec<SummaryClass<'_>>> =
        loads.iter().map(|run| SummaryClass::all_of(run)).collect();
    let row = |class: &SummaryClass<'_>| {
        let p99 = |of_load: &Vec<SummaryClass<'_>>| {
            let same = of_load.iter().find(|other| other.shares.name == class.shares.name);
            number::or_none(same, |same| answer_cell(&same.view(), &P99))
        };
        let share = number::or_none(class.shares.requests, judge::words::share);
        let first = [class.shares.name.to_owned(), share];
        TableRow::new(first.into_iter().chain(of_loads.iter().map(p99)))
    };
    let headings = ["class", "of requests"].map(TableColumn::new).into_iter();
    // Figures stay aligned below it, with a mark or without.
    let of_load = |run: &&SummaryRun<'_>| TableColumn::new(format!("{} ", run.label)).under(&band);
    let headings = headings.chain(loads.iter().map(of_load));
    DataTable::of_columns(headings, classes.iter().map(row))
}
