//! What was seen of server and kernel while the runs went on, and what app and server said over statsd.

use model::watch::{WatchCurve, WatchTrack};
use model::{MetricKind, Nanos, Run, StatsdFigures, StatsdMetric, StatsdReport, Watch};

use crate::named_runs::NamedRun;
use crate::number::{self, NONE};
use crate::tree::{CurvePoint, DataTable, ListItem, ReportSection, TableCell, TableColumn, TableRow, TimeCurve};

/// A row for each run that was watched; the first columns are of the accept queue.
pub(crate) fn section(runs: &[NamedRun<'_>]) -> Option<ReportSection> {
    let row = |NamedRun { name, run }: &NamedRun<'_>| Some(row(name, run, run.watch.as_ref()?));
    let new = TableColumn::new;
    let columns = [
        new(""),
        new("in line"),
        new("at most").joined(),
        new("of").joined(),
        new("wait, ms").joined(),
        new("connected"),
        new("busy"),
        new("backlog"),
        new("CPUs"),
        new("CPU wait"),
        new("samples"),
        new("they took").joined(),
    ];
    let table = DataTable::of_columns(columns, runs.iter().filter_map(row));
    let is_watched = !table.rows.is_empty();
    let missing = runs.iter().flat_map(|NamedRun { name, run }| {
        let watch = run.watch.iter().flat_map(|watch| &watch.missing);
        watch.map(move |what| ListItem { label: name.clone(), ..ListItem::new(format!("not read: {what}")) })
    });
    let section = ReportSection::detail("the server meanwhile, means over the window");
    is_watched.then(|| section.paragraphs(words(runs)).table(table).list(missing))
}

fn row(label: &str, run: &Run, watch: &Watch) -> TableRow {
    let mean = |name: &str| {
        let (track, curve) = watch.curve(name)?;
        track.mean(curve, run.measured)
    };
    let most = |name: &str| watch.curve(name).and_then(|(_, curve)| curve.most());
    let samples = watch.tracks.first().map_or(0, |track| track.at.len() as u64);
    let taken = watch.cpu.as_secs_f64() / run.elapsed.as_secs_f64().max(1e-9);
    let brief = |value: Option<f64>| TableCell::number(value, |value| number::or_zero(value, number::significant));
    let count = |value: Option<u64>| value.map_or_else(|| TableCell::from(NONE), TableCell::count);
    TableRow::new([
        label.into(),
        brief(mean("accept_queue")),
        count(most("accept_queue")),
        count(most("accept_queue_limit")),
        TableCell::time(run.accept_queue_wait()),
        brief(mean("open_connections")),
        brief(polled(watch, "busy_threads")),
        brief(polled(watch, "backlog")),
        TableCell::number(share(watch, "cpu"), number::times),
        TableCell::number(share(watch, "run_queue_wait"), number::times),
        TableCell::count(samples),
        TableCell::number(Some(taken), |part| format!("{} %", number::percent(part))),
    ])
}

/// Sum over the workers of the mean of what each reported in the window; `None` where one reported nothing.
fn polled(watch: &Watch, name: &str) -> Option<f64> {
    let means: Option<Vec<f64>> = watch.curves(name).map(|(track, curve)| mean_of_reports(track, curve)).collect();
    means.filter(|means| !means.is_empty()).map(|means| means.iter().sum())
}

/// Reports closer to each other than this are one, read twice: workers report each second at the most.
const SAME_REPORT: Nanos = Nanos::from_millis(500);

/// Mean of a worker's reports, each counted once however often it was read. One that may be of before the window is none.
fn mean_of_reports(track: &WatchTrack, curve: &WatchCurve) -> Option<f64> {
    let (mut sum, mut reports, mut last) = (0.0, 0.0, None::<Nanos>);
    for (place, (at, value)) in track.at.iter().zip(&curve.values).enumerate() {
        let age = if curve.staleness.is_empty() { Some(Nanos::ZERO) } else { curve.staleness[place] };
        let (Some(value), Some(age)) = (value, age.filter(|age| age <= at)) else { continue };
        let reported = *at - age;
        if last.is_none_or(|last| reported >= last + SAME_REPORT) {
            sum += *value as f64;
            reports += 1.0;
            last = Some(reported);
        }
    }
    (reports > 0.0).then(|| sum / reports)
}

/// Of a counter of ns: by how much all processes together raised it in a second of the time that they were looked at. One that
/// was born or died in that time has its part of it.
fn share(watch: &Watch, name: &str) -> Option<f64> {
    let counted = |curve: &WatchCurve| if curve.values.first() == Some(&None) { curve.most() } else { curve.counted() };
    let sum: Option<u64> = watch.curves(name).map(|(_, curve)| counted(curve)).sum();
    let longest = watch.curves(name).filter_map(|(track, curve)| seen_for(track, curve)).max()?;
    Some(sum? as f64 / longest.0 as f64)
}

/// From the first sample that had a value to the last.
fn seen_for(track: &WatchTrack, curve: &WatchCurve) -> Option<Nanos> {
    let known = || track.at.iter().zip(&curve.values).filter(|(_, value)| value.is_some()).map(|(at, _)| *at);
    let span = known().next_back()?.saturating_sub(known().next()?);
    (span > Nanos::ZERO).then_some(span)
}

/// What the columns mean: whose figures they are, and how old.
fn words(runs: &[NamedRun<'_>]) -> Vec<String> {
    let watches = || runs.iter().filter_map(|named| named.run.watch.as_ref());
    let source = |name: &str| watches().find_map(|watch| Some(watch.curve(name)?.0.source.clone()));
    let mut lines = Vec::new();
    if let Some(source) = source("accept_queue") {
        lines.push(format!(
            "in line: connections in the accept queue ({source}), at most so many, of so many that it holds"
        ));
        lines.push(
            "wait: of a request in that queue on average, by the queue's length and the rate (Little's law)".to_owned(),
        );
    }
    if let Some(source) = source("backlog").or_else(|| source("busy_threads")) {
        let curves = watches().flat_map(|watch| &watch.tracks).flat_map(|track| &track.curves);
        let oldest = curves.flat_map(|curve| curve.staleness.iter().flatten()).max();
        let age = oldest.map_or_else(|| "read live".to_owned(), |age| format!("up to {} old", number::length(*age)));
        lines.push(format!("busy: threads taken; backlog: requests that wait inside the workers ({source}, {age})"));
    }
    if source("cpu").is_some() {
        lines.push(
            "CPUs: kept busy by its processes; CPU wait: their threads that waited for one; they took: our sampling, of one CPU"
                .to_owned(),
        );
    }
    lines
}

/// Looks of which something can be drawn.
const LEAST_SAMPLES: usize = 8;

/// How the watched runs went, drawn small.
pub(crate) fn over_time(runs: &[NamedRun<'_>]) -> Option<ReportSection> {
    let curves = runs.iter().filter_map(|NamedRun { name, run }| Some(curves_of(name, run, run.watch.as_ref()?)));
    let title =
        "over time, from the start of the window to the last answer; · is 0, and at the right is what █ stands for";
    ReportSection::detail(title).curves(curves.flatten().collect()).filled()
}

fn curves_of(label: &str, run: &Run, watch: &Watch) -> Vec<TimeCurve> {
    let sums = [("in line", "accept_queue"), ("connected", "open_connections"), ("backlog", "backlog")];
    let curves = sums.map(|(name, curve)| (name, summed(watch, curve)));
    let curves: Vec<_> = curves.into_iter().chain([("response time", response_times(run))]).collect();
    let span = curves.iter().filter_map(|(_, points)| Some(points.last()?.at)).max().unwrap_or(Nanos::ZERO);
    let samples = curves.first().map_or(0, |(_, points)| points.len());
    if span == Nanos::ZERO || samples < LEAST_SAMPLES {
        return Vec::new();
    }
    let curve = |(name, points): (&'static str, Vec<CurvePoint>)| {
        let most = points.iter().filter_map(|point| point.value).fold(0.0, f64::max);
        // A server without a backlog need not be shown one.
        if points.is_empty() || (name == "backlog" && most == 0.0) {
            return None;
        }
        let highest = if name == "response time" {
            format!("{} ms", number::milliseconds(Nanos::from_secs_f64(most)))
        } else {
            number::or_zero(most, number::significant)
        };
        Some(TimeCurve { label: label.to_owned(), name, points, span, most_points: samples, highest })
    };
    curves.into_iter().filter_map(curve).collect()
}

/// The curves of that name, added up sample by sample; a sample that one of them lacks is a gap.
pub(crate) fn summed(watch: &Watch, name: &str) -> Vec<CurvePoint> {
    let mut points: Vec<CurvePoint> = Vec::new();
    for (track, curve) in watch.curves(name) {
        let values = track
            .at
            .iter()
            .zip(&curve.values)
            .map(|(at, value)| CurvePoint { at: *at, value: value.map(|value| value as f64) });
        if points.is_empty() {
            points = values.collect();
        } else {
            for (mine, theirs) in points.iter_mut().zip(values) {
                mine.value = mine.value.zip(theirs.value).map(|(mine, theirs)| mine + theirs);
            }
        }
    }
    points
}

/// The mean response time of the good answers of each second, in seconds.
fn response_times(run: &Run) -> Vec<CurvePoint> {
    let mean = |(at, second): (usize, &model::series::Second)| {
        let mean = second.response_time_sum_ns.checked_div(second.completed);
        CurvePoint { at: Nanos::from_secs(at as u64), value: mean.map(|mean| Nanos(mean).as_secs_f64()) }
    };
    run.tally.series.seconds.iter().enumerate().map(mean).collect()
}

/// Metrics of a run that have a row; all are in the saved study.
const MOST_METRICS: usize = 20;
/// Listening that takes more of one CPU is said.
const MUCH: f64 = 0.05;
/// So much of a metric and its tags is shown.
const WIDEST: usize = 60;

/// What app and server said over statsd, a row a metric.
pub(crate) fn statsd(runs: &[NamedRun<'_>]) -> Option<ReportSection> {
    let (mut rows, mut missing) = (Vec::new(), Vec::new());
    for NamedRun { name, run } in runs {
        let Some(statsd) = &run.statsd else { continue };
        let before = if name.is_empty() { String::new() } else { format!("{name} ") };
        rows.extend(statsd.series.iter().take(MOST_METRICS).map(|series| metric(&before, series)));
        missing.extend(beside(statsd, run.elapsed).map(|line| ListItem { label: name.clone(), ..ListItem::new(line) }));
    }
    let table = DataTable::new(["", "type", "values", "total", "mean", "last", "min", "max"], rows);
    let title = "received over statsd in the window; total: what a counter counted, by its sample rate";
    ReportSection::detail(title).table(table).list(missing).filled()
}

fn metric(before: &str, series: &StatsdMetric) -> TableRow {
    let figure = |of: fn(&StatsdFigures) -> f64| TableCell::number(series.figures.as_ref().map(of), number::anything);
    let total = if series.kind == MetricKind::Counter { figure(|figures| figures.sum) } else { NONE.into() };
    TableRow::new([
        format!("{before}{}", shown(series)).into(),
        series.kind.name().into(),
        TableCell::count(series.values),
        total,
        figure(|figures| figures.mean),
        figure(|figures| figures.last),
        figure(|figures| figures.min),
        figure(|figures| figures.max),
    ])
}

/// Metric and tags, cut where they are too long.
fn shown(series: &StatsdMetric) -> String {
    let tags = if series.tags.is_empty() { String::new() } else { format!(" {}", series.tags.join(",")) };
    let text = format!("{}{tags}", series.metric);
    if text.chars().count() <= WIDEST { text } else { text.chars().take(WIDEST - 1).chain(['…']).collect() }
}

/// What of it is not in the table, and what it cost where that is much; of a run of that length.
fn beside(statsd: &StatsdReport, elapsed: Nanos) -> Option<String> {
    let share = statsd.cpu.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
    let cost = (share > MUCH).then(|| format!("listening took {} % of one CPU", number::percent(share)));
    let parts: Vec<String> = not_shown(statsd).into_iter().chain(cost).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn not_shown(statsd: &StatsdReport) -> Option<String> {
    let mut parts = Vec::new();
    if statsd.packets == 0 {
        let before = match statsd.before {
            0 => String::new(),
            n => format!(" ({} before it)", number::count_of(n, "line")),
        };
        return Some(format!("nothing came{before}"));
    }
    let more = statsd.series.len().saturating_sub(MOST_METRICS) as u64;
    let mut counted = |n: u64, what: &str| {
        if n > 0 {
            parts.push(format!("{} {what}", number::count(n)));
        }
    };
    counted(more, "further metrics, in the saved study");
    counted(statsd.left_out, "lines of still further metrics were left out");
    counted(statsd.dropped_by_kernel.unwrap_or(0), "packets were dropped by the kernel");
    counted(statsd.no_metrics, "events and service checks");
    if statsd.malformed > 0 {
        let first = statsd.first_malformed.as_deref().unwrap_or_default();
        parts.push(format!("{} without statsd, the first '{first}'", number::count_of(statsd.malformed, "line")));
    }
    if statsd.packets > 0 && statsd.dropped_by_kernel.is_none() {
        parts.push("whether the kernel dropped packets is not known".to_owned());
    }
    (!parts.is_empty()).then(|| format!("not in the table: {}", parts.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_counts_once_and_not_if_it_may_be_of_before_the_window() {
        let ages = [1500u64, 300, 1300, 300].map(|ms| Some(Nanos::from_millis(ms)));
        let curve = WatchCurve {
            values: vec![Some(9), Some(2), Some(2), Some(5)],
            staleness: ages.to_vec(),
            ..WatchCurve::default()
        };
        let track = WatchTrack { at: (1..=4).map(Nanos::from_secs).collect(), ..WatchTrack::default() };
        assert_eq!(mean_of_reports(&track, &curve), Some(3.5));
        let unknown = WatchCurve { staleness: vec![None; 4], ..curve.clone() };
        assert_eq!(mean_of_reports(&track, &unknown), None, "of unknown age");
        let live = WatchCurve { staleness: Vec::new(), ..curve };
        assert_eq!(mean_of_reports(&track, &live), Some(4.5));
    }
}
