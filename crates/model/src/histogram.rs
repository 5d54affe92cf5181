//! A distribution of times: buckets for the quantiles, and the exact minimum, maximum and sum.
//!
//! The buckets are those of `HdrHistogram` at three significant digits: at most 0.1 % wide, and a
//! quantile is the *highest* time of its bucket, so it may read up to 0.1 % too high and never too
//! low. Smallest, largest and mean are exact. We record with code of our own, because a lane does
//! it half a dozen times per request: it takes about fifteen instructions, a quarter of the crate's
//! (a test compares the two).

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::Nanos;

/// Each power of two from 2^11 ns on is divided into 2^10 buckets; below, each nanosecond has one.
const CUTS: u32 = 10;
/// The longest time with its own bucket, 1 h. Longer ones are counted in the last bucket (the
/// maximum stays exact).
const LONGEST: u64 = 3_600_000_000_000;
/// Buckets for all times up to [`LONGEST`].
pub(crate) const BUCKETS: usize = bucket(LONGEST) + 1;

/// Buckets that are summed at a time when searching.
const BLOCK: usize = 64;

/// The bucket of a time; beyond the last one if it is longer than [`LONGEST`].
#[inline]
const fn bucket(time: u64) -> usize {
    let magnitude = (time | 1 << CUTS).ilog2() - CUTS;
    ((magnitude as usize) << CUTS) + (time >> magnitude) as usize
}

/// The bucket that counts a time: the last one if it is longer than [`LONGEST`].
#[inline]
fn place(time: u64) -> usize {
    bucket(time).min(BUCKETS - 1)
}

/// The bucket of a time, for recording it in several histograms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketIndex(pub(crate) usize);

impl BucketIndex {
    /// The bucket of a time.
    #[inline]
    pub fn of(time: Nanos) -> BucketIndex {
        BucketIndex(place(time.0))
    }
}

/// The lowest and the highest time of a bucket.
pub(crate) fn times_of(bucket: usize) -> (u64, u64) {
    let magnitude = (bucket >> CUTS).saturating_sub(1);
    let place = (bucket - (magnitude << CUTS)) as u64;
    (place << magnitude, ((place + 1) << magnitude) - 1)
}

/// A distribution of times in nanoseconds. Recording never allocates once there is
/// [room](Histogram::make_room). An empty histogram has no buckets, so that a file with thousands
/// of runs without times doesn't fill the memory.
#[derive(Deserialize)]
#[serde(from = "StoredHistogram")]
pub struct Histogram {
    /// The count of each bucket; empty before the first record.
    counts: Box<[u64]>,
    count: u64,
    min: u64,
    max: u64,
    sum: u128,
}

/// Compares the records, not the room for more.
impl PartialEq for Histogram {
    fn eq(&self, other: &Histogram) -> bool {
        let key = |it: &Histogram| (it.count, it.min, it.max, it.sum);
        key(self) == key(other) && self.filled().eq(other.filled())
    }
}

/// Copies only the filled buckets. Not touching the pages of the others halves the time of a run
/// with one request.
impl Clone for Histogram {
    fn clone(&self) -> Histogram {
        let mut copy = Histogram::default();
        copy.merge(self);
        copy
    }
}

/// Without the thousands of empty buckets.
impl fmt::Debug for Histogram {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        StoredHistogram::from(self).fmt(out)
    }
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        StoredHistogram::from(self).serialize(serializer)
    }
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: Box::default(), count: 0, min: u64::MAX, max: 0, sum: 0 }
    }
}

impl Histogram {
    /// Allocates all buckets, so that recording doesn't have to.
    pub fn make_room(&mut self) {
        if self.counts.is_empty() {
            self.counts = vec![0; BUCKETS].into_boxed_slice();
        }
    }

    /// Counts the very first time, or one beyond the last bucket.
    #[cold]
    fn count_without_room(&mut self, place: BucketIndex) {
        self.make_room();
        self.counts[place.0.min(BUCKETS - 1)] += 1;
    }

    /// Records one time.
    #[inline]
    pub fn record(&mut self, time: Nanos) {
        self.record_at(BucketIndex::of(time), time);
    }

    /// Like [`Histogram::record`], for a time whose bucket is known.
    #[inline]
    pub(crate) fn record_at(&mut self, place: BucketIndex, time: Nanos) {
        match self.counts.get_mut(place.0) {
            Some(count) => *count += 1,
            None => self.count_without_room(place),
        }
        self.count += 1;
        // Rarely true, so a branch is cheaper than a store each time.
        if time.0 < self.min {
            self.min = time.0;
        }
        if time.0 > self.max {
            self.max = time.0;
        }
        self.sum += u128::from(time.0);
    }

    /// How many times were recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The exact minimum; `None` if empty.
    pub fn min(&self) -> Option<Nanos> {
        (self.count() > 0).then_some(Nanos(self.min))
    }

    /// The exact maximum; `None` if empty.
    pub fn max(&self) -> Option<Nanos> {
        (self.count() > 0).then_some(Nanos(self.max))
    }

    /// The exact mean, rounded down to the nanosecond; `None` if empty.
    pub fn mean(&self) -> Option<Nanos> {
        // (It is at most the maximum.)
        self.sum.checked_div(u128::from(self.count)).map(|mean| Nanos(mean as u64))
    }

    /// The exact sum, at most [`Nanos::MAX`] (584 years).
    pub fn sum(&self) -> Nanos {
        u64::try_from(self.sum).map_or(Nanos::MAX, Nanos)
    }

    /// Its exact figures.
    pub fn summary(&self) -> DurationSummary {
        DurationSummary {
            count: self.count,
            sum: self.sum(),
            min: Nanos(self.min),
            max: Nanos(self.max),
        }
    }

    /// The standard deviation (of the population), from the buckets: within 0.1 %. `None` if empty.
    pub fn standard_deviation(&self) -> Option<Nanos> {
        let middles = || self.filled().map(|(bucket, n)| (middle(bucket), n as f64));
        let count = self.count as f64;
        let mean = middles().map(|(time, n)| time * n).sum::<f64>() / count;
        let squares: f64 = middles().map(|(time, n)| (time - mean).powi(2) * n).sum();
        (self.count > 0).then(|| Nanos((squares / count).sqrt().round() as u64))
    }

    /// Mean and standard deviation of the times, with longer ones counted as `cap`; from the
    /// buckets, within 0.1 %.
    pub(crate) fn capped_moments(&self, cap: Nanos) -> CappedMoments {
        let count = (self.count as f64).max(1.0);
        let capped =
            || self.filled().map(|(bucket, n)| (middle(bucket).min(cap.0 as f64), n as f64));
        let mean = capped().map(|(time, n)| time * n).sum::<f64>() / count;
        let squares: f64 = capped().map(|(time, n)| (time - mean).powi(2) * n).sum();
        CappedMoments { mean, deviation: (squares / count).sqrt() }
    }

    /// The time with `rank` records at or below it, by nearest rank (1-based), up to 0.1 % high and
    /// never above the exact maximum; `None` if there are fewer records.
    pub fn at_rank(&self, rank: u64) -> Option<Nanos> {
        if rank == 0 || rank > self.count {
            return None;
        }
        let first = place(self.min);
        let mut seen = 0;
        for (n, block) in self.counts[first..=place(self.max)].chunks(BLOCK).enumerate() {
            // Skip whole blocks first, because most buckets are empty.
            let in_block: u64 = block.iter().sum();
            if seen + in_block < rank {
                seen += in_block;
                continue;
            }
            let within = block.iter().position(|count| {
                seen += count;
                seen >= rank
            })?;
            let (_, highest) = times_of(first + n * BLOCK + within);
            return Some(Nanos(highest.clamp(self.min, self.max)));
        }
        None
    }

    /// The quantile `q` (0 to 1) by nearest rank: [`Histogram::at_rank`] of `⌈q·n⌉`.
    pub fn quantile(&self, q: f64) -> Option<Nanos> {
        self.at_rank(rank(q, self.count()))
    }

    /// Adds all records of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count > 0 {
            self.make_room();
        }
        for (bucket, n) in other.filled() {
            self.counts[bucket] += n;
        }
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
    }

    /// The highest time in the bucket of `time`, at most 0.1 % above it. Records up to this edge
    /// can be counted exactly.
    pub fn edge(time: Nanos) -> Nanos {
        Nanos(times_of(place(time.0)).1)
    }

    /// The filled buckets, as (highest time of the bucket, records in it), rising.
    pub fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        self.filled().map(|(bucket, n)| (Nanos(times_of(bucket).1), n))
    }

    /// The filled buckets and their records, rising.
    fn filled(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let (first, last) =
            if self.count == 0 { (0, 0) } else { (place(self.min), place(self.max) + 1) };
        (first..last)
            .zip(&self.counts[first..last])
            .map(|(place, n)| (place, *n))
            .filter(|(_, n)| *n > 0)
    }
}

/// Mean and standard deviation of capped times, in ns.
pub(crate) struct CappedMoments {
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
}

/// The middle of a bucket, in ns.
fn middle(bucket: usize) -> f64 {
    let (low, high) = times_of(bucket);
    (low + (high - low).div_ceil(2)) as f64
}

/// The nearest rank of quantile `q` among `n`: `⌈q·n⌉`, at least 1.
///
/// A product that only floating point lifts above a whole number (0.9 · 10 = 9.000000000000002)
/// counts as that number.
pub fn rank(q: f64, n: u64) -> u64 {
    let exact = q * n as f64;
    let nearest = exact.round();
    let rank = if (exact - nearest).abs() < 1e-9 * exact.max(1.0) { nearest } else { exact.ceil() };
    (rank as u64).max(1)
}

/// Count, sum and extremes of times. Exact; recording never allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurationSummary {
    /// How many.
    pub count: u64,
    /// Sum, in ns.
    #[serde(rename = "sum_ns")]
    pub sum: Nanos,
    /// The shortest; [`Nanos::MAX`] if there are none.
    #[serde(rename = "min_ns", with = "crate::units::never_is_null")]
    pub min: Nanos,
    /// The longest.
    #[serde(rename = "max_ns")]
    pub max: Nanos,
}

impl Default for DurationSummary {
    fn default() -> DurationSummary {
        DurationSummary { count: 0, sum: Nanos::ZERO, min: Nanos::MAX, max: Nanos::ZERO }
    }
}

impl DurationSummary {
    /// Adds one time.
    #[inline]
    pub fn record(&mut self, time: Nanos) {
        self.count += 1;
        self.sum = self.sum.saturating_add(time);
        // Rarely true, so a branch is cheaper than a store each time.
        if time < self.min {
            self.min = time;
        }
        if time > self.max {
            self.max = time;
        }
    }

    /// Adds this many times of 0.
    pub fn record_zeros(&mut self, count: u64) {
        self.count += count;
        self.min = if count > 0 { Nanos::ZERO } else { self.min };
    }

    /// The mean, rounded down; `None` without times.
    pub fn mean(&self) -> Option<Nanos> {
        self.sum.0.checked_div(self.count).map(Nanos)
    }

    /// Adds another lane's.
    pub fn merge(&mut self, other: &DurationSummary) {
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

/// A histogram in a file: the filled buckets and the exact figures.
#[derive(Debug, Serialize, Deserialize)]
struct StoredHistogram {
    count: u64,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u64,
    /// (highest time of the bucket in ns, records in it)
    buckets: Vec<(u64, u64)>,
}

impl From<&Histogram> for StoredHistogram {
    fn from(histogram: &Histogram) -> StoredHistogram {
        let empty = histogram.count() == 0;
        StoredHistogram {
            count: histogram.count(),
            min_ns: if empty { 0 } else { histogram.min },
            max_ns: histogram.max,
            sum_ns: histogram.sum().0,
            buckets: histogram.buckets().map(|(time, n)| (time.0, n)).collect(),
        }
    }
}

impl From<StoredHistogram> for Histogram {
    fn from(stored: StoredHistogram) -> Histogram {
        let mut histogram = Histogram::default();
        let lowest = stored.buckets.first().map_or(u64::MAX, |(time, _)| *time);
        let highest = stored.buckets.last().map_or(0, |(time, _)| times_of(place(*time)).0);
        if !stored.buckets.is_empty() {
            histogram.make_room();
        }
        for (time, n) in stored.buckets {
            // A file may contain anything.
            let count = &mut histogram.counts[place(time)];
            *count = count.saturating_add(n);
            histogram.count = histogram.count.saturating_add(n);
        }
        histogram.min = if stored.count == 0 { u64::MAX } else { stored.min_ns };
        // A file may have buckets outside its extremes only by mistake; they are shown anyway.
        if place(histogram.min) > place(lowest) {
            histogram.min = lowest;
        }
        histogram.max = stored.max_ns.max(highest);
        histogram.sum = u128::from(stored.sum_ns);
        histogram
    }
}

/// Two groups of requests whose times are far apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TwoGroups {
    /// Requests slower than this are slow.
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

/// Fewer slow requests than this are not a group.
const LEAST_SLOW: u64 = 5;
/// The mean of the slow group must be at least this many times that of the fast one.
const APART: f64 = 2.0;
/// At most this share may be slow; otherwise the fast ones are the exception.
const MOST_SLOW: f64 = 0.5;
/// Times within this factor of the cut are near it.
const NEAR: f64 = 1.25;
/// At most this share of the smaller group may be near the cut.
const MOST_NEAR: f64 = 0.25;

impl Histogram {
    /// The two groups of its times; `None` if there is only one. The cut between them is the one
    /// with the largest variance between the groups (Otsu's method), in logarithms of the times.
    pub fn two_groups(&self) -> Option<TwoGroups> {
        let buckets: Vec<(f64, u64)> =
            self.buckets().map(|(time, n)| (time.0.max(1) as f64, n)).collect();
        let all: u64 = buckets.iter().map(|(_, n)| n).sum();
        let whole: f64 = buckets.iter().map(|(time, n)| time.ln() * *n as f64).sum();
        let mut below = 0;
        let mut sum = 0.0;
        let mut best: Option<(usize, f64)> = None;
        for (at, (time, n)) in buckets.iter().enumerate().take(buckets.len().saturating_sub(1)) {
            below += n;
            sum += time.ln() * *n as f64;
            let low = sum / below as f64;
            let high = (whole - sum) / (all - below) as f64;
            let between = below as f64 * (all - below) as f64 * (high - low).powi(2);
            if best.is_none_or(|(_, most)| between > most) {
                best = Some((at, between));
            }
        }
        let (last, _) = best?;
        let (fast, slow) = buckets.split_at(last + 1);
        let count = |part: &[(f64, u64)]| part.iter().map(|(_, n)| n).sum::<u64>();
        let mean = |part: &[(f64, u64)]| {
            part.iter().map(|(time, n)| time * *n as f64).sum::<f64>() / count(part) as f64
        };
        let fast_mean = mean(fast);
        let slow_mean = mean(slow);
        // The cut is in the middle of the gap, on a logarithmic scale.
        let cut = (fast[last].0 * slow[0].0).sqrt();
        let near: u64 = buckets
            .iter()
            .filter(|(time, _)| (cut / NEAR..=cut * NEAR).contains(time))
            .map(|(_, n)| n)
            .sum();
        let smaller = count(fast).min(count(slow));
        let slow_share = count(slow) as f64 / all as f64;
        let is_few = count(slow) >= LEAST_SLOW && slow_share <= MOST_SLOW;
        let is_apart = slow_mean >= APART * fast_mean && near as f64 <= MOST_NEAR * smaller as f64;
        (is_few && is_apart).then_some(TwoGroups {
            cut: Nanos(cut as u64),
            slow_share,
            fast_mean: Nanos(fast_mean as u64),
            slow_mean: Nanos(slow_mean as u64),
        })
    }

    /// The share of its records above `time`, 0 to 1; 0 if empty.
    pub fn share_above(&self, time: Nanos) -> f64 {
        let above: u64 = self.buckets().filter(|(edge, _)| *edge > time).map(|(_, n)| n).sum();
        above as f64 / (self.count() as f64).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::uniform;
    use proptest::prelude::*;

    fn of(times: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        for time in times {
            histogram.record(Nanos(*time));
        }
        histogram
    }

    #[test]
    fn the_extremes_are_exact_and_survive_their_file() {
        let empty = Histogram::default();
        assert_eq!(
            (empty.min(), empty.max(), empty.mean(), empty.quantile(0.5)),
            (None, None, None, None)
        );
        // HdrHistogram itself would report 1 401 855 µs for this one.
        let one = of(&[1_401_000_000]);
        let largest = Some(Nanos(1_401_000_000));
        assert_eq!((one.max(), one.quantile(1.0)), (largest, largest));
        // Times beyond the last bucket are counted in it, but the extremes are exact anyway.
        let time = 3_601_330_077_696;
        let read = Histogram::from(StoredHistogram::from(&of(&[time, u64::MAX / 4])));
        assert_eq!((read.min(), read.max()), (Some(Nanos(time)), Some(Nanos(u64::MAX / 4))));
        assert_eq!(read, of(&[time, u64::MAX / 4]));
    }

    #[test]
    fn quantiles_are_nearest_rank() {
        let histogram = of(&[1, 2, 2, 2, 2]);
        assert_eq!([0.2, 0.25].map(|q| histogram.quantile(q)), [Some(Nanos(1)), Some(Nanos(2))]);
        assert_eq!((rank(0.9, 10), rank(0.99, 100), rank(0.0, 100)), (9, 99, 1));
    }

    #[test]
    fn percentiles_are_merged_never_averaged() {
        let mut a = of(&[vec![1; 990], vec![2; 10]].concat());
        let b = of(&[vec![10; 90], vec![100; 10]].concat());
        assert_eq!((a.quantile(0.99), b.quantile(0.99)), (Some(Nanos(1)), Some(Nanos(100))));
        a.merge(&b);
        assert_eq!(a.quantile(0.99), Some(Nanos(10)));
    }

    proptest! {
        #[test]
        fn the_buckets_are_those_of_hdrhistogram(
            times in prop::collection::vec(prop_oneof![0u64..5_000, 0u64..5_000_000, any::<u64>()], 1..300),
        ) {
            let mut theirs = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
            for time in &times {
                theirs.saturating_record(*time);
            }
            let ours = of(&times);
            let expected: Vec<_> =
                theirs.iter_recorded().map(|b| (Nanos(b.value_iterated_to()), b.count_since_last_iteration())).collect();
            prop_assert_eq!(ours.buckets().collect::<Vec<_>>(), expected);
            let deviation = ours.standard_deviation().unwrap().0 as f64;
            let their_deviation = theirs.stdev();
            prop_assert!((deviation - their_deviation).abs() <= 1.0 + 1e-9 * their_deviation, "{} {}", deviation, their_deviation);
        }

        #[test]
        fn a_quantile_is_never_low_and_at_most_a_thousandth_high(
            mut times in prop::collection::vec(1u64..3_000_000_000_000, 1..300), q in 0.0f64..=1.0,
        ) {
            let histogram = of(&times);
            times.sort_unstable();
            let exact = times[rank(q, times.len() as u64) as usize - 1];
            let read = histogram.quantile(q).unwrap().0;
            prop_assert!(read >= exact && read as f64 <= exact as f64 * 1.001 + 1.0, "{} for {}", read, exact);
        }
    }

    fn times(of: impl Fn(u64) -> f64) -> Histogram {
        let mut times = Histogram::default();
        (0..2000).for_each(|n| times.record(Nanos((of(n) * 1e6) as u64)));
        times
    }

    #[test]
    fn nine_of_ten_fast_and_the_tenth_far_slower_are_two_groups() {
        let times =
            times(
                |n| {
                    if n % 10 == 9 { 3000.0 + 400.0 * uniform(1, n) } else { 100.0 + uniform(2, n) }
                },
            );
        let groups = times.two_groups().unwrap();
        assert!((groups.slow_share - 0.1).abs() < 1e-9, "{groups:?}");
        let means = [groups.fast_mean, groups.slow_mean].map(Nanos::as_millis_f64);
        assert!((means[0] - 100.5).abs() < 0.5 && (means[1] - 3200.0).abs() < 20.0, "{groups:?}");
        assert!((times.share_above(groups.cut) - groups.slow_share).abs() < 1e-9);
    }

    #[test]
    fn one_kind_of_times_is_one_group_however_wide() {
        let named: [(&str, Histogram); 6] = [
            ("alike", times(|_| 100.0)),
            ("uniform from 100 to 1100 ms", times(|n| 100.0 + 1000.0 * uniform(1, n))),
            ("exponential", times(|n| -100.0 * (1.0 - uniform(1, n)).ln())),
            ("two values close together", times(|n| if n % 2 == 0 { 100.0 } else { 180.0 })),
            (
                "one of ten faster than the others",
                times(|n| if n % 10 == 0 { 10.0 } else { 60.0 + uniform(1, n) }),
            ),
            (
                "four stragglers",
                times(|n| if n % 500 == 0 { 5000.0 } else { 100.0 + uniform(1, n) }),
            ),
        ];
        for (name, times) in named {
            assert_eq!(times.two_groups(), None, "{name}");
        }
        assert_eq!(Histogram::default().two_groups(), None);
    }
}
