//! Each worker's part of the requests, runs side by side.

use model::run::ShareSource;
use model::{Run, SweepStudy};

use crate::number::{self, NONE, or_none};
use crate::tree::{ColumnBand, DataTable, ReportSection, TableCell, TableColumn, TableRow};

/// Runs that stand side by side at the most: five fit the width of the table.
const SIDE_BY_SIDE: usize = 5;

fn source(run: &Run) -> Option<ShareSource> {
    run.workers.first().map(|share| share.source)
}

/// Requests, % of all and deviation from an even share of that worker.
fn cells(run: &Run, worker: &str) -> [TableCell; 3] {
    let total: u64 = run.workers.iter().map(|share| share.requests).sum();
    let found = run.workers.iter().find(|share| share.worker == worker).filter(|_| total > 0);
    let Some(share) = found else { return [NONE; 3].map(TableCell::from) };
    let part = share.requests as f64 / total as f64;
    let deviation = part * run.workers.len() as f64 - 1.0;
    [
        TableCell::count(share.requests),
        TableCell::number(Some(part), number::percent_tenths),
        TableCell::number(Some(deviation), number::deviation),
    ]
}

/// Each run's requests by worker; nothing where there is one worker, or none is known.
pub(crate) fn section(study: &SweepStudy) -> Option<ReportSection> {
    let is_shared = |run: &&Run| run.workers.len() > 1 || study.server.workers > 1;
    let known: Vec<&Run> = study.runs.iter().filter(is_shared).collect();
    let mut section = ReportSection::detail("requests by worker, % of all, deviation from an even share in %");
    let mut last = None;
    for runs in known.chunk_by(|a, b| a.repeat == b.repeat && source(a) == source(b)) {
        let Some(source) = source(runs[0]) else { continue };
        if last != Some(source) {
            last = Some(source);
            section = section.paragraphs([match source {
                ShareSource::Header => "answers, as the response header names the worker",
                ShareSource::Stats => "requests started, warm-up included, as the server's statistics count them",
            }]);
        }
        for runs in runs.chunks(SIDE_BY_SIDE) {
            section = section.table(table(study, runs));
        }
    }
    section.filled()
}

/// Runs side by side whose workers were counted in the same way: a fresh server has other workers.
fn table(study: &SweepStudy, runs: &[&Run]) -> DataTable {
    let mut names: Vec<&str> = runs.iter().flat_map(|run| &run.workers).map(|share| share.worker.as_str()).collect();
    names.sort_unstable_by_key(|name| (name.len(), *name));
    names.dedup();
    let first =
        if study.plan.repeat > 1 { format!("run {}", number::count(runs[0].repeat)) } else { "worker".to_owned() };
    let of_run = |run: &&Run| {
        let band = ColumnBand::new(format!("{}x", or_none(run.multiple, number::multiple)), "");
        ["requests", "%", "±%"].map(|name| TableColumn::new(name).under(&band))
    };
    let columns = std::iter::once(TableColumn::new(first)).chain(runs.iter().flat_map(of_run));
    let row = |name: &str| {
        let cells = runs.iter().flat_map(|run| cells(run, name));
        TableRow::new(std::iter::once(TableCell::from(name)).chain(cells))
    };
    DataTable::of_columns(columns, names.iter().map(|name| row(name)))
}
