//! How the watched runs went, drawn small: a line a curve, time from left to right.

use model::{Nanos, Run, SweepStudy, Watch};

use crate::facts;
use crate::number;

/// Characters of a drawing at the most.
pub(crate) const WIDTH: usize = 60;
/// And where there is no room for them, at the least: fewer tell nothing.
pub(crate) const LEAST: usize = 10;
/// From low to high, above 0.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// A value of 0.
const ZERO: char = '·';
/// No value.
const ABSENT: char = ' ';

/// What stands above the drawings.
pub(crate) const TITLE: &str =
    "over time, from the start of the window to the last answer; · is 0, and at the right is what █ stands for";

/// A point of a curve: when, and what; `None` is a gap.
type Point = (Nanos, Option<f64>);

/// For each watched run: its name, and for each curve what it is, the drawing of so many characters at the most, and its
/// highest value.
pub(crate) fn lines(study: &SweepStudy, width: usize) -> Vec<(String, Vec<[String; 3]>)> {
    let drawn =
        study.runs.iter().filter_map(|run| Some((facts::label(study, run), drawn(run, run.watch.as_ref()?, width))));
    drawn.filter(|(_, curves)| !curves.is_empty()).collect()
}

fn drawn(run: &Run, watch: &Watch, width: usize) -> Vec<[String; 3]> {
    let sums = [("in line", "accept_queue"), ("connected", "open_connections"), ("backlog", "backlog")];
    let curves = sums.map(|(name, curve)| (name, summed(watch, curve)));
    let times = ("response time", response_times(run));
    let curves: Vec<(&str, Vec<Point>)> = curves.into_iter().chain([times]).collect();
    let span = curves.iter().filter_map(|(_, points)| Some(points.last()?.0)).max().unwrap_or(Nanos::ZERO);
    // Of a few looks nothing can be drawn.
    let looks = curves.first().map_or(0, |(_, points)| points.len());
    if span == Nanos::ZERO || looks < LEVELS.len() {
        return Vec::new();
    }
    let lines = curves.into_iter().filter_map(|(name, points)| {
        let most = points.iter().filter_map(|(_, value)| *value).fold(0.0, f64::max);
        // A server without a backlog need not be shown one.
        if points.is_empty() || (name == "backlog" && most == 0.0) {
            return None;
        }
        let most_in_words = if name == "response time" {
            format!("{} ms", number::milliseconds(Nanos::from_secs_f64(most)))
        } else {
            number::or_zero(most, number::significant)
        };
        Some([name.to_owned(), line(&binned(&points, span, looks.min(width)), most), most_in_words])
    });
    lines.collect()
}

/// The curves of that name, added up look by look; a look that one of them lacks is a gap.
fn summed(watch: &Watch, name: &str) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    for (track, curve) in watch.curves(name) {
        let values = track.at.iter().zip(&curve.values).map(|(at, value)| (*at, value.map(|value| value as f64)));
        if points.is_empty() {
            points = values.collect();
        } else {
            let sum = |mine: Option<f64>, theirs: Option<f64>| Some(mine? + theirs?);
            for ((_, mine), (_, theirs)) in points.iter_mut().zip(values) {
                *mine = sum(*mine, theirs);
            }
        }
    }
    points
}

/// The mean response time of the good answers of each second, in seconds.
fn response_times(run: &Run) -> Vec<Point> {
    let seconds = run.tally.series.seconds.iter().enumerate();
    let mean = |(at, second): (usize, &model::series::Second)| {
        let mean = second.response_time_sum_ns.checked_div(second.completed);
        (Nanos::from_secs(at as u64), mean.map(|mean| Nanos(mean).as_secs_f64()))
    };
    seconds.map(mean).collect()
}

/// The mean of the points in each of `bins` equal parts of `span`; where there are none, what the last point said.
fn binned(points: &[Point], span: Nanos, bins: usize) -> Vec<Option<f64>> {
    let mut rest = points;
    // The first look comes up to one step after the start, and stands for that step.
    let mut last = match points {
        [(first, value), (second, _), ..] if *first <= second.saturating_sub(*first) => *value,
        _ => None,
    };
    let part = |bin: usize| Nanos((u128::from(span.0) * bin as u128 / bins as u128) as u64);
    let bin = |bin: usize| {
        let end = if bin + 1 == bins { Nanos::MAX } else { part(bin + 1) };
        let (here, later) = rest.split_at(rest.partition_point(|(at, _)| *at < end));
        rest = later;
        let known: Vec<f64> = here.iter().filter_map(|(_, value)| *value).collect();
        if !here.is_empty() {
            last = (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64);
        }
        last
    };
    (0..bins).map(bin).collect()
}

fn line(values: &[Option<f64>], most: f64) -> String {
    let level = |value: f64| ((value / most * LEVELS.len() as f64).ceil() as usize).clamp(1, LEVELS.len()) - 1;
    let mark = |value: &Option<f64>| match value {
        None => ABSENT,
        Some(value) if *value <= 0.0 => ZERO,
        Some(value) => LEVELS[level(*value)],
    };
    values.iter().map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[Option<u32>]) -> Vec<Point> {
        let second = |(at, value): (usize, &Option<u32>)| (Nanos::from_secs(at as u64), value.map(f64::from));
        values.iter().enumerate().map(second).collect()
    }

    #[test]
    fn a_line_goes_from_a_dot_to_a_full_block() {
        let values = [Some(0.0), Some(0.1), Some(4.0), Some(8.0), None, Some(8.0)];
        assert_eq!(line(&values, 8.0), "·▁▄█ █");
        assert_eq!(line(&[Some(0.0)], 0.0), "·");
    }

    #[test]
    fn many_points_are_a_mean_few_are_held_and_a_gap_is_a_gap() {
        let six = points(&[Some(1), Some(3), Some(0), Some(0), None, None]);
        assert_eq!(binned(&six, Nanos::from_secs(6), 3), [Some(2.0), Some(0.0), None]);
        let two = points(&[Some(1), Some(5)]);
        assert_eq!(binned(&two, Nanos::from_secs(2), 4), [Some(1.0), Some(1.0), Some(5.0), Some(5.0)]);
        let late = |at: u64| [(Nanos::from_secs(at), Some(5.0)), (Nanos::from_secs(4), Some(5.0))];
        assert_eq!(binned(&late(3), Nanos::from_secs(4), 2), [None, Some(5.0)], "nobody looked for so long");
        assert_eq!(binned(&late(2), Nanos::from_secs(4), 4)[0], Some(5.0), "one step");
        // What came at the very end is in the last part.
        assert_eq!(binned(&two, Nanos::from_secs(1), 2), [Some(1.0), Some(5.0)]);
    }
}
