//! The figures of a study of bodies: throughput and response time against size, a line for each kind, a plot for each socket.

use model::{BodiesStudy, Body, BodyKind, Socket};

use crate::details::{MEDIAN_MS, PivotFigure, PivotPlace, REQUESTS_A_SECOND};
use crate::html::figure::{DrawnFigure, KeyEntry, PageFigure};
use crate::plot::{AxisScale, AxisTick, Plot, PlotAxis, PlotMark, PlotPoint};

/// All figures.
pub(crate) fn figures(study: &BodiesStudy) -> Vec<PageFigure> {
    vec![
        against_size(study, "Throughput against size", "requests/s", &REQUESTS_A_SECOND),
        against_size(study, "Median response time against size", "p50, ms", &MEDIAN_MS),
    ]
}

fn class(kind: BodyKind) -> &'static str {
    match kind {
        BodyKind::Array => "p50",
        BodyKind::Chunked => "p99",
        BodyKind::String => "p95",
        BodyKind::Io => "server",
    }
}

fn meaning(kind: BodyKind) -> &'static str {
    match kind {
        BodyKind::Array => "array of 1 kB strings",
        BodyKind::Chunked => "chunks",
        BodyKind::String => "one string",
        BodyKind::Io => "file",
    }
}

fn against_size(study: &BodiesStudy, title: &'static str, unit: &str, figure: &PivotFigure) -> PageFigure {
    let bodies = &study.plan.bodies;
    if bodies.kilobytes.len() < 2 {
        return PageFigure::left_out(title, "there is one size");
    }
    let line = |socket: Socket, kind: BodyKind| {
        let point = |kilobytes: &u32| {
            let y = figure.of_body(study, PivotPlace { socket, body: Body { kilobytes: *kilobytes, kind } })?;
            Some(PlotPoint { x: f64::from(*kilobytes), y })
        };
        bodies.kilobytes.iter().filter_map(point).collect::<Vec<_>>()
    };
    let lines = |socket: Socket| bodies.kinds.iter().map(move |kind| (*kind, line(socket, *kind)));
    let all = study.plan.sockets.iter().flat_map(|socket| lines(*socket)).flat_map(|(_, points)| points);
    // All sockets on one scale, so that their heights compare.
    let all: Vec<f64> = all.map(|point| point.y).collect();
    if all.is_empty() {
        return PageFigure::left_out(title, "no run's figures are the server's");
    }
    let last = study.plan.sockets.len() - 1;
    let plots = study.plan.sockets.iter().enumerate().map(|(place, socket)| {
        let y = PlotAxis::rounded(format!("{unit} over {socket}, log scale"), AxisScale::around(all.clone()), 4);
        let mut plot = Plot::new(format!("{title}, {socket}"), sizes(bodies, place == last), y);
        plot.height = if place == last { 200.0 } else { 180.0 };
        for (kind, points) in lines(*socket) {
            let dot = |point: &PlotPoint| {
                let title = format!("{socket} {}{}: {} {unit}", kind.letter(), point.x, (figure.shown)(point.y));
                PlotMark::Dot { class: class(kind).to_owned(), at: *point, title }
            };
            plot.marks.extend(points.iter().map(dot));
            plot.marks.push(PlotMark::Line { class: class(kind).to_owned(), points, name: String::new() });
        }
        plot
    });
    let key = bodies.kinds.iter().map(|kind| KeyEntry::new(class(*kind), meaning(*kind))).collect();
    let repeats = if study.plan.repeat > 1 { " Of repeats the middle one is drawn." } else { "" };
    let is_whole = all.len() == study.plan.sockets.len() * bodies.kinds.len() * bodies.kilobytes.len();
    let missing = if is_whole { "" } else { " A body without a dot has no figure of the server." };
    let sentence =
        format!("Both axes are logarithmic: where a line is flat, the size costs nothing yet.{repeats}{missing}");
    PageFigure::Drawn(DrawnFigure { title, key, plots: plots.collect(), sentence })
}

/// The axis of the sizes: a tick at each.
fn sizes(bodies: &model::Bodies, is_titled: bool) -> PlotAxis {
    let (low, high) =
        bodies.kilobytes.iter().fold((u32::MAX, 1), |(low, high), size| (low.min(*size), high.max(*size)));
    let scale = AxisScale::Logarithmic { low: f64::from(low.max(1)) / 1.15, high: f64::from(high) * 1.15 };
    let mut sizes = bodies.kilobytes.clone();
    sizes.sort_unstable();
    let ticks = sizes.into_iter().map(|size| AxisTick { at: f64::from(size), label: size.to_string() });
    PlotAxis::labelled(if is_titled { "kB of content (1024 bytes), log scale" } else { "" }, scale, ticks)
}
