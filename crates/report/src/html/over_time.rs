//! How a run went, second by second and sample by sample: what is drawn below each other has one axis of time.

use model::Watch;

use crate::plot::{AxisScale, Plot, PlotAxis, PlotMark, PlotPoint};

/// Points of a line at the most.
const MOST: usize = 150;

/// The sum over the server's processes of a curve that was watched, sample by sample, thinned to the highest of neighbours. Empty where nobody
/// looked.
pub(crate) fn watched(watch: Option<&Watch>, name: &str) -> Vec<PlotPoint> {
    thinned(watch.map(|watch| crate::server_view::summed(watch, name)).unwrap_or_default())
}

/// Of more points than can be distinguished, the highest of each few neighbours.
pub(crate) fn thinned(points: Vec<PlotPoint>) -> Vec<PlotPoint> {
    let few = points.len().div_ceil(MOST).max(1);
    let highest = |part: &[PlotPoint]| part.iter().copied().max_by(|a, b| a.y.total_cmp(&b.y));
    if few == 1 { points } else { points.chunks(few).filter_map(highest).collect() }
}

/// A plot over time up to `span` seconds, of these lines with their classes, in this unit, from 0.
pub(crate) fn plot(label: &str, unit: &str, span: f64, lines: Vec<ClassedLine>) -> Plot {
    let values = lines.iter().flat_map(|line| &line.points).map(|point| point.y);
    let y = AxisScale::from_zero(values);
    let x = PlotAxis::rounded("", AxisScale::Linear { low: 0.0, high: span.max(1e-3) }, 8);
    let mut plot = Plot::new(label, x, PlotAxis::rounded(unit, y, 4));
    let marks = lines.into_iter().map(|ClassedLine { class, points }| match points.as_slice() {
        [at] => PlotMark::Dot { class, at: *at, title: String::new() },
        _ => PlotMark::Line { class, points, name: String::new() },
    });
    plot.marks = marks.collect();
    plot
}

/// A line and its class of the style sheet.
pub(crate) struct ClassedLine {
    pub(crate) class: String,
    pub(crate) points: Vec<PlotPoint>,
}

/// Gives plots that stand below each other their heights and one title of their axis of time.
pub(crate) fn finish(plots: &mut [Plot]) {
    let several = plots.len() > 1;
    let last = plots.len().saturating_sub(1);
    for (at, plot) in plots.iter_mut().enumerate() {
        plot.height = if !several {
            220.0
        } else if at == 0 {
            185.0
        } else {
            150.0
        };
        if at == last {
            plot.x.title = String::from("seconds since the start of the window");
        }
    }
}
