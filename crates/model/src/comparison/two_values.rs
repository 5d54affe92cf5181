//! Values that fall into two groups: runs that were of one of two kinds. Their middle is then a value
//! that none of them has.

use serde::Serialize;

/// Two groups with a gap between them that is larger than the spread of either.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TwoValues {
    /// The median of the lower group.
    pub low: f64,
    /// The median of the upper group.
    pub high: f64,
    /// How many values the lower group has.
    pub low_count: usize,
    /// How many values there are.
    pub count: usize,
}

impl TwoValues {
    /// The fewest values of a group.
    const FEWEST: usize = 3;

    /// `None` if there are not two groups, or the gap is at most `least_gap`, in the unit of the values.
    pub fn of(mut values: Vec<f64>, least_gap: f64) -> Option<TwoValues> {
        values.sort_by(f64::total_cmp);
        let gap = |at: usize| values[at] - values[at - 1];
        let split = (1..values.len()).max_by(|a, b| gap(*a).total_cmp(&gap(*b)))?;
        let (low, high) = values.split_at(split);
        let spread = |group: &[f64]| group[group.len() - 1] - group[0];
        let is_apart = low.len().min(high.len()) >= TwoValues::FEWEST
            && gap(split) > spread(low).max(spread(high))
            && gap(split) > least_gap;
        let middle = |group: &[f64]| group[group.len() / 2];
        is_apart.then(|| TwoValues {
            low: middle(low),
            high: middle(high),
            low_count: low.len(),
            count: values.len(),
        })
    }

    /// The same groups with both values changed by a rising function.
    #[must_use]
    pub fn map(self, change: impl Fn(f64) -> f64) -> TwoValues {
        TwoValues { low: change(self.low), high: change(self.high), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_groups_are_told_from_a_spread() {
        let of = |values: &[f64]| TwoValues::of(values.to_vec(), 1.0);
        let found = of(&[50.0, 10.0, 11.0, 51.0, 12.0, 52.0, 50.0]).unwrap();
        assert_eq!((found.low, found.high, found.low_count, found.count), (11.0, 51.0, 3, 7));
        assert_eq!(of(&[10.0, 11.0, 50.0, 51.0, 52.0]), None, "two runs may be chance");
        assert_eq!(of(&[1.0, 2.0, 3.0, 4.5, 6.0, 7.0]), None, "the gap is within the spread");
        assert_eq!(of(&[1.0, 1.0, 1.0, 1.5, 1.5, 1.5]), None, "the gap is too small to matter");
        assert_eq!(of(&[]), None);
    }
}
