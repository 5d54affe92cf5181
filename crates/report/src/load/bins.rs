//! Which bins a picture of a distribution needs so that it says something.
//!
//! Ten bins of equal width from the shortest to the longest put nearly all answers of a long tail in the first. Here
//! the body, from p1 to p90, has about eight: of equal width where it is narrow, of equal ratio where it is [`WIDE`].
//! The tail above has a few, and all borders but the two ends are round numbers.

use model::{Histogram, Nanos};

/// A body whose p90 is more than so many times its p1 gets bins of equal ratio.
const WIDE: u64 = 8;
/// Borders inside the body, at the most.
const BODY: usize = 8;
/// Borders in the tail, at the most.
const TAIL: usize = 4;

/// Round numbers, in tenths of a power of ten; the finest is taken that has few enough.
const LADDERS: [&[u64]; 4] = [&[10, 15, 20, 30, 50, 70], &[10, 20, 50], &[10, 30], &[10]];

/// A bin: above `from` (the first: from), up to and with `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bin {
    pub(crate) from: Nanos,
    pub(crate) to: Nanos,
    pub(crate) count: u64,
}

/// The bins of the distribution, rising; none where it is empty. A count may be wrong by the histogram's own
/// thousandth at a border.
pub(crate) fn of(times: &Histogram) -> Vec<Bin> {
    let (Some(min), Some(max)) = (times.min(), times.max()) else {
        return Vec::new();
    };
    let borders = borders(times);
    let mut from = min;
    let mut bins: Vec<Bin> = Vec::new();
    for to in borders.into_iter().filter(|border| *border > min && *border < max).chain([max]) {
        bins.push(Bin { from, to, count: 0 });
        from = to;
    }
    for (time, count) in times.buckets() {
        let at = bins.partition_point(|bin| bin.to < time).min(bins.len() - 1);
        bins[at].count += count;
    }
    bins
}

/// The round numbers between the bins, rising.
fn borders(times: &Histogram) -> Vec<Nanos> {
    let at = |q: f64| times.quantile(q).map_or(0, |time| time.0);
    let (low, high) = (at(0.01).max(1), at(0.90).max(1));
    let mut borders = if high / low >= WIDE { by_ratio(low, high) } else { by_width(low, high) };
    let body_end = borders.last().copied().unwrap_or(high);
    let longest = times.max().map_or(0, |max| max.0);
    let tail = |factors: &[u64]| -> Vec<u64> {
        ladder(factors).filter(|border| *border > body_end && *border < longest).collect()
    };
    let tail = LADDERS.into_iter().map(tail).find(|tail| tail.len() <= TAIL);
    borders.extend(tail.unwrap_or_default());
    borders.into_iter().map(Nanos).collect()
}

/// The multiples of the smallest round width that cover `low` to `high` with few enough.
fn by_width(low: u64, high: u64) -> Vec<u64> {
    let is_enough = |width: u64| (high / width).saturating_sub(low / width) <= BODY as u64;
    let width = ladder(&[10, 20, 25, 50]).find(|width| is_enough(*width)).unwrap_or(high);
    (low.div_ceil(width)..=high.div_ceil(width)).map(|times| times * width).collect()
}

/// The borders of the finest ladder that has few enough from `low` to `high`.
fn by_ratio(low: u64, high: u64) -> Vec<u64> {
    let within = |factors: &[u64]| -> Vec<u64> {
        let above = ladder(factors).find(|border| *border >= high).unwrap_or(high);
        ladder(factors).filter(|border| (low..=above).contains(border)).collect()
    };
    let few_enough = LADDERS.into_iter().map(within).find(|borders| borders.len() <= BODY + 1);
    few_enough.unwrap_or_else(|| within(&[10]))
}

/// Each of `factors`, in tenths, times each power of ten, in nanoseconds up to some hours.
fn ladder(factors: &[u64]) -> impl Iterator<Item = u64> {
    (0..14).flat_map(move |power| factors.iter().map(move |factor| factor * 10u64.pow(power) / 10)).filter(|n| *n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::pace::uniform;

    fn bins(micros: impl IntoIterator<Item = u64>) -> Vec<Bin> {
        let mut times = Histogram::default();
        for time in micros {
            times.record(Nanos::from_micros(time));
        }
        let bins = of(&times);
        assert_eq!(bins.iter().map(|bin| bin.count).sum::<u64>(), times.count());
        assert!(bins.len() <= BODY + TAIL + 3, "{} bins", bins.len());
        assert!(bins.windows(2).all(|pair| pair[0].to == pair[1].from && pair[0].to < pair[1].to));
        bins
    }

    /// The largest part of all that one bin holds.
    fn largest_part(bins: &[Bin]) -> f64 {
        let largest = bins.iter().map(|bin| bin.count).max().unwrap_or(0);
        largest as f64 / bins.iter().map(|bin| bin.count).sum::<u64>() as f64
    }

    #[test]
    fn nothing_has_no_bins_and_one_value_has_one() {
        assert_eq!(bins([]), []);
        assert_eq!(bins([200_000; 9]).len(), 1);
    }

    #[test]
    fn a_narrow_body_with_a_far_tail_is_not_one_bin() {
        // 200 to 216 ms, and one in a thousand up to 5 s.
        let bins = bins((0..10_000).map(|n| if n % 1000 == 7 { 500 * n } else { 200_000 + n * 16 / 10 }));
        assert!(largest_part(&bins) < 0.2, "{bins:?}");
    }

    #[test]
    fn a_body_over_three_decades_is_spread() {
        let bins = bins((0..10_000).map(|n| (100.0 * 1000f64.powf(uniform(1, n))) as u64));
        assert!(largest_part(&bins) < 0.25, "{bins:?}");
    }

    #[test]
    fn two_far_modes_are_both_seen() {
        let bins = bins((0..1000).map(|n| if n % 2 == 0 { 900 + n / 10 } else { 80_000 + n * 10 }));
        assert!(bins.len() >= 4 && largest_part(&bins) <= 0.5, "{bins:?}");
    }
}
