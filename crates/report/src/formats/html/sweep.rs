//! The figures of a sweep.

use model::comparison::median;
use model::run::ShareSource;
use model::{Diagnostic, Run, SweepStudy};

use crate::html::figure::{
    FEWEST_ABOVE, KeyEntry, PageFigure, SECONDS, TitledFigure, drawn, heat_map, spread,
    spread_plot, thinned, time_axis, watched,
};
use crate::html::load_axis::{self, ShownRuns};
use crate::number;
use crate::plot::{AxisScale, AxisTick, Plot, PlotAxis, PlotCell, PlotMark, PlotPoint, PlotShape};
use crate::summary::Summary;
use crate::time_breakdown::TimeBreakdown;

/// Draws a figure, or says why there is none.
type Drawing = fn(&ShownRuns<'_>) -> Result<PageFigure, String>;

/// All figures, in the order in which readers ask for them.
const FIGURES: [(&str, Drawing); 8] = [
    ("Response time against load", load_axis::response_times),
    ("Throughput against load", load_axis::throughput),
    ("Where the time goes", parts),
    ("Over time: response time and accept queue", |runs| heat_map(&runs.first_of_each(), &[])),
    ("How response times are spread", spread_of_times),
    ("Responses of each connection", connections),
    ("Shares of the workers", worker_shares),
    ("Over time: backlog in the workers", worker_backlog),
];

pub(crate) fn figures(study: &SweepStudy, summary: &Summary<'_>) -> Vec<TitledFigure> {
    let runs = ShownRuns::of(study, summary);
    let titled = |(title, draw): (&'static str, Drawing)| TitledFigure {
        title: title.into(),
        drawn: draw(&runs).map_err(|reason| runs.why_none(reason)),
    };
    FIGURES.map(titled).into()
}

fn spread_of_times(runs: &ShownRuns<'_>) -> Result<PageFigure, String> {
    let line = |run: &Run| {
        spread(runs.class(run), |q| drawn(run, q).then(|| run.response_time(q).time()).flatten())
    };
    let (plot, last) = spread_plot(runs.first_of_each().into_iter().map(line).collect())
        .ok_or("too few responses for two percentiles")?;
    let repeats = if runs.study.plan.repeat > 1 { " Only the first repeat is drawn." } else { "" };
    let sentence = format!(
        "Read up from a percentile: that share of all responses took at most that long. A flat \
         line means that all requests took about as long; a step, that some form a second, slower \
         group. Lines end where fewer than {FEWEST_ABOVE} responses took longer, at most at \
         {last}.{repeats}"
    );
    Ok(PageFigure { key: runs.key(), plots: vec![plot], sentence })
}

/// Requests that wait in the workers.
fn worker_backlog(runs: &ShownRuns<'_>) -> Result<PageFigure, String> {
    let shown = runs.first_of_each();
    let lines: Vec<(String, Vec<PlotPoint>)> =
        shown.iter().map(|run| (runs.class(run), watched(run.watch.as_ref(), "backlog"))).collect();
    let points = || lines.iter().flat_map(|(_, points)| points);
    let span =
        points().map(|point| point.x).reduce(f64::max).ok_or("the server reported no backlog")?;
    if points().all(|point| point.y == 0.0) {
        return Err("it was 0 in every report: no request waited inside the server".to_owned());
    }
    let window = median(shown.iter().map(|run| run.measured.as_secs_f64()));
    let window = window.map(|end| PlotMark::new("mark", PlotShape::Upright(end), ""));
    let drawn = lines.into_iter().filter(|(_, points)| !points.is_empty());
    let marks = drawn.map(|(class, points)| PlotMark::line(class, points)).chain(window);
    let x = PlotAxis { title: SECONDS.to_owned(), ..time_axis(span) };
    let plot = Plot::from_zero(x, "requests, sum over all workers", marks.collect());
    let sentence = "Requests that a worker has read and that no thread has taken yet, as the server reports them \
                    (about once a second)."
        .to_owned();
    Ok(PageFigure { key: runs.key(), plots: vec![plot], sentence })
}

/// Each worker's share of the requests next to an even share.
fn worker_shares(runs: &ShownRuns<'_>) -> Result<PageFigure, String> {
    let shared: Vec<&Run> =
        runs.first_of_each().into_iter().filter(|run| run.workers.len() > 1).collect();
    let why = if runs.study.server.workers < 2 {
        "there is one worker"
    } else {
        "the server does not say which worker answers"
    };
    let first = shared.first().ok_or(why)?;
    let even = 1.0 / first.workers.len() as f64;
    let mut marks = Vec::new();
    for (row, run) in shared.iter().enumerate() {
        let total = run.workers.iter().map(|worker| worker.requests).sum::<u64>().max(1);
        let width = 0.8 / run.workers.len() as f64;
        for (place, worker) in run.workers.iter().enumerate() {
            let share = worker.requests as f64 / total as f64;
            let left = row as f64 - 0.4 + width * place as f64;
            let title = format!(
                "worker {} at {} connections: {} % of {}",
                worker.worker,
                run.connections,
                number::percent_tenths(share),
                number::count_of(total, "request")
            );
            let bar = PlotCell {
                from: PlotPoint { x: left, y: 0.0 },
                to: PlotPoint { x: left + width * 0.88, y: 100.0 * share },
            };
            marks.push(PlotMark::new(runs.class(run), PlotShape::Cells(vec![bar]), title));
        }
    }
    marks.push(PlotMark::new("ideal", PlotShape::Level(100.0 * even), ""));
    let label = |(row, run): (usize, &&Run)| AxisTick {
        at: row as f64,
        label: run.connections.to_string(),
    };
    let scale = AxisScale::Linear { low: -0.5, high: shared.len() as f64 - 0.5 };
    let x = PlotAxis::labelled("connections", scale, shared.iter().enumerate().map(label));
    let plot = Plot::from_zero(x, "% of the requests, a bar a worker", marks);
    let source = match first.workers[0].source {
        ShareSource::Header => "as a header of each response names the worker",
        ShareSource::Stats => "as the server's statistics count them, warm-up included",
    };
    let key =
        vec![KeyEntry::new("ideal", format!("an even share: {} %", number::percent_tenths(even)))];
    let sentence = format!("How the requests went to the workers, {source}.");
    Ok(PageFigure { key, plots: vec![plot], sentence })
}

/// The good responses of each connection, sorted.
fn connections(runs: &ShownRuns<'_>) -> Result<PageFigure, String> {
    let mut lines = Vec::new();
    for run in runs.first_of_each() {
        let mut counts = run.tally.per_connection.clone();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let mean = counts.iter().sum::<u64>() as f64 / counts.len().max(1) as f64;
        if counts.len() > 1 && mean > 0.0 {
            let last = (counts.len() - 1) as f64;
            let point = |(at, count): (usize, &u64)| PlotPoint {
                x: 100.0 * at as f64 / last,
                y: *count as f64 / mean,
            };
            lines.push(PlotMark::line(
                runs.class(run),
                thinned(&counts.iter().enumerate().map(point).collect::<Vec<_>>()),
            ));
        }
    }
    if lines.is_empty() {
        return Err("no run had two connections with a response".to_owned());
    }
    let scale = AxisScale::Linear { low: 0.0, high: 100.0 };
    let x = PlotAxis::rounded("% of the connections, the most served first", scale, 5);
    let plot = Plot::from_zero(x, "x the mean of all connections", lines);
    let turns = turns(runs).map(|turns| format!(" {turns}")).unwrap_or_default();
    let sentence =
        format!("A flat line at 1: each connection got as many responses as any other.{turns}");
    Ok(PageFigure { key: runs.key(), plots: vec![plot], sentence })
}

/// How many responses in a row a connection got while others waited, where that happened.
fn turns(runs: &ShownRuns<'_>) -> Option<String> {
    let in_a_row = |run: &Run| {
        run.warnings.iter().find_map(|warning| {
            let Diagnostic::ServedInTurns { answers_a_turn, .. } = warning else { return None };
            let found = number::rate_in_words((answers_a_turn * 10.0).round() / 10.0);
            Some(format!("{found} at {} connections", run.connections))
        })
    };
    let found = crate::labels::listed(runs.first_of_each().into_iter().filter_map(in_a_row));
    (!found.is_empty())
        .then(|| format!("Responses in a row for one connection while others waited: {found}."))
}

/// A bar: all responses of a run, or its slowest.
struct TimeBar<'a> {
    run: &'a Run,
    name: String,
    time: TimeBreakdown,
}

/// Where the time of a response went, as stacked bars of each load: of all responses of a run, and
/// of its slowest.
fn parts(runs: &ShownRuns<'_>) -> Result<PageFigure, String> {
    let bars: Vec<TimeBar<'_>> =
        runs.first_of_each().into_iter().flat_map(TimeBar::of_run).collect();
    if bars.is_empty() {
        return Err(
            "neither app nor kernel was asked: add --inspect app, or --inspect kernel (root, or CAP_BPF and CAP_PERFMON)"
                .to_owned(),
        );
    }
    let mut marks = Vec::new();
    let mut ticks = Vec::new();
    for (row, bar) in bars.iter().rev().enumerate() {
        let y = row as f64 + 0.5;
        marks.extend(bar.marks(y));
        ticks.push(AxisTick { at: y, label: bar.name.clone() });
    }
    let longest = bars.iter().map(|bar| bar.time.whole.as_millis_f64()).fold(0.0, f64::max);
    let scale = AxisScale::Linear { low: 0.0, high: longest.max(1e-6) * 1.16 };
    let x = PlotAxis::rounded("ms, mean", scale, 5);
    let plot = Plot { left: 116.0, ..Plot::of_rows(bars.len(), x, ticks, marks) };
    let has_slowest = bars.iter().any(|bar| bar.time.is_slowest);
    let sentence = sentence_of_parts(bars.iter().map(|bar| bar.run), has_slowest);
    Ok(PageFigure { key: key_of_parts(&bars), plots: vec![plot], sentence })
}

impl<'a> TimeBar<'a> {
    /// The bars of a run.
    fn of_run(run: &'a Run) -> Vec<TimeBar<'a>> {
        let divided = TimeBreakdown::of(run);
        let all = divided.first().map_or(1, |all| all.requests.max(1)) as f64;
        let bar = |time: TimeBreakdown| TimeBar {
            run,
            name: if time.is_slowest {
                format!("slowest {} %", number::percent_tenths(time.requests as f64 / all))
            } else {
                format!("{} conns", run.connections)
            },
            time,
        };
        divided.into_iter().map(bar).collect()
    }

    /// Its parts side by side at this height, and the total as text behind them.
    fn marks(&self, y: f64) -> Vec<PlotMark> {
        let whole = number::milliseconds(self.time.whole);
        let mut marks = Vec::new();
        let mut from = 0.0;
        for part in &self.time.parts {
            let until = from + part.time.as_millis_f64();
            let title = format!(
                "{} connections, {}: {} {} ms of {whole} ms",
                self.run.connections,
                number::count_of(self.time.requests, "response"),
                part.name,
                number::milliseconds(part.time),
            );
            let cell = PlotCell {
                from: PlotPoint { x: from, y: y - 0.36 },
                to: PlotPoint { x: until, y: y + 0.36 },
            };
            marks.push(PlotMark::new(part.class, PlotShape::Cells(vec![cell]), title));
            from = until;
        }
        marks.push(PlotMark::new("", PlotShape::Word(PlotPoint { x: from, y }), whole));
        marks
    }
}

/// An entry for each class, with the names of all parts that have it.
fn key_of_parts(bars: &[TimeBar<'_>]) -> Vec<KeyEntry> {
    let mut key: Vec<KeyEntry> = Vec::new();
    let mut named = Vec::new();
    for part in bars.iter().flat_map(|bar| &bar.time.parts) {
        if named.contains(&part.name) {
            continue;
        }
        named.push(part.name);
        match key.iter_mut().find(|entry| entry.class == part.class) {
            Some(entry) => entry.meaning = format!("{}, {}", entry.meaning, part.name),
            None => key.push(KeyEntry::new(part.class, part.name)),
        }
    }
    key
}

fn sentence_of_parts<'a>(
    mut runs: impl Iterator<Item = &'a Run> + Clone,
    has_slowest: bool,
) -> String {
    let by_kernel =
        runs.clone().any(|run| run.kernel.as_ref().is_some_and(|kernel| kernel.paths.is_some()));
    let by_app = runs.clone().any(|run| run.app_times.is_some());
    let by_queue = runs.any(|run| run.accept_queue_wait().is_some());
    let source = match (by_kernel, by_app) {
        (true, _) => "by the kernel's stamps, and the app's where it gave any",
        (false, true) if by_queue => {
            "by the app's stamps; the accept queue's part of all responses is inferred from its length (Little's law)"
        }
        (false, true) => "by the app's stamps",
        (false, false) => "the accept queue's part is inferred from its length (Little's law)",
    };
    let slowest = if has_slowest { ", and that of its slowest tenth" } else { "" };
    format!("The mean response time of each load{slowest}, cut into its parts: {source}.")
}
