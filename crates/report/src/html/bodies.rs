//! The figures of a study of bodies: throughput and response time against size, a line for each kind, a plot for each socket.

use model::{Bodies, BodiesStudy, Body, BodyKind, BodyRun, Socket};

use crate::details::{MEDIAN_MS, PivotPlace, REQUESTS_A_SECOND, RunFigure};
use crate::html::figure::{KeyEntry, PageFigure, TitledFigure, stacked};
use crate::plot::{AxisScale, AxisTick, Plot, PlotAxis, PlotMark, PlotPoint, PlotShape};

/// All figures.
pub(crate) fn figures(study: &BodiesStudy) -> Vec<TitledFigure> {
    let of = |title, unit, figure| TitledFigure { title, drawn: against_size(study, unit, figure) };
    vec![
        of("Throughput against size", "requests/s", &REQUESTS_A_SECOND),
        of("Median response time against size", "p50, ms", &MEDIAN_MS),
    ]
}

/// The class of a kind, and what it is.
fn words(kind: BodyKind) -> [&'static str; 2] {
    match kind {
        BodyKind::Array => ["p50", "array of 1 kB strings"],
        BodyKind::Chunked => ["p99", "chunks"],
        BodyKind::String => ["p95", "one string"],
        BodyKind::Io => ["server", "file"],
    }
}

fn against_size(study: &BodiesStudy, unit: &str, figure: &RunFigure<BodyRun>) -> Result<PageFigure, String> {
    let (bodies, sockets) = (&study.plan.bodies, &study.plan.sockets);
    if bodies.kilobytes.len() < 2 {
        return Err("there is one size".to_owned());
    }
    let points = |socket: Socket, kind: BodyKind| {
        let point = |kilobytes: &u32| {
            let y = figure.of_body(study, PivotPlace { socket, body: Body { kilobytes: *kilobytes, kind } })?;
            Some(PlotPoint { x: f64::from(*kilobytes), y })
        };
        bodies.kilobytes.iter().filter_map(point).collect::<Vec<_>>()
    };
    let all: Vec<f64> = sockets
        .iter()
        .flat_map(|socket| bodies.kinds.iter().flat_map(|kind| points(*socket, *kind)))
        .map(|point| point.y)
        .collect();
    if all.is_empty() {
        return Err("no run's figures are the server's".to_owned());
    }
    let plots = sockets.iter().map(|socket| {
        let marks = bodies.kinds.iter().flat_map(|kind| {
            let ([class, _], points) = (words(*kind), points(*socket, *kind));
            let dot = |at: &PlotPoint| {
                let title = format!("{socket} {}{}: {} {unit}", kind.letter(), at.x, (figure.shown)(at.y));
                PlotMark::new(class, PlotShape::Dot(*at), title)
            };
            let dots: Vec<PlotMark> = points.iter().map(dot).collect();
            dots.into_iter().chain([PlotMark::line(class, points)])
        });
        // All sockets on one scale, so that their heights compare.
        let scale = AxisScale::around(all.iter().copied());
        let y = PlotAxis::rounded(format!("{unit} over {socket}, log scale"), scale, 4);
        Plot { label: socket.to_string(), ..Plot::new(sizes(bodies), y, marks.collect()) }
    });
    let key = bodies.kinds.iter().map(|kind| words(*kind)).map(|[class, meaning]| KeyEntry::new(class, meaning));
    let repeats = if study.plan.repeat > 1 { " Of repeats the middle one is drawn." } else { "" };
    let is_whole = all.len() == sockets.len() * bodies.kinds.len() * bodies.kilobytes.len();
    let missing = if is_whole { "" } else { " A body without a dot has no figure of the server." };
    let sentence =
        format!("Both axes are logarithmic: where a line is flat, the size costs nothing yet.{repeats}{missing}");
    let plots = stacked(plots.collect(), "kB of content (1024 bytes), log scale");
    Ok(PageFigure { key: key.collect(), plots, sentence })
}

/// The axis of the sizes: a tick at each.
fn sizes(bodies: &Bodies) -> PlotAxis {
    let mut sizes = bodies.kilobytes.clone();
    sizes.sort_unstable();
    let [low, high] = [sizes[0].max(1), sizes[sizes.len() - 1]].map(f64::from);
    let scale = AxisScale::Logarithmic { low: low / 1.15, high: high * 1.15 };
    let ticks = sizes.into_iter().map(|size| AxisTick { at: f64::from(size), label: size.to_string() });
    PlotAxis::labelled("", scale, ticks)
}
