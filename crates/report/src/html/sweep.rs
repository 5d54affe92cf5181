//! The figures of a sweep.

use model::run::ShareSource;
use model::{Diagnostic, Run, SweepStudy};

use crate::html::figure::{DrawnFigure, KeyEntry, PageFigure};
use crate::html::over_time::{self, ClassedLine};
use crate::html::shown_runs::{ShownRuns, median};
use crate::html::spread::{self, SpreadLine};
use crate::html::{heat_map, load_axis, parts};
use crate::number;
use crate::plot::{AxisScale, AxisTick, Plot, PlotAxis, PlotMark, PlotPoint};
use crate::summary::Summary;

/// All figures, in the order in which they are asked.
pub(crate) fn figures(study: &SweepStudy, summary: &Summary) -> Vec<PageFigure> {
    let runs = ShownRuns::of(study, summary);
    vec![
        load_axis::response_times(&runs),
        load_axis::throughput(&runs),
        parts::figure(&runs),
        times_and_queue(&runs),
        spread_of_times(&runs),
        connections(&runs),
        worker_shares(&runs),
        worker_backlog(&runs),
    ]
}

fn spread_of_times(runs: &ShownRuns<'_>) -> PageFigure {
    const TITLE: &str = "How response times are spread";
    let lines: Vec<SpreadLine<'_>> = runs
        .first_of_each()
        .into_iter()
        .map(|run| SpreadLine::new(runs.class(run), move |q| run.response_time(q)))
        .collect();
    let Some((plot, last)) = spread::plot(TITLE, &lines) else {
        return PageFigure::left_out(TITLE, runs.why_none("too few responses for two percentiles"));
    };
    let repeats = if runs.study.plan.repeat > 1 { " Of repeats the first is drawn." } else { "" };
    let sentence = format!(
        "Read up from a percentile: that share of all responses took at most so long. A flat line is an even \
         service, a step a second group of requests. Lines end at the last percentile that the responses bear, at most \
         {last}.{repeats}"
    );
    PageFigure::Drawn(DrawnFigure { title: TITLE, key: runs.key(), plots: vec![plot], sentence })
}

/// Response time over due time, above the accept queue.
fn times_and_queue(runs: &ShownRuns<'_>) -> PageFigure {
    const TITLE: &str = "Over time: response time and accept queue";
    let figure = heat_map::figure(TITLE, &runs.first_of_each());
    figure
        .map_or_else(|| PageFigure::left_out(TITLE, runs.why_none("no good response was recorded")), PageFigure::Drawn)
}

/// Requests that wait in the workers.
fn worker_backlog(runs: &ShownRuns<'_>) -> PageFigure {
    const TITLE: &str = "Over time: backlog in the workers";
    let shown = runs.first_of_each();
    let line =
        |run: &&Run| ClassedLine { class: runs.class(run), points: over_time::watched(run.watch.as_ref(), "backlog") };
    let lines: Vec<ClassedLine> = shown.iter().map(line).filter(|line| !line.points.is_empty()).collect();
    if lines.is_empty() {
        return PageFigure::left_out(TITLE, runs.why_none("the server reported no backlog"));
    }
    if lines.iter().flat_map(|line| &line.points).all(|point| point.y == 0.0) {
        return PageFigure::left_out(TITLE, "it was 0 in every report: no request waited inside the server");
    }
    let span = lines.iter().flat_map(|line| &line.points).map(|point| point.x).fold(0.0, f64::max);
    let mut plots = vec![over_time::plot(TITLE, "requests, sum over all workers", span, lines)];
    over_time::finish(&mut plots);
    let window = median(shown.iter().map(|run| run.measured.as_secs_f64()));
    plots[0].marks.extend(window.map(|x| PlotMark::Upright { class: "mark".to_owned(), x }));
    let sentence = "Requests that a worker has read and that no thread has taken yet, as the server reports them \
                    (about once a second)."
        .to_owned();
    PageFigure::Drawn(DrawnFigure { title: TITLE, key: runs.key(), plots, sentence })
}

/// Each worker's part of the requests against an even share.
fn worker_shares(runs: &ShownRuns<'_>) -> PageFigure {
    const TITLE: &str = "Shares of the workers";
    let shared: Vec<&Run> = runs.first_of_each().into_iter().filter(|run| run.workers.len() > 1).collect();
    let Some(first) = shared.first() else {
        let otherwise = if runs.study.server.workers < 2 {
            "there is one worker"
        } else {
            "the server does not say which worker answers"
        };
        return PageFigure::left_out(TITLE, runs.why_none(otherwise));
    };
    let mut marks = Vec::new();
    let mut highest = 0.0f64;
    for (row, run) in shared.iter().enumerate() {
        let total = run.workers.iter().map(|worker| worker.requests).sum::<u64>().max(1) as f64;
        let width = 0.8 / run.workers.len() as f64;
        for (place, worker) in run.workers.iter().enumerate() {
            let share = 100.0 * worker.requests as f64 / total;
            let left = row as f64 - 0.4 + width * place as f64;
            let title = format!(
                "worker {} at {} connections: {} % of {}",
                worker.worker,
                run.connections,
                number::percent_tenths(share / 100.0),
                number::count_of(total as u64, "request")
            );
            let (from, to) = (PlotPoint { x: left, y: 0.0 }, PlotPoint { x: left + width * 0.88, y: share });
            marks.push(PlotMark::Bar { class: runs.class(run), from, to, title });
            highest = highest.max(share);
        }
    }
    marks.push(PlotMark::Level { class: "ideal".into(), y: 100.0 / first.workers.len() as f64 });
    let label = |(row, run): (usize, &&Run)| AxisTick { at: row as f64, label: run.connections.to_string() };
    let scale = AxisScale::Linear { low: -0.5, high: shared.len() as f64 - 0.5 };
    let x = PlotAxis::labelled("connections", scale, shared.iter().enumerate().map(label));
    let y = PlotAxis::rounded("% of the requests, a bar a worker", AxisScale::from_zero([highest]), 4);
    let plot = Plot { marks, height: 220.0, ..Plot::new(TITLE, x, y) };
    let source = match first.workers[0].source {
        ShareSource::Header => "as a header of each response names the worker",
        ShareSource::Stats => "as the server's statistics count them, warm-up included",
    };
    let even = number::percent_tenths(1.0 / first.workers.len() as f64);
    let key = vec![KeyEntry::new("ideal", format!("an even share: {even} %"))];
    let sentence = format!("How the requests went to the workers, {source}.");
    PageFigure::Drawn(DrawnFigure { title: TITLE, key, plots: vec![plot], sentence })
}

/// The good responses of each connection, sorted.
fn connections(runs: &ShownRuns<'_>) -> PageFigure {
    const TITLE: &str = "Responses of each connection";
    let mut lines = Vec::new();
    for run in runs.first_of_each() {
        let mut counts = run.tally.per_connection.clone();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let mean = counts.iter().sum::<u64>() as f64 / counts.len().max(1) as f64;
        if counts.len() > 1 && mean > 0.0 {
            let last = (counts.len() - 1) as f64;
            let point = |(at, count): (usize, &u64)| PlotPoint { x: 100.0 * at as f64 / last, y: *count as f64 / mean };
            let points = over_time::thinned(counts.iter().enumerate().map(point).collect());
            lines.push(PlotMark::Line { class: runs.class(run), points, name: String::new() });
        }
    }
    if lines.is_empty() {
        return PageFigure::left_out(TITLE, runs.why_none("no run had two connections with a response"));
    }
    let values = lines.iter().flat_map(|line| match line {
        PlotMark::Line { points, .. } => points.as_slice(),
        _ => &[],
    });
    let y = PlotAxis::rounded("x the mean of all connections", AxisScale::from_zero(values.map(|point| point.y)), 4);
    let x = PlotAxis::rounded(
        "% of the connections, the most served first",
        AxisScale::Linear { low: 0.0, high: 100.0 },
        5,
    );
    let plot = Plot { marks: lines, height: 220.0, ..Plot::new(TITLE, x, y) };
    let turns = turns(runs).map(|turns| format!(" {turns}")).unwrap_or_default();
    let sentence = format!("A flat line at 1: each connection got as many responses as any other.{turns}");
    PageFigure::Drawn(DrawnFigure { title: TITLE, key: runs.key(), plots: vec![plot], sentence })
}

/// How many responses in a row a connection got while others waited, where that was seen.
fn turns(runs: &ShownRuns<'_>) -> Option<String> {
    let in_a_row = |run: &&Run| {
        let found = run.warnings.iter().find_map(|warning| match warning {
            Diagnostic::ServedInTurns { answers_a_turn, .. } => Some(*answers_a_turn),
            _ => None,
        })?;
        Some(format!("{} at {} connections", number::rate_in_words((found * 10.0).round() / 10.0), run.connections))
    };
    let found: Vec<String> = runs.first_of_each().iter().filter_map(in_a_row).collect();
    (!found.is_empty())
        .then(|| format!("Responses in a row for one connection while others waited: {}.", found.join(", ")))
}
