//! Everything that is known of a study beyond its answer, as one tree: what was measured and where,
//! a row for each run, and sections in the order in which readers ask for them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::mem::{Discriminant, discriminant};

use judge::checks::hint_beside_keep_alive;
use judge::named_runs::{NamedRun, diagnostics, is_hidden, named_runs};
use judge::{Assessment, Grade};
use model::run::ShareSource;
use model::{
    BodiesStudy, Body, Counts, Diagnostic, FarGenerator, Nanos, Outcome, Run, Socket, Study,
    SweepStudy, UnfinishedRequests, WorkerShare, counts,
};

use crate::measured::StudyHead;
use crate::number::{self, NONE, count_of};
use crate::run_column::RunColumn;
use crate::run_columns::{CONTENT_RATE, MARKS, P50, P99, RATE, TAIL};
use crate::run_summary::{RunContext, SummaryRun, interval_cells};
use crate::run_tables::table;
use crate::tree::{
    ColumnBand, DataTable, ListItem, ReportSection, ReportTree, TableCell, TableColumn, TableRow,
};
use crate::{class_table, comparison, labels, load, measured, server_view, theory, time_breakdown};

/// The tree of a study.
pub(crate) fn details(study: &Study) -> ReportTree {
    let runs = named_runs(study);
    let head = StudyHead::of(study);
    let (sockets, own, after) = match study {
        Study::Sweep(it) => {
            let no_trace = it.probed.as_ref().and_then(|probed| probed.why_no_bpf.as_ref());
            let own = vec![
                missing_runs(runs.len(), it.plan.runs(), it.interrupted),
                repeats(it),
                labels::claims(&runs),
            ];
            let after = vec![
                intervals(&runs),
                time_breakdown::section(&runs, it.plan.stream.reads_app_times),
                theory::section(it),
                workers(&runs),
                no_trace.map(|why| ReportSection::new(format!("no tracepoints (BPF): {why}"))),
            ];
            (vec![it.plan.server.socket], own, after)
        }
        Study::Bodies(it) => {
            let missing = missing_runs(runs.len(), it.plan.runs(), it.interrupted);
            (it.plan.sockets.clone(), vec![missing, pivot(it)], Vec::new())
        }
        Study::Compare(it) => {
            let lost = it.lost.iter().map(|lost| {
                format!("{}, block {}: {}", it.plan.called(lost.arm), lost.block, lost.reason)
            });
            let lost = ReportSection::new("runs that came to nothing").lines(lost).filled();
            let others = comparison::other_pairs(it);
            let others = ReportSection::new("the other pairs").lines(others).filled();
            let sockets = it.plan.arms.iter().map(|arm| arm.server.socket).collect();
            (sockets, vec![lost, others], Vec::new())
        }
        Study::Load(it) => (Vec::new(), load::sections(it), vec![workers(&runs)]),
        Study::Capacity(_) => (Vec::new(), Vec::new(), Vec::new()),
    };
    let seen = [
        endings(&runs),
        remarks(study, head.warnings, &runs),
        server_view::section(&runs),
        server_view::traced(&runs, &sockets),
        server_view::statsd(&runs),
        far_generators(&runs),
    ];
    ReportTree {
        command_line: head.command_line.to_owned(),
        facts: measured::facts(study),
        table: table(study),
        sections: own
            .into_iter()
            .chain(class_table::sections(study).into_iter().map(Some))
            .chain(seen)
            .chain(after)
            .flatten()
            .collect(),
        glossary: if runs.is_empty() { Vec::new() } else { glossary(study) },
        total_time: head.total_time,
    }
}

/// The words and marks that the report explains at its end.
fn glossary(study: &Study) -> Vec<(&'static str, &'static str)> {
    match study {
        Study::Load(_) => MARKS.into_iter().chain(load::WORDS).collect(),
        Study::Sweep(_) | Study::Bodies(_) | Study::Compare(_) | Study::Capacity(_) => {
            MARKS.to_vec()
        }
    }
}

/// Says so where fewer runs were made than planned.
fn missing_runs(done: usize, planned: usize, is_interrupted: bool) -> Option<ReportSection> {
    let by = if is_interrupted { "interrupted: " } else { "" };
    let planned_runs = count_of(planned as u64, "run");
    (is_interrupted || done < planned)
        .then(|| ReportSection::new(format!("{by}{done} of {planned_runs} to report")))
}

/// How the requests ended. One line where all had the same status; else, for each run in which they
/// had not, how many ended in each way and why responses were bad.
fn endings(runs: &[NamedRun<'_>]) -> Option<ReportSection> {
    let title = "how requests ended, errors by kind";
    if let Some(line) = answered_alike(runs) {
        return ReportSection::new(title).lines([line]).filled();
    }
    let item = |NamedRun { name, run }: &NamedRun<'_>| {
        let counts = &run.tally.counts;
        let kind = |(outcome, n): (Outcome, u64)| {
            let word = counts::name(outcome).replace('_', " ");
            let status = if matches!(outcome, Outcome::Answered(_)) { "with status " } else { "" };
            let why = run.tally.reason(outcome).map(|why| format!(": {why}")).unwrap_or_default();
            format!("{n} {status}{word}{why}")
        };
        let kinds: Vec<String> = counts.iter().map(kind).collect();
        // A reason may have commas of its own.
        let comma = if kinds.iter().any(|kind| kind.contains(',')) { "; " } else { ", " };
        let failed =
            format!("{} of {} failed", counts.failed(), count_of(counts.total(), "request"));
        let unfinished = &run.tally.unfinished;
        let stopped = if unfinished.is_empty() {
            String::new()
        } else {
            let UnfinishedRequests { in_flight, not_sent, .. } = unfinished;
            format!("; stopped with {in_flight} more in flight and {not_sent} not sent")
        };
        let line = format!("{failed}: {}{stopped}", kinds.join(comma));
        (counts.failed() > 0 || kinds.len() > 1 || !unfinished.is_empty())
            .then(|| ListItem { label: name.clone(), ..ListItem::new(line) })
    };
    ReportSection::new(title).list(runs.iter().filter_map(item)).filled()
}

/// `all requests were answered with status 200 (2000)`, of all runs.
fn answered_alike(runs: &[NamedRun<'_>]) -> Option<String> {
    let mut all = Counts::default();
    for NamedRun { run, .. } in runs {
        all.merge(&run.tally.counts);
    }
    let is_finished = runs.iter().all(|named| named.run.tally.unfinished.is_empty());
    let mut kinds = all.iter();
    match (kinds.next(), kinds.next()) {
        (Some((Outcome::Answered(status), requests)), None) if is_finished && all.failed() == 0 => {
            let all = if requests == 1 { "the only request was" } else { "all requests were" };
            Some(format!("{all} answered with status {status} ({requests})"))
        }
        _ => None,
    }
}

/// What is said of one run, or in the same words of several.
struct Remark<'a> {
    labels: Vec<&'a str>,
    kind: Discriminant<Diagnostic>,
    mark: &'static str,
    text: String,
    hint: &'static str,
}

impl Remark<'_> {
    /// Whether both are an item of the list: their hint stands once or, without one, they tell of
    /// the same kind of thing.
    fn is_like(&self, other: &Remark<'_>) -> bool {
        self.hint == other.hint && (!self.hint.is_empty() || self.kind == other.kind)
    }
}

/// Failed checks, then warnings, then notes, of the study and of its runs. Each sentence stands
/// once, with the names of all its runs, and so does each hint. A comparison does not say that a
/// run has too few requests for a percentile: its blocks together have enough.
fn remarks(study: &Study, of_study: &[Diagnostic], runs: &[NamedRun<'_>]) -> Option<ReportSection> {
    let is_comparison = matches!(study, Study::Compare(_) | Study::Capacity(_));
    let compares_keep_alive =
        matches!(study, Study::Compare(it) if comparison::compares_keep_alive(it));
    let of_runs = runs.iter().flat_map(|NamedRun { name, run }| {
        let has_all = is_comparison && run.tally.response_time_at(0.99).time().is_some();
        let is_said =
            move |it: &Diagnostic| !has_all || !matches!(it, Diagnostic::TooFewRequests { .. });
        diagnostics(run)
            .filter(move |(it, _)| is_said(it))
            .map(|(it, grade)| (name.as_str(), it, grade))
    });
    let mut all: Vec<_> =
        of_study.iter().map(|it| ("study", it, judge::grade(it))).chain(of_runs).collect();
    all.sort_by_key(|(.., grade)| Reverse(*grade));
    let mut remarks: Vec<Remark<'_>> = Vec::new();
    for (label, diagnostic, grade) in all {
        let Assessment { sentence: text, hint, .. } = judge::assess(diagnostic);
        let hint = if compares_keep_alive { hint_beside_keep_alive(hint) } else { hint };
        match remarks.iter_mut().find(|remark| remark.text == text) {
            Some(known) if known.labels.contains(&label) => {}
            Some(known) => known.labels.push(label),
            // A new remark comes right after those that are like it.
            None => {
                let mark = if grade == Grade::Failed { "FAILS " } else { "" };
                let kind = discriminant(diagnostic);
                let new = Remark { labels: vec![label], kind, mark, text, hint };
                let at = remarks.iter().rposition(|remark| remark.is_like(&new));
                remarks.insert(at.map_or(remarks.len(), |at| at + 1), new);
            }
        }
    }
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    let line =
        |Remark { labels, mark, text, .. }: &Remark<'_>| match by_arm(labels, &names).as_str() {
            "" => format!("{mark}{text}"),
            _ if runs.len() > 1 && labels.len() == runs.len() => format!("every run: {mark}{text}"),
            labels => format!("{labels}: {mark}{text}"),
        };
    let item = |alike: &[Remark<'_>]| {
        ListItem { lines: alike.iter().map(line).collect(), ..ListItem::default() }
            .hint(alike[0].hint)
    };
    ReportSection::new("warnings").list(remarks.chunk_by(|a, b| a.is_like(b)).map(item)).filled()
}

/// The names of runs, joined; of a comparison each arm once, with its blocks: `main, blocks 1, 3; -k,
/// block 3; each of the 8 runs of -k`. `all`: the names of all runs.
fn by_arm(labels: &[&str], all: &[&str]) -> String {
    let Some(arms) = blocks_of_arms(labels) else { return labels.join(", ") };
    let all = blocks_of_arms(all).unwrap_or_default();
    let of_arm = |(arm, blocks): &(&str, Vec<&str>)| match &blocks[..] {
        [block] => format!("{arm}, block {block}"),
        _ if all.contains(&(*arm, blocks.clone())) => {
            format!("each of the {} runs of {arm}", blocks.len())
        }
        _ => format!("{arm}, blocks {}", blocks.join(", ")),
    };
    arms.iter().map(of_arm).collect::<Vec<_>>().join("; ")
}

/// The blocks of each arm, by the names of runs; `None` if these are not of a comparison.
fn blocks_of_arms<'a>(names: &[&'a str]) -> Option<Vec<(&'a str, Vec<&'a str>)>> {
    let mut arms: Vec<(&str, Vec<&str>)> = Vec::new();
    for name in names {
        let (arm, block) = name.rsplit_once(", block ")?;
        match arms.iter_mut().find(|(known, _)| *known == arm) {
            Some((_, blocks)) => blocks.push(block),
            None => arms.push((arm, vec![block])),
        }
    }
    Some(arms)
}

/// Median, lowest and highest figure of each multiple over its repeats, in the order of the first
/// pass; nothing if there is one pass.
///
/// The median is always the figure of a run: of an even number of runs the lower of the two in the
/// middle. Where one run lacks a figure there is none, because missing figures tend to be the
/// worst.
fn repeats(study: &SweepStudy) -> Option<ReportSection> {
    const FIGURES: [(&str, &RunColumn); 4] =
        [("req/s", &RATE), ("p50, ms", &P50), ("p99, ms", &P99), ("tail", &TAIL)];
    if study.plan.repeat < 2 {
        return None;
    }
    let view = |run| SummaryRun::of(String::new(), run, RunContext::Sweep(study));
    let mut loads: BTreeMap<usize, Vec<&Run>> = BTreeMap::new();
    for run in &study.runs {
        let first =
            study.runs.iter().position(|other| other.multiple == run.multiple).unwrap_or_default();
        loads.entry(first).or_default().push(run);
    }
    let rows = loads.values().map(|runs| {
        let named = [
            TableCell::number(runs[0].multiple, number::multiple),
            TableCell::count(runs[0].connections),
            TableCell::count(runs.len() as u64),
        ];
        let figures = FIGURES.iter().flat_map(|(_, column)| {
            let known = spread(runs.iter().map(|run| column.value(&view(run))));
            (0..3).map(move |place| column.cell_of(known.map(|figures| figures[place])))
        });
        TableRow::new(named.into_iter().chain(figures))
    });
    let named = ["mult", "conns", "runs"].map(TableColumn::new);
    let spreads = FIGURES.iter().flat_map(|(title, _)| {
        let band = ColumnBand::new(*title, *title);
        ["median", "lowest", "highest"].map(|name| TableColumn::new(name).under(&band))
    });
    let table = DataTable::of_columns(named.into_iter().chain(spreads), rows);
    let title = "each multiple over its runs; - where one of them has no figure";
    ReportSection::new(title).table(DataTable { lead: 3, ..table }).filled()
}

/// Median, lowest and highest, where all figures are known.
fn spread(figures: impl IntoIterator<Item = Option<f64>>) -> Option<[f64; 3]> {
    let mut figures = figures.into_iter().collect::<Option<Vec<f64>>>()?;
    figures.sort_by(f64::total_cmp);
    let last = figures.len().checked_sub(1)?;
    Some([figures[last / 2], figures[0], figures[last]])
}

/// How the requests of each run were shared among the workers, if that is known.
fn workers(runs: &[NamedRun<'_>]) -> Option<ReportSection> {
    let counted = runs.iter().filter_map(|NamedRun { name, run }| {
        let of_header = run.tally.per_worker.iter().map(|(worker, count)| WorkerShare {
            worker: worker.clone(),
            requests: count.measured,
            source: ShareSource::Header,
        });
        let mut shares =
            if run.workers.is_empty() { of_header.collect() } else { run.workers.clone() };
        shares
            .sort_unstable_by(|a, b| (a.worker.len(), &a.worker).cmp(&(b.worker.len(), &b.worker)));
        Some((shares.first()?.source, worker_rows(name, &shares)))
    });
    let mut section =
        ReportSection::detail("requests by worker, % of all, deviation from an even share in %");
    for same in counted.collect::<Vec<_>>().chunk_by(|(a, _), (b, _)| a == b) {
        let rows = same.iter().flat_map(|(_, rows)| rows.iter().cloned());
        let mut table = DataTable::new(["", "worker", "requests", "%", "±%"], rows);
        // A load has no name.
        table.columns[0].is_constant = runs.iter().all(|run| run.name.is_empty());
        let source = match same[0].0 {
            ShareSource::Header => "responses, as their header names the worker",
            ShareSource::Stats => {
                "requests started, warm-up included, as the server's statistics count them"
            }
        };
        section = section.paragraphs([source]).table(DataTable { lead: 2, ..table });
    }
    section.filled()
}

/// A row for each worker of a run; the first has the run's name.
fn worker_rows(name: &str, shares: &[WorkerShare]) -> Vec<TableRow> {
    let total: u64 = shares.iter().map(|share| share.requests).sum();
    let row = |(at, share): (usize, &WorkerShare)| {
        let part = (total > 0).then(|| share.requests as f64 / total as f64);
        TableRow::new([
            if at == 0 { name } else { "" }.into(),
            share.worker.as_str().into(),
            TableCell::count(share.requests),
            TableCell::number(part, number::percent_tenths),
            TableCell::number(part.map(|part| part * shares.len() as f64 - 1.0), number::deviation),
        ])
    };
    shares.iter().enumerate().map(row).collect()
}

/// A body and a kind of socket.
#[derive(Clone, Copy)]
pub(crate) struct PivotPlace {
    pub(crate) socket: Socket,
    pub(crate) body: Body,
}

/// A figure of a body over a kind of socket: over several passes that of the run in the middle, the
/// lower of two. `None` if any of its runs is missing it, is invalid, or was not done.
pub(crate) fn median_of_body(
    study: &BodiesStudy,
    place: PivotPlace,
    column: &RunColumn,
) -> Option<f64> {
    let runs = study.runs.iter().filter(|row| row.socket == place.socket && row.body == place.body);
    let figures = runs.map(|row| {
        let context = RunContext::Bodies(study, row);
        column.value(&SummaryRun::of(String::new(), &row.run, context))
    });
    spread(figures).map(|[median, _, _]| median)
}

/// A table with sizes down and types across; where there are several kinds of socket, with sizes
/// and types down and sockets across.
fn pivot(study: &BodiesStudy) -> Option<ReportSection> {
    const PIVOTED: [(&str, &RunColumn); 3] =
        [("req/s", &RATE), ("p50, ms", &P50), ("MB/s", &CONTENT_RATE)];
    let bodies = &study.plan.bodies;
    let sockets = &study.plan.sockets;
    let all = bodies.all().into_iter();
    let (title, lead, across): (String, &[&str], Vec<&str>) = match sockets[..] {
        [socket] => (
            format!("over {socket}, by type"),
            &["KB"],
            bodies.kinds.iter().map(|kind| kind.name()).collect(),
        ),
        _ => (
            "by kind of socket".to_owned(),
            &["KB", "type"],
            sockets.iter().map(|socket| socket.name()).collect(),
        ),
    };
    let places =
        all.flat_map(|body| sockets.iter().map(move |socket| PivotPlace { socket: *socket, body }));
    // A row is a size with all types, or a body over all sockets.
    let places: Vec<PivotPlace> = places.collect();
    let rows = places.chunks(across.len().max(1)).map(|row| {
        let figures = PIVOTED.iter().flat_map(|(_, column)| {
            row.iter().map(|place| column.cell_of(median_of_body(study, *place, column)))
        });
        let Body { kilobytes, kind } = row[0].body;
        let named = [TableCell::count(kilobytes), kind.name().into()];
        TableRow::new(named.into_iter().take(lead.len()).chain(figures))
    });
    let figures = PIVOTED.iter().flat_map(|(title, _)| {
        let band = ColumnBand::new(*title, *title);
        across.iter().map(move |name| TableColumn::new(*name).under(&band))
    });
    let columns = lead.iter().map(|name| TableColumn::new(*name)).chain(figures);
    let table = DataTable { lead: lead.len(), ..DataTable::of_columns(columns, rows) };
    (!study.runs.is_empty()).then(|| ReportSection::new(title).table(table))
}

/// The percentiles of a sweep whose intervals are shown.
const SHOWN: [f64; 3] = [0.50, 0.95, 0.99];

/// The intervals of [`SHOWN`] for each run, and the generator's part of the highest percentile that
/// is known. Runs without statistics and invalid runs are left out.
fn intervals(runs: &[NamedRun<'_>]) -> Option<ReportSection> {
    let row = |NamedRun { name, run }: &NamedRun<'_>| {
        let statistics = run.statistics.as_ref()?;
        let known = SHOWN.map(|q| interval_cells(Some(statistics), q, run.response_time(q)));
        let part = known
            .iter()
            .rev()
            .map(|[_, part]| part.as_str())
            .find(|part| *part != NONE)
            .unwrap_or(NONE);
        Some(TableRow::new(
            std::iter::once(name.as_str())
                .chain(known.iter().map(|[known, _]| known.as_str()))
                .chain([part]),
        ))
    };
    let shown = runs.iter().filter(|named| !is_hidden(named.run));
    let table =
        DataTable::new(["", "p50", "p95", "p99", "generator's share"], shown.filter_map(row));
    let title =
        "how well percentiles are known, ms: 95 % intervals, and the generator's share at most";
    ReportSection::detail(title).table(table).filled()
}

/// Generators on other machines: a row for each generator of each run, and below it one for all of
/// them together.
fn far_generators(runs: &[NamedRun<'_>]) -> Option<ReportSection> {
    let rows = runs.iter().filter(|named| !named.run.generator.far.is_empty()).flat_map(
        |NamedRun { name, run }| {
            let all = FarGenerator::recorded("all of them".to_owned(), &run.tally);
            let each: Vec<TableRow> =
                run.generator.far.iter().map(|one| far_generator(name, one, true)).collect();
            each.into_iter().chain([far_generator(name, &all, false)])
        },
    );
    let names = ["run", "generator", "requests", "p50", "p99", "clock known to", "started late"];
    ReportSection::detail("generators on other machines, times in ms")
        .table(DataTable::new(names, rows))
        .filled()
}

fn far_generator(label: &str, one: &FarGenerator, is_one: bool) -> TableRow {
    let late = Some(one.started_late).filter(|_| is_one && one.lost.is_none());
    let millis = |time: Option<Nanos>| {
        TableCell::number(time.map(Nanos::as_millis_f64), |ms| format!("{ms:.3}"))
    };
    let cells = [
        TableCell::from(label),
        TableCell::from(one.name.as_str()),
        TableCell::counted(one.lost.is_none().then_some(one.requests)),
        TableCell::time(one.p50),
        TableCell::time(one.p99),
        millis(one.clock_error),
        millis(late),
    ];
    TableRow::new(cells)
        .noted(one.lost.as_ref().map(|why| format!("lost: {why}")).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_about_all_runs_of_an_arm_lists_no_blocks() {
        let all: Vec<String> = (1..=3)
            .flat_map(|block| ["A", "B"].map(|arm| format!("{arm}, block {block}")))
            .collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let of_a = ["A, block 1", "A, block 2", "A, block 3"];
        assert_eq!(by_arm(&of_a, &all), "each of the 3 runs of A");
        assert_eq!(
            by_arm(&["B, block 2", "A, block 1", "A, block 3"], &all),
            "B, block 2; A, blocks 1, 3"
        );
        assert_eq!(by_arm(&["2x", "4x"], &["1x", "2x", "4x"]), "2x, 4x");
    }

    #[test]
    fn the_median_is_a_runs_figure_and_is_missing_where_one_run_lacks_it() {
        assert_eq!(spread([Some(4.0), Some(1.0), Some(9.0), Some(2.0)]), Some([2.0, 1.0, 9.0]));
        assert_eq!(spread([Some(4.0), None, Some(9.0)]), None);
    }
}
