//! Medians, and how well they are known.

use model::interval;
use serde::Serialize;

/// The middle of some values with an interval of order statistics: no law of the values is assumed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Middle {
    /// The median.
    pub(crate) median: f64,
    /// Lower end.
    pub(crate) low: f64,
    /// Upper end.
    pub(crate) high: f64,
    /// How many values.
    pub(crate) of: usize,
}

impl Middle {
    /// `None` of nothing. With fewer than six values the interval is their range ([`coverage_of_range`]).
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Middle> {
        let mut all: Vec<f64> = values.into_iter().collect();
        all.sort_by(f64::total_cmp);
        let n = all.len();
        let (first, last) = (*all.first()?, *all.last()?);
        let ranks = interval::ranks(0.5, n as u64, 1.0);
        let at = |rank: Option<u64>, end: f64| rank.map_or(end, |rank| all[rank as usize - 1]);
        Some(Middle {
            median: f64::midpoint(all[(n - 1) / 2], all[n / 2]),
            low: at(ranks.low, first),
            high: at(ranks.high, last),
            of: n,
        })
    }
}

/// With which probability the range of `n` independent values holds the true median: not all are on one side of it.
pub(crate) fn coverage_of_range(n: usize) -> f64 {
    1.0 - 2f64.powi(1 - i32::try_from(n).unwrap_or(i32::MAX).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_an_even_number_is_between_two() {
        assert_eq!(Middle::of([3.0, 1.0]).map(|m| (m.median, m.low, m.high)), Some((2.0, 1.0, 3.0)));
        assert_eq!(Middle::of([3.0, 1.0, 9.0]).map(|m| (m.median, m.low, m.high)), Some((3.0, 1.0, 9.0)));
        assert_eq!(Middle::of([]), None);
    }

    #[test]
    fn the_interval_is_that_of_the_tables() {
        // David, Nagaraja: of nine values the second and the eighth hold the median with 96.1 %.
        let nine = Middle::of((1..=9).map(f64::from)).unwrap();
        assert_eq!((nine.low, nine.median, nine.high), (2.0, 5.0, 8.0));
        // Of six the first and the last, with 96.9 %.
        let six = Middle::of((1..=6).map(f64::from)).unwrap();
        assert_eq!((six.low, six.high), (1.0, 6.0));
        assert!((coverage_of_range(6) - 0.96875).abs() < 1e-12);
        assert!(coverage_of_range(1).abs() < 1e-12);
    }
}
