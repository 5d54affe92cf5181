//! The runs of a sweep that are drawn, and their response time and throughput against the load.

use judge::Finding;
use judge::findings::Saturated;
use model::comparison::median;
use model::{Nanos, Run, SweepStudy};

use crate::html::figure::{KeyEntry, PageFigure};
use crate::number;
use crate::plot::{AxisScale, AxisTick, Plot, PlotAxis, PlotMark, PlotPoint, PlotRange, PlotShape};
use crate::run_column::RunColumn;
use crate::run_columns::{IN_ORDER, MAX, P50, P95, P99, RATE};
use crate::run_summary::{SummaryRun, range};
use crate::summary::Summary;

/// The response times that are drawn, each with what its key says. A column's name is its class.
const DRAWN: [(&RunColumn, &str); 4] =
    [(&P50, "p50: half are faster"), (&P95, "p95"), (&P99, "p99"), (&MAX, "max: the slowest")];
/// Height of these two plots, which matter most.
const TALL: f64 = 300.0;
/// The axis is logarithmic where the loads are farther apart than this factor.
const FAR_APART: f64 = 16.0;
/// A ceiling this many times the highest rate is not drawn: it would flatten the measured curve.
const NEAR: f64 = 2.5;

/// The axis of the load: a tick at each number of connections.
fn axis(runs: &ShownRuns<'_>) -> PlotAxis {
    let loads = runs.loads();
    let low = f64::from(loads.first().copied().unwrap_or(1));
    let high = f64::from(loads.last().copied().unwrap_or(1));
    let scale = if high / low > FAR_APART {
        AxisScale::Logarithmic { low: low / 1.1, high: high * 1.1 }
    } else {
        let room = ((high - low) * 0.04).max(0.5);
        AxisScale::Linear { low: low - room, high: high + room }
    };
    let slots = runs.study.server.slots();
    let title = format!("connections ({slots} = 1x, one for each of the server's threads)");
    let title = if slots == 1 { "connections".to_owned() } else { title };
    let ticks =
        loads.into_iter().map(|load| AxisTick { at: f64::from(load), label: load.to_string() });
    PlotAxis::labelled(title, scale, ticks)
}

/// Percentiles and the longest response time with their intervals, next to what first come, first
/// served would give.
pub(crate) fn response_times(runs: &ShownRuns<'_>) -> Result<PageFigure, String> {
    let (saturation_mark, saturation_key) = saturation(runs).unzip();
    let is_repeated = runs.study.plan.repeat > 1;
    let in_order = segments(runs, &IN_ORDER);
    let has_order = !in_order.is_empty();
    let mut marks: Vec<PlotMark> =
        in_order.into_iter().map(|points| PlotMark::line("ideal", points)).collect();
    marks.extend(saturation_mark);
    for (column, _) in DRAWN.into_iter().filter(|_| !is_repeated) {
        let bands = bands(runs, column).into_iter();
        marks.extend(bands.map(|ranges| PlotMark::new(column.name, PlotShape::Band(ranges), "")));
    }
    let mut is_known = false;
    for (column, _) in DRAWN {
        let name = column.name;
        let first_line = marks.len();
        let segments = segments(runs, column).into_iter();
        marks.extend(segments.map(|points| PlotMark::line(name, points)));
        if let Some(last) = marks[first_line..].last_mut() {
            name.clone_into(&mut last.title);
            is_known = true;
        }
        marks.extend(dots(runs, name, column, |shown, y| time_in_words(shown, column, y)));
    }
    if !is_known {
        return Err("no run has a percentile".to_owned());
    }
    let plot = Plot { height: TALL, ..Plot::logarithmic(axis(runs), "ms, log scale", marks) };
    let mut key: Vec<KeyEntry> =
        DRAWN.into_iter().map(|(column, meaning)| KeyEntry::new(column.name, meaning)).collect();
    key.extend(has_order.then(|| KeyEntry::new("ideal", "first come, first served")));
    key.extend(saturation_key);
    let medians = "Each dot is a run; lines join the medians of the repeats.";
    let shaded = if is_repeated { medians } else { "Shaded: 95 % intervals." };
    let order = if has_order {
        " First come, first served, each would take connections / throughput."
    } else {
        ""
    };
    let not_drawn = runs.not_drawn().map(|left_out| format!(" {left_out}")).unwrap_or_default();
    let sentence = format!(
        "How long a response takes, from when its request was due, as connections rise. {shaded}{order}{not_drawn}"
    );
    Ok(PageFigure { key, plots: vec![plot], sentence })
}

/// `p99 at 40 connections: 428 ms (95 %: 424–523)`.
fn time_in_words(run: &SummaryRun<'_>, column: &RunColumn, millis: f64) -> String {
    let interval = column.interval(run).map(|ends| format!(" (95 %: {})", range(ends)));
    format!(
        "{} at {} connections: {} ms{}",
        column.name,
        run.connections(),
        number::of_millis(millis),
        interval.unwrap_or_default()
    )
}

/// Where throughput rises no further, as the summary finds it.
fn saturation(runs: &ShownRuns<'_>) -> Option<(PlotMark, KeyEntry)> {
    runs.summary.findings.iter().find_map(|finding| match finding.finding {
        Finding::Saturated(Saturated { connections, is_lowest, .. }) => {
            let lowest = if is_lowest { ", the lowest load tried" } else { "" };
            let entry =
                KeyEntry::new("mark", format!("saturated from {connections} connections{lowest}"));
            Some((PlotMark::new("mark", PlotShape::Upright(f64::from(connections)), ""), entry))
        }
        _ => None,
    })
}

/// Good responses per second, and the theoretical ceiling.
pub(crate) fn throughput(runs: &ShownRuns<'_>) -> Result<PageFigure, String> {
    let rates = segments(runs, &RATE);
    let highest =
        rates.iter().flatten().map(|point| point.y).reduce(f64::max).ok_or("no run has a rate")?;
    let under = |points: &Vec<PlotPoint>| {
        let ranges =
            points.iter().map(|point| PlotRange { x: point.x, low: 0.0, high: point.y }).collect();
        PlotMark::new("rate", PlotShape::Band(ranges), "")
    };
    let mut marks: Vec<PlotMark> = rates.iter().map(under).collect();
    let mut key = vec![KeyEntry::new("rate", "completed")];
    let ceiling = crate::measured::service_time(runs.study);
    if let Some((.., rate)) = ceiling.filter(|(.., rate)| highest > 0.0 && *rate < NEAR * highest) {
        marks.push(PlotMark::new("ideal", PlotShape::Level(rate), ""));
        key.push(KeyEntry::new(
            "ideal",
            format!("ceiling by theory: {}", number::rate_in_words(rate)),
        ));
    }
    let (saturation_mark, saturation_key) = saturation(runs).unzip();
    marks.extend(saturation_mark);
    key.extend(saturation_key);
    marks.extend(rates.into_iter().map(|points| PlotMark::line("rate", points)));
    marks.extend(dots(runs, "rate", &RATE, |run, rate| {
        format!("{} connections: {} requests/s", run.connections(), number::rate(rate))
    }));
    let plot = Plot { height: TALL, ..Plot::from_zero(axis(runs), "requests/s", marks) };
    let basis = match ceiling {
        Some((time, source, rate)) => format!(
            "Theory allows {} requests/s at most, with a service time of {} ({source}).",
            number::rate_in_words(rate),
            number::time(time)
        ),
        None => "The service time is not known, so there is no theoretical ceiling.".to_owned(),
    };
    Ok(PageFigure { key, plots: vec![plot], sentence: format!("Good responses a second. {basis}") })
}

/// A dot for each run that has the figure; `title` is what a pointer over it shows.
fn dots(
    runs: &ShownRuns<'_>,
    class: &str,
    column: &RunColumn,
    title: impl Fn(&SummaryRun<'_>, f64) -> String,
) -> Vec<PlotMark> {
    let dot = |shown: &ShownRun<'_>| {
        let at = PlotPoint {
            x: f64::from(shown.run.connections),
            y: column.figure(shown.figures).value()?,
        };
        Some(PlotMark::new(class, PlotShape::Dot(at), title(shown.figures, at.y)))
    };
    runs.runs.iter().filter_map(dot).collect()
}

/// Lines through the median of each load's repeats, interrupted where a load has no figure.
fn segments(runs: &ShownRuns<'_>, column: &RunColumn) -> Vec<Vec<PlotPoint>> {
    let point = |load: u32| {
        let values = runs.at(load).filter_map(|shown| column.figure(shown.figures).value());
        median(values).map(|y| PlotPoint { x: f64::from(load), y })
    };
    split(&runs.loads().into_iter().map(point).collect::<Vec<_>>())
}

/// The intervals of a percentile, interrupted where a load has none.
fn bands(runs: &ShownRuns<'_>, column: &RunColumn) -> Vec<Vec<PlotRange>> {
    let range = |load: u32| {
        let [low, high] = column.interval(runs.at(load).next()?.figures)?;
        let [low, high] = [low?, high?].map(Nanos::as_millis_f64);
        Some(PlotRange { x: f64::from(load), low, high })
    };
    split(&runs.loads().into_iter().map(range).collect::<Vec<_>>())
}

fn split<T: Clone>(values: &[Option<T>]) -> Vec<Vec<T>> {
    let parts = values
        .split(Option::is_none)
        .map(|part| part.iter().flatten().cloned().collect::<Vec<T>>());
    parts.filter(|part| !part.is_empty()).collect()
}

/// The runs of a sweep whose figures are the server's.
pub(crate) struct ShownRuns<'a> {
    pub(crate) study: &'a SweepStudy,
    pub(crate) summary: &'a Summary<'a>,
    pub(crate) runs: Vec<ShownRun<'a>>,
}

/// A run, and its figures in the summary.
#[derive(Clone, Copy)]
pub(crate) struct ShownRun<'a> {
    pub(crate) run: &'a Run,
    pub(crate) figures: &'a SummaryRun<'a>,
}

/// How many colours loads have.
const COLOURS: usize = 8;

impl<'a> ShownRuns<'a> {
    pub(crate) fn of(study: &'a SweepStudy, summary: &'a Summary<'a>) -> ShownRuns<'a> {
        let all =
            study.runs.iter().zip(&summary.runs).map(|(run, figures)| ShownRun { run, figures });
        let is_forced =
            |run: &Run| run.judgement.as_ref().is_some_and(|judgement| judgement.forced);
        let runs =
            all.filter(|shown| shown.figures.is_the_servers() || is_forced(shown.run)).collect();
        ShownRuns { study, summary, runs }
    }

    /// The numbers of connections, rising.
    pub(crate) fn loads(&self) -> Vec<u32> {
        let mut loads: Vec<u32> = self.runs.iter().map(|shown| shown.run.connections).collect();
        loads.sort_unstable();
        loads.dedup();
        loads
    }

    /// The repeats of a load.
    pub(crate) fn at(&self, load: u32) -> impl Iterator<Item = ShownRun<'a>> + '_ {
        self.runs.iter().copied().filter(move |shown| shown.run.connections == load)
    }

    /// The first run of each load, for figures in which repeats have no room.
    pub(crate) fn first_of_each(&self) -> Vec<&'a Run> {
        self.loads().into_iter().filter_map(|load| Some(self.at(load).next()?.run)).collect()
    }

    /// The class of a run's colour: light for the least load, dark for the most.
    pub(crate) fn class(&self, run: &Run) -> String {
        let loads = self.loads();
        let place = loads.iter().position(|load| *load == run.connections).unwrap_or(0);
        format!(
            "load{}",
            (place * (COLOURS - 1)).checked_div(loads.len() - 1).unwrap_or(COLOURS - 1)
        )
    }

    /// The colours of the loads.
    pub(crate) fn key(&self) -> Vec<KeyEntry> {
        let entry = |run: &Run| {
            KeyEntry::new(self.class(run), format!("{} ({})", run.connections, run.in_multiples()))
        };
        self.first_of_each().into_iter().map(entry).collect()
    }

    /// Why a figure has nothing to show.
    pub(crate) fn why_none(&self, otherwise: String) -> String {
        if self.study.runs.is_empty() {
            "there is no run".to_owned()
        } else if self.runs.is_empty() {
            "no run's figures are the server's".to_owned()
        } else {
            otherwise
        }
    }

    /// A sentence that names the runs which are not drawn.
    pub(crate) fn not_drawn(&self) -> Option<String> {
        let names = self
            .summary
            .runs
            .iter()
            .filter(|run| !run.is_the_servers())
            .map(|run| run.label.as_str());
        let names: Vec<&str> = names.collect();
        let is_any = !names.is_empty() && self.runs.len() < self.study.runs.len();
        is_any.then(|| {
            format!("Not drawn, because the figures are not the server's: {}.", names.join(", "))
        })
    }
}
