//! Sections about the server and the kernel: samples, tracepoints, statsd.

use judge::named_runs::NamedRun;
use model::kernel::{KernelView, ProcessWaits};
use model::samples::{WatchCurve, WatchTrack};
use model::{
    MetricKind, Nanos, Run, Socket, StatsdFigures, StatsdMetric, StatsdReport, Waits, Watch,
};

use crate::number::{self, NONE};
use crate::plot::PlotPoint;
use crate::tree::{
    ColumnBand, DataTable, ListItem, ReportSection, TableCell, TableColumn, TableRow,
};

/// Samples of the server: a row for each run that has some, with the accept queue first.
pub(crate) fn section(runs: &[NamedRun<'_>]) -> Option<ReportSection> {
    let row = |NamedRun { name, run }: &NamedRun<'_>| Some(row(name, run, run.watch.as_ref()?));
    let [queue, ours] = ["accept queue", "sampling"].map(|title| ColumnBand::new(title, ""));
    let new = TableColumn::new;
    let of_queue = ["in line", "at most", "of", "wait, ms"].map(|name| new(name).under(&queue));
    let of_server = ["connected", "busy", "backlog", "CPUs", "CPU wait"].map(new);
    let of_us = ["samples", "took"].map(|name| new(name).under(&ours));
    let columns = std::iter::once(new("")).chain(of_queue).chain(of_server).chain(of_us);
    let table = DataTable::of_columns(columns, runs.iter().filter_map(row));
    let is_watched = !table.rows.is_empty();
    let missing = runs.iter().flat_map(|NamedRun { name, run }| {
        let watch = run.watch.iter().flat_map(|watch| &watch.missing);
        watch.map(move |what| ListItem {
            label: name.clone(),
            ..ListItem::new(format!("not read: {what}"))
        })
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
    let brief = |value: Option<f64>| {
        TableCell::number(value, |value| number::or_zero(value, number::significant))
    };
    TableRow::new([
        label.into(),
        brief(mean("accept_queue")),
        TableCell::counted(most("accept_queue")),
        TableCell::counted(most("accept_queue_limit")),
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

/// The mean of what each worker reported in the window, summed over the workers; `None` if one
/// reported nothing.
fn polled(watch: &Watch, name: &str) -> Option<f64> {
    let means: Option<Vec<f64>> =
        watch.curves(name).map(|(track, curve)| mean_of_reports(track, curve)).collect();
    means.filter(|means| !means.is_empty()).map(|means| means.iter().sum())
}

/// Reports closer to each other than this are one report that was read twice: workers report at
/// most once a second.
const SAME_REPORT: Nanos = Nanos::from_millis(500);

/// Mean of a worker's reports, each counted once however often it was read. Reports that may be
/// from before the window are left out.
fn mean_of_reports(track: &WatchTrack, curve: &WatchCurve) -> Option<f64> {
    let mut sum = 0.0;
    let mut reports = 0.0;
    let mut last: Option<Nanos> = None;
    for (place, (at, value)) in track.at.iter().zip(&curve.values).enumerate() {
        let age =
            if curve.staleness.is_empty() { Some(Nanos::ZERO) } else { curve.staleness[place] };
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

/// How fast a counter of nanoseconds rose, all processes together, per nanosecond of sampling. A
/// process that started meanwhile counts from 0, and one that ended up to its last sample.
fn share(watch: &Watch, name: &str) -> Option<f64> {
    let counted = |curve: &WatchCurve| {
        if curve.values.first() == Some(&None) { curve.most() } else { curve.counted() }
    };
    let sum: Option<u64> = watch.curves(name).map(|(_, curve)| counted(curve)).sum();
    let longest = watch.curves(name).filter_map(|(track, curve)| seen_for(track, curve)).max()?;
    Some(sum? as f64 / longest.0 as f64)
}

/// From the first sample that had a value to the last.
fn seen_for(track: &WatchTrack, curve: &WatchCurve) -> Option<Nanos> {
    let known = || {
        track.at.iter().zip(&curve.values).filter(|(_, value)| value.is_some()).map(|(at, _)| *at)
    };
    let span = known().next_back()?.saturating_sub(known().next()?);
    (span > Nanos::ZERO).then_some(span)
}

/// What the columns mean, where their figures come from, and how old these may be.
fn words(runs: &[NamedRun<'_>]) -> Vec<String> {
    const CPUS: &str = "CPUs: kept busy by its processes; CPU wait: their threads that waited for one; took: our sampling, of one CPU";
    let watches = || runs.iter().filter_map(|named| named.run.watch.as_ref());
    let source = |name: &str| watches().find_map(|watch| Some(watch.curve(name)?.0.source.clone()));
    let queue = source("accept_queue").into_iter().flat_map(|source| {
        [
            format!("in line: connections in the accept queue ({source}), at most so many, of so many that it holds"),
            "wait: of a request in that queue on average, by the queue's length and the rate (Little's law)".to_owned(),
        ]
    });
    let inside = source("backlog").or_else(|| source("busy_threads")).map(|source| {
        let curves = watches().flat_map(|watch| &watch.tracks).flat_map(|track| &track.curves);
        let oldest = curves.flat_map(|curve| curve.staleness.iter().flatten()).max();
        let age = oldest.map_or_else(
            || "read live".to_owned(),
            |age| format!("up to {} old", number::length(*age)),
        );
        format!(
            "busy: threads taken; backlog: requests that wait inside the workers ({source}, {age})"
        )
    });
    queue.chain(inside).chain(source("cpu").map(|_| CPUS.to_owned())).collect()
}

/// The sum of all curves of that name over time in seconds. A sample that one of them lacks is left
/// out.
pub(crate) fn summed(watch: &Watch, name: &str) -> Vec<PlotPoint> {
    let mut sums: Vec<(Nanos, Option<u64>)> = Vec::new();
    for (track, curve) in watch.curves(name) {
        let values = track.at.iter().copied().zip(curve.values.iter().copied());
        if sums.is_empty() {
            sums = values.collect();
        } else {
            for ((_, sum), (_, value)) in sums.iter_mut().zip(values) {
                *sum = sum.zip(value).map(|(sum, value)| sum + value);
            }
        }
    }
    let point =
        |(at, sum): (Nanos, Option<u64>)| Some(PlotPoint { x: at.as_secs_f64(), y: sum? as f64 });
    sums.into_iter().filter_map(point).collect()
}

/// The most metrics of a run that have a row; the saved study has all.
const MOST_METRICS: usize = 20;
/// Listening is worth a remark when it takes more than this part of a CPU.
const MUCH: f64 = 0.05;
/// The most characters of a metric and its tags that are shown.
const WIDEST: usize = 60;

/// What app and server sent over statsd: a row for each metric.
pub(crate) fn statsd(runs: &[NamedRun<'_>]) -> Option<ReportSection> {
    let mut rows = Vec::new();
    let mut missing = Vec::new();
    for NamedRun { name, run } in runs {
        let Some(statsd) = &run.statsd else { continue };
        let before = if name.is_empty() { String::new() } else { format!("{name} ") };
        rows.extend(statsd.series.iter().take(MOST_METRICS).map(|series| metric(&before, series)));
        let line = notes_on_statsd(statsd, run.elapsed);
        missing.extend(line.map(|line| ListItem { label: name.clone(), ..ListItem::new(line) }));
    }
    let table = DataTable::new(["", "type", "values", "total", "mean", "last", "min", "max"], rows);
    let title =
        "received over statsd in the window; total: what a counter counted, by its sample rate";
    ReportSection::detail(title).table(table).list(missing).filled()
}

fn metric(before: &str, series: &StatsdMetric) -> TableRow {
    let figure = |of: fn(&StatsdFigures) -> f64| {
        TableCell::number(series.figures.as_ref().map(of), number::anything)
    };
    let total = if series.kind == MetricKind::Counter {
        figure(|figures| figures.sum)
    } else {
        NONE.into()
    };
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
    let tags =
        if series.tags.is_empty() { String::new() } else { format!(" {}", series.tags.join(",")) };
    let text = format!("{}{tags}", series.metric);
    if text.chars().count() <= WIDEST {
        text
    } else {
        text.chars().take(WIDEST - 1).chain(['…']).collect()
    }
}

/// What the table does not show of a run of this length, and the cost of listening where it was
/// high.
fn notes_on_statsd(statsd: &StatsdReport, elapsed: Nanos) -> Option<String> {
    if statsd.packets == 0 {
        let before = match statsd.before {
            0 => String::new(),
            n => format!(" ({} before it)", number::count_of(n, "line")),
        };
        return Some(format!("nothing came{before}"));
    }
    let counted = |n: u64, what: &str| (n > 0).then(|| format!("{n} {what}"));
    let first = statsd.first_malformed.as_deref().unwrap_or_default();
    let malformed = format!(
        "{} without statsd, the first '{first}'",
        number::count_of(statsd.malformed, "line")
    );
    let share = statsd.cpu.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
    let parts = [
        counted(
            statsd.series.len().saturating_sub(MOST_METRICS) as u64,
            "further metrics, in the saved study",
        ),
        counted(statsd.left_out, "lines of still further metrics were left out"),
        match statsd.dropped_by_kernel {
            Some(dropped) => counted(dropped, "packets were dropped by the kernel"),
            None => Some("whether the kernel dropped packets is not known".to_owned()),
        },
        counted(statsd.no_metrics, "events and service checks"),
        (statsd.malformed > 0).then_some(malformed),
        (share > MUCH).then(|| format!("listening took {} % of one CPU", number::percent(share))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("not in the table: {}", parts.join("; ")))
}

/// Waits by the kernel's tracepoints: a row for each worker of each run, of servers on these kinds
/// of socket.
pub(crate) fn traced(runs: &[NamedRun<'_>], sockets: &[Socket]) -> Option<ReportSection> {
    let views = runs.iter().filter_map(|NamedRun { name, run }| Some((name, run.kernel.as_ref()?)));
    let new = TableColumn::new;
    let [accept, receive, server] =
        ["accept queue", "receive queue", "in server"].map(|title| ColumnBand::new(title, title));
    let columns = [
        &["", "worker", "responses"].map(new)[..],
        &["mean", "p50", "p99"].map(|name| new(name).under(&accept)),
        &["mean", "p99"].map(|name| new(name).under(&receive)),
        &["mean", "p50", "p99"].map(|name| new(name).under(&server)),
        &[new("CPU wait")],
    ];
    let rows = views.flat_map(|(name, view)| rows_of_processes(name, view));
    let table = DataTable { lead: 2, ..DataTable::of_columns(columns.concat(), rows) };
    let has_tls = sockets.iter().any(|socket| matches!(socket, Socket::Ssl4 | Socket::Ssl6));
    let words = [
        "accept queue: of a connection, until it is accepted; receive queue: of a request, from then or its arrival until it is read",
        "in server: from there to its response; CPU wait: of a thread, from being ready to running; responses: of the whole run",
        if has_tls {
            "over TLS connections and threads alone are seen, and no requests"
        } else {
            ""
        },
    ];
    let section = ReportSection::detail(
        "waits by the kernel's tracepoints (BPF), means and percentiles in ms",
    );
    (!table.rows.is_empty()).then(|| section.paragraphs(words).table(table))
}

fn rows_of_processes(label: &str, view: &KernelView) -> Vec<TableRow> {
    let worked = |process: &&ProcessWaits| process.answers > 0 || process.accept_queue.count > 0;
    let row = |(place, process): (usize, &ProcessWaits)| {
        let mean = |waits: &Waits| TableCell::time(waits.mean());
        let at = |waits: &Waits, quantile| TableCell::time(waits.quantile(quantile));
        let accept = &process.accept_queue;
        let receive = &process.receive_queue;
        let server = &process.in_server;
        TableRow::new([
            if place == 0 { label.into() } else { TableCell::default() },
            process.pid.to_string().into(),
            // Over TLS the kernel sees no responses.
            TableCell::counted(Some(process.answers).filter(|answers| *answers > 0)),
            mean(accept),
            at(accept, 0.5),
            at(accept, 0.99),
            mean(receive),
            at(receive, 0.99),
            mean(server),
            at(server, 0.5),
            at(server, 0.99),
            mean(&process.run_queue),
        ])
    };
    view.processes.iter().filter(worked).enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_counts_once_and_not_if_it_may_be_from_before_the_window() {
        let ages = [1500u64, 300, 1300, 300].map(|ms| Some(Nanos::from_millis(ms)));
        let curve = WatchCurve {
            values: vec![Some(9), Some(2), Some(2), Some(5)],
            staleness: ages.to_vec(),
            ..WatchCurve::default()
        };
        let track =
            WatchTrack { at: (1..=4).map(Nanos::from_secs).collect(), ..WatchTrack::default() };
        assert_eq!(mean_of_reports(&track, &curve), Some(3.5));
        let unknown = WatchCurve { staleness: vec![None; 4], ..curve.clone() };
        assert_eq!(mean_of_reports(&track, &unknown), None, "of unknown age");
        let live = WatchCurve { staleness: Vec::new(), ..curve };
        assert_eq!(mean_of_reports(&track, &live), Some(4.5));
    }
}
