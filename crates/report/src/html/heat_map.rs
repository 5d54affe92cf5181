//! Response time over due time as shaded cells, one load beside the other, above the accept queue.

use model::{ResponseTimeMap, Run};

use crate::html::figure::{KeyEntry, PageFigure, SECONDS, stacked, time_axis, watched};
use crate::plot::{AxisScale, AxisTick, Plot, PlotAxis, PlotCell, PlotMark, PlotPoint, PlotShape};

/// Shades of cells, from few responses to many.
const SHADES: usize = 5;
/// What is left free at each side of a load that stands beside others, as a part of its width.
const GAP: f64 = 0.04;

/// A run, and its map.
struct MappedRun<'a> {
    run: &'a Run,
    map: &'a ResponseTimeMap,
}

/// The figure of these runs, each as wide as the others.
pub(crate) fn figure(runs: &[&Run]) -> Result<PageFigure, String> {
    let runs: Vec<MappedRun<'_>> = runs.iter().copied().filter_map(MappedRun::of).collect();
    if runs.is_empty() {
        return Err("no good response was recorded".to_owned());
    }
    let shades = ShadeScale { most: runs.iter().map(|mapped| mapped.map.most()).max().unwrap_or(0) };
    let of_shade = |shade: usize| {
        let of_run = |(place, mapped): (usize, &MappedRun<'_>)| mapped.cells(shades, shade, place, runs.len());
        let cells = runs.iter().enumerate().flat_map(of_run).collect();
        PlotMark::new(format!("heat{shade}"), PlotShape::Cells(cells), "")
    };
    let cells = (0..SHADES).map(of_shade).collect();
    let queue = |(place, mapped): (usize, &MappedRun<'_>)| mapped.queue(place, runs.len());
    let queues: Vec<PlotMark> = runs.iter().enumerate().filter_map(queue).collect();
    let (has_queue, is_alone) = (!queues.is_empty(), runs.len() == 1);
    let mut plots = vec![Plot::logarithmic(axis(&runs), "response time, ms, log scale", cells)];
    if has_queue {
        let label = "accept queue".to_owned();
        plots.push(Plot { label, ..Plot::from_zero(axis(&runs), "connections in the accept queue", queues) });
    }
    let beside = "connections; within each, from the start of its window to the end";
    let plots = stacked(plots, if is_alone { SECONDS } else { beside });
    let entry = |shade: usize| Some(KeyEntry::new(format!("heat{shade}"), shades.range(shade, &runs)?));
    let mut key: Vec<KeyEntry> = (0..SHADES).filter_map(entry).collect();
    if let Some(last) = key.last_mut() {
        last.meaning += " responses";
    }
    let queue = match (has_queue, is_alone) {
        (true, _) => " Below: connections that wait in the kernel to be accepted.",
        (false, false) => " The accept queue was not read (--inspect none, or the kernel does not say).",
        (false, true) => "",
    };
    let sentence =
        format!("Each cell counts the good responses to requests that were due then and took so long.{queue}");
    Ok(PageFigure { key, plots, sentence })
}

/// The time of a run that stands alone, else the loads side by side.
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

    /// The seconds that its part of the axis shows.
    fn span(&self) -> f64 {
        let columns = self.map.column.as_secs_f64() * self.map.counts.len() as f64;
        let measured = self.run.measured.as_secs_f64();
        if measured > 0.0 { measured.min(columns) } else { columns }
    }

    /// Where a time since the start of the window stands.
    fn x(&self, seconds: f64, place: usize, of: usize) -> f64 {
        let part = (seconds / self.span()).clamp(0.0, 1.0);
        if of == 1 { part * self.span() } else { place as f64 + GAP + (1.0 - 2.0 * GAP) * part }
    }

    /// Its cells of a shade; neighbours in time are one.
    fn cells(&self, shades: ShadeScale, shade: usize, place: usize, of: usize) -> Vec<PlotCell> {
        let width = self.map.column.as_secs_f64();
        let of_row = |(row, edge): (usize, &[model::Nanos])| {
            let is_in = |column: usize| shades.of(self.map.counts[column][row]) == Some(shade);
            let columns: Vec<usize> = (0..self.map.counts.len()).filter(|column| is_in(*column)).collect();
            let cell = |same: &[usize]| {
                let x = |column: usize| self.x(column as f64 * width, place, of);
                let corner = |x: f64, edge: model::Nanos| PlotPoint { x, y: edge.as_millis_f64() };
                PlotCell { from: corner(x(same[0]), edge[0]), to: corner(x(same[same.len() - 1] + 1), edge[1]) }
            };
            columns.chunk_by(|a, b| a + 1 == *b).map(cell).collect::<Vec<_>>()
        };
        self.map.edges.windows(2).enumerate().flat_map(of_row).collect()
    }

    /// Its accept queue during the window, where that was read.
    fn queue(&self, place: usize, of: usize) -> Option<PlotMark> {
        let samples = watched(self.run.watch.as_ref(), "accept_queue");
        let during = samples.into_iter().filter(|sample| sample.x <= self.span());
        let points: Vec<_> = during.map(|sample| PlotPoint { x: self.x(sample.x, place, of), y: sample.y }).collect();
        (!points.is_empty()).then(|| PlotMark::line("accept", points))
    }
}

/// From a number of responses to a shade, by its logarithm.
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

    /// The fewest and the most responses of the cells that have this shade.
    fn range(self, shade: usize, runs: &[MappedRun<'_>]) -> Option<String> {
        let counts = runs.iter().flat_map(|mapped| mapped.map.counts.iter().flatten().copied());
        let counts = counts.filter(|count| self.of(*count) == Some(shade));
        let (fewest, most) = counts.fold(None, |known: Option<(u64, u64)>, count| {
            Some(known.map_or((count, count), |(fewest, most)| (fewest.min(count), most.max(count))))
        })?;
        Some(if fewest == most { fewest.to_string() } else { format!("{fewest}–{most}") })
    }
}
