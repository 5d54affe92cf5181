//! Generators on other machines: who they are, and what each saw beside what all of them saw together.

use model::{FarGenerator, Nanos};

use crate::named_runs::NamedRun;
use crate::number;
use crate::tree::{DataTable, ReportSection, TableCell, TableRow};

/// A line for each generator of each run, and below one for all of them.
pub(crate) fn section(runs: &[NamedRun<'_>]) -> Option<ReportSection> {
    let rows = runs.iter().filter(|named| !named.run.generator.far.is_empty()).flat_map(|NamedRun { name, run }| {
        let all = FarGenerator::recorded("all of them".to_owned(), &run.tally);
        let each: Vec<TableRow> = run.generator.far.iter().map(|one| row(name, one, true)).collect();
        each.into_iter().chain([row(name, &all, false)])
    });
    let names = ["run", "generator", "requests", "p50", "p99", "clock known to", "started late"];
    ReportSection::detail("generators on other machines, times in ms").table(DataTable::new(names, rows)).filled()
}

fn row(label: &str, one: &FarGenerator, is_one: bool) -> TableRow {
    let late = Some(one.started_late).filter(|_| is_one && one.lost.is_none());
    let millis = |time: Option<Nanos>| TableCell::number(time.map(Nanos::as_millis_f64), |ms| format!("{ms:.3}"));
    let requests = one.lost.is_none().then(|| TableCell::count(one.requests));
    let cells = [
        TableCell::from(label),
        TableCell::from(one.name.as_str()),
        requests.unwrap_or_else(|| TableCell::from(number::NONE)),
        TableCell::time(one.p50),
        TableCell::time(one.p99),
        millis(one.clock_error),
        millis(late),
    ];
    match &one.lost {
        Some(why) => TableRow::new(cells).noted(format!("lost: {why}")),
        None => TableRow::new(cells),
    }
}
