//! The tables of the classes of requests: of a load, a row each; of several loads or arms, the 99th
//! percentile of each class in each.

use model::comparison::ComparisonRun;
use model::{ClassTally, Run, Study, Tally};

use crate::capacity::{SummaryCapacity, SummaryTrial};
use crate::classes::SummaryClass;
use crate::number;
use crate::run_column::{ColumnPresence, RunColumn};
use crate::run_columns::{
    ALONE, CLASS, IN_ANSWER_OF_CLASS, P99, SHARE_OF_REQUESTS, SHARE_OF_SERVER_TIME, SHARE_OF_TIME,
};
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
    /// A line below it: of which runs they are, and what it leaves out.
    pub(crate) below: Option<String>,
}

/// The classes of the runs of a load or a sweep; `None` where there are none.
pub(crate) fn of_runs(runs: &[SummaryRun<'_>]) -> Option<ShownClasses> {
    let is_shown = |run: &&SummaryRun<'_>| {
        run.has_response_times() && (runs.len() == 1 || run.is_the_servers())
    };
    let shown: Vec<&SummaryRun<'_>> = runs.iter().filter(is_shown).collect();
    // Passes over the same loads would be many columns: the last one stands for them.
    let last_pass = shown.iter().map(|run| run.run.repeat).max()?;
    let shown: Vec<&SummaryRun<'_>> =
        shown.into_iter().filter(|run| run.run.repeat == last_pass).collect();
    match shown.as_slice() {
        [run] => shown_of(&SummaryClass::all_of(run), table),
        [.., highest] => shown_of(&SummaryClass::all_of(highest), |classes| {
            let loads = &shown[shown.len().saturating_sub(MOST_LOADS)..];
            side_by_side(classes, loads, "p99 at each load, ms")
        }),
        [] => None,
    }
}

/// The classes of the arms of a comparison, each over all of its sound runs; `None` where there are
/// none.
pub(crate) fn of_arms(runs: &[SummaryRun<'_>]) -> Option<ShownClasses> {
    let mut arms: Vec<(String, Vec<&SummaryRun<'_>>)> = Vec::new();
    for run in runs.iter().filter(|run| run.arm().is_some_and(ComparisonRun::is_sound)) {
        let letter = run.letter()?;
        match arms.iter_mut().find(|(known, _)| *known == letter) {
            Some((_, runs)) => runs.push(run),
            None => arms.push((letter, vec![run])),
        }
    }
    arms.sort_by(|(one, _), (other, _)| one.cmp(other));
    let merged: Vec<Run> = arms.iter().map(|(_, runs)| merged(runs)).collect();
    let views: Vec<SummaryRun<'_>> = arms
        .iter()
        .zip(&merged)
        .map(|((letter, runs), run)| SummaryRun::of(letter.clone(), run, runs[0].context))
        .collect();
    let shown: Vec<&SummaryRun<'_>> = views.iter().collect();
    shown_of(&SummaryClass::all_of(views.first()?), |classes| {
        side_by_side(classes, &shown, "p99 of each arm, ms")
    })
}

/// The classes at the lower end of a search, over all of its trials there; `None` where there are
/// none, or several sizes were searched.
pub(crate) fn at_low(runs: &[SummaryRun<'_>], found: &SummaryCapacity) -> Option<ShownClasses> {
    let low = found.lo_per_s;
    let is_low = |trial: &SummaryTrial| low > 0.0 && trial.rate_per_s.total_cmp(&low).is_eq();
    let trials = runs.iter().zip(&found.trials).filter(|(_, trial)| is_low(trial));
    let at_low: Vec<&SummaryRun<'_>> = trials.map(|(run, _)| run).collect();
    let first = at_low.first().filter(|run| !run.run.tally.classes.is_empty())?;
    let merged = merged(&at_low);
    let together = SummaryRun::of(first.label.clone(), &merged, first.context);
    let shown = shown_of(&SummaryClass::all_of(&together), table)?;
    let trials = number::count_of(at_low.len() as u64, "trial");
    let of_which = format!("At {}/s, over {trials}.", number::significant(low));
    let below = [Some(of_which), shown.below].into_iter().flatten().collect::<Vec<String>>();
    Some(ShownClasses { below: Some(below.join(" ")), ..shown })
}

/// The requests of several runs by class, as one run. None of them is empty.
fn merged(runs: &[&SummaryRun<'_>]) -> Run {
    let mut classes: Vec<ClassTally> = runs[0].run.tally.classes.clone();
    for run in &runs[1..] {
        for (mine, theirs) in classes.iter_mut().zip(&run.run.tally.classes) {
            mine.merge(theirs);
        }
    }
    let mut tally = Tally { window: runs[0].run.tally.window, ..Tally::default() };
    tally.add_classes(&classes);
    Run { tally, ..runs[0].run.clone() }
}

/// The first of these classes as a table, and a line for the others.
fn shown_of(
    classes: &[SummaryClass<'_>],
    table: impl Fn(&[SummaryClass<'_>]) -> DataTable,
) -> Option<ShownClasses> {
    let (kept, rest) = classes.split_at(classes.len().min(MOST));
    let below = [SummaryClass::without_server_time(classes), left_out(rest)];
    let below = below.into_iter().flatten().collect::<Vec<String>>().join(" ");
    let below = Some(below).filter(|below| !below.is_empty());
    (!kept.is_empty()).then(|| ShownClasses { table: table(kept), below })
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

/// All classes of each run of a load or a sweep.
pub(crate) fn sections(study: &Study) -> Vec<ReportSection> {
    if !matches!(study, Study::Load(_) | Study::Sweep(_)) {
        return Vec::new();
    }
    let runs = SummaryRun::all_of(study);
    let of_run = |run: &SummaryRun<'_>| {
        let classes = SummaryClass::all_of(run);
        let title = if run.label.is_empty() {
            "classes of requests; times in ms".to_owned()
        } else {
            format!("classes of requests, {}; times in ms", run.label)
        };
        // The answer has the same table.
        let is_detail = runs.len() == 1 && classes.len() <= MOST;
        let section = ReportSection { is_detail, ..ReportSection::new(title) };
        (!classes.is_empty() && !run.is_hidden()).then(|| section.table(table(&classes)))
    };
    runs.iter().filter_map(of_run).collect()
}

fn table(classes: &[SummaryClass<'_>]) -> DataTable {
    let views: Vec<SummaryRun<'_>> = classes.iter().map(SummaryClass::view).collect();
    let has_server_time = classes.iter().any(|class| class.shares.server_time.is_some());
    let is_shown = |column: &RunColumn| {
        let is_left_out = if has_server_time {
            std::ptr::eq(column, &raw const SHARE_OF_TIME)
        } else {
            std::ptr::eq(column, &raw const SHARE_OF_SERVER_TIME)
        };
        !is_left_out && (column.presence)(&views) != ColumnPresence::Nowhere
    };
    let shown: Vec<&(&str, &RunColumn, u8)> =
        IN_ANSWER_OF_CLASS.iter().filter(|(_, column, _)| is_shown(column)).collect();
    let headings =
        shown.iter().map(|(name, column, leaves)| answer_heading(name, column).leaving(*leaves));
    let row = |view: &SummaryRun<'_>| {
        TableRow::new(shown.iter().map(|(_, column, _)| answer_cell(view, column)))
    };
    DataTable::of_columns(headings, views.iter().map(row))
}

/// The 99th percentile of classes in each of these runs, under this title.
fn side_by_side(classes: &[SummaryClass<'_>], runs: &[&SummaryRun<'_>], title: &str) -> DataTable {
    let band = ColumnBand::new(title, "p99 ms");
    let of_runs: Vec<Vec<SummaryClass<'_>>> =
        runs.iter().map(|run| SummaryClass::all_of(run)).collect();
    let has_server_time = classes.iter().any(|class| class.shares.server_time.is_some());
    let columns: &[&RunColumn] = if has_server_time {
        &[&CLASS, &ALONE, &SHARE_OF_REQUESTS, &SHARE_OF_SERVER_TIME]
    } else {
        &[&CLASS, &SHARE_OF_REQUESTS, &SHARE_OF_TIME]
    };
    let row = |class: &SummaryClass<'_>| {
        let p99 = |of_run: &Vec<SummaryClass<'_>>| {
            let same = of_run.iter().find(|other| other.shares.name == class.shares.name);
            number::or_none(same, |same| answer_cell(&same.view(), &P99))
        };
        let view = class.view();
        let first = columns.iter().map(|column| answer_cell(&view, column));
        TableRow::new(first.chain(of_runs.iter().map(p99)))
    };
    let headings = columns.iter().map(|column| answer_heading(column.name, column));
    // Figures stay aligned below it, with a mark or without.
    let of_run = |run: &&SummaryRun<'_>| TableColumn::new(format!("{} ", run.label)).under(&band);
    let headings = headings.chain(runs.iter().map(of_run));
    DataTable::of_columns(headings, classes.iter().map(row))
}
