//! The forest plot of a comparison: for each metric where the difference is, the control beside it.

use model::comparison::{ComparedMetric, Difference, Metric};

use super::figures::SummaryComparison;
use super::words;
use crate::html::figure::{KeyEntry, PageFigure, TitledFigure};
use crate::plot::{AxisScale, AxisTick, Plot, PlotAxis, PlotCell, PlotMark, PlotPoint, PlotShape};

/// An interval and where it stands.
struct ForestRow<'a> {
    label: String,
    class: String,
    difference: &'a Difference,
}

/// Of all metrics that are compared as ratios.
pub(crate) fn figure(summary: &SummaryComparison) -> TitledFigure {
    TitledFigure { title: "How far the arms are from the base", drawn: drawn(summary) }
}

fn drawn(summary: &SummaryComparison) -> Result<PageFigure, String> {
    let rows: Vec<ForestRow<'_>> = summary.metrics.iter().filter(|row| is_ratio(row)).flat_map(rows_of).collect();
    if rows.is_empty() {
        return Err("no metric has an interval: too few blocks".to_owned());
    }
    let margin = summary.margin;
    let ends = || rows.iter().flat_map(|row| row.difference.interval.into_iter().flatten());
    let low = ends().fold(1.0 / (1.0 + 1.5 * margin), |low, end| low.min(1.0 + end)).max(0.01);
    let high = ends().fold(1.0 + 1.5 * margin, |high, end| high.max(1.0 + end));
    let room = (high / low).powf(0.04);
    // Half and twice as much are equally far.
    let mut x =
        PlotAxis::rounded("difference, %, log scale", AxisScale::Logarithmic { low: low / room, high: high * room }, 6);
    for tick in &mut x.ticks {
        let percent = ((tick.at - 1.0) * 1e4).round() / 100.0 + 0.0;
        tick.label = if percent > 0.0 { format!("+{percent}") } else { percent.to_string() };
    }
    let upright = |class, x| PlotMark::new(class, PlotShape::Upright(x), "");
    let mut marks = vec![upright("axis", 1.0), upright("mark", 1.0 - margin), upright("mark", 1.0 + margin)];
    let mut ticks = Vec::new();
    for (at, ForestRow { label, class, difference }) in rows.iter().rev().enumerate() {
        let y = at as f64 + 0.5;
        if let Some(interval @ [low, high]) = difference.interval {
            let [from, to] = [PlotPoint { x: 1.0 + low, y: y - 0.12 }, PlotPoint { x: 1.0 + high, y: y + 0.12 }];
            let title = format!("{label}: {} %", words::interval(interval, difference.estimate));
            marks.push(PlotMark::new(class, PlotShape::Cells(vec![PlotCell { from, to }]), title));
        }
        if let Some(estimate) = difference.estimate {
            let title = format!("{label}: {}", words::estimate(estimate, difference.interval));
            marks.push(PlotMark::new(class, PlotShape::Dot(PlotPoint { x: 1.0 + estimate, y }), title));
        }
        ticks.push(AxisTick { at: y, label: label.clone() });
    }
    let plot = Plot { left: 150.0, ..Plot::of_rows(x, ticks, marks) };
    let mut key: Vec<KeyEntry> = Vec::new();
    for ForestRow { class, difference, .. } in &rows {
        let meaning = match class.as_str() {
            "rest" => "the control: the base against itself".to_owned(),
            _ => format!("{} against {}", difference.arm, difference.base),
        };
        if !key.iter().any(|entry| entry.meaning == meaning) {
            key.push(KeyEntry::new(class, meaning));
        }
    }
    key.push(KeyEntry::new("mark", "the margin"));
    let sentence = "A dot is the estimate over all blocks, its bar the interval at the level of its test. A bar that leaves 0 out, with its \
                    dot beyond the margin, is a difference; a bar wholly within the margin is none; where the control's bar \
                    reaches, nothing can be told."
        .to_owned();
    Ok(PageFigure { key, plots: vec![plot], sentence })
}

fn is_ratio(row: &ComparedMetric) -> bool {
    !matches!(row.metric, Metric::Failed | Metric::Slow | Metric::Workers)
}

fn rows_of(row: &ComparedMetric) -> Vec<ForestRow<'_>> {
    let is_known = |difference: &&Difference| difference.interval.is_some();
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
