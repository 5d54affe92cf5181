//! The distribution of the good answers' response times, drawn: which bins a picture needs so that it says something.
//!
//! Ten bins of equal width from the shortest to the longest put nearly all answers of a long tail in the first. Here
//! the body, from p1 to p90, has about eight: of equal width where it is narrow, of equal ratio where it is [`WIDE`].
//! The tail above has a few, and all borders but the two ends are round numbers.

use model::{Histogram, Nanos};

use crate::number;
use crate::tree::{DataTable, TableCell, TableRow};

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
struct TimeBin {
    from: Nanos,
    to: Nanos,
    count: u64,
}

/// The bins of the distribution, rising; none where it is empty. A count may be wrong by the histogram's own
/// thousandth at a border.
fn bins(times: &Histogram) -> Vec<TimeBin> {
    let (Some(min), Some(max)) = (times.min(), times.max()) else {
        return Vec::new();
    };
    let borders = borders(times);
    let mut from = min;
    let mut bins: Vec<TimeBin> = Vec::new();
    for to in borders.into_iter().filter(|border| *border > min && *border < max).chain([max]) {
        bins.push(TimeBin { from, to, count: 0 });
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

/// Borders, count, cumulative percent and a bar, a row a bin.
pub(crate) fn table(times: &Histogram) -> DataTable {
    let bins = bins(times);
    let total: u64 = bins.iter().map(|bin| bin.count).sum();
    let fullest = bins.iter().map(|bin| bin.count).max().unwrap_or(0).max(1);
    let decimals = decimals(&bins);
    let wider = wider_from(&bins);
    let mut rows = Vec::new();
    let mut so_far = 0;
    for (at, bin) in bins.iter().enumerate() {
        so_far += bin.count;
        if wider == Some(at) {
            rows.push(TableRow::new(["wider:"]));
        }
        // The two ends are no round numbers: outward, so that no answer seems to lie outside.
        let from = if at == 0 { outward(bin.from, decimals, f64::floor) } else { border(bin.from, decimals) };
        let to = if at + 1 == bins.len() { outward(bin.to, decimals, f64::ceil) } else { border(bin.to, decimals) };
        let up_to = TableCell::number(Some(so_far as f64 / total as f64), number::percent_up_to);
        let cells = [from.into(), to.into(), TableCell::count(bin.count), up_to];
        rows.push(TableRow::new(cells).barred(bin.count as f64 / fullest as f64));
    }
    DataTable { lead: 0, ..DataTable::new(["from, ms", "to", "answers", "% up to"], rows) }
}

/// The bin after four or more of equal width that is wider: from there on a longer bar need not mean a denser place.
fn wider_from(bins: &[TimeBin]) -> Option<usize> {
    let width = |at: usize| bins[at].to - bins[at].from;
    // The first and the last are cut off by the shortest and the longest.
    (5..bins.len()).find(|at| width(*at) > width(1)).filter(|at| (2..*at).all(|before| width(before) == width(1)))
}

/// The decimals in ms that the finest border needs.
fn decimals(bins: &[TimeBin]) -> usize {
    let needed = |border: Nanos| (0..6).find(|d| border.0.is_multiple_of(10u64.pow(6 - d))).unwrap_or(6) as usize;
    bins.iter().rev().skip(1).map(|bin| needed(bin.to)).max().unwrap_or(1)
}

fn border(border: Nanos, decimals: usize) -> String {
    number::fixed(border.as_millis_f64(), decimals)
}

fn outward(end: Nanos, decimals: usize, rounded: fn(f64) -> f64) -> String {
    let scale = f64::from(10u32.pow(decimals as u32));
    number::fixed(rounded(end.as_millis_f64() * scale) / scale, decimals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::pace::uniform;

    fn of_micros(micros: impl IntoIterator<Item = u64>) -> Vec<TimeBin> {
        let mut times = Histogram::default();
        for time in micros {
            times.record(Nanos::from_micros(time));
        }
        let bins = bins(&times);
        assert_eq!(bins.iter().map(|bin| bin.count).sum::<u64>(), times.count());
        assert!(bins.len() <= BODY + TAIL + 3, "{} bins", bins.len());
        assert!(bins.windows(2).all(|pair| pair[0].to == pair[1].from && pair[0].to < pair[1].to));
        bins
    }

    /// The largest part of all that one bin holds.
    fn largest_part(bins: &[TimeBin]) -> f64 {
        let largest = bins.iter().map(|bin| bin.count).max().unwrap_or(0);
        largest as f64 / bins.iter().map(|bin| bin.count).sum::<u64>() as f64
    }

    #[test]
    fn nothing_has_no_bins_and_one_value_has_one() {
        assert_eq!(of_micros([]), []);
        assert_eq!(of_micros([200_000; 9]).len(), 1);
    }

    #[test]
    fn a_narrow_body_with_a_far_tail_is_not_one_bin() {
        // 200 to 216 ms, and one in a thousand up to 5 s.
        let bins = of_micros((0..10_000).map(|n| if n % 1000 == 7 { 500 * n } else { 200_000 + n * 16 / 10 }));
        assert!(largest_part(&bins) < 0.2, "{bins:?}");
    }

    #[test]
    fn a_body_over_three_decades_is_spread() {
        let bins = of_micros((0..10_000).map(|n| (100.0 * 1000f64.powf(uniform(1, n))) as u64));
        assert!(largest_part(&bins) < 0.25, "{bins:?}");
    }

    #[test]
    fn two_far_modes_are_both_seen() {
        let bins = of_micros((0..1000).map(|n| if n % 2 == 0 { 900 + n / 10 } else { 80_000 + n * 10 }));
        assert!(bins.len() >= 4 && largest_part(&bins) <= 0.5, "{bins:?}");
    }

    #[test]
    fn the_ends_are_rounded_outward() {
        let mut times = Histogram::default();
        for micros in [100_900, 102_000, 102_000, 333_100] {
            times.record(Nanos::from_micros(micros));
        }
        let table = table(&times);
        let words = |row: &TableRow| row.cells.iter().map(|cell| cell.text.clone()).collect::<Vec<_>>();
        let (first, last) = (words(&table.rows[0]), words(table.rows.last().unwrap()));
        assert_eq!((first[0].as_str(), last[1].as_str(), last[3].as_str()), ("100", "334", "100"));
    }
}
