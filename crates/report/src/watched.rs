//! What was seen of server and kernel while the runs went on: a line a run.

use model::watch::{Curve, Track};
use model::{Nanos, Run, Watch};

use crate::facts::Labelled;
use crate::number::{self, or_none};

/// What the columns are. The first group is of the accept queue.
pub(crate) const HEAD: [&str; 12] = [
    "",
    "in line",
    "at most",
    "of",
    "wait, ms",
    "connected",
    "busy",
    "backlog",
    "CPUs",
    "CPU wait",
    "looks",
    "they took",
];

/// Whether the table may be parted before that column: the accept queue's stay together, and the looks with their cost.
pub(crate) fn may_part(column: usize) -> bool {
    !matches!(column, 1..=3 | 10)
}

/// A line for each run that was watched.
pub(crate) fn lines(runs: &[Labelled<'_>]) -> Vec<Vec<String>> {
    runs.iter().filter_map(|Labelled { label, run }| Some(line(label.clone(), run, run.watch.as_ref()?))).collect()
}

fn line(label: String, run: &Run, watch: &Watch) -> Vec<String> {
    let mean = |name: &str| {
        let (track, curve) = watch.curve(name)?;
        track.mean(curve, run.measured)
    };
    let most = |name: &str| watch.curve(name).and_then(|(_, curve)| curve.most());
    let looks = watch.tracks.first().map_or(0, |track| track.at.len() as u64);
    vec![
        label,
        or_none(mean("accept_queue"), brief),
        or_none(most("accept_queue"), number::count),
        or_none(most("accept_queue_limit"), number::count),
        or_none(run.accept_queue_wait(), number::milliseconds),
        or_none(mean("open_connections"), brief),
        or_none(polled(watch, "busy_threads"), brief),
        or_none(polled(watch, "backlog"), brief),
        or_none(share(watch, "cpu"), number::times),
        or_none(share(watch, "run_queue_wait"), number::times),
        number::count(looks),
        format!("{} %", number::percent(watch.cpu.as_secs_f64() / run.elapsed.as_secs_f64().max(1e-9))),
    ]
}

fn brief(value: f64) -> String {
    number::or_zero(value, number::significant)
}

/// Sum over the workers of the mean of what each reported in the window; `None` where one reported nothing.
fn polled(watch: &Watch, name: &str) -> Option<f64> {
    let means: Option<Vec<f64>> = watch.curves(name).map(|(track, curve)| mean_of_reports(track, curve)).collect();
    means.filter(|means| !means.is_empty()).map(|means| means.iter().sum())
}

/// Reports closer to each other than this are one, read twice: workers report each second at the most.
const SAME_REPORT: Nanos = Nanos::from_millis(500);

/// Mean of a worker's reports, each counted once however often it was read. One that may be of before the window is none.
fn mean_of_reports(track: &Track, curve: &Curve) -> Option<f64> {
    let (mut sum, mut reports, mut last) = (0.0, 0.0, None::<Nanos>);
    for (place, (at, value)) in track.at.iter().zip(&curve.values).enumerate() {
        let age = if curve.staleness.is_empty() { Some(Nanos::ZERO) } else { curve.staleness[place] };
        let (Some(value), Some(age)) = (value, age.filter(|age| age <= at)) else { continue };
        let reported = *at - age;
        if last.is_none_or(|last| reported >= last + SAME_REPORT) {
            sum += *value as f64;
            reports += 1.0;
            last = Some(reported);
        }
    }
    (reports > 0.0).then(|| sum / reports)
}

/// Of a counter of ns: by how much all processes together raised it in a second of the time that they were looked at. One that
/// was born or died in that time has its part of it.
fn share(watch: &Watch, name: &str) -> Option<f64> {
    let counted = |curve: &Curve| if curve.values.first() == Some(&None) { curve.most() } else { curve.counted() };
    let sum: Option<u64> = watch.curves(name).map(|(_, curve)| counted(curve)).sum();
    let longest = watch.curves(name).filter_map(|(track, curve)| seen_for(track, curve)).max()?;
    Some(sum? as f64 / longest.0 as f64)
}

/// From the first look that had a value to the last.
fn seen_for(track: &Track, curve: &Curve) -> Option<Nanos> {
    let known = || track.at.iter().zip(&curve.values).filter(|(_, value)| value.is_some()).map(|(at, _)| *at);
    let span = known().next_back()?.saturating_sub(known().next()?);
    (span > Nanos::ZERO).then_some(span)
}

/// What stands above the lines: whose figures they are, and how old.
pub(crate) fn title(runs: &[Labelled<'_>]) -> Vec<String> {
    let watches = || runs.iter().filter_map(|labelled| labelled.run.watch.as_ref());
    let source = |name: &str| watches().find_map(|watch| Some(watch.curve(name)?.0.source.clone()));
    let mut lines = vec!["the server meanwhile, means over the window".to_owned()];
    if let Some(source) = source("accept_queue") {
        lines.push(format!(
            "  in line: connections in the accept queue ({source}), at most so many, of so many that it holds"
        ));
        lines.push(
            "  wait: of a request in that queue on average, by the queue's length and the rate (Little's law)"
                .to_owned(),
        );
    }
    if let Some(source) = source("backlog").or_else(|| source("busy_threads")) {
        let curves = watches().flat_map(|watch| &watch.tracks).flat_map(|track| &track.curves);
        let oldest = curves.flat_map(|curve| curve.staleness.iter().flatten()).max();
        let age = oldest.map_or_else(|| "read live".to_owned(), |age| format!("up to {} old", number::length(*age)));
        lines.push(format!("  busy: threads taken; backlog: requests that wait inside the workers ({source}, {age})"));
    }
    if source("cpu").is_some() {
        lines.push("  CPUs: kept busy by its processes; CPU wait: their threads that waited for one; they took: our looks, of one CPU".to_owned());
    }
    lines
}

/// What could not be read, a line each.
pub(crate) fn missing(runs: &[Labelled<'_>]) -> Vec<String> {
    let of = |Labelled { label, run }: &Labelled<'_>| {
        let watch = run.watch.iter();
        watch.flat_map(|watch| &watch.missing).map(|what| format!("{label} not read: {what}")).collect::<Vec<_>>()
    };
    runs.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_counts_once_and_not_if_it_may_be_of_before_the_window() {
        let ages = [1500u64, 300, 1300, 300].map(|ms| Some(Nanos::from_millis(ms)));
        let curve =
            Curve { values: vec![Some(9), Some(2), Some(2), Some(5)], staleness: ages.to_vec(), ..Curve::default() };
        let track = Track { at: (1..=4).map(Nanos::from_secs).collect(), ..Track::default() };
        assert_eq!(mean_of_reports(&track, &curve), Some(3.5));
        let unknown = Curve { staleness: vec![None; 4], ..curve.clone() };
        assert_eq!(mean_of_reports(&track, &unknown), None, "of unknown age");
        let live = Curve { staleness: Vec::new(), ..curve };
        assert_eq!(mean_of_reports(&track, &live), Some(4.5));
    }
}
