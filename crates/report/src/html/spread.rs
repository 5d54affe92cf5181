//! How times are spread: each percentile that the answers support, on an axis on which each further nine has the same room.
//!
//! It is the log-log plot of how many answers took longer, turned so that it reads as HDR plots do. A line ends where its answers
//! end: nothing is drawn beyond the last percentile that is known.

use model::{Nanos, Quantile};

use crate::number;
use crate::plot::{AxisScale, AxisTick, Plot, PlotAxis, PlotMark, PlotPoint};

/// A distribution in the plot.
pub(crate) struct SpreadLine<'a> {
    pub(crate) class: String,
    /// The time at a quantile, 0 to 1, where it is known.
    pub(crate) time_at: Box<dyn Fn(f64) -> Option<Nanos> + 'a>,
}

impl<'a> SpreadLine<'a> {
    /// Of a run's percentiles.
    pub(crate) fn new(class: impl Into<String>, at: impl Fn(f64) -> Quantile + 'a) -> SpreadLine<'a> {
        SpreadLine { class: class.into(), time_at: Box::new(move |q| at(q).time()) }
    }

    /// Its percentiles up to the last that is known.
    fn points(&self) -> Vec<PlotPoint> {
        let mut points: Vec<PlotPoint> = Vec::new();
        for step in 0..=STEPS_A_NINE * MOST_NINES {
            let beyond = 10f64.powf(-f64::from(step) / f64::from(STEPS_A_NINE));
            let Some(time) = (self.time_at)(1.0 - beyond) else {
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
        points
    }
}

/// Percentiles that are asked for between 90 and 99, and so on.
const STEPS_A_NINE: u32 = 40;
/// Up to 99.9999 %.
const MOST_NINES: u32 = 6;
/// The percentiles that the axis names.
const NAMED: [f64; 7] = [0.5, 0.9, 0.99, 0.999, 0.999_9, 0.999_99, 0.999_999];

/// The plot of these, and the last percentile in it; `None` where none has two percentiles.
pub(crate) fn plot(label: &str, lines: &[SpreadLine<'_>]) -> Option<(Plot, String)> {
    let lines: Vec<_> = lines.iter().map(|line| (&line.class, line.points())).collect();
    let all = || lines.iter().flat_map(|(_, points)| points);
    let farthest = all().map(|point| point.x).fold(0.0, f64::max);
    if lines.iter().all(|(_, points)| points.len() < 2) {
        return None;
    }
    let x = AxisScale::Logarithmic { low: 1.0, high: farthest.max(12.0) };
    let ticks = NAMED.into_iter().map(|q| AxisTick { at: 1.0 / (1.0 - q), label: number::percentile(q) });
    let ticks = ticks.filter(|tick| tick.at <= farthest.max(12.0) * 1.001);
    let x = PlotAxis::labelled("percentile: each further nine has the same room", x, ticks);
    let y = PlotAxis::rounded("ms, log scale", AxisScale::around(all().map(|point| point.y)), 5);
    let mut plot = Plot::new(label, x, y);
    for (class, points) in lines.into_iter().filter(|(_, points)| points.len() > 1) {
        plot.marks.push(PlotMark::Line { class: class.clone(), points, name: String::new() });
    }
    let last = 1.0 - 1.0 / farthest;
    // Rounded down: nothing is claimed beyond it.
    let digits = 10f64.powf((farthest.log10().ceil() + 1.0).max(3.0));
    Some((plot, number::percentile((last * digits + 1e-9).floor() / digits)))
}
