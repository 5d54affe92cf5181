//! The quantities that are watched, in words, and how each went: least, mean, most and last, and the mean of the last seconds. Plain arithmetic; nothing is read here.
//!
//! A sample that found nothing leaves a gap: it is in no mean, and `last` is absent after it.

use std::collections::VecDeque;

use model::Nanos;
use report::number;
use serde::Serialize;

/// What goes on now is the mean over so long, in seconds.
const RECENT: f64 = 5.0;

/// One quantity, of the whole server or of a process. In the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Quantity {
    ConnectTime,
    AcceptQueue,
    /// Of the server all that are open, those in the accept queue too; of a process those that it holds.
    Connections,
    UnreadConnections,
    BusyThreads,
    Backlog,
    Cpu,
    BusyCpus,
    RunQueueWait,
    ResidentMemory,
    ListenOverflows,
}

impl Quantity {
    pub(super) fn label(self) -> &'static str {
        match self {
            Quantity::ConnectTime => "connect time, ms",
            Quantity::AcceptQueue => "accept queue",
            Quantity::Connections => "connections",
            Quantity::UnreadConnections => "unread connections",
            Quantity::BusyThreads => "busy threads",
            Quantity::Backlog => "backlog",
            Quantity::Cpu => "CPU, %",
            Quantity::BusyCpus => "CPUs busy, anybody's, %",
            Quantity::RunQueueWait => "run-queue wait, %",
            Quantity::ResidentMemory => "resident memory",
            Quantity::ListenOverflows => "queue overflows/s",
        }
    }

    /// A number of it, as it is written.
    pub(super) fn written(self, value: Option<f64>) -> String {
        number::or_none(value, |value| match self {
            Quantity::ResidentMemory => number::bytes(value),
            Quantity::Cpu | Quantity::BusyCpus | Quantity::RunQueueWait => number::or_zero(value, number::percent),
            // What was counted is whole; its mean may not be.
            _ if value.fract() == 0.0 => number::fixed(value, 0),
            _ => number::or_zero(value, number::significant),
        })
    }
}

/// One quantity over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct QuantitySeries {
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
}

impl QuantitySeries {
    /// What there was at this instant. Between two samples the mean of both stands for the time.
    pub(crate) fn take(&mut self, at: Nanos, value: Option<f64>) {
        if let (Some((earlier, before)), Some(value)) = (self.before, value) {
            let seconds = at.saturating_sub(earlier).as_secs_f64();
            self.cover(f64::midpoint(before, value) * seconds, seconds);
        }
        self.before = value.map(|value| (at, value));
        self.note(value);
    }

    /// What a counter counted between two samples, as a rate a second; `None` is a gap.
    pub(crate) fn count(&mut self, from: Nanos, to: Nanos, counted: Option<f64>) {
        let seconds = to.saturating_sub(from).as_secs_f64();
        if seconds > 0.0 {
            if let Some(counted) = counted {
                self.cover(counted, seconds);
            }
            self.note(counted.map(|counted| counted / seconds));
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

    fn note(&mut self, value: Option<f64>) {
        self.last = value;
        match value {
            Some(value) => {
                self.least = Some(self.least.map_or(value, |least| least.min(value)));
                self.most = Some(self.most.map_or(value, |most| most.max(value)));
            }
            None => self.recent.clear(),
        }
    }

    /// Mean over the time that was covered; where samples found but one value, that.
    pub(crate) fn mean(&self) -> Option<f64> {
        if self.covered > 0.0 { Some(self.area / self.covered) } else { self.least.filter(|_| self.least == self.most) }
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
        assert_eq!((series.last, series.mean()), (None, Some(3.75)));
        series.take(seconds(9), Some(0.0));
        assert_eq!(
            (series.mean(), series.least, series.most, series.last),
            (Some(3.75), Some(0.0), Some(4.0), Some(0.0))
        );
    }

    #[test]
    fn the_mean_of_a_rate_is_all_that_was_counted_by_all_the_time() {
        let mut series = QuantitySeries::default();
        series.count(seconds(0), seconds(1), Some(10.0));
        series.count(seconds(1), seconds(4), Some(6.0));
        series.count(seconds(4), seconds(4), Some(5.0));
        series.count(seconds(4), seconds(5), None);
        assert_eq!((series.least, series.mean(), series.most), (Some(2.0), Some(4.0), Some(10.0)));
        assert_eq!((series.counted(), series.last), (Some(16.0), None), "no time, no rate; and a gap");
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
        counter.count(seconds(0), seconds(10), Some(100.0));
        counter.count(seconds(10), seconds(15), Some(5.0));
        assert_eq!((counter.recent(), counter.counted()), (Some(1.0), Some(105.0)));
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
