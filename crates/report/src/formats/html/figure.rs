//! A figure of the page: title, legend, plots one below the other, and a sentence that says what
//! they show. Two figures are here because sweeps and loads share them: the distribution of times,
//! and response time over due time with the accept queue below it.

use std::borrow::Cow;

use model::{Nanos, ResponseTimeMap, Run, Watch};

use crate::number;
use crate::plot::{
    AxisScale, AxisTick, Plot, PlotAxis, PlotCell, PlotMark, PlotPoint, PlotShape, escaped, joined,
};

/// A title, and the figure or the reason why there is none.
pub(crate) struct TitledFigure {
    pub(crate) title: Cow<'static, str>,
    pub(crate) drawn: Result<PageFigure, String>,
}

/// A figure.
pub(crate) struct PageFigure {
    pub(crate) key: Vec<KeyEntry>,
    /// From top to bottom.
    pub(crate) plots: Vec<Plot>,
    /// What it shows, and where the data come from.
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
    /// The figure as HTML.
    pub(crate) fn html(&self, title: &str) -> String {
        let entry = |entry: &KeyEntry| {
            format!("<li><i class=\"{}\"></i>{}</li>", entry.class, escaped(&entry.meaning))
        };
        let key = joined(&self.key, entry);
        let key = if key.is_empty() { key } else { format!("<ul class=\"key\">{key}</ul>") };
        let plots = joined(&self.plots, |plot| plot.svg(title));
        let title = escaped(title);
        let sentence = escaped(&self.sentence);
        format!(
            "<figure><h3>{title}</h3>{key}{plots}<figcaption>{sentence}</figcaption></figure>\n"
        )
    }
}

/// Plots one below the other that share an x axis. Only the last one has its title.
pub(crate) fn stacked(mut plots: Vec<Plot>, title: &str) -> Vec<Plot> {
    if plots.len() > 1 {
        for (at, plot) in plots.iter_mut().enumerate() {
            plot.height = if at == 0 { 185.0 } else { 150.0 };
        }
    }
    if let Some(last) = plots.last_mut() {
        title.clone_into(&mut last.x.title);
    }
    plots
}

/// The title of an axis of time.
pub(crate) const SECONDS: &str = "seconds since the start of the window";

/// An axis of time, without a title.
pub(crate) fn time_axis(seconds: f64) -> PlotAxis {
    PlotAxis::rounded("", AxisScale::Linear { low: 0.0, high: seconds.max(1e-3) }, 8)
}

/// A sampled curve, summed over the server's processes and thinned. Empty where nothing was sampled.
pub(crate) fn watched(watch: Option<&Watch>, name: &str) -> Vec<PlotPoint> {
    thinned(&watch.map(|watch| crate::server_view::summed(watch, name)).unwrap_or_default())
}

/// So few points that they can be told apart: the highest of each group of neighbours.
pub(crate) fn thinned(points: &[PlotPoint]) -> Vec<PlotPoint> {
    /// The most points of a line.
    const MOST: usize = 150;
    let group = points.len().div_ceil(MOST).max(1);
    let highest = |part: &[PlotPoint]| part.iter().copied().max_by(|a, b| a.y.total_cmp(&b.y));
    points.chunks(group).filter_map(highest).collect()
}

/// A distribution as a line: each percentile up to the last that is known.
///
/// It is the log-log plot of how many responses took longer, turned so that it reads like an HDR
/// plot: from 90 % to 99 % is as wide as from 99 % to 99.9 %.
pub(crate) fn spread(
    class: impl Into<String>,
    time_at: impl Fn(f64) -> Option<Nanos>,
) -> SpreadLine {
    /// Points between 90 % and 99 %, between 99 % and 99.9 %, and so on up to 99.9999 %.
    const STEPS_A_NINE: u32 = 40;
    const MOST_NINES: u32 = 6;
    let mut points: Vec<PlotPoint> = Vec::new();
    for step in 0..=STEPS_A_NINE * MOST_NINES {
        let beyond = 10f64.powf(-f64::from(step) / f64::from(STEPS_A_NINE));
        let Some(time) = time_at(1.0 - beyond) else {
            // Above the median, no percentile is known after the first that is not.
            if beyond < 0.5 {
                break;
            }
            continue;
        };
        let point = PlotPoint { x: 1.0 / beyond, y: time.as_millis_f64() };
        // Of several points at the same height only the first and the last are needed.
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

/// The fewest responses above a percentile with which a line is drawn up to it. What is named on the
/// page is drawn all the same.
pub(crate) const FEWEST_ABOVE: f64 = 3.0;
const NAMED_ALWAYS: f64 = 0.99;

/// Whether a line of this run's times is drawn up to a percentile.
pub(crate) fn drawn(run: &Run, quantile: f64) -> bool {
    let above = run.tally.population() as f64 * (1.0 - quantile);
    quantile <= NAMED_ALWAYS || above >= FEWEST_ABOVE
}

/// A distribution as a line, and its class.
pub(crate) struct SpreadLine {
    class: String,
    points: Vec<PlotPoint>,
}

/// A limit of a percentile: from the left at its height, then to the time that was measured.
pub(crate) fn limit(class: &str, quantile: f64, limit_ms: f64, measured: Nanos) -> SpreadLine {
    let x = 1.0 / (1.0 - quantile);
    let points = [(1.0, limit_ms), (x, limit_ms), (x, measured.as_millis_f64())];
    let points = points.map(|(x, y)| PlotPoint { x, y }).to_vec();
    SpreadLine { class: class.to_owned(), points }
}

/// The plot of these lines, and the last percentile in it; `None` where no line has two points.
pub(crate) fn spread_plot(lines: Vec<SpreadLine>) -> Option<(Plot, String)> {
    /// The percentiles that the axis names.
    const NAMED: [f64; 7] = [0.5, 0.9, 0.99, 0.999, 0.999_9, 0.999_99, 0.999_999];
    let lines: Vec<_> = lines.into_iter().filter(|line| line.points.len() > 1).collect();
    let farthest =
        lines.iter().flat_map(|line| &line.points).map(|point| point.x).reduce(f64::max)?;
    let high = farthest.max(12.0);
    let ticks =
        NAMED.into_iter().map(|q| AxisTick { at: 1.0 / (1.0 - q), label: number::percentile(q) });
    let ticks = ticks.filter(|tick| tick.at <= high * 1.001);
    let scale = AxisScale::Logarithmic { low: 1.0, high };
    let x = PlotAxis::labelled("percentile: each further nine has the same room", scale, ticks);
    let marks = lines.into_iter().map(|line| PlotMark::line(line.class, line.points));
    // Rounded down, so that no more is claimed than is shown.
    let digits = 10f64.powf((farthest.log10().ceil() + 1.0).max(3.0));
    let last = ((1.0 - 1.0 / farthest) * digits + 1e-9).floor() / digits;
    Some((Plot::logarithmic(x, "ms, log scale", marks.collect()), number::percentile(last)))
}

/// How many shades cells have, from few responses to many.
const SHADES: usize = 5;
/// The space at each side of a load that stands next to others, as a part of its width.
const GAP: f64 = 0.04;

/// A run and its heat map.
struct MappedRun<'a> {
    run: &'a Run,
    map: &'a ResponseTimeMap,
}

/// A time that responses shall not exceed, as its plot shows it.
pub(crate) struct ResponseTimeLimit {
    pub(crate) time: Nanos,
    /// The condition that was asked for.
    pub(crate) name: String,
}

/// Heat maps of response time over due time, with the accept queue below; all runs are equally wide.
pub(crate) fn heat_map(runs: &[&Run], limits: &[ResponseTimeLimit]) -> Result<PageFigure, String> {
    let runs: Vec<MappedRun<'_>> = runs.iter().copied().filter_map(MappedRun::of).collect();
    if runs.is_empty() {
        return Err("no good response was recorded".to_owned());
    }
    let shades =
        ShadeScale { most: runs.iter().map(|mapped| mapped.map.most()).max().unwrap_or(0) };
    let of_shade = |shade: usize| {
        let of_run = |(place, mapped): (usize, &MappedRun<'_>)| {
            mapped.cells(shades, shade, place, runs.len())
        };
        let cells = runs.iter().enumerate().flat_map(of_run).collect();
        PlotMark::new(format!("heat{shade}"), PlotShape::Cells(cells), "")
    };
    let of_limit = |limit: &ResponseTimeLimit| {
        PlotMark::new("ideal", PlotShape::Level(limit.time.as_millis_f64()), "")
    };
    let cells = (0..SHADES).map(of_shade).chain(limits.iter().map(of_limit)).collect();
    let queue = |(place, mapped): (usize, &MappedRun<'_>)| mapped.queue(place, runs.len());
    let queues: Vec<PlotMark> = runs.iter().enumerate().filter_map(queue).collect();
    let has_queue = !queues.is_empty();
    let is_alone = runs.len() == 1;
    let mut plots = vec![Plot::logarithmic(axis(&runs), "response time, ms, log scale", cells)];
    if has_queue {
        let label = "accept queue".to_owned();
        plots.push(Plot {
            label,
            ..Plot::from_zero(axis(&runs), "connections in the accept queue", queues)
        });
    }
    let side_by_side = "connections; within each, from the start of its window to the end";
    let plots = stacked(plots, if is_alone { SECONDS } else { side_by_side });
    let entry =
        |shade: usize| Some(KeyEntry::new(format!("heat{shade}"), shades.range(shade, &runs)?));
    let mut key: Vec<KeyEntry> = (0..SHADES).filter_map(entry).collect();
    if let Some(last) = key.last_mut() {
        last.meaning += " responses";
    }
    key.extend(limits.iter().map(|limit| KeyEntry::new("ideal", limit.name.as_str())));
    let queue = match (has_queue, is_alone) {
        (true, _) => " Below: connections that wait in the kernel to be accepted.",
        (false, false) => {
            " The accept queue was not read (--inspect none, or the kernel does not say)."
        }
        (false, true) => "",
    };
    let sentence = format!(
        "Each cell counts the good responses to requests that were due then and took so long.{queue}"
    );
    Ok(PageFigure { key, plots, sentence })
}

/// The axis of time for a single run, else of the loads side by side.
fn axis(runs: &[MappedRun<'_>]) -> PlotAxis {
    if let [alone] = runs {
        return time_axis(alone.span());
    }
    let tick = |(place, mapped): (usize, &MappedRun<'_>)| AxisTick {
        at: place as f64 + 0.5,
        label: mapped.run.connections.to_string(),
    };
    let scale = AxisScale::Linear { low: 0.0, high: runs.len() as f64 };
    PlotAxis::labelled("", scale, runs.iter().enumerate().map(tick))
}

impl<'a> MappedRun<'a> {
    fn of(run: &'a Run) -> Option<MappedRun<'a>> {
        Some(MappedRun { run, map: run.statistics.as_ref()?.time_map.as_ref()? })
    }

    /// How many seconds its part of the axis shows.
    fn span(&self) -> f64 {
        let columns = self.map.column.as_secs_f64() * self.map.counts.len() as f64;
        let measured = self.run.measured.as_secs_f64();
        if measured > 0.0 { measured.min(columns) } else { columns }
    }

    /// The place on the axis of a time since the start of the window.
    fn x(&self, seconds: f64, place: usize, of: usize) -> f64 {
        let part = (seconds / self.span()).clamp(0.0, 1.0);
        if of == 1 { part * self.span() } else { place as f64 + GAP + (1.0 - 2.0 * GAP) * part }
    }

    /// Its cells of a shade; neighbours in time are joined.
    fn cells(&self, shades: ShadeScale, shade: usize, place: usize, of: usize) -> Vec<PlotCell> {
        let width = self.map.column.as_secs_f64();
        let of_row = |(row, edge): (usize, &[Nanos])| {
            let is_in = |column: usize| shades.of(self.map.counts[column][row]) == Some(shade);
            let columns: Vec<usize> =
                (0..self.map.counts.len()).filter(|column| is_in(*column)).collect();
            let cell = |same: &[usize]| {
                let x = |column: usize| self.x(column as f64 * width, place, of);
                let corner = |x: f64, edge: Nanos| PlotPoint { x, y: edge.as_millis_f64() };
                PlotCell {
                    from: corner(x(same[0]), edge[0]),
                    to: corner(x(same[same.len() - 1] + 1), edge[1]),
                }
            };
            columns.chunk_by(|a, b| a + 1 == *b).map(cell).collect::<Vec<_>>()
        };
        self.map.edges.windows(2).enumerate().flat_map(of_row).collect()
    }

    /// Its accept queue during the window, where that was sampled.
    fn queue(&self, place: usize, of: usize) -> Option<PlotMark> {
        let samples = watched(self.run.watch.as_ref(), "accept_queue");
        let during = samples.into_iter().filter(|sample| sample.x <= self.span());
        let points: Vec<_> = during
            .map(|sample| PlotPoint { x: self.x(sample.x, place, of), y: sample.y })
            .collect();
        (!points.is_empty()).then(|| PlotMark::line("accept", points))
    }
}

/// Maps a number of responses to a shade, by its logarithm.
#[derive(Clone, Copy)]
struct ShadeScale {
    most: u64,
}

impl ShadeScale {
    fn of(self, count: u64) -> Option<usize> {
        let last = (SHADES - 1) as f64;
        let part = (count as f64).ln() / (self.most.max(2) as f64).ln();
        (count > 0).then(|| (part * last).round() as usize)
    }

    /// The fewest and the most responses in cells of this shade.
    fn range(self, shade: usize, runs: &[MappedRun<'_>]) -> Option<String> {
        let counts = runs.iter().flat_map(|mapped| mapped.map.counts.iter().flatten().copied());
        let of_shade: Vec<u64> = counts.filter(|count| self.of(*count) == Some(shade)).collect();
        let fewest = of_shade.iter().min()?;
        let most = of_shade.iter().max()?;
        Some(if fewest == most { fewest.to_string() } else { format!("{fewest}–{most}") })
    }
}
