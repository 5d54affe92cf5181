//! Times that were counted into buckets inside the kernel: exact up to 127 ns, then 64 buckets to each power of two.
//!
//! Count and sum are exact. A quantile is the *highest* time of its bucket: never too low, and at most 1/64 (1.6 %) too high.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::histogram::rank;

/// Buckets to a power of two.
const PER_OCTAVE: u64 = 64;

/// A distribution of times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// How many.
    pub count: u64,
    /// Of all of them.
    #[serde(rename = "sum_ns")]
    pub sum: Nanos,
    /// The filled buckets, as (highest time of the bucket in ns, times in it), rising.
    pub buckets: Vec<(u64, u64)>,
}

impl Waits {
    /// Of a sum, and buckets by number with the times in each.
    pub fn of_buckets(sum: Nanos, buckets: &BTreeMap<u32, u64>) -> Waits {
        let buckets: Vec<(u64, u64)> = buckets.iter().map(|(bucket, n)| (top_of(*bucket), *n)).collect();
        Waits { count: buckets.iter().map(|(_, n)| n).sum(), sum, buckets }
    }

    /// The exact mean, rounded down to the nanosecond; `None` of no times.
    pub fn mean(&self) -> Option<Nanos> {
        self.sum.0.checked_div(self.count).map(Nanos)
    }

    /// The quantile `q` (0 to 1) by nearest rank; `None` of fewer times than it takes to have one above it.
    pub fn quantile(&self, q: f64) -> Option<Nanos> {
        if (self.count as f64) * (1.0 - q) < 1.0 - 1e-9 {
            return None;
        }
        let (rank, mut seen) = (rank(q, self.count), 0);
        for (top, n) in &self.buckets {
            seen += n;
            if seen >= rank {
                return Some(Nanos(*top));
            }
        }
        None
    }
}

/// The bucket of a time.
pub fn bucket_of(time: Nanos) -> u32 {
    let shift = (u64::BITS - time.0.leading_zeros()).saturating_sub(7);
    shift * PER_OCTAVE as u32 + (time.0 >> shift) as u32
}

/// The highest time of a bucket, in ns.
pub fn top_of(bucket: u32) -> u64 {
    let bucket = u64::from(bucket);
    let shift = (bucket / PER_OCTAVE).saturating_sub(1);
    let leading = u128::from(bucket - shift * PER_OCTAVE);
    u64::try_from(((leading + 1) << shift.min(64)) - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(times: &[u64]) -> Waits {
        let buckets = times.iter().fold(BTreeMap::new(), |mut buckets, time| {
            *buckets.entry(bucket_of(Nanos(*time))).or_insert(0) += 1;
            buckets
        });
        Waits::of_buckets(Nanos(times.iter().sum()), &buckets)
    }

    #[test]
    fn few_times_have_no_high_quantile_and_none_have_nothing() {
        let waits = of(&[10, 20, 30, 40]);
        assert_eq!((waits.mean(), waits.quantile(0.5)), (Some(Nanos(25)), Some(Nanos(20))));
        assert_eq!((waits.quantile(0.75), waits.quantile(0.9)), (Some(Nanos(30)), None));
        assert_eq!((Waits::default().mean(), Waits::default().quantile(0.5)), (None, None));
    }

    #[test]
    fn the_longest_time_has_a_bucket() {
        assert_eq!(top_of(bucket_of(Nanos::MAX)), u64::MAX);
        assert_eq!(top_of(u32::from(u16::MAX)), u64::MAX);
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_times_and_is_narrow(bits in 0u32..64, noise in any::<u64>()) {
            let time = noise >> bits;
            let bucket = bucket_of(Nanos(time));
            let top = top_of(bucket);
            prop_assert!(top >= time && (top - time) as f64 <= time as f64 / 64.0, "{time} in {bucket} up to {top}");
            prop_assert!(bucket == 0 || top_of(bucket - 1) < time);
        }

        #[test]
        fn a_quantile_is_never_low_and_little_high(mut times in prop::collection::vec(1u64..1_000_000_000_000, 1..300), q in 0.0f64..1.0) {
            let waits = of(&times);
            times.sort_unstable();
            if let Some(read) = waits.quantile(q) {
                let exact = times[rank(q, times.len() as u64) as usize - 1];
                prop_assert!(read.0 >= exact && read.0 - exact <= exact / 64, "{} for {}", read.0, exact);
            }
        }
    }
}
