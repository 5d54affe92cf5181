//! Whether the response times of a run are of two kinds: a fast group, and a slow one far above it.
//!
//! The groups are found in the distribution and never presumed: it is cut where its logarithm has the most variance between the two
//! parts (Otsu, IEEE Trans. SMC 9 (1979) 62), and the cut counts only where few requests lie near it.

use serde::{Deserialize, Serialize};

use crate::{Histogram, Nanos};

/// Two groups of requests, far apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TwoGroups {
    /// Slower than this is slow.
    #[serde(rename = "cut_ns")]
    pub cut: Nanos,
    /// The share of the slow requests, 0 to 1.
    pub slow_share: f64,
    /// The mean of the others.
    #[serde(rename = "fast_mean_ns")]
    pub fast_mean: Nanos,
    /// The mean of the slow ones.
    #[serde(rename = "slow_mean_ns")]
    pub slow_mean: Nanos,
}

/// Fewer slow requests than this are no group.
const LEAST: u64 = 5;
/// The mean of the slow group is at least so many times that of the fast one.
const APART: f64 = 2.0;
/// The slow ones are so few at most, as a share: of more, the fast ones are the exception.
const FEW: f64 = 0.5;
/// Near the cut: within this factor of it.
const NEAR: f64 = 1.25;
/// At most this part of the smaller group may lie near the cut.
const BETWEEN: f64 = 0.25;

impl Histogram {
    /// The two groups of its times; `None` where they are of one kind.
    pub fn two_groups(&self) -> Option<TwoGroups> {
        let buckets: Vec<(f64, u64)> = self.buckets().map(|(time, n)| (time.0.max(1) as f64, n)).collect();
        let all: u64 = buckets.iter().map(|(_, n)| n).sum();
        let whole: f64 = buckets.iter().map(|(time, n)| time.ln() * *n as f64).sum();
        let (mut below, mut sum) = (0, 0.0);
        let mut best: Option<(usize, f64)> = None;
        for (at, (time, n)) in buckets.iter().enumerate().take(buckets.len().saturating_sub(1)) {
            below += n;
            sum += time.ln() * *n as f64;
            let (low, high) = (sum / below as f64, (whole - sum) / (all - below) as f64);
            let between = below as f64 * (all - below) as f64 * (high - low).powi(2);
            if best.is_none_or(|(_, most)| between > most) {
                best = Some((at, between));
            }
        }
        let (last, _) = best?;
        let (fast, slow) = buckets.split_at(last + 1);
        let count = |part: &[(f64, u64)]| part.iter().map(|(_, n)| n).sum::<u64>();
        let mean =
            |part: &[(f64, u64)]| part.iter().map(|(time, n)| time * *n as f64).sum::<f64>() / count(part) as f64;
        let (fast_mean, slow_mean) = (mean(fast), mean(slow));
        // The cut lies in the middle of the gap, on the scale of logarithms.
        let cut = (fast[last].0 * slow[0].0).sqrt();
        let near: u64 =
            buckets.iter().filter(|(time, _)| (cut / NEAR..=cut * NEAR).contains(time)).map(|(_, n)| n).sum();
        let smaller = count(fast).min(count(slow));
        let slow_share = count(slow) as f64 / all as f64;
        let is_few = count(slow) >= LEAST && slow_share <= FEW;
        let is_apart = slow_mean >= APART * fast_mean && near as f64 <= BETWEEN * smaller as f64;
        (is_few && is_apart).then_some(TwoGroups {
            cut: Nanos(cut as u64),
            slow_share,
            fast_mean: Nanos(fast_mean as u64),
            slow_mean: Nanos(slow_mean as u64),
        })
    }

    /// The share of its records above `time`, 0 to 1; 0 of none.
    pub(crate) fn share_above(&self, time: Nanos) -> f64 {
        let above: u64 = self.buckets().filter(|(edge, _)| *edge > time).map(|(_, n)| n).sum();
        above as f64 / (self.count() as f64).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::uniform;

    fn times(of: impl Fn(u64) -> f64) -> Histogram {
        let mut times = Histogram::default();
        (0..2000).for_each(|n| times.record(Nanos((of(n) * 1e6) as u64)));
        times
    }

    #[test]
    fn nine_of_ten_fast_and_the_tenth_far_slower_are_two_groups() {
        let times = times(|n| if n % 10 == 9 { 3000.0 + 400.0 * uniform(1, n) } else { 100.0 + uniform(2, n) });
        let groups = times.two_groups().unwrap();
        assert!((groups.slow_share - 0.1).abs() < 1e-9, "{groups:?}");
        assert!(
            groups.fast_mean.0.abs_diff(100_500_000) < 500_000
                && groups.slow_mean.0.abs_diff(3_200_000_000) < 20_000_000
        );
        assert!((times.share_above(groups.cut) - groups.slow_share).abs() < 1e-9);
    }

    #[test]
    fn one_kind_of_times_is_one_group_however_wide() {
        let named: [(&str, Histogram); 6] = [
            ("alike", times(|_| 100.0)),
            ("uniform from 100 to 1100 ms", times(|n| 100.0 + 1000.0 * uniform(1, n))),
            ("exponential", times(|n| -100.0 * (1.0 - uniform(1, n)).ln())),
            ("two values that are near each other", times(|n| if n % 2 == 0 { 100.0 } else { 180.0 })),
            ("one of ten faster than the others", times(|n| if n % 10 == 0 { 10.0 } else { 60.0 + uniform(1, n) })),
            ("four stragglers", times(|n| if n % 500 == 0 { 5000.0 } else { 100.0 + uniform(1, n) })),
        ];
        for (name, times) in named {
            assert_eq!(times.two_groups(), None, "{name}");
        }
        assert_eq!(Histogram::default().two_groups(), None);
    }
}
