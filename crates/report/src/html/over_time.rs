//! How a run went, second by second and sample by sample: what is drawn below each other has one axis of time.

use model::series::Second;
use model::{Nanos, Series, Watch};

use crate::plot::{AxisScale, Plot, PlotAxis, PlotMark, PlotPoint};

/// Points of a line at the most.
const MOST: usize = 150;

/// The mean response time of the good answers that ended in each second, in ms, at the second's middle. Of a second without one
/// nothing is known: the line is broken there.
pub(crate) fn means(series: &Series) -> Vec<Vec<PlotPoint>> {
    of_seconds(series, |second| second.response_time_sum_ns.checked_div(second.completed))
}

/// The longest of them.
pub(crate) fn longest(series: &Series) -> Vec<Vec<PlotPoint>> {
    of_seconds(series, |second| (second.completed > 0).then_some(second.response_time_max_ns))
}

fn of_seconds(series: &Series, time: impl Fn(&Second) -> Option<u64>) -> Vec<Vec<PlotPoint>> {
    let point = |(at, second): (usize, &Second)| {
        time(second).map(|time| PlotPoint { x: at as f64 + 0.5, y: Nanos(time).as_millis_f64() })
    };
    let points: Vec<_> = series.seconds.iter().enumerate().map(point).collect();
    let parts = points.split(Option::is_none).map(|part| part.iter().flatten().copied().collect::<Vec<_>>());
    parts.filter(|part| !part.is_empty()).map(thinned).collect()
}

/// The sum over the server's processes of a curve that was watched, sample by sample, thinned to the highest of neighbours. Empty where nobody
/// looked.
pub(crate) fn watched(watch: Option<&Watch>, name: &str) -> Vec<PlotPoint> {
    let points = watch.map(|watch| crate::server_view::summed(watch, name)).unwrap_or_default();
    let known = points.into_iter().filter_map(|(at, value)| Some(PlotPoint { x: at.as_secs_f64(), y: value? }));
    thinned(known.collect())
}

/// Of more points than can be distinguished, the highest of each few neighbours.
pub(crate) fn thinned(points: Vec<PlotPoint>) -> Vec<PlotPoint> {
    let few = points.len().div_ceil(MOST).max(1);
    let highest = |part: &[PlotPoint]| part.iter().copied().max_by(|a, b| a.y.total_cmp(&b.y));
    if few == 1 { points } else { points.chunks(few).filter_map(highest).collect() }
}

/// A plot over time up to `span` seconds, of these lines with their classes, in this unit.
pub(crate) fn plot(label: &str, unit: &str, span: f64, is_log: bool, lines: Vec<ClassedLine>) -> Plot {
    let values = lines.iter().flat_map(|line| &line.points).map(|point| point.y);
    let y = if is_log { AxisScale::around(values) } else { AxisScale::from_zero(values) };
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

/// Each part of a line that is broken.
pub(crate) fn classed(class: &str, parts: Vec<Vec<PlotPoint>>) -> impl Iterator<Item = ClassedLine> {
    parts.into_iter().map(move |points| ClassedLine { class: class.to_owned(), points })
}

/// Gives plots that stand below each other one axis of time, and marks where the window ends.
pub(crate) fn finish(plots: &mut [Plot], window: Option<f64>) {
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
        plot.marks.extend(window.map(|x| PlotMark::Upright { class: "mark".to_owned(), x }));
    }
}
