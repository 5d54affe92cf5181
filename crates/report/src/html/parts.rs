//! Where the time of a response went, as stacked bars: of all responses of a run, and of its slowest.

use model::Run;

use crate::html::figure::{KeyEntry, PageFigure};
use crate::html::shown_runs::ShownRuns;
use crate::number;
use crate::plot::{AxisScale, AxisTick, Plot, PlotAxis, PlotCell, PlotMark, PlotPoint, PlotShape};
use crate::time_parts::DividedTime;

/// A bar: some responses of a run.
struct TimeBar<'a> {
    run: &'a Run,
    name: String,
    time: DividedTime,
}

/// The bars of each load.
pub(crate) fn figure(runs: &ShownRuns<'_>) -> Result<PageFigure, String> {
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
        return Err("neither app nor kernel was asked: add --inspect app, or --inspect kernel as root".to_owned());
    }
    let longest = bars.iter().map(|bar| bar.time.whole.as_millis_f64()).fold(0.0, f64::max);
    let (mut marks, mut ticks, mut key, mut named) = (Vec::new(), Vec::new(), Vec::<KeyEntry>::new(), Vec::new());
    for (row, TimeBar { run, name, time: bar }) in bars.iter().rev().enumerate() {
        let y = row as f64 + 0.5;
        let whole = number::milliseconds(bar.whole);
        let mut from = 0.0;
        for part in &bar.parts {
            let until = from + part.time.as_millis_f64();
            let title = format!(
                "{} connections, {}: {} {} ms of {whole} ms",
                run.connections,
                number::count_of(bar.requests, "response"),
                part.name,
                number::milliseconds(part.time),
            );
            let cell = PlotCell { from: PlotPoint { x: from, y: y - 0.36 }, to: PlotPoint { x: until, y: y + 0.36 } };
            marks.push(PlotMark::new(part.class, PlotShape::Cells(vec![cell]), title));
            from = until;
        }
        marks.push(PlotMark::new("", PlotShape::Word(PlotPoint { x: from, y }), whole));
        ticks.push(AxisTick { at: y, label: name.clone() });
    }
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
    let x = PlotAxis::rounded("ms, mean", AxisScale::Linear { low: 0.0, high: longest.max(1e-6) * 1.16 }, 5);
    let plot = Plot { left: 116.0, ..Plot::of_rows(x, ticks, marks) };
    let has_slowest = bars.iter().any(|bar| bar.time.is_slowest);
    let sentence = sentence(bars.iter().map(|bar| bar.run), has_slowest);
    Ok(PageFigure { key, plots: vec![plot], sentence })
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
