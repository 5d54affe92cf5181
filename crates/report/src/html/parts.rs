//! Where the time of a response went, as stacked bars: of all responses of a run, and of its slowest.

use model::Run;

use crate::html::figure::{DrawnFigure, KeyEntry, PageFigure};
use crate::html::shown_runs::ShownRuns;
use crate::number;
use crate::plot::{AxisScale, AxisTick, Plot, PlotAxis, PlotMark, PlotPoint};
use crate::time_parts::DividedTime;

/// A bar: some responses of a run.
struct TimeBar<'a> {
    run: &'a Run,
    name: String,
    time: DividedTime,
}

/// Height of a bar and of what is between two loads.
const ROW: f64 = 24.0;

/// The bars of each load.
pub(crate) fn figure(runs: &ShownRuns<'_>) -> PageFigure {
    const TITLE: &str = "Where the time goes";
    let of_run = |run| {
        let divided = DividedTime::of(run);
        let all = divided.first().map_or(1, |all| all.requests.max(1)) as f64;
        let bar = |time: DividedTime| TimeBar {
            run,
            name: if time.is_slowest {
                format!("slowest {} %", number::percent_tenths(time.requests as f64 / all))
            } else {
                format!("{} conns", run.connections)
            },
            time,
        };
        divided.into_iter().map(bar).collect::<Vec<_>>()
    };
    let bars: Vec<TimeBar<'_>> = runs.first_of_each().into_iter().flat_map(of_run).collect();
    if bars.is_empty() {
        let asked = "neither app nor kernel was asked: add --inspect app, or --inspect kernel as root";
        return PageFigure::left_out(TITLE, runs.why_none(asked));
    }
    let longest = bars.iter().map(|bar| bar.time.whole.as_millis_f64()).fold(0.0, f64::max);
    let mut marks = Vec::new();
    let (mut ticks, mut key): (Vec<AxisTick>, Vec<KeyEntry>) = (Vec::new(), Vec::new());
    let mut named = Vec::new();
    let count = bars.len() as f64;
    for (row, TimeBar { run, name, time: bar }) in bars.iter().enumerate() {
        let middle = count - row as f64 - 0.5;
        let mut from = 0.0;
        for part in &bar.parts {
            let until = from + part.time.as_millis_f64();
            let corners = [PlotPoint { x: from, y: middle - 0.36 }, PlotPoint { x: until, y: middle + 0.36 }];
            let title = format!(
                "{} connections, {}: {} {} ms of {} ms",
                run.connections,
                number::count_of(bar.requests, "response"),
                part.name,
                number::milliseconds(part.time),
                number::milliseconds(bar.whole)
            );
            marks.push(PlotMark::Bar { class: part.class.to_owned(), from: corners[0], to: corners[1], title });
            if !named.contains(&part.name) {
                named.push(part.name);
                match key.iter_mut().find(|entry| entry.class == part.class) {
                    Some(entry) => entry.meaning = format!("{}, {}", entry.meaning, part.name),
                    None => key.push(KeyEntry::new(part.class, part.name)),
                }
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
    let has_slowest = bars.iter().any(|bar| bar.time.is_slowest);
    let sentence = sentence(bars.iter().map(|bar| bar.run), has_slowest);
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
