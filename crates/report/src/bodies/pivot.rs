//! The summary tables: a figure of each body, sizes down and kinds across; and sizes and kinds down, sockets across.
//!
//! A figure over several passes is that of the run in the middle, the lower of two; it is missing where a run lacks it.

use model::{BodiesStudy, Body, BodyRun, Nanos, Socket};

use crate::number::{self, or_none};
use crate::summary::spread;
use crate::table::{Band, Column};
use crate::verdicts;

/// What a summary shows.
pub(crate) struct Figure {
    /// Over its columns.
    pub(crate) title: &'static str,
    /// Of one run.
    pub(crate) of: fn(&BodyRun) -> Option<f64>,
    pub(crate) shown: fn(f64) -> String,
}

const RATE: Figure = Figure { title: "req/s", of: |run| Some(run.run.completed_rate()), shown: number::rate };
const MEDIAN: Figure = Figure {
    title: "p50, ms",
    of: |run| run.response_time(0.5).time().map(|time| time.0 as f64),
    shown: |nanos| number::milliseconds(Nanos(nanos as u64)),
};
const CONTENT_RATE: Figure = Figure { title: "MB/s", of: |run| Some(run.content_rate()), shown: number::megabytes };

/// The figures of a summary, in order.
const FIGURES: [Figure; 3] = [RATE, MEDIAN, CONTENT_RATE];

/// The figure of a body over a kind of socket; `None` where any of its runs is missing it, is invalid, or was not done.
pub(crate) fn of_body(study: &BodiesStudy, socket: Socket, body: Body, figure: &Figure) -> Option<f64> {
    let runs = study.runs.iter().filter(|run| run.socket == socket && run.body == body);
    let figures = runs.map(|run| (figure.of)(run).filter(|_| !verdicts::hides(run.run.judgement.as_ref())));
    spread(figures.collect()).map(|[median, _, _]| median)
}

/// A table under heads: columns for text, names for markdown, and its lines.
pub(crate) struct Pivot {
    pub(crate) title: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) names: Vec<String>,
    pub(crate) lines: Vec<Vec<String>>,
}

const WIDTH: usize = 6;

fn labels(names: &[&'static str]) -> (Vec<Column>, Vec<String>) {
    let columns = names.iter().map(|name| Column { name, width: 6, band: None, rank: 0 }).collect();
    (columns, names.iter().map(|name| (*name).to_owned()).collect())
}

fn across(columns: &mut Vec<Column>, names: &mut Vec<String>, items: &[&'static str]) {
    for figure in &FIGURES {
        for item in items {
            columns.push(Column { name: item, width: WIDTH, band: Some(Band::of(figure.title)), rank: 0 });
            names.push(format!("{item} {}", figure.title));
        }
    }
}

/// All summaries: one for each kind of socket, and one over all of them where there are several.
pub(crate) fn all(study: &BodiesStudy) -> Vec<Pivot> {
    if study.runs.is_empty() {
        return Vec::new();
    }
    let sockets = &study.plan.sockets;
    let mut pivots: Vec<Pivot> = sockets.iter().map(|socket| by_kind(study, *socket)).collect();
    if sockets.len() > 1 {
        pivots.push(by_socket(study));
    }
    pivots
}

fn shown(study: &BodiesStudy, socket: Socket, body: Body, figure: &Figure) -> String {
    or_none(of_body(study, socket, body, figure), figure.shown)
}

fn by_kind(study: &BodiesStudy, socket: Socket) -> Pivot {
    let bodies = &study.plan.bodies;
    let kinds: Vec<&'static str> = bodies.kinds.iter().map(|kind| kind.name()).collect();
    let (mut columns, mut names) = labels(&["KB"]);
    across(&mut columns, &mut names, &kinds);
    let line = |kilobytes: &u32| {
        let kilobytes = *kilobytes;
        let cells = FIGURES.iter().flat_map(|figure| {
            bodies.kinds.iter().map(move |kind| shown(study, socket, Body { kilobytes, kind: *kind }, figure))
        });
        std::iter::once(number::count(kilobytes)).chain(cells).collect()
    };
    let lines = bodies.kilobytes.iter().map(line).collect();
    Pivot { title: format!("over {socket}, by type"), columns, names, lines }
}

fn by_socket(study: &BodiesStudy) -> Pivot {
    let sockets = &study.plan.sockets;
    let across_sockets: Vec<&'static str> = sockets.iter().map(|socket| socket.name()).collect();
    let (mut columns, mut names) = labels(&["KB", "type"]);
    across(&mut columns, &mut names, &across_sockets);
    let line = |body: Body| {
        let cells =
            FIGURES.iter().flat_map(|figure| sockets.iter().map(move |socket| shown(study, *socket, body, figure)));
        [number::count(body.kilobytes), body.kind.name().to_owned()].into_iter().chain(cells).collect()
    };
    let lines = study.plan.bodies.all().into_iter().map(line).collect();
    Pivot { title: "by kind of socket".to_owned(), columns, names, lines }
}
