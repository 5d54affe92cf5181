//! Curves drawn small in characters: a line a curve, time from left to right.

use std::fmt::Write as _;

use model::Nanos;

use crate::tree::{CurvePoint, TimeCurve};
use crate::width::{Width, columns_of};

/// Characters of a drawing at the most.
const WIDTH: usize = 60;
/// And where there is no room for them, at the least: fewer tell nothing.
const LEAST: usize = 10;
/// From low to high, above 0.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// A value of 0.
const ZERO: char = '·';
/// No value.
const ABSENT: char = ' ';

/// The curves below each other: whose it is, what it is, the drawing, and what its highest mark stands for.
pub(crate) fn lines(curves: &[TimeCurve], width: Width) -> String {
    let widest = |of: fn(&TimeCurve) -> &str| curves.iter().map(|curve| columns_of(of(curve))).max().unwrap_or(0);
    let (labels, names) = (widest(|curve| &curve.label), widest(|curve| curve.name));
    let beside = 2 + labels + 2 + names + 2 + 2 + widest(|curve| &curve.highest);
    let room = width.columns().map_or(WIDTH, |columns| columns.saturating_sub(beside).clamp(LEAST, WIDTH));
    let mut text = String::new();
    let mut last = "";
    for TimeCurve { label, name, points, span, most_points, highest } in curves {
        let shown = if label == last { "" } else { label };
        last = label;
        let most = points.iter().filter_map(|point| point.value).fold(0.0, f64::max);
        let drawing = line(&binned(points, *span, room.min(*most_points)), most);
        _ = writeln!(text, "  {shown:<labels$}  {name:<names$}  {drawing}  {highest}");
    }
    text
}

/// The mean of the points in each of `bins` equal parts of `span`; where there are none, what the last point said.
fn binned(points: &[CurvePoint], span: Nanos, bins: usize) -> Vec<Option<f64>> {
    let mut rest = points;
    // The first sample comes up to one step after the start, and stands for that step.
    let mut last = match points {
        [first, second, ..] if first.at <= second.at.saturating_sub(first.at) => first.value,
        _ => None,
    };
    let part = |bin: usize| Nanos((u128::from(span.0) * bin as u128 / bins as u128) as u64);
    let bin = |bin: usize| {
        let end = if bin + 1 == bins { Nanos::MAX } else { part(bin + 1) };
        let (here, later) = rest.split_at(rest.partition_point(|point| point.at < end));
        rest = later;
        let known: Vec<f64> = here.iter().filter_map(|point| point.value).collect();
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

    fn points(values: &[Option<u32>]) -> Vec<CurvePoint> {
        let second = |(at, value): (usize, &Option<u32>)| CurvePoint {
            at: Nanos::from_secs(at as u64),
            value: value.map(f64::from),
        };
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
        let late = |at: u64| [at, 4].map(|at| CurvePoint { at: Nanos::from_secs(at), value: Some(5.0) });
        assert_eq!(binned(&late(3), Nanos::from_secs(4), 2), [None, Some(5.0)], "nobody looked for so long");
        assert_eq!(binned(&late(2), Nanos::from_secs(4), 4)[0], Some(5.0), "one step");
        // What came at the very end is in the last part.
        assert_eq!(binned(&two, Nanos::from_secs(1), 2), [Some(1.0), Some(5.0)]);
    }
}
