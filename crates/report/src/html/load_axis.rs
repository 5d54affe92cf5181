//! Response time and throughput of a sweep against its load.

use model::Finding;

use crate::html::figure::{DrawnFigure, KeyEntry, PageFigure};
use crate::html::shown_runs::{ShownRuns, median};
use crate::load_answer::range;
use crate::number;
use crate::plot::{AxisScale, AxisTick, Plot, PlotAxis, PlotMark, PlotPoint, PlotRange};
use crate::summary::SummaryRun;

/// A time of a run, where it is known.
type TimeOfRun = fn(&SummaryRun) -> Option<f64>;
/// What is drawn: its name, which is its class too, and the figure.
const DRAWN: [(&str, TimeOfRun); 4] = [
    ("p50", |run| run.response_ms.p50),
    ("p95", |run| run.response_ms.p95),
    ("p99", |run| run.response_ms.p99),
    ("max", |run| run.response_ms.max),
];
/// Loads that are farther apart than this stand on a logarithmic axis.
const FAR_APART: f64 = 16.0;
/// A ceiling that is farther off than this is not drawn: it would press the measurement flat.
const NEAR: f64 = 2.5;

/// The axis of the load: a tick at each number of connections.
fn axis(runs: &ShownRuns<'_>) -> PlotAxis {
    let loads = runs.loads();
    let (low, high) = (loads.first().copied().unwrap_or(1), loads.last().copied().unwrap_or(1));
    let (low, high) = (f64::from(low), f64::from(high));
    let scale = if high / low > FAR_APART {
        AxisScale::Logarithmic { low: low / 1.1, high: high * 1.1 }
    } else {
        let room = ((high - low) * 0.04).max(0.5);
        AxisScale::Linear { low: low - room, high: high + room }
    };
    let slots = runs.study.server.slots();
    let title = format!("connections ({slots} = 1x, one for each of the server's threads)");
    let title = if slots == 1 { "connections".to_owned() } else { title };
    let ticks = loads.into_iter().map(|load| AxisTick { at: f64::from(load), label: load.to_string() });
    PlotAxis::labelled(title, scale, ticks)
}

/// Percentiles and the longest response time, with their intervals, beside what first come, first served would give.
pub(crate) fn response_times(runs: &ShownRuns<'_>) -> PageFigure {
    const TITLE: &str = "Response time against load";
    let mut marks = Vec::new();
    let mut values: Vec<f64> = Vec::new();
    let in_order = segments(runs, |figures| figures.in_order_ms);
    values.extend(in_order.iter().flatten().map(|point| point.y));
    marks.extend(in_order.iter().map(|points| line("ideal", points, "")));
    let saturation = Saturation::of(runs);
    marks.extend(saturation.map(Saturation::mark));
    let is_repeated = runs.study.plan.repeat > 1;
    for (name, _) in DRAWN.into_iter().filter(|_| !is_repeated) {
        let bands = bands(runs, name);
        values.extend(bands.iter().flatten().flat_map(|range| [range.low, range.high]));
        marks.extend(bands.into_iter().map(|ranges| PlotMark::Band { class: name.into(), ranges }));
    }
    let mut known = 0;
    for (name, time) in DRAWN {
        let lines = segments(runs, time);
        let last = lines.len().saturating_sub(1);
        let named = |part: usize| if part == last { name } else { "" };
        marks.extend(lines.iter().enumerate().map(|(part, points)| line(name, points, named(part))));
        for shown in &runs.runs {
            let Some(y) = time(shown.figures) else { continue };
            let connections = shown.run.connections;
            let interval = shown.figures.interval_ms.get(name).map(range).filter(|range| !range.is_empty());
            let interval = interval.map(|range| format!(" (95 %: {range})")).unwrap_or_default();
            let title = format!("{name} at {connections} connections: {} ms{interval}", number::of_millis(y));
            marks.push(PlotMark::Dot { class: name.into(), at: PlotPoint { x: f64::from(connections), y }, title });
            values.push(y);
            known += 1;
        }
    }
    if known == 0 {
        return PageFigure::left_out(TITLE, runs.why_none("no run has a percentile"));
    }
    let y = PlotAxis::rounded("ms, log scale", AxisScale::around(values), 5);
    let plot = Plot { marks, height: 300.0, ..Plot::new(TITLE, axis(runs), y) };
    let meanings = ["p50: half are faster", "p95", "p99", "slowest"];
    let mut key: Vec<KeyEntry> =
        DRAWN.into_iter().zip(meanings).map(|((name, _), meaning)| KeyEntry::new(name, meaning)).collect();
    if !in_order.is_empty() {
        key.push(KeyEntry::new("ideal", "first come, first served"));
    }
    key.extend(saturation.map(Saturation::key));
    let sentence = [
        Some("How long a response takes, from when its request was due, as connections rise.".to_owned()),
        Some(
            if is_repeated {
                "Each dot is a run; lines join the medians of the repeats."
            } else {
                "Shaded: 95 % intervals."
            }
            .to_owned(),
        ),
        (!in_order.is_empty())
            .then(|| "First come, first served, each would take connections / throughput.".to_owned()),
        runs.not_drawn(),
    ];
    let sentence = sentence.into_iter().flatten().collect::<Vec<_>>().join(" ");
    PageFigure::Drawn(DrawnFigure { title: TITLE, key, plots: vec![plot], sentence })
}

/// Where throughput rises no further, as the summary finds it.
#[derive(Clone, Copy)]
struct Saturation {
    connections: u32,
    is_lowest: bool,
}

impl Saturation {
    fn of(runs: &ShownRuns<'_>) -> Option<Saturation> {
        runs.summary.findings.iter().find_map(|finding| match finding.finding {
            Finding::Saturated { connections, is_lowest, .. } => Some(Saturation { connections, is_lowest }),
            _ => None,
        })
    }

    fn mark(self) -> PlotMark {
        PlotMark::Upright { class: "mark".into(), x: f64::from(self.connections) }
    }

    fn key(self) -> KeyEntry {
        let lowest = if self.is_lowest { ", the lowest load tried" } else { "" };
        KeyEntry::new("mark", format!("saturated from {} connections{lowest}", self.connections))
    }
}

/// Good responses a second, and the most that is possible.
pub(crate) fn throughput(runs: &ShownRuns<'_>) -> PageFigure {
    const TITLE: &str = "Throughput against load";
    let rates = segments(runs, |figures| figures.rate.completed);
    if rates.is_empty() {
        return PageFigure::left_out(TITLE, runs.why_none("no run has a rate"));
    }
    let under = |points: &Vec<PlotPoint>| PlotMark::Band {
        class: "rate".into(),
        ranges: points.iter().map(|point| PlotRange { x: point.x, low: 0.0, high: point.y }).collect(),
    };
    let mut marks: Vec<PlotMark> = rates.iter().map(under).collect();
    let highest = rates.iter().flatten().map(|point| point.y).fold(0.0, f64::max);
    let ceiling = crate::measured::service_time(runs.study);
    let near = ceiling.filter(|(.., rate)| highest > 0.0 && *rate < NEAR * highest);
    let mut values = vec![highest];
    if let Some((.., rate)) = near {
        values.push(rate);
        marks.push(PlotMark::Level { class: "ideal".into(), y: rate });
    }
    let saturation = Saturation::of(runs);
    marks.extend(saturation.map(Saturation::mark));
    marks.extend(rates.iter().map(|points| line("rate", points, "")));
    for shown in &runs.runs {
        let Some(y) = shown.figures.rate.completed else { continue };
        let connections = shown.run.connections;
        let title = format!("{connections} connections: {} requests/s", number::rate(y));
        marks.push(PlotMark::Dot { class: "rate".into(), at: PlotPoint { x: f64::from(connections), y }, title });
    }
    let y = PlotAxis::rounded("requests/s", AxisScale::from_zero(values), 5);
    let plot = Plot { marks, height: 300.0, ..Plot::new(TITLE, axis(runs), y) };
    let mut key = vec![KeyEntry::new("rate", "completed")];
    if let Some((.., rate)) = near {
        key.push(KeyEntry::new("ideal", format!("ceiling by theory: {}", number::rate_in_words(rate))));
    }
    key.extend(saturation.map(Saturation::key));
    let basis = match ceiling {
        Some((time, source, rate)) => format!(
            "Theory allows {} requests/s at most, with a service time of {} ({source}).",
            number::rate_in_words(rate),
            number::time(time)
        ),
        None => "The service time is not known, so there is no theoretical ceiling.".to_owned(),
    };
    let sentence = format!("Good responses a second. {basis}");
    PageFigure::Drawn(DrawnFigure { title: TITLE, key, plots: vec![plot], sentence })
}

fn line(class: &str, points: &[PlotPoint], name: &str) -> PlotMark {
    PlotMark::Line { class: class.into(), points: points.to_vec(), name: name.into() }
}

/// The median of a figure over the repeats of each load, broken where a load has none.
fn segments(runs: &ShownRuns<'_>, figure: impl Fn(&SummaryRun) -> Option<f64>) -> Vec<Vec<PlotPoint>> {
    let point = |load: u32| {
        let values = runs.at(load).filter_map(|shown| figure(shown.figures));
        median(values).map(|y| PlotPoint { x: f64::from(load), y })
    };
    split(&runs.loads().into_iter().map(point).collect::<Vec<_>>())
}

/// The intervals of a percentile, broken where a load has none.
fn bands(runs: &ShownRuns<'_>, name: &str) -> Vec<Vec<PlotRange>> {
    let range = |load: u32| match runs.at(load).next()?.figures.interval_ms.get(name)? {
        [Some(low), Some(high)] => Some(PlotRange { x: f64::from(load), low: *low, high: *high }),
        _ => None,
    };
    split(&runs.loads().into_iter().map(range).collect::<Vec<_>>())
}

fn split<T: Clone>(values: &[Option<T>]) -> Vec<Vec<T>> {
    let parts = values.split(Option::is_none).map(|part| part.iter().flatten().cloned().collect::<Vec<T>>());
    parts.filter(|part| !part.is_empty()).collect()
}
