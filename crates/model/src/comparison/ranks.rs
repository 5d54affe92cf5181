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
//! Two sets of runs, whatever their blocks, use the rank sum (Mann and Whitney) in the same way. Where
//! few blocks are alike it can tell more: p is 2 / 12,870 at best for 8 runs each, and 2 / 256 for
//! 8 pairs.

/// A difference between two arms, with its exact interval and test.
#[derive(Clone, Debug)]
pub struct RankTest {
    /// How many runs of each arm there are; of the arm with fewer.
    runs: u32,
    /// The differences that are counted, rising: of pairs their Walsh averages, of sets every
    /// difference between one of the others and one of the base's.
    rising: Vec<f64>,
    /// The chance that so many of them are below 0 if the arms are equal, for none, one, two and so on.
    chances: Vec<f64>,
}

impl RankTest {
    /// Of the differences within pairs, which must be finite.
    pub fn of_pairs(differences: &[f64]) -> RankTest {
        let pair = |at: usize| {
            differences[at..].iter().map(move |other| f64::midpoint(differences[at], *other))
        };
        let mut rising: Vec<f64> = (0..differences.len()).flat_map(pair).collect();
        rising.sort_by(f64::total_cmp);
        let runs = differences.len();
        RankTest { runs: runs as u32, rising, chances: distribution(runs) }
    }

    /// Of two sets of values, which must be finite.
    pub fn of_sets(base: &[f64], other: &[f64]) -> RankTest {
        let mut rising: Vec<f64> =
            other.iter().flat_map(|other| base.iter().map(move |base| other - base)).collect();
        rising.sort_by(f64::total_cmp);
        let sums = ways_by_sum(base.len() + other.len(), other.len());
        let all: f64 = sums.iter().sum();
        let least = other.len() * (other.len() + 1) / 2;
        let chances = sums.into_iter().skip(least).map(|ways| ways / all).collect();
        RankTest { runs: base.len().min(other.len()) as u32, rising, chances }
    }

    /// How many runs of each arm.
    pub fn runs(&self) -> u32 {
        self.runs
    }

    /// The estimate of the difference; `None` without any.
    pub fn estimate(&self) -> Option<f64> {
        middle(&self.rising)
    }

    /// The two-sided p-value of a difference of 0.
    pub(crate) fn p_value(&self) -> f64 {
        let not_above = self.rising.iter().filter(|value| **value <= 0.0).count();
        let not_below = self.rising.iter().filter(|value| **value >= 0.0).count();
        let tail: f64 = self.chances.iter().take(not_above.min(not_below) + 1).sum();
        (2.0 * tail).min(1.0)
    }

    /// The ends of the interval that misses the difference with a chance of at most `level`; `None`
    /// for too few runs.
    pub fn interval(&self, level: f64) -> Option<[f64; 2]> {
        ends(&self.rising, self.chances.iter().copied(), level)
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

/// The fewest pairs that can reject 0 at this level: p = 2 / 2^n if all have the same sign.
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
        let ranks = RankTest::of_pairs(&[1.2, 0.8, -0.1, 2.3, 1.9, 0.4, 1.1, 0.7]);
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
            let ranks = RankTest::of_pairs(&vec![1.0; n]);
            assert!((ranks.p_value() - p).abs() < 1e-12, "{n}");
            assert_eq!(ranks.interval(0.05).is_some(), p <= 0.05, "{n}");
        }
        assert_eq!(
            [0.05, 0.025, 0.0125, 0.05 / 6.0, 0.0125 / 3.0].map(least_blocks),
            [6, 7, 8, 8, 9]
        );
        let figures = |of: &[f64], level| {
            let ranks = RankTest::of_pairs(of);
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
            let ranks = RankTest::of_sets(&base, &other);
            // The smallest two-sided p-value of sets of this size.
            assert_eq!(
                [p - 1e-6, p + 1e-6].map(|level| ranks.interval(level).is_some()),
                [false, true],
                "{n}"
            );
            assert_eq!(ranks.interval(0.05).is_some(), p <= 0.05, "{n}");
        }
        let one = RankTest::of_sets(&[1.0], &[2.0]);
        assert_eq!((one.estimate(), one.interval(0.05)), (Some(1.0), None));
        assert_eq!(RankTest::of_sets(&[], &[2.0]).estimate(), None);
    }

    #[test]
    fn half_widths_match_the_published_table() {
        // In units of the standard deviation of normal differences.
        for (n, expected) in [(6, 1.23), (8, 0.86), (10, 0.70), (12, 0.66), (20, 0.47)] {
            let width = |seed| {
                let differences: Vec<f64> = (0..n).map(|at| normal(seed, at)).collect();
                let [low, high] = RankTest::of_pairs(&differences).interval(0.05).unwrap();
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
        let sets = RankTest::of_sets(&old, &new);
        assert_eq!((sets.interval(0.05), sets.estimate()), (Some([-312.0, -284.0]), Some(-296.5)));
        let old = [3069., 3075., 3069., 3067., 3207., 3064., 3064., 3058., 3059., 3062.];
        let new = [3075., 3065., 3059., 3065., 3060., 3081., 3186., 3135., 3087., 3062.];
        let [low, high] = RankTest::of_sets(&old, &new).interval(0.05).unwrap();
        assert!(low < 0.0 && high > 0.0);
    }

    proptest! {
        #[test]
        fn the_test_rejects_exactly_what_the_interval_excludes(
            differences in prop::collection::vec((-40i32..60).prop_map(|d| f64::from(d) / 10.0), 1..14), level in 0.002f64..0.4,
        ) {
            let ranks = RankTest::of_pairs(&differences);
            let excluded = ranks.interval(level).is_some_and(|[low, high]| low > 0.0 || high < 0.0);
            prop_assert_eq!(excluded, ranks.p_value() <= level + 1e-12);
            if let Some([low, high]) = ranks.interval(level) {
                let estimate = ranks.estimate().unwrap();
                prop_assert!(low <= estimate && estimate <= high);
            }
        }
    }
}
