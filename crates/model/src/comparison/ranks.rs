//! Estimates a difference and its exact interval by ranks: Hodges and Lehmann.
//!
//! Pairs (the runs of one block) use Wilcoxon's signed ranks (Hollander, Wolfe, Chicken:
//! Nonparametric Statistical Methods, chapter 3). Everything follows from the means of all pairs of
//! differences, including each with itself (Walsh averages): the estimate is their median, the ends
//! of the interval are some of them counted from either end, and the test counts how many are above
//! 0. So the test rejects 0 exactly if the interval excludes it. The only assumptions are that the
//! differences are independent and symmetric about their middle. If some are equal, or 0, those
//! averages count on both sides, which makes the interval at least as wide as needed.
//!
//! Unpaired sets use the rank sum (Mann and Whitney) in the same way.

/// Differences and the means of their pairs.
#[derive(Clone, Debug)]
pub struct SignedRanks {
    n: usize,
    /// Rising.
    averages: Vec<f64>,
}

impl SignedRanks {
    /// From these differences, which must be finite.
    pub fn of(differences: &[f64]) -> SignedRanks {
        let pair = |at: usize| {
            differences[at..].iter().map(move |other| f64::midpoint(differences[at], *other))
        };
        let mut averages: Vec<f64> = (0..differences.len()).flat_map(pair).collect();
        averages.sort_by(f64::total_cmp);
        SignedRanks { n: differences.len(), averages }
    }

    /// How many differences.
    pub fn count(&self) -> u32 {
        self.n as u32
    }

    /// The estimate of the middle; `None` without differences.
    pub fn estimate(&self) -> Option<f64> {
        middle(&self.averages)
    }

    /// The two-sided p-value of a middle of 0.
    pub(crate) fn p_value(&self) -> f64 {
        let not_above = self.averages.iter().filter(|average| **average <= 0.0).count();
        let not_below = self.averages.iter().filter(|average| **average >= 0.0).count();
        let tail: f64 = distribution(self.n).iter().take(not_above.min(not_below) + 1).sum();
        (2.0 * tail).min(1.0)
    }

    /// The ends of the interval that misses the middle with a chance of at most `level`; `None` for
    /// too few differences.
    pub fn interval(&self, level: f64) -> Option<[f64; 2]> {
        ends(&self.averages, distribution(self.n), level)
    }
}

/// The ends of the interval that misses the middle with a chance of at most `level`: each side
/// excludes the most values whose chances add up to at most half of it. `None` for too few values.
fn ends(rising: &[f64], chances: impl IntoIterator<Item = f64>, level: f64) -> Option<[f64; 2]> {
    let mut below = 0.0;
    let within = |chance: &f64| {
        below += *chance;
        below <= level / 2.0 + 1e-12
    };
    let left_out = chances.into_iter().take_while(within).count();
    let low = left_out.checked_sub(1)?;
    let high = rising.len().checked_sub(left_out)?;
    Some([*rising.get(low)?, *rising.get(high)?])
}

/// The probability of each sum of the ranks of the positive ones among `n` differences, from 0 up,
/// if both signs are equally likely. Each rank in turn is added or not.
fn distribution(n: usize) -> Vec<f64> {
    let mut weights = vec![0.0; n * (n + 1) / 2 + 1];
    weights[0] = 1.0;
    for rank in 1..=n {
        for sum in (0..=rank * (rank + 1) / 2).rev() {
            let added = if sum >= rank { weights[sum - rank] } else { 0.0 };
            weights[sum] = f64::midpoint(weights[sum], added);
        }
    }
    weights
}

/// The fewest differences that can reject 0 at this level: p = 2 / 2^n if all have the same sign.
pub(crate) fn least_blocks(level: f64) -> u32 {
    (1..64).find(|n| 2.0 * 0.5f64.powi(*n) <= level).unwrap_or(64) as u32
}

/// The middle one of these values, or the mean of the two in the middle.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    middle(&values)
}

fn middle(rising: &[f64]) -> Option<f64> {
    let upper = *rising.get(rising.len() / 2)?;
    Some(f64::midpoint(rising[(rising.len() - 1) / 2], upper))
}

/// Two sets of values.
#[derive(Clone, Debug)]
pub struct RankSum {
    base: usize,
    other: usize,
    /// Every difference between one of the others and one of the base's, rising.
    shifts: Vec<f64>,
}

impl RankSum {
    /// From these values, which must be finite.
    pub fn of(base: &[f64], other: &[f64]) -> RankSum {
        let mut shifts: Vec<f64> =
            other.iter().flat_map(|other| base.iter().map(move |base| other - base)).collect();
        shifts.sort_by(f64::total_cmp);
        RankSum { base: base.len(), other: other.len(), shifts }
    }

    /// How far the others are above the base; `None` if one set is empty.
    pub fn estimate(&self) -> Option<f64> {
        middle(&self.shifts)
    }

    /// The ends of the interval that misses the shift with a chance of at most `level`; `None` for
    /// too few values.
    pub fn interval(&self, level: f64) -> Option<[f64; 2]> {
        let RankSum { base, other, .. } = *self;
        let sums = ways_by_sum(base + other, other);
        let all: f64 = sums.iter().sum();
        let least = other * (other + 1) / 2;
        ends(&self.shifts, sums.into_iter().skip(least).map(|ways| ways / all), level)
    }
}

/// For each sum, in how many ways `chosen` of the ranks from 1 to `last` add up to it.
fn ways_by_sum(last: usize, chosen: usize) -> Vec<f64> {
    let most = last * (last + 1) / 2;
    let mut ways = vec![vec![0.0; most + 1]; chosen + 1];
    ways[0][0] = 1.0;
    for rank in 1..=last {
        for taken in (1..=chosen).rev() {
            for sum in rank..=most {
                let more = ways[taken - 1][sum - rank];
                ways[taken][sum] += more;
            }
        }
    }
    ways.swap_remove(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_fixtures::normal;
    use proptest::prelude::*;

    #[test]
    fn the_textbook_example() {
        let ranks = SignedRanks::of(&[1.2, 0.8, -0.1, 2.3, 1.9, 0.4, 1.1, 0.7]);
        assert!((ranks.estimate().unwrap() - 0.975).abs() < 1e-12);
        assert!(
            (ranks.p_value() - 0.015_625).abs() < 1e-12,
            "one rank of 1 is negative: 2 x 2 / 2^8"
        );
        let [low, high] = ranks.interval(0.05).unwrap();
        assert!(low > 0.0 && high > 1.5, "{low} {high}");
        assert!(
            ranks.interval(0.0157).unwrap()[0] > 0.0 && ranks.interval(0.0155).unwrap()[0] <= 0.0
        );
    }

    #[test]
    fn too_few_runs_can_show_nothing() {
        for (n, p) in
            [(5, 0.0625), (6, 0.031_25), (7, 0.015_625), (8, 0.007_812_5), (10, 0.001_953_125)]
        {
            let ranks = SignedRanks::of(&vec![1.0; n]);
            assert!((ranks.p_value() - p).abs() < 1e-12, "{n}");
            assert_eq!(ranks.interval(0.05).is_some(), p <= 0.05, "{n}");
        }
        assert_eq!(
            [0.05, 0.025, 0.0125, 0.05 / 6.0, 0.0125 / 3.0].map(least_blocks),
            [6, 7, 8, 8, 9]
        );
        let figures = |of: &[f64], level| {
            let ranks = SignedRanks::of(of);
            (ranks.estimate(), ranks.p_value(), ranks.interval(level))
        };
        assert_eq!(figures(&[], 0.5), (None, 1.0, None));
        assert_eq!(
            figures(&[0.0; 8], 0.05),
            (Some(0.0), 1.0, Some([0.0, 0.0])),
            "equal arms are equal"
        );
        assert!(
            figures(&[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0], 0.05).1 >= 1.0,
            "one block in eight has the other sign"
        );
        for (n, p) in [(3, 0.1), (4, 0.028_571), (5, 0.007_937), (6, 0.002_165)] {
            let base: Vec<f64> = (0..n).map(f64::from).collect();
            let other: Vec<f64> = base.iter().map(|value| value + 100.0).collect();
            let ranks = RankSum::of(&base, &other);
            // The smallest two-sided p-value of sets of this size.
            assert_eq!(
                [p - 1e-6, p + 1e-6].map(|level| ranks.interval(level).is_some()),
                [false, true],
                "{n}"
            );
            assert_eq!(ranks.interval(0.05).is_some(), p <= 0.05, "{n}");
        }
        let one = RankSum::of(&[1.0], &[2.0]);
        assert_eq!((one.estimate(), one.interval(0.05)), (Some(1.0), None));
        assert_eq!(RankSum::of(&[], &[2.0]).estimate(), None);
    }

    #[test]
    fn half_widths_match_the_published_table() {
        // In units of the standard deviation of normal differences.
        for (n, expected) in [(6, 1.23), (8, 0.86), (10, 0.70), (12, 0.66), (20, 0.47)] {
            let width = |seed| {
                let differences: Vec<f64> = (0..n).map(|at| normal(seed, at)).collect();
                let [low, high] = SignedRanks::of(&differences).interval(0.05).unwrap();
                (high - low) / 2.0
            };
            let mean = (0..1000).map(width).sum::<f64>() / 1000.0;
            assert!((mean - expected).abs() < 0.05, "{n}: {mean}");
        }
    }

    #[test]
    fn the_rank_sum_matches_benchstat() {
        let old = [1726., 1723., 1707., 1707., 1713., 1729., 1736., 1707., 1705., 1774.];
        let new = [1423., 1416., 1411., 1413., 1412., 1426., 1422., 1424., 1447., 1425.];
        let sets = RankSum::of(&old, &new);
        assert_eq!((sets.interval(0.05), sets.estimate()), (Some([-312.0, -284.0]), Some(-296.5)));
        let old = [3069., 3075., 3069., 3067., 3207., 3064., 3064., 3058., 3059., 3062.];
        let new = [3075., 3065., 3059., 3065., 3060., 3081., 3186., 3135., 3087., 3062.];
        let [low, high] = RankSum::of(&old, &new).interval(0.05).unwrap();
        assert!(low < 0.0 && high > 0.0);
    }

    proptest! {
        #[test]
        fn the_test_rejects_exactly_what_the_interval_excludes(
            differences in prop::collection::vec((-40i32..60).prop_map(|d| f64::from(d) / 10.0), 1..14), level in 0.002f64..0.4,
        ) {
            let ranks = SignedRanks::of(&differences);
            let excluded = ranks.interval(level).is_some_and(|[low, high]| low > 0.0 || high < 0.0);
            prop_assert_eq!(excluded, ranks.p_value() <= level + 1e-12);
            if let Some([low, high]) = ranks.interval(level) {
                let estimate = ranks.estimate().unwrap();
                prop_assert!(low <= estimate && estimate <= high);
            }
        }
    }
}
