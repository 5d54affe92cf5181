//! By how much two sets of runs that are not paired differ: Hodges and Lehmann's estimate of the shift, with its exact interval by
//! the rank-sum test (Mann and Whitney).

use super::signed_rank::median;

/// Two sets of values.
#[derive(Clone, Debug)]
pub struct RankSum {
    base: usize,
    other: usize,
    /// Each of the others less each of the base's, rising.
    shifts: Vec<f64>,
}

impl RankSum {
    /// Of these values; each is a finite number.
    pub fn of(base: &[f64], other: &[f64]) -> RankSum {
        let mut shifts: Vec<f64> = other.iter().flat_map(|other| base.iter().map(move |base| other - base)).collect();
        shifts.sort_by(f64::total_cmp);
        RankSum { base: base.len(), other: other.len(), shifts }
    }

    /// How far the others are above the base; `None` where one set is empty.
    pub fn estimate(&self) -> Option<f64> {
        median(&self.shifts)
    }

    /// The ends of the interval of the shift that leaves it out with a chance of at most `level`; `None` of too few values.
    pub fn interval(&self, level: f64) -> Option<[f64; 2]> {
        let RankSum { base, other, .. } = *self;
        let sums = dealt(base + other, other);
        let all: f64 = sums.iter().sum();
        let mut below = 0.0;
        let within = |weight: &&f64| {
            below += **weight / all;
            below <= level / 2.0 + 1e-12
        };
        let least = other * (other + 1) / 2;
        let left_out = sums.iter().skip(least).take_while(within).count();
        let (low, high) = (left_out.checked_sub(1)?, self.shifts.len().checked_sub(left_out)?);
        Some([*self.shifts.get(low)?, *self.shifts.get(high)?])
    }
}

/// In how many ways so many of the ranks from 1 to `last` can be chosen, by their sum.
fn dealt(last: usize, chosen: usize) -> Vec<f64> {
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

    #[test]
    fn benchstats_examples() {
        let old = [1726., 1723., 1707., 1707., 1713., 1729., 1736., 1707., 1705., 1774.];
        let new = [1423., 1416., 1411., 1413., 1412., 1426., 1422., 1424., 1447., 1425.];
        let json = RankSum::of(&old, &new);
        let [low, high] = json.interval(0.05).unwrap();
        assert_eq!((low, high, json.estimate()), (-312.0, -284.0, Some(-296.5)));
        let old = [3069., 3075., 3069., 3067., 3207., 3064., 3064., 3058., 3059., 3062.];
        let new = [3075., 3065., 3059., 3065., 3060., 3081., 3186., 3135., 3087., 3062.];
        let gob = RankSum::of(&old, &new);
        let [low, high] = gob.interval(0.05).unwrap();
        assert!(low < 0.0 && high > 0.0);
    }

    #[test]
    fn so_few_runs_can_tell_nothing() {
        for (n, p) in [(3, 0.1), (4, 0.028_571), (5, 0.007_937), (6, 0.002_165)] {
            let base: Vec<f64> = (0..n).map(f64::from).collect();
            let other: Vec<f64> = base.iter().map(|value| value + 100.0).collect();
            let ranks = RankSum::of(&base, &other);
            // Two-sided, the least chance that sets of so many values can have.
            assert_eq!([p - 1e-6, p + 1e-6].map(|level| ranks.interval(level).is_some()), [false, true], "{n}");
            assert_eq!(ranks.interval(0.05).is_some(), p <= 0.05, "{n}");
        }
        let one = RankSum::of(&[1.0], &[2.0]);
        assert_eq!((one.estimate(), one.interval(0.05)), (Some(1.0), None));
        assert_eq!(RankSum::of(&[], &[2.0]).estimate(), None);
    }
}
