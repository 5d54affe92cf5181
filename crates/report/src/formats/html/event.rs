//! The figure of an event in the middle of a run (`--during`): response time over due time, with the
//! event, and when each process of the server began to serve or ended.

use std::borrow::Cow;

use model::{ComparisonStudy, EventRecord, EventRequests, Nanos, ProcessRole, Run};

use crate::html::figure::{
    KeyEntry, PageFigure, SECONDS, TitledFigure, stacked, thinned, time_axis,
};
use crate::number;
use crate::plot::{Plot, PlotMark, PlotPoint, PlotShape};

/// The figure; `None` without an event that happened.
pub(crate) fn figure(run: &Run) -> Option<TitledFigure> {
    titled("The event".into(), run)
}

/// A figure for each arm of a comparison that has an event: of its first run that counts.
pub(crate) fn of_arms(study: &ComparisonStudy) -> Vec<TitledFigure> {
    let of_arm = |arm: usize| {
        let mut runs = study.runs.iter().filter(|run| run.arm == arm && run.is_sound());
        let first = runs.next()?;
        let title = format!("The event: {}, block {}", study.plan.called(arm), first.block);
        titled(title.into(), &first.run)
    };
    (0..study.plan.arms.len()).filter_map(of_arm).collect()
}

fn titled(title: Cow<'static, str>, run: &Run) -> Option<TitledFigure> {
    let event = run.event.as_ref()?;
    let at = event.at?;
    let requests = event.requests.as_ref()?;
    Some(TitledFigure { title, drawn: Ok(drawn(run, event, at, requests)) })
}

fn drawn(run: &Run, event: &EventRecord, at: Nanos, requests: &EventRequests) -> PageFigure {
    let measured = run.measured.as_secs_f64();
    let moments = moments(event, at);
    let longest = slices(requests, |slice| {
        (slice.longest > Nanos::ZERO).then(|| slice.longest.as_millis_f64())
    });
    let mut marks = vec![PlotMark::line("p99", thinned(&longest))];
    marks.extend(moments.iter().map(EventMoment::mark));
    let mut plots =
        vec![Plot::logarithmic(time_axis(measured), "longest response time, ms, log scale", marks)];
    let mut key = vec![KeyEntry::new("p99", "longest response time of each slice of time")];
    if requests.failed_since() + requests.before.failed > 0 {
        let failed = slices(requests, |slice| Some(slice.failed as f64));
        let mut marks = vec![PlotMark::line("max", thinned(&failed))];
        marks.extend(moments.iter().map(EventMoment::mark));
        let plot = Plot::from_zero(time_axis(measured), "failed requests", marks);
        plots.push(Plot { label: "failed requests".to_owned(), ..plot });
        key.push(KeyEntry::new("max", "failed requests of each slice"));
    }
    key.push(KeyEntry::new("max", format!("{} at {}", event.planned.kind, seconds(at))));
    if moments.len() > 1 {
        key.push(KeyEntry::new("ideal", "a process of the server begins to serve, or ends"));
    }
    let sentence = format!(
        "Requests by when they were due, in slices of {}. {}",
        number::span(requests.slice),
        processes(&moments)
    );
    PageFigure { key, plots: stacked(plots, SECONDS), sentence }
}

/// A figure of each slice of time, where it has one.
fn slices(
    requests: &EventRequests,
    figure: impl Fn(&model::event_requests::TimeSlice) -> Option<f64>,
) -> Vec<PlotPoint> {
    let middle = |number: usize| (number as f64 + 0.5) * requests.slice.as_secs_f64();
    let slices = requests.slices.iter().enumerate();
    slices
        .filter_map(|(number, slice)| Some(PlotPoint { x: middle(number), y: figure(slice)? }))
        .collect()
}

/// Something that is marked on the axis of time.
struct EventMoment {
    at: Nanos,
    class: &'static str,
    what: String,
}

impl EventMoment {
    fn mark(&self) -> PlotMark {
        let shown = format!("{} s: {}", number::fixed(self.at.as_secs_f64(), 2), self.what);
        PlotMark::new(self.class, PlotShape::Upright(self.at.as_secs_f64()), shown)
    }
}

/// The event first, then what became of the server's processes.
fn moments(event: &EventRecord, at: Nanos) -> Vec<EventMoment> {
    let done = EventMoment { at, class: "max", what: event.done.clone() };
    let mut changes: Vec<EventMoment> = Vec::new();
    for process in event.processes.iter().filter(|process| process.role != ProcessRole::Other) {
        let name = match process.role {
            ProcessRole::First => "process",
            ProcessRole::Worker | ProcessRole::Other => "worker",
        };
        let change = |time: Option<Nanos>, verb: &str| {
            let time = time.filter(|time| *time >= at)?;
            Some(EventMoment {
                at: time,
                class: "ideal",
                what: format!("{name} {} {verb}", process.pid),
            })
        };
        changes.extend(change(process.serving, "serves"));
        changes.extend(change(process.ended, "has ended"));
    }
    changes.sort_by_key(|change| change.at);
    std::iter::once(done).chain(changes).collect()
}

/// When each process began to serve or ended, in words; only the first few changes.
fn processes(moments: &[EventMoment]) -> String {
    const MOST: usize = 8;
    let changes = &moments[1..];
    let sentences: Vec<String> = changes
        .iter()
        .take(MOST)
        .map(|change| format!("{} {}", seconds(change.at), change.what))
        .collect();
    let more = match changes.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!("; {more} more"),
    };
    if sentences.is_empty() {
        "No process of the server changed.".to_owned()
    } else {
        format!("{}{more}.", sentences.join("; "))
    }
}

fn seconds(time: Nanos) -> String {
    format!("{} s", number::fixed(time.as_secs_f64(), 2))
}
