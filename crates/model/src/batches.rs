//! What happened in each part of a run: the good responses by when they were due, in about a
//! hundred batches of equal length.
//!
//! Requests that are close in time share a queue, so they are not independent samples. The
//! differences between batches show how much less a run knows than its number of responses suggests
//! (see [`crate::statistics`]). Recording takes a handful of instructions and, once warm, allocates
//! nothing. A study doesn't keep the batches, only what is derived from them, such as a map of
//! response time over due time with a few hundred cells.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::batch_width::{BatchWidth, MOST};
use crate::histogram::{self, BucketIndex};
use crate::{Nanos, Window};

/// A bucket combines this many buckets of the histograms: at most 3.1 % wide, or 32 ns.
const NEIGHBOURS: usize = 32;
const BUCKETS: usize = histogram::BUCKETS.div_ceil(NEIGHBOURS);

/// Good responses whose requests were due within one batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// How many.
    pub answers: u64,
    /// Sum of their response times, in ns.
    pub response_time_sum: u128,
    /// Sum of the generator's own lag, in ns.
    pub lag_sum: u128,
}

impl Batch {
    fn with(self, other: Batch) -> Batch {
        Batch {
            answers: self.answers + other.answers,
            response_time_sum: self.response_time_sum + other.response_time_sum,
            lag_sum: self.lag_sum + other.lag_sum,
        }
    }
}

/// The batches of a run, or of one lane's part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batches {
    from: Nanos,
    width: BatchWidth,
    all: Vec<Batch>,
    /// The batch of the last response; the next one is usually in the same.
    last: usize,
    /// The buckets of the first batch, then those of the second, and so on, in one allocation whose
    /// pages are not touched before they are used.
    #[serde(with = "filled_buckets")]
    buckets: Box<[u32]>,
}

/// The serialized form, sent between generators: the non-empty buckets, each with its index.
mod filled_buckets {
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    use super::{BUCKETS, MOST};

    pub(super) fn serialize<S: Serializer>(buckets: &[u32], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(buckets.iter().enumerate().filter(|(_, count)| **count > 0))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Box<[u32]>, D::Error> {
        let mut buckets = vec![0; MOST * BUCKETS];
        for (place, count) in Vec::<(usize, u32)>::deserialize(from)? {
            *buckets
                .get_mut(place)
                .ok_or_else(|| de::Error::custom("a bucket after the last one"))? = count;
        }
        Ok(buckets.into())
    }
}

/// In which buckets a quantile is in parts of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct QuantileRange {
    /// Where the lowest begins.
    pub(crate) least: Nanos,
    /// Where the highest ends.
    pub(crate) most: Nanos,
    /// From the beginning of the lowest to that of the highest: 0 if it is the same bucket.
    pub(crate) moved: Nanos,
}

impl Batches {
    /// For a run with this measured window.
    pub fn new(window: Window) -> Batches {
        let width = BatchWidth::new(window);
        let all = vec![Batch::default(); MOST];
        let buckets = vec![0; MOST * BUCKETS].into();
        Batches { from: window.from, width, all, last: 0, buckets }
    }

    /// Records a good response. `due`: when its request was due, within the window; `lag`: the
    /// generator's own lag.
    #[inline]
    pub fn record(&mut self, due: Nanos, response_time: Nanos, lag: Nanos) {
        self.record_at(BucketIndex::of(response_time), due, response_time, lag);
    }

    /// Like [`Batches::record`], if the bucket of the response time is known.
    #[inline]
    pub fn record_at(&mut self, place: BucketIndex, due: Nanos, response_time: Nanos, lag: Nanos) {
        let since = due.saturating_sub(self.from).0;
        // (If it wraps around, it was before the last batch, and is larger than any width.)
        if since.wrapping_sub(self.last as u64 * self.width.now().0) >= self.width.now().0
            && !self.find(since)
        {
            return;
        }
        let batch = &mut self.all[self.last];
        batch.answers += 1;
        batch.response_time_sum += u128::from(response_time.0);
        batch.lag_sum += u128::from(lag.0);
        self.buckets[self.last * BUCKETS + bucket(place)] += 1;
    }

    /// Selects the batch of a time since the start; `false` if there is none.
    fn find(&mut self, since: u64) -> bool {
        while since / self.width.now().0 >= MOST as u64 {
            if !self.width.can_double() {
                return false;
            }
            self.double();
        }
        self.last = (since / self.width.now().0) as usize;
        true
    }

    /// Merges pairs of neighbours, which makes room for as many again.
    #[cold]
    fn double(&mut self) {
        for at in 0..MOST / 2 {
            self.all[at] = self.all[2 * at].with(self.all[2 * at + 1]);
            for bucket in 0..BUCKETS {
                let first = 2 * at * BUCKETS + bucket;
                self.buckets[at * BUCKETS + bucket] =
                    self.buckets[first] + self.buckets[first + BUCKETS];
            }
        }
        self.all[MOST / 2..].fill(Batch::default());
        self.buckets[MOST / 2 * BUCKETS..].fill(0);
        self.width.double();
        self.last /= 2;
    }

    /// Adds another lane's batches of the same run.
    pub fn merge(&mut self, mut other: Batches) {
        while self.width.now() < other.width.now() && self.width.can_double() {
            self.double();
        }
        while other.width.now() < self.width.now() && other.width.can_double() {
            other.double();
        }
        self.all.iter_mut().zip(&other.all).for_each(|(mine, theirs)| *mine = mine.with(*theirs));
        let filled = other.filled().len() * BUCKETS;
        self.buckets
            .iter_mut()
            .zip(&other.buckets[..filled])
            .for_each(|(mine, theirs)| *mine += theirs);
    }

    /// Whether they fit a run with this measured window; another process may have written anything.
    pub fn is_of(&self, window: Window) -> bool {
        let new = Batches::new(window);
        self.width.is_of(window)
            && self.from == new.from
            && (self.all.len(), self.buckets.len()) == (new.all.len(), new.buckets.len())
            && self.last < MOST
    }

    /// The batches up to the last that has a response, in order of time.
    pub fn filled(&self) -> &[Batch] {
        let filled =
            self.all.iter().rposition(|batch| batch.answers > 0).map_or(0, |last| last + 1);
        &self.all[..filled]
    }

    /// The length of one batch.
    pub fn width(&self) -> Nanos {
        self.width.now()
    }

    /// The response times of each of the batches that are [filled](Batches::filled).
    fn filled_buckets(&self) -> impl Iterator<Item = &[u32]> + Clone {
        self.buckets.chunks(BUCKETS).take(self.filled().len())
    }

    /// From the first non-empty bucket to the one after the last; `None` if all are empty.
    fn bucket_range(&self) -> Option<Range<usize>> {
        let batches = self.filled_buckets();
        let has_any = |bucket: &usize| batches.clone().any(|buckets| buckets[*bucket] > 0);
        Some((0..BUCKETS).find(has_any)?..(0..BUCKETS).rfind(has_any)? + 1)
    }

    /// The shortest time of a bucket.
    fn shortest_of(bucket: usize) -> Nanos {
        Nanos(histogram::times_of(bucket * NEIGHBOURS).0)
    }

    /// The lowest and the highest bucket in which the quantile `q` is in any of about `parts` parts of the
    /// run; `None` if a part has fewer than `each_side` responses above it, or below.
    pub(crate) fn range_of_quantile(
        &self,
        q: f64,
        parts: usize,
        each_side: u64,
    ) -> Option<QuantileRange> {
        let all: Vec<&[u32]> = self.filled_buckets().collect();
        let mut lowest = usize::MAX;
        let mut highest = 0;
        for part in all.chunks(all.len().div_ceil(parts).max(1)) {
            let count =
                |bucket: usize| part.iter().map(|batch| u64::from(batch[bucket])).sum::<u64>();
            let responses: u64 = part.iter().map(|batch| answers_in(batch)).sum();
            let rank = histogram::rank(q, responses);
            if rank < each_side || responses - rank < each_side {
                return None;
            }
            let mut below = 0;
            let bucket = (0..BUCKETS).find(|bucket| {
                below += count(*bucket);
                below >= rank
            })?;
            lowest = lowest.min(bucket);
            highest = highest.max(bucket);
        }
        (lowest <= highest).then(|| QuantileRange {
            least: Batches::shortest_of(lowest),
            most: Batches::shortest_of(highest + 1),
            moved: Batches::shortest_of(highest).saturating_sub(Batches::shortest_of(lowest)),
        })
    }

    /// For each batch of [`Batches::filled`]: its responses, and how many of them were slower than
    /// about the quantile `q` of all. The threshold is the edge of a bucket that leaves about `1 -
    /// q` above it; `None` if no edge has responses on both sides.
    pub fn above(&self, q: f64) -> Option<Vec<(u64, u64)>> {
        let mut totals = vec![0_u64; BUCKETS];
        for buckets in self.filled_buckets() {
            totals.iter_mut().zip(buckets).for_each(|(total, n)| *total += u64::from(*n));
        }
        let all: u64 = totals.iter().sum();
        let log_odds = |p: f64| (p / (1.0 - p)).ln();
        let mut below = 0_u64;
        let mut nearest: Option<(usize, f64)> = None;
        for (edge, n) in totals.iter().enumerate() {
            below += n;
            if below == 0 || below == all {
                continue;
            }
            let distance = (log_odds(below as f64 / all as f64) - log_odds(q)).abs();
            if nearest.is_none_or(|(_, least)| distance < least) {
                nearest = Some((edge, distance));
            }
        }
        let (edge, _) = nearest?;
        let batches = self.filled().iter().zip(self.filled_buckets());
        Some(
            batches
                .map(|(batch, buckets)| (batch.answers, answers_in(&buckets[edge + 1..])))
                .collect(),
        )
    }
}

fn answers_in(buckets: &[u32]) -> u64 {
    buckets.iter().map(|n| u64::from(*n)).sum()
}

/// The bucket of times with this index in a histogram.
#[inline]
fn bucket(place: BucketIndex) -> usize {
    place.0 / NEIGHBOURS
}

/// The most columns and rows: 384 cells.
const COLUMNS: usize = 32;
const ROWS: usize = 12;

/// A map of the good responses, by response time and by when their requests were due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseTimeMap {
    /// The length of one column.
    #[serde(rename = "column_ns")]
    pub column: Nanos,
    /// Edges of the rows, rising. A row counts times from its lower edge up to, but not including,
    /// its upper one.
    #[serde(rename = "edges_ns")]
    pub edges: Vec<Nanos>,
    /// For each column since the start of the window, the number of responses in each row, the
    /// shortest times first.
    pub counts: Vec<Vec<u64>>,
}

impl ResponseTimeMap {
    /// The map of a run with these batches; `None` if they have no response.
    pub fn of(batches: &Batches) -> Option<ResponseTimeMap> {
        const EACH: usize = MOST.div_ceil(COLUMNS);
        let buckets = batches.bucket_range()?;
        let rows = buckets.len().min(ROWS);
        let edges: Vec<usize> =
            (0..=rows).map(|row| buckets.start + row * buckets.len() / rows).collect();
        let all: Vec<&[u32]> = batches.filled_buckets().collect();
        let of_row = |column: &[&[u32]], row: &[usize]| {
            column.iter().map(|b| answers_in(&b[row[0]..row[1]])).sum()
        };
        let of_column =
            |column: &[&[u32]]| edges.windows(2).map(|row| of_row(column, row)).collect();
        Some(ResponseTimeMap {
            column: Nanos(batches.width().0 * EACH as u64),
            counts: all.chunks(EACH).map(of_column).collect(),
            edges: edges.into_iter().map(Batches::shortest_of).collect(),
        })
    }

    /// The most responses in one cell.
    pub fn most(&self) -> u64 {
        self.counts.iter().flatten().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WINDOW: Window = Window { from: Nanos(1_000), until: Nanos(3_000_001_000) };
    const ENDLESS: Window = Window { until: Nanos::MAX, ..WINDOW };

    fn of(window: Window, all: &[(u64, u64)]) -> Batches {
        let mut batches = Batches::new(window);
        for (due, time) in all {
            batches.record(window.from + Nanos(*due), Nanos(*time), Nanos(7));
        }
        batches
    }

    #[test]
    fn buckets_rise_with_the_time_and_are_narrow() {
        let mut last = 0;
        for time in (0..4_000)
            .chain((12..42).flat_map(|power| [(1 << power) - 1, 1 << power, 3 << (power - 1)]))
        {
            let at = bucket(BucketIndex::of(Nanos(time)));
            assert!(at >= last || time < 4_000, "{time}");
            last = at;
        }
        assert_ne!(
            bucket(BucketIndex::of(Nanos(1_000_000))),
            bucket(BucketIndex::of(Nanos(1_032_000)))
        );
        assert_eq!(
            bucket(BucketIndex::of(Nanos::MAX)),
            bucket(BucketIndex::of(Nanos((1 << 42) - 1)))
        );
        assert!(bucket(BucketIndex::of(Nanos::MAX)) < BUCKETS);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn merged_lanes_equal_one_lane_and_lose_nothing(
            all in prop::collection::vec((0_u64..3_000_000_000, 1_u64..10_000_000_000), 0..200), cut in 0_usize..200,
        ) {
            let (a, b) = all.split_at(cut.min(all.len()));
            for window in [ENDLESS, WINDOW] {
                let whole = of(window, &all);
                let mut merged = of(window, a);
                merged.merge(of(window, b));
                prop_assert_eq!(merged.filled(), whole.filled());
                prop_assert_eq!(&merged.buckets, &whole.buckets);
                prop_assert_eq!(merged.width(), whole.width());
                prop_assert_eq!(whole.filled().iter().map(|batch| batch.answers).sum::<u64>(), all.len() as u64);
                let sum: u128 = all.iter().map(|(_, time)| u128::from(*time)).sum();
                prop_assert_eq!(whole.filled().iter().map(|batch| batch.response_time_sum).sum::<u128>(), sum);
            }
        }
    }

    #[test]
    fn a_run_of_unknown_length_doubles_its_batches() {
        let batches = of(ENDLESS, &(0..1000).map(|n| (n * 1_000_000, 5)).collect::<Vec<_>>());
        assert_eq!((batches.width(), batches.filled().len()), (Nanos::from_millis(8), 125));
        assert!(batches.filled().iter().all(|batch| batch.answers == 8));
    }

    #[test]
    fn the_slow_ones_are_counted_in_their_batches() {
        let all: Vec<_> = (0..1280)
            .map(|n| (n * 1_000_000, if n < 64 { 50_000_000 } else { 1_000_000 }))
            .collect();
        let window = Window { from: Nanos::ZERO, until: Nanos::from_millis(1280) };
        let above = of(window, &all).above(0.9).unwrap();
        assert_eq!(above.len(), 128);
        assert!(above[..6].iter().all(|batch| *batch == (10, 10)) && above[6] == (10, 4));
        assert!(above[7..].iter().all(|batch| *batch == (10, 0)));
        assert_eq!(of(window, &[(0, 5), (9, 5)]).above(0.5), None, "all are equal");
        assert_eq!(
            ResponseTimeMap::of(&Batches::new(WINDOW)),
            None,
            "without responses there is no map"
        );
    }

    proptest! {
        #[test]
        fn each_response_is_in_the_cell_of_its_times(
            all in prop::collection::vec((0_u64..3_000_000_000, 1_u64..100_000_000_000), 1..200),
        ) {
            let map = ResponseTimeMap::of(&of(WINDOW, &all)).unwrap();
            prop_assert!(map.counts.len() <= COLUMNS && map.counts.iter().all(|rows| rows.len() <= ROWS));
            prop_assert!(map.edges.windows(2).all(|pair| pair[0] < pair[1]));
            let mut expected = vec![vec![0; map.edges.len() - 1]; map.counts.len()];
            for (due, time) in all {
                let row = map.edges.iter().rposition(|edge| edge.0 <= time).unwrap();
                expected[(due / map.column.0) as usize][row] += 1;
            }
            prop_assert_eq!(map.most(), expected.iter().flatten().copied().max().unwrap());
            prop_assert_eq!(map.counts, expected);
        }
    }
}
