//! The forest plot of a comparison: for each metric where the difference is, the control beside it.

use model::comparison::Metric;

use super::figures::{SummaryComparison, SummaryDifference, SummaryMetric};
use super::words;
use crate::html::figure::{DrawnFigure, KeyEntry, PageFigure};
use crate::plot::{AxisScale, AxisTick, Plot, PlotAxis, PlotMark, PlotPoint};

/// Height of a row.
const ROW: f64 = 26.0;
/// Changes that an axis is labelled with, in percent.
const CHANGES: [f64; 27] = [
    -95.0, -90.0, -80.0, -50.0, -30.0, -20.0, -10.0, -5.0, -2.0, -1.0, -0.5, -0.2, -0.1, 0.0, 0.1, 0.2, 0.5, 1.0, 2.0,
    5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0,
];

/// An interval and where it stands.
struct ForestRow<'a> {
    label: String,
    class: String,
    difference: &'a SummaryDifference,
}

/// Of all metrics that are compared as ratios.
pub(crate) fn figure(summary: &SummaryComparison) -> PageFigure {
    const TITLE: &str = "How far the arms are from the base";
    let rows: Vec<ForestRow<'_>> = summary.metrics.iter().filter(|row| is_ratio(row)).flat_map(rows_of).collect();
    let ends = || rows.iter().flat_map(|row| row.difference.interval.into_iter().flatten());
    if rows.is_empty() {
        return PageFigure::left_out(TITLE, "no metric has an interval: too few blocks");
    }
    let margin = summary.margin;
    let low = ends().fold(1.0 / (1.0 + 1.5 * margin), |low, end| low.min(1.0 + end)).max(0.01);
    let high = ends().fold(1.0 + 1.5 * margin, |high, end| high.max(1.0 + end));
    let room = (high / low).powf(0.04);
    let scale = AxisScale::Logarithmic { low: low / room, high: high * room };
    let within = |percent: &f64| (low / room..=high * room).contains(&(1.0 + percent / 100.0));
    let x_ticks = apart(CHANGES.into_iter().filter(within), scale);
    let x_ticks = x_ticks.into_iter().map(|percent| AxisTick {
        at: 1.0 + percent / 100.0,
        label: if percent > 0.0 { format!("+{percent}") } else { percent.to_string() },
    });
    let count = rows.len() as f64;
    let mut marks = vec![PlotMark::Upright { class: "axis".to_owned(), x: 1.0 }];
    marks.extend([1.0 - margin, 1.0 + margin].map(|x| PlotMark::Upright { class: "mark".to_owned(), x }));
    let mut y_ticks = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let middle = count - at as f64 - 0.5;
        if let Some(interval @ [low, high]) = row.difference.interval {
            let [from, to] =
                [PlotPoint { x: 1.0 + low, y: middle - 0.12 }, PlotPoint { x: 1.0 + high, y: middle + 0.12 }];
            let title = format!("{}: {} %", row.label, words::interval(interval, row.difference.estimate));
            marks.push(PlotMark::Bar { class: row.class.clone(), from, to, title });
        }
        if let Some(estimate) = row.difference.estimate {
            let title = format!("{}: {}", row.label, words::estimate(estimate, row.difference.interval));
            let at = PlotPoint { x: 1.0 + estimate, y: middle };
            marks.push(PlotMark::Dot { class: row.class.clone(), at, title });
        }
        y_ticks.push(AxisTick { at: middle, label: row.label.clone() });
    }
    let x = PlotAxis::labelled("difference, %", scale, x_ticks);
    let y = PlotAxis::labelled("", AxisScale::Linear { low: 0.0, high: count }, y_ticks);
    let plot = Plot { marks, height: 66.0 + ROW * count, left: 150.0, ..Plot::new(TITLE, x, y) };
    let mut key: Vec<KeyEntry> = Vec::new();
    for row in &rows {
        let meaning = if row.class == "rest" {
            "the control: the base against itself".to_owned()
        } else {
            format!("{} against {}", row.difference.arm, row.difference.base)
        };
        if !key.iter().any(|entry| entry.meaning == meaning) {
            key.push(KeyEntry::new(row.class.clone(), meaning));
        }
    }
    key.push(KeyEntry::new("mark", "the margin"));
    let sentence = "A dot is the estimate over all blocks, its bar the interval at the level of its test. A bar that leaves 0 out, with its \
                    dot beyond the margin, is a difference; a bar wholly within the margin is none; where the control's bar \
                    reaches, nothing can be told."
        .to_owned();
    PageFigure::Drawn(DrawnFigure { title: TITLE, key, plots: vec![plot], sentence })
}

fn is_ratio(row: &SummaryMetric) -> bool {
    !matches!(row.metric, Metric::Failed | Metric::Slow | Metric::Workers)
}

fn rows_of(row: &SummaryMetric) -> Vec<ForestRow<'_>> {
    let is_known = |difference: &&SummaryDifference| difference.interval.is_some();
    let name = words::name(row.metric);
    let of = |(at, difference)| ForestRow {
        label: if at == 0 { name.to_owned() } else { String::new() },
        class: format!("load{}", (at * 2 + 1) % 8),
        difference,
    };
    let mut rows: Vec<ForestRow<'_>> = row.differences.iter().filter(is_known).enumerate().map(of).collect();
    if !rows.is_empty() {
        let control = row.control.iter().filter(is_known);
        rows.extend(control.map(|difference| ForestRow { label: String::new(), class: "rest".to_owned(), difference }));
    }
    rows
}

/// Those that are so far apart that their labels do not touch; 0 stays.
fn apart(changes: impl DoubleEndedIterator<Item = f64>, scale: AxisScale) -> Vec<f64> {
    const ROOM: f64 = 0.12;
    let place = |percent: f64| scale.part(1.0 + percent / 100.0);
    let mut kept = vec![0.0];
    for percent in changes.filter(|percent| *percent != 0.0).rev() {
        if kept.iter().all(|other| (place(*other) - place(percent)).abs() >= ROOM) {
            kept.push(percent);
        }
    }
    kept.sort_by(f64::total_cmp);
    kept
}
