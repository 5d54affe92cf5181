//! How one quantity went: least, mean, most and last, the mean of the last seconds, and a bounded list of points. Plain arithmetic;
//! nothing is read here.
//!
//! A sample that found nothing leaves a gap: it is in no mean, and `last` is absent after it.

use std::collections::VecDeque;

use model::Nanos;
use probe::sampler::ThinnedList;

/// Points that are kept, at the most.
const MOST_POINTS: usize = 2400;
/// What goes on now is the mean over so long, in seconds.
const RECENT: f64 = 5.0;

/// One quantity over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct QuantitySeries {
    /// Looks that found something.
    pub(super) samples: u64,
    /// Looks that did not.
    pub(super) absent: u64,
    pub(super) least: Option<f64>,
    pub(super) most: Option<f64>,
    /// What the last sample found.
    pub(super) last: Option<f64>,
    /// Value times seconds, and the seconds.
    area: f64,
    covered: f64,
    /// The same, of the last seconds alone.
    recent: VecDeque<(f64, f64)>,
    /// The sample before, where it found something.
    before: Option<(Nanos, f64)>,
    points: ThinnedList<(Nanos, Option<f64>), MOST_POINTS>,
    /// How old the last value may have been when it was read, and the oldest.
    pub(super) staleness: Option<(Nanos, Nanos)>,
}

impl QuantitySeries {
    /// What there was at this instant. Between two samples the mean of both stands for the time.
    pub(crate) fn take(&mut self, at: Nanos, value: Option<f64>) {
        if let (Some((earlier, before)), Some(value)) = (self.before, value) {
            let seconds = at.saturating_sub(earlier).as_secs_f64();
            self.cover(f64::midpoint(before, value) * seconds, seconds);
        }
        self.before = value.map(|value| (at, value));
        self.note(at, value);
    }

    /// What a counter counted between two samples, as a rate a second.
    pub(crate) fn count(&mut self, from: Nanos, to: Nanos, counted: f64) {
        let seconds = to.saturating_sub(from).as_secs_f64();
        if seconds > 0.0 {
            self.cover(counted, seconds);
            self.note(to, Some(counted / seconds));
        }
    }

    /// The value before may have been so old.
    pub(crate) fn aged(&mut self, age: Option<Nanos>) {
        if let Some(age) = age {
            self.staleness = Some((age, self.staleness.map_or(age, |(_, oldest)| oldest.max(age))));
        }
    }

    fn cover(&mut self, area: f64, seconds: f64) {
        self.area += area;
        self.covered += seconds;
        self.recent.push_back((area, seconds));
        while self.recent.iter().skip(1).map(|(_, seconds)| seconds).sum::<f64>() >= RECENT {
            self.recent.pop_front();
        }
    }

    fn note(&mut self, at: Nanos, value: Option<f64>) {
        self.last = value;
        if let Some(value) = value {
            self.samples += 1;
            self.least = Some(self.least.map_or(value, |least| least.min(value)));
            self.most = Some(self.most.map_or(value, |most| most.max(value)));
        } else {
            self.absent += 1;
            self.recent.clear();
        }
        self.points.push((at, value));
    }

    /// Mean over the time that was covered; of one single sample what that found.
    pub(crate) fn mean(&self) -> Option<f64> {
        if self.covered > 0.0 { Some(self.area / self.covered) } else { self.least.filter(|_| self.samples == 1) }
    }

    /// Mean over the last seconds; of one single sample what that found, of a sample that found nothing nothing.
    pub(crate) fn recent(&self) -> Option<f64> {
        let (area, seconds) = self.recent.iter().fold((0.0, 0.0), |(a, s), (area, seconds)| (a + area, s + seconds));
        if seconds > 0.0 { Some(area / seconds) } else { self.last }
    }

    /// All that a counter counted.
    pub(crate) fn counted(&self) -> Option<f64> {
        (self.covered > 0.0).then_some(self.area)
    }

    /// Instants and values that were kept.
    pub(crate) fn points(&self) -> &[(Nanos, Option<f64>)] {
        self.points.items()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seconds(s: u64) -> Nanos {
        Nanos::from_secs(s)
    }

    #[test]
    fn a_gauge_is_weighed_by_time_and_a_gap_is_in_no_mean() {
        let mut series = QuantitySeries::default();
        assert_eq!((series.mean(), series.last), (None, None));
        series.take(seconds(0), Some(2.0));
        assert_eq!(series.mean(), Some(2.0), "one look");
        series.take(seconds(1), Some(4.0));
        series.take(seconds(4), Some(4.0));
        // 3 for one second, 4 for three.
        assert_eq!(series.mean(), Some(3.75));
        series.take(seconds(5), None);
        assert_eq!((series.last, series.samples, series.absent), (None, 3, 1));
        series.take(seconds(9), Some(0.0));
        assert_eq!(
            (series.mean(), series.least, series.most, series.last),
            (Some(3.75), Some(0.0), Some(4.0), Some(0.0))
        );
    }

    #[test]
    fn the_mean_of_a_rate_is_all_that_was_counted_by_all_the_time() {
        let mut series = QuantitySeries::default();
        series.count(seconds(0), seconds(1), 10.0);
        series.count(seconds(1), seconds(4), 6.0);
        series.count(seconds(4), seconds(4), 5.0);
        assert_eq!((series.least, series.mean(), series.most), (Some(2.0), Some(4.0), Some(10.0)));
        assert_eq!((series.samples, series.absent), (2, 0), "no time, no rate");
    }

    #[test]
    fn what_is_recent_is_the_last_seconds_alone() {
        let mut series = QuantitySeries::default();
        assert_eq!(series.recent(), None);
        for second in 0..20 {
            series.take(seconds(second), Some(if second < 10 { 0.0 } else { 3.0 }));
        }
        assert_eq!((series.recent(), series.last), (Some(3.0), Some(3.0)));
        series.take(seconds(20), None);
        assert_eq!(series.recent(), None, "a gap");
        series.take(seconds(21), Some(1.0));
        assert_eq!(series.recent(), Some(1.0), "nothing of before the gap");
        let mut counter = QuantitySeries::default();
        counter.count(seconds(0), seconds(10), 100.0);
        counter.count(seconds(10), seconds(15), 5.0);
        assert_eq!((counter.recent(), counter.counted()), (Some(1.0), Some(105.0)));
    }

    #[test]
    fn the_oldest_age_is_kept_beside_the_last() {
        let mut series = QuantitySeries::default();
        series.aged(None);
        assert_eq!(series.staleness, None);
        for age in [2, 5, 1] {
            series.aged(Some(seconds(age)));
        }
        assert_eq!(series.staleness, Some((seconds(1), seconds(5))));
    }

    proptest! {
        #[test]
        fn parts_that_are_a_whole_at_each_sample_are_so_in_the_mean(
            samples in prop::collection::vec((1u64..5, prop::collection::vec(0u32..50, 3)), 2..30),
        ) {
            let mut parts = vec![QuantitySeries::default(); 3];
            let mut whole = QuantitySeries::default();
            let mut at = Nanos::ZERO;
            for (gap, values) in &samples {
                at += seconds(*gap);
                whole.take(at, Some(f64::from(values.iter().sum::<u32>())));
                for (part, value) in parts.iter_mut().zip(values) {
                    part.take(at, Some(f64::from(*value)));
                }
            }
            let sum: f64 = parts.iter().filter_map(QuantitySeries::mean).sum();
            prop_assert!((sum - whole.mean().unwrap()).abs() < 1e-9);
            prop_assert!(whole.least <= whole.mean() && whole.mean() <= whole.most);
        }
    }
}
