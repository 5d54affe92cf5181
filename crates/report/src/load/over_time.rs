//! The run in a few slices of time: whether it was the same all along, or fell behind.
//!
//! A request is counted in the second in which it ended: those that ended after the window have a slice of their own.

use model::series::Second;
use model::{LoadStudy, Nanos, Pace, Profile};

use super::part::{Body, Part, Row, head};
use crate::number::{self, or_none};

/// Slices at the most.
const SLICES: usize = 12;

/// Nothing where the run is too short to have two slices.
pub(crate) fn part(study: &LoadStudy) -> Option<Part> {
    let seconds = &study.run.tally.series.seconds;
    let measured = study.run.measured.as_secs_f64();
    // The second in which the window ends belongs to it, if only in part.
    let (window, drain) = seconds.split_at(seconds.len().min(measured.ceil() as usize));
    if window.len() < 2 {
        return None;
    }
    let length = slice_length(study, window.len());
    let mut rows: Vec<Row> = window
        .chunks(length)
        .enumerate()
        .map(|(at, slice)| {
            let from = at * length;
            let covered = (measured - from as f64).min(slice.len() as f64);
            row(number::count(from as u64), Some(covered), slice)
        })
        .collect();
    if drain.iter().any(|second| second.completed + second.failed > 0) {
        rows.push(row("after".to_owned(), None, drain));
    }
    let columns = ["from second", "answers", "per second", "mean", "longest", "failed"];
    let title = "over time, by the second in which a request ended; response times of good answers in ms";
    Some(Part::detail(title, vec![Body::Table(head(columns), rows)]))
}

/// Seconds a slice: a step each, where steps fit.
fn slice_length(study: &LoadStudy, seconds: usize) -> usize {
    if let Pace::Open { profile: Profile::Steps { each, .. }, .. } = &study.plan.pace {
        let step = (each.0 / 1_000_000_000) as usize;
        let is_whole = Nanos::from_secs(step as u64) == *each;
        if step > 0 && is_whole && seconds.div_ceil(step) <= SLICES {
            // Halves say more about a step than its mean, where there is room for them.
            let has_room = step.is_multiple_of(2) && seconds.div_ceil(step / 2) <= SLICES;
            return if has_room { step / 2 } else { step };
        }
    }
    seconds.div_ceil(SLICES)
}

fn row(from: String, covered: Option<f64>, slice: &[Second]) -> Row {
    let sum = |part: fn(&Second) -> u64| slice.iter().map(part).sum::<u64>();
    let completed = sum(|second| second.completed);
    let longest = slice.iter().map(|second| second.response_time_max_ns).max().filter(|_| completed > 0).map(Nanos);
    let mean = sum(|second| second.response_time_sum_ns).checked_div(completed).map(Nanos);
    let per_second = covered.filter(|covered| *covered > 0.0).map(|covered| completed as f64 / covered);
    let cells = [
        from,
        number::count(completed),
        or_none(per_second, |rate| number::or_zero(rate, number::rate)),
        or_none(mean, number::milliseconds),
        or_none(longest, number::milliseconds),
        number::count(sum(|second| second.failed)),
    ];
    Row::new(cells, "")
}
