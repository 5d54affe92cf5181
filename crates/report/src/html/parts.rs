//! Where the time of a response went, as stacked bars: of all responses of a run, and of its slowest.

use model::anatomy::AnatomySums;
use model::kernel::PathSums;
use model::{Nanos, Run};

use crate::html::figure::{DrawnFigure, KeyEntry, PageFigure};
use crate::html::shown_runs::ShownRuns;
use crate::number;
use crate::plot::{AxisScale, AxisTick, Plot, PlotAxis, PlotMark, PlotPoint};

/// A part of the response time: its colour and its name.
#[derive(Clone, Copy, PartialEq)]
struct TimePart {
    class: &'static str,
    name: &'static str,
}

const ACCEPT: TimePart = TimePart { class: "accept", name: "accept queue (kernel)" };
const WAITING: TimePart = TimePart { class: "waiting", name: "before the app: accept queue and server" };
const AROUND: TimePart = TimePart { class: "waiting", name: "before and after the app" };
const SERVER: TimePart = TimePart { class: "server", name: "server's queue" };
const APP: TimePart = TimePart { class: "app", name: "app" };
const SERVER_AND_APP: TimePart = TimePart { class: "app", name: "server and app" };
const REST: TimePart = TimePart { class: "rest", name: "rest" };
const EVERYTHING_ELSE: TimePart = TimePart { class: "rest", name: "server, app and the rest" };

/// A bar: the mean time of some responses, cut into its parts.
struct TimeBar {
    requests: u64,
    whole: Nanos,
    parts: Vec<(TimePart, Nanos)>,
}

/// Height of a bar and of what is between two loads.
const ROW: f64 = 24.0;

/// The bars of each load.
pub(crate) fn figure(runs: &ShownRuns<'_>) -> PageFigure {
    const TITLE: &str = "Where the time goes";
    let bars: Vec<(&Run, String, TimeBar)> = runs
        .first_of_each()
        .into_iter()
        .flat_map(|run| {
            let (all, slowest) = bars(run);
            let of_all = all.as_ref().map_or(0, |bar| bar.requests);
            let slowest = slowest.map(|bar| {
                let share = number::percent_tenths(bar.requests as f64 / of_all.max(1) as f64);
                (run, format!("slowest {share} %"), bar)
            });
            all.map(|bar| (run, format!("{} conns", run.connections), bar)).into_iter().chain(slowest)
        })
        .collect();
    if bars.is_empty() {
        let asked = "neither app nor kernel was asked: add --anatomy, or --probe bpf as root";
        return PageFigure::left_out(TITLE, runs.why_none(asked));
    }
    let longest = bars.iter().map(|(.., bar)| bar.whole.as_millis_f64()).fold(0.0, f64::max);
    let mut marks = Vec::new();
    let (mut ticks, mut key): (Vec<AxisTick>, Vec<KeyEntry>) = (Vec::new(), Vec::new());
    let count = bars.len() as f64;
    for (row, (run, name, bar)) in bars.iter().enumerate() {
        let middle = count - row as f64 - 0.5;
        let mut from = 0.0;
        for (part, time) in &bar.parts {
            let until = from + time.as_millis_f64();
            let corners = [PlotPoint { x: from, y: middle - 0.36 }, PlotPoint { x: until, y: middle + 0.36 }];
            let title = format!(
                "{} connections, {}: {} {} ms of {} ms",
                run.connections,
                number::count_of(bar.requests, "response"),
                part.name,
                number::milliseconds(*time),
                number::milliseconds(bar.whole)
            );
            marks.push(PlotMark::Bar { class: part.class.to_owned(), from: corners[0], to: corners[1], title });
            if !key.iter().any(|entry| entry.meaning == part.name) {
                key.push(KeyEntry::new(part.class, part.name));
            }
            from = until;
        }
        let text = number::milliseconds(bar.whole);
        marks.push(PlotMark::Word { at: PlotPoint { x: from, y: middle }, text });
        ticks.push(AxisTick { at: middle, label: name.clone() });
    }
    let scale = AxisScale::Linear { low: 0.0, high: longest.max(1e-6) * 1.16 };
    let x = PlotAxis::rounded("ms, mean", scale, 5);
    let y = PlotAxis::labelled("", AxisScale::Linear { low: 0.0, high: count }, ticks);
    let height = 66.0 + ROW * count;
    let plot = Plot { marks, height, left: 116.0, ..Plot::new(TITLE, x, y) };
    let has_slowest = bars.iter().any(|(_, name, _)| name.starts_with("slowest"));
    let sentence = sentence(bars.iter().map(|(run, ..)| *run), has_slowest);
    PageFigure::Drawn(DrawnFigure { title: TITLE, key, plots: vec![plot], sentence })
}

fn sentence<'a>(mut runs: impl Iterator<Item = &'a Run> + Clone, has_slowest: bool) -> String {
    let by_kernel = runs.clone().any(|run| run.kernel.as_ref().is_some_and(|kernel| kernel.ways.is_some()));
    let by_app = runs.clone().any(|run| run.anatomy.is_some());
    let in_line = runs.any(|run| run.accept_queue_wait().is_some());
    let source = match (by_kernel, by_app) {
        (true, _) => "by the kernel's stamps, and the app's where it gave any",
        (false, true) if in_line => {
            "by the app's stamps; the accept queue's part of all responses is inferred from its length (Little's law)"
        }
        (false, true) => "by the app's stamps",
        (false, false) => "the accept queue's part is inferred from its length (Little's law)",
    };
    let slowest = if has_slowest { ", and that of its slowest tenth" } else { "" };
    format!("The mean response time of each load{slowest}, cut into its parts: {source}.")
}

/// Of all responses of a run, and of the slowest.
fn bars(run: &Run) -> (Option<TimeBar>, Option<TimeBar>) {
    let ways = run.kernel.as_ref().and_then(|kernel| kernel.ways.as_ref()).filter(|ways| ways.all.requests > 0);
    if let Some(ways) = ways {
        return (Some(of_way(&ways.all)), ways.slowest.as_ref().map(of_way));
    }
    let in_line = run.accept_queue_wait();
    match run.anatomy.as_ref().filter(|anatomy| anatomy.all.requests > 0) {
        // The queue's length tells a mean over all requests, and nothing of the slowest.
        Some(anatomy) => {
            (Some(of_parts(&anatomy.all, in_line)), anatomy.slowest.as_ref().map(|parts| of_parts(parts, None)))
        }
        None => (queue_alone(run, in_line), None),
    }
}

fn of_way(way: &PathSums) -> TimeBar {
    let mean = |sum: Nanos| way.mean(sum).unwrap_or_default();
    let outside = way.send_lag + way.sending + way.reading;
    let parts = match (way.server_queue, way.app) {
        (queue, Some(app)) => {
            let queue = way.receive_queue + queue.unwrap_or_default();
            vec![(SERVER, queue), (APP, app), (REST, outside + way.left_in_server())]
        }
        (_, None) => vec![(SERVER, way.receive_queue), (SERVER_AND_APP, way.in_server), (REST, outside)],
    };
    let parts = std::iter::once((ACCEPT, way.accept_queue)).chain(parts);
    let parts = parts.map(|(part, sum)| (part, mean(sum))).collect();
    TimeBar { requests: way.requests, whole: mean(way.response_time), parts }
}

fn of_parts(parts: &AnatomySums, in_line: Option<Nanos>) -> TimeBar {
    let mean = |sum: Nanos| parts.mean(sum).unwrap_or_default();
    let (app, rest) = (mean(parts.app), mean(parts.send_lag + parts.rest()));
    // What waits before the app is in the rest where the app does not say when it began.
    let (waiting, name) = match parts.before_app {
        Some(before) => (mean(before), WAITING),
        None => (rest, AROUND),
    };
    let in_line = in_line.filter(|in_line| *in_line <= waiting);
    let left = waiting.saturating_sub(in_line.unwrap_or_default());
    let mut cut: Vec<(TimePart, Nanos)> = in_line.map(|in_line| (ACCEPT, in_line)).into_iter().collect();
    match (parts.before_app, in_line) {
        (Some(_), Some(_)) => cut.extend([(SERVER, left), (APP, app), (REST, rest)]),
        (Some(_), None) => cut.extend([(name, left), (APP, app), (REST, rest)]),
        (None, _) => cut.extend([(APP, app), (name, left)]),
    }
    TimeBar { requests: parts.requests, whole: mean(parts.response_time), parts: cut }
}

fn queue_alone(run: &Run, in_line: Option<Nanos>) -> Option<TimeBar> {
    let (in_line, whole) = (in_line?, run.tally.response_time.mean()?);
    // More than the whole is no part: the warning says so.
    let rest = Nanos(whole.0.checked_sub(in_line.0)?);
    Some(TimeBar { requests: run.tally.counts.good(), whole, parts: vec![(ACCEPT, in_line), (EVERYTHING_ELSE, rest)] })
}
