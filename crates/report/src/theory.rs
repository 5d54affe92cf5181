//! Theory next to measurement: what the server's order of service predicts for each run, how far
//! off the run was, which order of service it looks like, and what all runs show together.

use judge::named_runs::{is_hidden, name_in_sweep};
use model::theory::{
    DisciplineFit, DisciplineProbe, InferredDiscipline, NotJudged, PercentileRange, Resemblance,
    ServiceTime,
};
use model::{Discipline, Nanos, Run, SweepStudy, Theory};

use crate::labels::listed;
use crate::number::{self, count_of, or_none};
use crate::tree::{ColumnBand, DataTable, ReportSection, TableColumn, TableRow};

/// The runs whose figures are shown, with their theory.
fn shown(study: &SweepStudy) -> impl Iterator<Item = (&Run, &Theory)> {
    let runs = study.runs.iter().filter(|run| !is_hidden(run));
    runs.filter_map(|run| Some((run, run.theory.as_ref()?)))
}

/// `Puma 5.6.5 with keep-alive`.
fn setting(study: &SweepStudy) -> String {
    let server = &study.server;
    let version = server.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let keep_alive =
        if study.plan.stream.keep_alive { "keep-alive" } else { "a connection for each request" };
    format!("{}{version} with {keep_alive}", server.name)
}

/// For each run the predicted figures and how far off it was measured, and below the table which
/// order of service the runs look like.
pub(crate) fn section(study: &SweepStudy) -> Option<ReportSection> {
    let what = "theory beside measurement, ms; ±%: how far off it was measured";
    let expected = shown(study).find_map(|(_, theory)| Some(name(theory, theory.expected?)));
    let title = match expected {
        Some(expected) => format!("{what} ({}: {expected})", setting(study)),
        None => format!("{what} (the order of service of this server is not known)"),
    };
    let bands =
        ["req/s", "mean", "p50", "p95", "p99"].map(|figure| ColumnBand::new(figure, figure));
    let figures = bands
        .iter()
        .flat_map(|band| ["forecast", "±%"].map(|name| TableColumn::new(name).under(band)));
    let columns = ["", "by"].map(TableColumn::new).into_iter().chain(figures);
    let table = DataTable::of_columns(
        columns,
        shown(study).filter_map(|(run, theory)| row(study, run, theory)),
    );
    let remarks = remarks(study);
    // Runs that no model was tried on may have no forecast.
    (!remarks.is_empty())
        .then(|| ReportSection::detail(title).table(DataTable { lead: 2, ..table }).lines(remarks))
}

fn row(study: &SweepStudy, run: &Run, theory: &Theory) -> Option<TableRow> {
    // No order of service predicts the rate of an app that computes.
    let forecast =
        Some(theory).filter(|theory| theory.not_judged != Some(NotJudged::Computes))?.shown()?;
    let all_good = run.tally.counts.failed() == 0;
    let mean = run.tally.response_time.mean().filter(|_| all_good);
    let off = |mean: Nanos| mean.as_secs_f64() / forecast.mean.as_secs_f64() - 1.0;
    let cells = [
        name_in_sweep(study, run),
        name(theory, forecast.discipline),
        number::rate(forecast.rate),
        number::deviation(run.completed_rate() / forecast.rate - 1.0),
        number::milliseconds(forecast.mean),
        or_none(mean.map(off), number::deviation),
    ];
    Some(TableRow::new(
        cells
            .into_iter()
            .chain(forecast.percentiles.iter().flat_map(|allowed| percentile(run, allowed))),
    ))
}

/// What a percentile should be, and how far off it was.
fn percentile(run: &Run, allowed: &PercentileRange) -> [String; 2] {
    let is_range = allowed.high > allowed.low + allowed.low / 100;
    let low = number::milliseconds(allowed.low);
    let says =
        if is_range { format!("{low} to {}", number::milliseconds(allowed.high)) } else { low };
    let off = |time: Nanos| match allowed.residual(time) {
        residual if is_range && residual.abs() < 1e-12 => "in".to_owned(),
        residual => number::deviation(residual),
    };
    [says, or_none(run.response_time(allowed.quantile).time(), off)]
}

/// Which order of service each run looks like, with the evidence, and what all runs show together.
fn remarks(study: &SweepStudy) -> Vec<String> {
    let service_time = study.service_time;
    let of_run = |(run, theory): (&Run, &Theory)| {
        format!("{} {}", name_in_sweep(study, run), resemblance(theory, service_time))
    };
    let all = study
        .inferred_discipline()
        .zip(shown(study).next())
        .map(|(all, (_, first))| together(&all, first));
    shown(study).map(of_run).chain(all).collect()
}

fn resemblance(theory: &Theory, service_time: Option<ServiceTime>) -> String {
    match theory.resemblance() {
        Resemblance::Unknown(why) => format!("is held against no model: {why}"),
        Resemblance::These(these) if these.len() == theory.forecasts.len() => {
            "would look the same in every order of service".to_owned()
        }
        Resemblance::These(these) => {
            let others =
                theory.forecasts.iter().filter(|forecast| !these.contains(&forecast.discipline));
            let others = others.map(|forecast| {
                format!("{} {}", name(theory, forecast.discipline), off(forecast.fit))
            });
            format!(
                "looks like {}{}; not {}",
                names_and_expected(theory, &these),
                held(theory),
                listed(others)
            )
        }
        Resemblance::ShapeOf(these) => {
            let shape = these.first().and_then(|first| theory.forecast(*first)?.shape);
            format!(
                "no model fits with {}: {}; by its shape {}, where a request holds a slot for {}",
                or_none(service_time, |known| format!("{} a slot", number::time(known.mean))),
                nearest(theory),
                names_and_expected(theory, &these),
                or_none(shape, |fit| number::time(fit.held)),
            )
        }
        Resemblance::Nothing => format!("no model fits: {}{}", nearest(theory), held(theory)),
    }
}

/// `shared queue`, `turns of ten`; with another turn `turns of 3`.
fn name(theory: &Theory, discipline: Discipline) -> String {
    match (discipline, theory.turn) {
        (Discipline::Turns, Some(u32::MAX)) => "turns without end".to_owned(),
        (Discipline::Turns, Some(turn)) => format!("turns of {turn}"),
        _ => discipline.to_string(),
    }
}

/// `shared queue or split queues`.
fn names(theory: &Theory, these: &[Discipline]) -> String {
    these.iter().map(|discipline| name(theory, *discipline)).collect::<Vec<_>>().join(" or ")
}

/// ` (the workers held 8 + 7 connections)`, if that is known.
fn held(theory: &Theory) -> String {
    let Some(by_worker) = theory.by_worker.as_ref().filter(|held| held.len() > 1) else {
        return String::new();
    };
    let each: Vec<String> = by_worker.iter().take(MOST_NAMED).map(u32::to_string).collect();
    let more = if by_worker.len() > MOST_NAMED { " + …" } else { "" };
    format!(" (the workers held {}{more} connections)", each.join(" + "))
}

/// The most workers whose connections are listed.
const MOST_NAMED: usize = 8;

/// `split queues (expected: shared queue)`.
fn names_and_expected(theory: &Theory, these: &[Discipline]) -> String {
    let unexpected = theory.expected.filter(|expected| !these.contains(expected));
    let expected = unexpected.map(|expected| format!(" (expected: {})", name(theory, expected)));
    names(theory, these) + &expected.unwrap_or_default()
}

/// `(p99 6.90 times off)`.
fn off(fit: Option<DisciplineFit>) -> String {
    let Some(fit) = fit else { return "(impossible)".to_owned() };
    let figure = fit.worst_at.map_or_else(|| "rate".to_owned(), number::percentile);
    format!("({figure} {} times off)", number::times(fit.worst))
}

fn nearest(theory: &Theory) -> String {
    let fits =
        theory.forecasts.iter().filter_map(|forecast| Some((forecast.discipline, forecast.fit?)));
    let nearest = fits.min_by(|(_, a), (_, b)| a.worst.total_cmp(&b.worst));
    nearest.map_or_else(
        || "none is possible".to_owned(),
        |(discipline, fit)| {
            format!("the nearest is {} {}", name(theory, discipline), off(Some(fit)))
        },
    )
}

fn together(inferred: &InferredDiscipline, theory: &Theory) -> String {
    let runs = count_of(inferred.runs as u64, "run");
    let by_shape = if inferred.by_shape { ", by the shape" } else { "" };
    let names = names(theory, &inferred.disciplines);
    match inferred.disciplines.len() {
        0 => format!("inferred discipline: no model fits all of {runs} beyond the slots"),
        1 => format!("inferred discipline: {names}, by {runs} beyond the slots{by_shape}"),
        _ => format!(
            "inferred discipline: {names}, not distinguished by {runs} beyond the slots{by_shape}"
        ),
    }
}

/// What the probes before the first run found, on one line.
pub(crate) fn probes(study: &SweepStudy) -> Option<String> {
    let of = |probe: &DisciplineProbe| {
        let how = if probe.keep_alive { "keep-alive" } else { "a connection for each request" };
        let found = match probe.theory.as_ref().map(|theory| (theory, theory.resemblance())) {
            None => "not known, for want of a service time".to_owned(),
            Some((theory, Resemblance::These(these))) if these.len() == theory.forecasts.len() => {
                "all orders of service look the same".to_owned()
            }
            Some((theory, Resemblance::These(these))) => names(theory, &these),
            Some((theory, Resemblance::ShapeOf(these))) => {
                format!("{} by the shape", names(theory, &these))
            }
            Some((_, Resemblance::Nothing)) => "no model fits".to_owned(),
            Some((_, Resemblance::Unknown(why))) => format!("not known: {why}"),
        };
        format!("with {how} {found}")
    };
    let first = study.probes.first()?;
    let found: Vec<String> = study.probes.iter().map(of).collect();
    let how = format!(
        "{}, {} each",
        count_of(first.connections, "connection"),
        number::length(first.measured)
    );
    Some(format!("{}: {how}", found.join("; ")))
}
