//! Everything that is known of a study beside its answer, as one tree: what was measured and where, a row a run, and sections in the order in
//! which they are asked.

use std::collections::BTreeMap;

use model::run::ShareSource;
use model::{
    BodiesStudy, Body, BodyKind, BodyRun, Diagnostic, Grade, Nanos, Outcome, Run, Socket, Study, SweepStudy,
    WorkerShare, counts,
};

use crate::named_runs::{NamedRun, hides, named_runs};
use crate::number::{self, NONE, count_of};
use crate::run_columns::{MARKS, table};
use crate::tree::{ColumnBand, DataTable, ListItem, ReportSection, ReportTree, TableCell, TableColumn, TableRow};
use crate::{claimed, far, intervals, kernel_view, load, measured, server_view, theory, time_parts};

/// The tree of a study.
pub(crate) fn details(study: &Study) -> ReportTree {
    let runs = named_runs(study);
    let none: &[Diagnostic] = &[];
    let (warnings, sockets, own, after) = match study {
        Study::Sweep(it) => {
            let own = vec![repeats(it), claimed::accounts(&runs)];
            let after = vec![
                intervals::section(&runs),
                time_parts::section(&runs, it.plan.stream.anatomy),
                theory::section(it),
                workers(&runs),
            ];
            (it.warnings.as_slice(), vec![it.plan.server.socket], own, after)
        }
        Study::Bodies(it) => (it.warnings.as_slice(), it.plan.sockets.clone(), pivots(it), Vec::new()),
        Study::Compare(it) => {
            let lost = it
                .lost
                .iter()
                .map(|lost| format!("{}, block {}: {}", it.plan.letter(lost.arm), lost.block, lost.reason));
            let lost = ReportSection::new("runs that came to nothing").lines(lost).filled();
            let sockets = it.plan.arms.iter().map(|arm| arm.server.socket).collect();
            (it.warnings.as_slice(), sockets, vec![lost], Vec::new())
        }
        Study::Load(it) => (none, Vec::new(), load::sections(it), vec![workers(&runs)]),
    };
    let is_comparison = matches!(study, Study::Compare(_));
    let seen = [
        endings(&runs),
        remarks(warnings, &runs, is_comparison),
        server_view::section(&runs),
        kernel_view::section(&runs, &sockets),
        server_view::statsd(&runs),
        far::section(&runs),
    ];
    let missing = match study {
        Study::Sweep(it) => missing_runs(runs.len(), it.plan.runs(), it.interrupted),
        Study::Bodies(it) => missing_runs(runs.len(), it.plan.runs(), it.interrupted),
        Study::Load(_) | Study::Compare(_) => None,
    };
    let no_trace = match study {
        Study::Sweep(it) => it.probed.as_ref().and_then(|probed| probed.why_no_bpf.as_ref()),
        _ => None,
    };
    let no_trace = no_trace.map(|why| ReportSection::new(format!("no tracepoints (BPF): {why}")));
    let sections = std::iter::once(missing).chain(own).chain(seen).chain(after).chain([no_trace]);
    let total_time = match study {
        Study::Sweep(it) => it.total_time,
        Study::Bodies(it) => it.total_time,
        Study::Compare(it) => it.total_time,
        Study::Load(it) => it.run.elapsed,
    };
    ReportTree {
        command_line: measured::StudyHead::of(study).command_line.to_owned(),
        facts: measured::facts(study),
        table: table(study),
        sections: sections.flatten().collect(),
        glossary: match study {
            _ if runs.is_empty() => Vec::new(),
            Study::Load(_) => MARKS.into_iter().chain(load::WORDS).collect(),
            _ => MARKS.to_vec(),
        },
        total_time,
    }
}

/// Where not all that was planned was run.
fn missing_runs(done: usize, planned: usize, is_interrupted: bool) -> Option<ReportSection> {
    let by = if is_interrupted { "interrupted by the user: " } else { "" };
    let planned_runs = count_of(planned as u64, "run");
    (is_interrupted || done < planned).then(|| ReportSection::new(format!("{by}{done} of {planned_runs} to report")))
}

/// How the requests ended, of each run where not all were answered alike: how many of each kind, and why responses were bad.
fn endings(runs: &[NamedRun<'_>]) -> Option<ReportSection> {
    let item = |NamedRun { name, run }: &NamedRun<'_>| {
        let counts = &run.tally.counts;
        let kind = |(outcome, n): (Outcome, u64)| {
            let word = counts::name(outcome).replace('_', " ");
            let status = if matches!(outcome, Outcome::Answered(_)) { "with status " } else { "" };
            let why = run.tally.reason(outcome).map(|why| format!(": {why}")).unwrap_or_default();
            format!("{n} {status}{word}{why}")
        };
        let kinds: Vec<String> = counts.iter().map(kind).collect();
        // What is said of one kind has commas of its own.
        let comma = if kinds.iter().any(|kind| kind.contains(',')) { "; " } else { ", " };
        let failed = format!("{} of {} failed", counts.failed(), count_of(counts.total(), "request"));
        let line = format!("{failed}: {}", kinds.join(comma));
        (counts.failed() > 0 || kinds.len() > 1).then(|| ListItem { label: name.clone(), ..ListItem::new(line) })
    };
    ReportSection::new("how requests ended, errors by kind").list(runs.iter().filter_map(item)).filled()
}

/// What is said of one run, or in the same words of several.
struct Remark<'a> {
    labels: Vec<&'a str>,
    text: String,
    hint: &'static str,
}

/// Checks that were not passed, then warnings, then notes, of the study and of its runs: a hint once, and a sentence once, with the names of all
/// runs of which it is true. A comparison shows a percentile that one run alone does not support, for its blocks do: that it is not printed
/// is not said there.
fn remarks(of_study: &[Diagnostic], runs: &[NamedRun<'_>], is_comparison: bool) -> Option<ReportSection> {
    let checks = runs.iter().flat_map(|NamedRun { name, run }| {
        let judgement = run.judgement.iter();
        judgement.flat_map(|it| it.troubles().into_iter().map(|check| (name.as_str(), check, Some(it.grade(check)))))
    });
    let of_runs = runs.iter().flat_map(|NamedRun { name, run }| {
        let has_all = is_comparison && run.tally.response_time_at(0.99).time().is_some();
        let is_said = move |it: &&Diagnostic| !has_all || !matches!(it, Diagnostic::TooFewRequests { .. });
        run.warnings.iter().filter(is_said).map(|it| (name.as_str(), it, None))
    });
    let mut all: Vec<_> = checks.chain(of_study.iter().map(|it| ("study", it, None))).chain(of_runs).collect();
    all.sort_by_key(|(_, diagnostic, check)| match check {
        Some(Grade::Failed) => 0,
        Some(_) => 1,
        None => 2 + u8::from(diagnostic.grade() == Grade::Note),
    });
    let mut remarks: Vec<Remark<'_>> = Vec::new();
    for (label, diagnostic, check) in all {
        let mark = match check {
            Some(Grade::Failed) => "FAILS ",
            Some(_) => "doubtful: ",
            None => "",
        };
        let (text, hint) = (format!("{mark}{diagnostic}"), diagnostic.hint());
        match remarks.iter_mut().find(|remark| remark.text == text) {
            Some(known) if known.labels.contains(&label) => {}
            Some(known) => known.labels.push(label),
            // Beside those that have its hint.
            None => {
                let at = remarks.iter().rposition(|remark| remark.hint == hint).map_or(remarks.len(), |at| at + 1);
                remarks.insert(at, Remark { labels: vec![label], text, hint });
            }
        }
    }
    let line = |Remark { labels, text, .. }: &Remark<'_>| match labels.join(", ").as_str() {
        "" => text.clone(),
        _ if runs.len() > 1 && labels.len() == runs.len() => format!("every run: {text}"),
        labels => format!("{labels}: {text}"),
    };
    let item = |alike: &[Remark<'_>]| {
        ListItem { lines: alike.iter().map(line).collect(), ..ListItem::default() }.hint(alike[0].hint)
    };
    ReportSection::new("warnings").list(remarks.chunk_by(|a, b| a.hint == b.hint).map(item)).filled()
}

/// A figure of a run, in a table of medians: its name, what it is, and how it is shown.
struct RepeatedFigure {
    name: &'static str,
    of: fn(&Run) -> Option<f64>,
    shown: fn(f64) -> String,
}

/// Each multiple over its repeats, in the order of the first pass: median, lowest and highest; nothing where there is one pass.
///
/// A figure is that of a run and never a mean of two: of an even number of runs the median is the lower of the two in
/// the middle. A figure that one of the runs does not have is not summed up: what is missing tends to be the worst.
fn repeats(study: &SweepStudy) -> Option<ReportSection> {
    const FIGURES: [RepeatedFigure; 4] = [
        RepeatedFigure { name: "req/s", of: Run::rate, shown: number::rate },
        RepeatedFigure { name: "p50, ms", of: |run| millis(run, 0.5), shown: number::of_millis },
        RepeatedFigure { name: "p99, ms", of: |run| millis(run, 0.99), shown: number::of_millis },
        RepeatedFigure { name: "tail", of: Run::long_tail, shown: number::times },
    ];
    if study.plan.repeat < 2 {
        return None;
    }
    let mut loads: BTreeMap<usize, Vec<&Run>> = BTreeMap::new();
    for run in &study.runs {
        let first = study.runs.iter().position(|other| other.multiple == run.multiple).unwrap_or_default();
        loads.entry(first).or_default().push(run);
    }
    let rows = loads.values().map(|runs| {
        let named = [
            TableCell::number(runs[0].multiple, number::multiple),
            TableCell::count(runs[0].connections),
            TableCell::count(runs.len() as u64),
        ];
        let figures = FIGURES.iter().flat_map(|figure| {
            let known = spread(runs.iter().map(|run| (figure.of)(run).filter(|_| !hides(run.judgement.as_ref()))));
            (0..3).map(move |place| TableCell::number(known.map(|figures| figures[place]), figure.shown))
        });
        TableRow::new(named.into_iter().chain(figures))
    });
    let named = ["mult", "conns", "runs"].map(TableColumn::new);
    let spreads = FIGURES.iter().flat_map(|figure| {
        let band = ColumnBand::new(figure.name, figure.name);
        ["median", "lowest", "highest"].map(|name| TableColumn::new(name).under(&band))
    });
    let table = DataTable::of_columns(named.into_iter().chain(spreads), rows);
    let title = "each multiple over its runs; - where one of them has no figure";
    ReportSection::new(title).table(DataTable { lead: 3, ..table }).filled()
}

fn millis(run: &Run, quantile: f64) -> Option<f64> {
    run.response_time(quantile).time().map(Nanos::as_millis_f64)
}

/// Median, lowest and highest, where all are known.
fn spread(figures: impl IntoIterator<Item = Option<f64>>) -> Option<[f64; 3]> {
    let mut figures = figures.into_iter().collect::<Option<Vec<f64>>>()?;
    figures.sort_by(f64::total_cmp);
    let last = figures.len().checked_sub(1)?;
    Some([figures[last / 2], figures[0], figures[last]])
}

/// Each worker's part of the requests, runs side by side; nothing where there is one worker, or none is known.
fn workers(runs: &[NamedRun<'_>]) -> Option<ReportSection> {
    /// Runs that stand side by side at the most.
    const SIDE_BY_SIDE: usize = 5;
    let shared: Vec<SharedRun<'_>> = runs.iter().filter_map(SharedRun::of).collect();
    let mut section = ReportSection::detail("requests by worker, % of all, deviation from an even share in %");
    let mut last = None;
    for runs in shared.chunk_by(|a, b| a.repeat == b.repeat && a.source == b.source) {
        if last != Some(runs[0].source) {
            last = Some(runs[0].source);
            section = section.paragraphs([match runs[0].source {
                ShareSource::Header => "answers, as the response header names the worker",
                ShareSource::Stats => "requests started, warm-up included, as the server's statistics count them",
            }]);
        }
        for runs in runs.chunks(SIDE_BY_SIDE) {
            section = section.table(worker_table(runs));
        }
    }
    section.filled()
}

/// A run whose workers are known.
struct SharedRun<'a> {
    name: &'a str,
    repeat: u32,
    source: ShareSource,
    shares: Vec<WorkerShare>,
}

impl SharedRun<'_> {
    fn of<'a>(named: &'a NamedRun<'_>) -> Option<SharedRun<'a>> {
        let run = named.run;
        let counted = run.tally.per_worker.iter().map(|(worker, count)| WorkerShare {
            worker: worker.clone(),
            requests: count.measured,
            source: ShareSource::Header,
        });
        let shares = if run.workers.is_empty() { counted.collect() } else { run.workers.clone() };
        Some(SharedRun { name: &named.name, repeat: run.repeat, source: shares.first()?.source, shares })
    }

    /// Requests, % of all and deviation from an even share of that worker.
    fn cells(&self, worker: &str) -> [TableCell; 3] {
        let total: u64 = self.shares.iter().map(|share| share.requests).sum();
        let found = self.shares.iter().find(|share| share.worker == worker).filter(|_| total > 0);
        let Some(share) = found else { return [NONE; 3].map(TableCell::from) };
        let part = share.requests as f64 / total as f64;
        let deviation = part * self.shares.len() as f64 - 1.0;
        [
            TableCell::count(share.requests),
            TableCell::number(Some(part), number::percent_tenths),
            TableCell::number(Some(deviation), number::deviation),
        ]
    }
}

/// Runs side by side whose workers were counted in the same way: a fresh server has other workers.
fn worker_table(runs: &[SharedRun<'_>]) -> DataTable {
    let mut names: Vec<&str> = runs.iter().flat_map(|run| &run.shares).map(|share| share.worker.as_str()).collect();
    names.sort_unstable_by_key(|name| (name.len(), *name));
    names.dedup();
    let of_run = |run: &SharedRun<'_>| {
        let band = ColumnBand::new(run.name, "");
        ["requests", "%", "±%"].map(|name| match run.name {
            "" => TableColumn::new(name),
            _ => TableColumn::new(name).under(&band),
        })
    };
    let columns = std::iter::once(TableColumn::new("worker")).chain(runs.iter().flat_map(of_run));
    let row = |name: &str| {
        TableRow::new(std::iter::once(TableCell::from(name)).chain(runs.iter().flat_map(|run| run.cells(name))))
    };
    DataTable::of_columns(columns, names.iter().map(|name| row(name)))
}

/// A body over a kind of socket.
#[derive(Clone, Copy)]
pub(crate) struct PivotPlace {
    pub(crate) socket: Socket,
    pub(crate) body: Body,
}

/// A figure of a study of bodies.
pub(crate) struct PivotFigure {
    /// Over its columns.
    pub(crate) title: &'static str,
    /// Of one run.
    pub(crate) of: fn(&BodyRun) -> Option<f64>,
    pub(crate) shown: fn(f64) -> String,
}

impl PivotFigure {
    /// The figure of a body over a kind of socket: over several passes that of the run in the middle, the lower of two. `None`
    /// where any of its runs is missing it, is invalid, or was not done.
    pub(crate) fn of_body(&self, study: &BodiesStudy, place: PivotPlace) -> Option<f64> {
        let runs = study.runs.iter().filter(|run| run.socket == place.socket && run.body == place.body);
        let figures = runs.map(|run| (self.of)(run).filter(|_| !hides(run.run.judgement.as_ref())));
        spread(figures).map(|[median, _, _]| median)
    }
}

pub(crate) const REQUESTS_A_SECOND: PivotFigure =
    PivotFigure { title: "req/s", of: |run| Some(run.run.completed_rate()), shown: number::rate };
pub(crate) const MEDIAN_MS: PivotFigure =
    PivotFigure { title: "p50, ms", of: |run| millis(&run.run, 0.5), shown: number::of_millis };
const MEGABYTES_A_SECOND: PivotFigure =
    PivotFigure { title: "MB/s", of: |run| Some(run.content_rate()), shown: number::megabytes };

/// For each kind of socket sizes down and types across, and where there are several sockets one table with those across.
fn pivots(study: &BodiesStudy) -> Vec<Option<ReportSection>> {
    let (bodies, sockets) = (&study.plan.bodies, &study.plan.sockets);
    if study.runs.is_empty() {
        return Vec::new();
    }
    let kinds: Vec<&str> = bodies.kinds.iter().map(|kind| kind.name()).collect();
    let by_kind = |socket: &Socket| {
        let row = |kilobytes: &u32| {
            let body = |kind: &BodyKind| Body { kilobytes: *kilobytes, kind: *kind };
            let across: Vec<PivotPlace> =
                bodies.kinds.iter().map(|kind| PivotPlace { socket: *socket, body: body(kind) }).collect();
            pivot_row(study, vec![TableCell::count(*kilobytes)], &across)
        };
        let table = pivot_table(&["KB"], &kinds, bodies.kilobytes.iter().map(row));
        Some(ReportSection::new(format!("over {socket}, by type")).table(table))
    };
    let by_socket = || {
        let row = |body: Body| {
            let across: Vec<PivotPlace> = sockets.iter().map(|socket| PivotPlace { socket: *socket, body }).collect();
            pivot_row(study, vec![TableCell::count(body.kilobytes), body.kind.name().into()], &across)
        };
        let names: Vec<&str> = sockets.iter().map(|socket| socket.name()).collect();
        let table = pivot_table(&["KB", "type"], &names, bodies.all().into_iter().map(row));
        ReportSection::new("by kind of socket").table(table)
    };
    sockets.iter().map(by_kind).chain([(sockets.len() > 1).then(by_socket)]).collect()
}

const PIVOTED: [PivotFigure; 3] = [REQUESTS_A_SECOND, MEDIAN_MS, MEGABYTES_A_SECOND];

fn pivot_table(lead: &[&str], across: &[&str], rows: impl Iterator<Item = TableRow>) -> DataTable {
    let figures = PIVOTED.iter().flat_map(|figure| {
        let band = ColumnBand::new(figure.title, figure.title);
        across.iter().map(move |name| TableColumn::new(*name).under(&band))
    });
    let columns = lead.iter().map(|name| TableColumn::new(*name)).chain(figures);
    DataTable { lead: lead.len(), ..DataTable::of_columns(columns, rows) }
}

fn pivot_row(study: &BodiesStudy, mut cells: Vec<TableCell>, across: &[PivotPlace]) -> TableRow {
    for figure in &PIVOTED {
        let cell = |place: &PivotPlace| TableCell::number(figure.of_body(study, *place), figure.shown);
        cells.extend(across.iter().map(cell));
    }
    TableRow::new(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_figure_of_a_run_and_a_figure_that_one_run_lacks_is_not_summed_up() {
        assert_eq!(spread([Some(4.0), Some(1.0), Some(9.0), Some(2.0)]), Some([2.0, 1.0, 9.0]));
        assert_eq!(spread([Some(4.0), None, Some(9.0)]), None);
    }
}
