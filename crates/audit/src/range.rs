//! A number that is known to lie between two others, both included: what rounding leaves of a printed figure, and what
//! arithmetic makes of several.
//!
//! Only for numbers that are not negative: products and quotients take the ends as they are.

use serde::{Deserialize, Serialize};

/// From `low` to `high`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// Not less than this.
    pub low: f64,
    /// Not more than this.
    pub high: f64,
}

impl Range {
    /// Exactly this.
    pub fn exactly(value: f64) -> Range {
        Range { low: value, high: value }
    }

    /// The product of any two in the ranges.
    #[must_use]
    pub fn times(self, other: Range) -> Range {
        Range { low: self.low * other.low, high: self.high * other.high }
    }

    /// The quotient of any two in the ranges; `None` where the divisor may be zero.
    pub fn over(self, other: Range) -> Option<Range> {
        (other.low > 0.0).then(|| Range { low: self.low / other.low.max(other.high), high: self.high / other.low })
    }

    /// `by` times each.
    #[must_use]
    pub fn scaled(self, by: f64) -> Range {
        Range { low: self.low * by, high: self.high * by }
    }

    /// A fraction more at either end.
    #[must_use]
    pub(crate) fn widened(self, fraction: f64) -> Range {
        Range { low: self.low * (1.0 - fraction), high: self.high * (1.0 + fraction) }
    }

    /// `by` more at either end, but not below zero.
    #[must_use]
    pub(crate) fn widened_by(self, by: f64) -> Range {
        Range { low: (self.low - by).max(0.0), high: self.high + by }
    }

    /// Whether a value in one may equal a value in the other.
    pub fn meets(self, other: Range) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    /// The middle.
    pub fn middle(self) -> f64 {
        f64::midpoint(self.low, self.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_keeps_all_that_rounding_allows() {
        let (rate, mean) = (Range { low: 99.0, high: 101.0 }, Range { low: 0.9, high: 1.1 });
        assert_eq!(rate.times(mean), Range { low: 99.0 * 0.9, high: 101.0 * 1.1 });
        assert_eq!(rate.over(mean), Some(Range { low: 99.0 / 1.1, high: 101.0 / 0.9 }));
        assert_eq!(rate.over(Range { low: 0.0, high: 1.0 }), None);
        assert!(rate.meets(Range::exactly(101.0)) && !rate.meets(Range::exactly(101.1)));
    }
}
