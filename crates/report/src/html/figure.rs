//! A figure of the page: a title, what the colours mean, plots one below the other, and a sentence that says what they show.

use model::{Nanos, Watch};

use crate::markup::{escaped, joined};
use crate::number;
use crate::plot::{AxisScale, AxisTick, Plot, PlotAxis, PlotMark, PlotPoint};

/// A title, and the figure or why there is none.
pub(crate) struct TitledFigure {
    pub(crate) title: &'static str,
    pub(crate) drawn: Result<PageFigure, String>,
}

/// One that there are data for.
pub(crate) struct PageFigure {
    pub(crate) key: Vec<KeyEntry>,
    /// One below the other.
    pub(crate) plots: Vec<Plot>,
    /// What it shows, and where its figures come from.
    pub(crate) sentence: String,
}

/// What a colour means.
pub(crate) struct KeyEntry {
    /// Classes of the page's style sheet.
    pub(crate) class: String,
    pub(crate) meaning: String,
}

impl KeyEntry {
    pub(crate) fn new(class: impl Into<String>, meaning: impl Into<String>) -> KeyEntry {
        KeyEntry { class: class.into(), meaning: meaning.into() }
    }
}

impl PageFigure {
    /// As HTML.
    pub(crate) fn html(&self, title: &str) -> String {
        let entry = |entry: &KeyEntry| format!("<li><i class=\"{}\"></i>{}</li>", entry.class, escaped(&entry.meaning));
        let key = joined(&self.key, entry);
        let key = if key.is_empty() { key } else { format!("<ul class=\"key\">{key}</ul>") };
        let plots = joined(&self.plots, |plot| plot.svg(title));
        let (title, sentence) = (escaped(title), escaped(&self.sentence));
        format!("<figure><h3>{title}</h3>{key}{plots}<figcaption>{sentence}</figcaption></figure>\n")
    }
}

/// Plots one below the other, which have one x axis: the last has its title.
pub(crate) fn stacked(mut plots: Vec<Plot>, title: &str) -> Vec<Plot> {
    let several = plots.len() > 1;
    for (at, plot) in plots.iter_mut().enumerate() {
        plot.height = match at {
            0 if several => 185.0,
            _ if several => 150.0,
            _ => plot.height,
        };
    }
    if let Some(last) = plots.last_mut() {
        title.clone_into(&mut last.x.title);
    }
    plots
}

/// The axis title of what is drawn second by second.
pub(crate) const SECONDS: &str = "seconds since the start of the window";

/// An axis of time, without a title.
pub(crate) fn time_axis(seconds: f64) -> PlotAxis {
    PlotAxis::rounded("", AxisScale::Linear { low: 0.0, high: seconds.max(1e-3) }, 8)
}

/// The sum over the server's processes of a curve that was watched, sample by sample, thinned to the highest of neighbours. Empty where nobody
/// looked.
pub(crate) fn watched(watch: Option<&Watch>, name: &str) -> Vec<PlotPoint> {
    thinned(&watch.map(|watch| crate::server_view::summed(watch, name)).unwrap_or_default())
}

/// Of more points than can be distinguished, the highest of each few neighbours.
pub(crate) fn thinned(points: &[PlotPoint]) -> Vec<PlotPoint> {
    /// Points of a line at the most.
    const MOST: usize = 150;
    let few = points.len().div_ceil(MOST).max(1);
    let highest = |part: &[PlotPoint]| part.iter().copied().max_by(|a, b| a.y.total_cmp(&b.y));
    points.chunks(few).filter_map(highest).collect()
}

/// How times are spread: each percentile up to the last that is known. A line ends where its answers end.
///
/// It is the log-log plot of how many answers took longer, turned so that it reads as HDR plots do: each further nine has the same room.
pub(crate) fn spread(class: impl Into<String>, time_at: impl Fn(f64) -> Option<Nanos>) -> SpreadLine {
    /// Percentiles that are asked for between 90 and 99, and so on, up to 99.9999 %.
    const STEPS_A_NINE: u32 = 40;
    const MOST_NINES: u32 = 6;
    let mut points: Vec<PlotPoint> = Vec::new();
    for step in 0..=STEPS_A_NINE * MOST_NINES {
        let beyond = 10f64.powf(-f64::from(step) / f64::from(STEPS_A_NINE));
        let Some(time) = time_at(1.0 - beyond) else {
            // What is not known at the median is not known above it.
            if beyond < 0.5 {
                break;
            }
            continue;
        };
        let point = PlotPoint { x: 1.0 / beyond, y: time.as_millis_f64() };
        // Of several at one height the first and the last make the line.
        if let [.., before, last] = points.as_mut_slice()
            && before.y.to_bits() == last.y.to_bits()
            && last.y.to_bits() == point.y.to_bits()
        {
            *last = point;
        } else {
            points.push(point);
        }
    }
    SpreadLine { class: class.into(), points }
}

/// A distribution in a plot of how times are spread.
pub(crate) struct SpreadLine {
    class: String,
    points: Vec<PlotPoint>,
}

/// The plot of such lines, and the last percentile in it; `None` where none has two percentiles.
pub(crate) fn spread_plot(lines: Vec<SpreadLine>) -> Option<(Plot, String)> {
    /// The percentiles that the axis names.
    const NAMED: [f64; 7] = [0.5, 0.9, 0.99, 0.999, 0.999_9, 0.999_99, 0.999_999];
    let lines: Vec<_> = lines.into_iter().filter(|line| line.points.len() > 1).collect();
    let farthest = lines.iter().flat_map(|line| &line.points).map(|point| point.x).reduce(f64::max)?;
    let high = farthest.max(12.0);
    let ticks = NAMED.into_iter().map(|q| AxisTick { at: 1.0 / (1.0 - q), label: number::percentile(q) });
    let ticks = ticks.filter(|tick| tick.at <= high * 1.001);
    let scale = AxisScale::Logarithmic { low: 1.0, high };
    let x = PlotAxis::labelled("percentile: each further nine has the same room", scale, ticks);
    let marks = lines.into_iter().map(|line| PlotMark::line(line.class, line.points));
    // Rounded down: nothing is claimed beyond it.
    let digits = 10f64.powf((farthest.log10().ceil() + 1.0).max(3.0));
    let last = ((1.0 - 1.0 / farthest) * digits + 1e-9).floor() / digits;
    Some((Plot::logarithmic(x, "ms, log scale", marks.collect()), number::percentile(last)))
}
