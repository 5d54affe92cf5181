//! A watched quantity over time: least, mean, most and last, the mean of the last seconds, and
//! since when anything waits.
//!
//! A sample that found nothing leaves a gap: it is in no mean, and `last` is absent after it.

use std::collections::VecDeque;

use judge::watch::{EarlierWaits, LEAST_QUEUE, WaitingSpan};
use model::Nanos;
use report::number;
use serde::Serialize;

/// A recent value is the mean over this many seconds.
const RECENT: f64 = 5.0;
/// What happens now and then needs more of them to have a mean that does not wander: half of what was
/// watched, up to this many.
const LONGEST_RECENT: f64 = 20.0;
/// A mean of the last seconds that is further from the longer one is of another load.
const OF_ANOTHER_LOAD: f64 = 0.3;
/// How many samples of the number of waiting requests are kept: at one a second, the trend is that
/// of the last two minutes.
const MOST_SAMPLES: usize = 120;
/// The trend of fewer samples, or of a shorter time in seconds, is chance. Six samples a second apart
/// may span a few milliseconds less than five seconds.
const LEAST_SAMPLES: usize = 6;
const LEAST_SPAN: f64 = 4.9;
/// The workers of a cluster report every five seconds: what they say has no trend before the third
/// report.
const LEAST_SPAN_OF_REPORTS: f64 = 12.0;
/// A change by less than this, and by less than a quarter, is none.
const LEAST_CHANGE: f64 = 3.0;

/// A straight line describes the samples if in each half of them they rise or fall by at least this
/// share of its slope. If not, the number has jumped.
const LIKE_THE_WHOLE: f64 = 1.0 / 3.0;

/// One quantity, of the whole server or of a process. In the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Quantity {
    ConnectTime,
    AcceptQueue,
    /// For the server all open ones, including those in the accept queue; for a process those that
    /// it holds.
    Connections,
    UnreadConnections,
    /// Accepted connections with a request that is not answered: at least, and at most.
    RequestsOut,
    RequestsOutAtMost,
    /// Requests answered, at most, by the kernel's counts.
    Answered,
    /// Connections that were closed and had answered a request.
    Closed,
    BusyThreads,
    PoolCapacity,
    Backlog,
    /// The most since the statistics were read last (Puma 7 and later).
    BacklogMax,
    /// For the server with processes that it starts and that end; they alone are the next.
    Cpu,
    ChildrenCpu,
    BusyCpus,
    RunQueueWait,
    /// How much of the time some task of the machine waited for a CPU (PSI).
    CpuPressure,
    ResidentMemory,
    ListenOverflows,
}

impl Quantity {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Quantity::ConnectTime => "connect time, ms",
            Quantity::AcceptQueue => "accept queue",
            Quantity::Connections => "connections",
            Quantity::UnreadConnections => "connections with unread data",
            Quantity::RequestsOut => "requests in flight or waiting inside",
            Quantity::RequestsOutAtMost => "in flight or waiting, at most",
            Quantity::Answered => "responses/s by the kernel, at most",
            Quantity::Closed => "connections closed/s",
            Quantity::BusyThreads => "busy threads",
            Quantity::PoolCapacity => "pool capacity",
            Quantity::Backlog => "backlog",
            Quantity::BacklogMax => "backlog, at most",
            Quantity::Cpu => "CPUs used",
            Quantity::ChildrenCpu => "CPUs used by its children",
            Quantity::BusyCpus => "CPUs used, anybody's",
            Quantity::RunQueueWait => "threads wait for a CPU, % of one thread",
            Quantity::CpuPressure => "CPU pressure, anybody's, % of the time",
            Quantity::ResidentMemory => "resident memory",
            Quantity::ListenOverflows => "queue overflows/s, anybody's",
        }
    }

    /// A number of it, as it is written.
    pub(crate) fn written(self, value: Option<f64>) -> String {
        number::or_none(value, |value| match self {
            Quantity::ResidentMemory => number::memory(value),
            Quantity::Cpu | Quantity::ChildrenCpu | Quantity::BusyCpus => number::fixed(value, 2),
            Quantity::RunQueueWait | Quantity::CpuPressure => {
                number::or_zero(value, number::percent)
            }
            Quantity::ConnectTime
            | Quantity::AcceptQueue
            | Quantity::Connections
            | Quantity::UnreadConnections
            | Quantity::RequestsOut
            | Quantity::RequestsOutAtMost
            | Quantity::Answered
            | Quantity::Closed
            | Quantity::BusyThreads
            | Quantity::PoolCapacity
            | Quantity::Backlog
            | Quantity::BacklogMax
            | Quantity::ListenOverflows => {
                // Counts are whole; their mean may not be.
                if value.fract() == 0.0 {
                    number::fixed(value, 0)
                } else {
                    number::or_zero(value, number::significant)
                }
            }
        })
    }
}

/// One quantity over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct QuantitySeries {
    pub(crate) least: Option<f64>,
    pub(crate) most: Option<f64>,
    /// What the last sample found.
    pub(crate) last: Option<f64>,
    /// Value times seconds, and the seconds.
    area: f64,
    covered: f64,
    /// The same, of the last seconds alone.
    recent: VecDeque<(f64, f64)>,
    /// The sample before, where it found something.
    before: Option<(Nanos, f64)>,
}

impl QuantitySeries {
    /// Takes the value of a gauge at this instant. Between two samples the value is taken to be
    /// their mean.
    pub(crate) fn take(&mut self, at: Nanos, value: Option<f64>) {
        if let (Some((earlier, before)), Some(value)) = (self.before, value) {
            let seconds = at.saturating_sub(earlier).as_secs_f64();
            self.cover(f64::midpoint(before, value) * seconds, seconds);
        }
        self.before = value.map(|value| (at, value));
        self.note(value);
    }

    /// Takes what a counter counted between two samples; `None` is a gap.
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
        while self.recent.iter().skip(1).map(|(_, seconds)| seconds).sum::<f64>() >= LONGEST_RECENT
        {
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

    /// Mean over the time that was covered. If none was, the value that all samples found, if they
    /// agree.
    pub(crate) fn mean(&self) -> Option<f64> {
        if self.covered > 0.0 {
            Some(self.area / self.covered)
        } else {
            self.least.filter(|_| self.least == self.most)
        }
    }

    /// Mean over the last seconds. With a single sample, its value; `None` if the last sample found
    /// nothing.
    pub(crate) fn recent(&self) -> Option<f64> {
        self.mean_of_last(RECENT)
    }

    /// The same over more seconds the longer the watch lasts, as long as the mean stays about the same:
    /// for a rate that differs from second to second.
    pub(crate) fn recent_rate(&self) -> Option<f64> {
        let recent = self.recent()?;
        let longer = self.mean_of_last((self.covered / 2.0).max(RECENT))?;
        let is_of_this_load = (recent - longer).abs() <= OF_ANOTHER_LOAD * longer;
        Some(if is_of_this_load { longer } else { recent })
    }

    /// Leaves only the last value in the mean of the last seconds, because what was before is over.
    pub(crate) fn forget_recent(&mut self) {
        self.recent.clear();
    }

    /// Mean over the last second.
    pub(crate) fn latest(&self) -> Option<f64> {
        self.mean_of_last(1.0)
    }

    /// Mean over this many of the last seconds, as far as they are kept.
    fn mean_of_last(&self, wanted: f64) -> Option<f64> {
        let mut area = 0.0;
        let mut seconds = 0.0;
        for (of_one, length) in self.recent.iter().rev() {
            if seconds >= wanted {
                break;
            }
            area += of_one;
            seconds += length;
        }
        if seconds > 0.0 { Some(area / seconds) } else { self.last }
    }

    /// All that a counter counted.
    pub(crate) fn counted(&self) -> Option<f64> {
        (self.covered > 0.0).then_some(self.area)
    }
}

/// How many requests and connections wait for the server, over time.
#[derive(Debug, Default)]
pub(crate) struct WaitingHistory {
    samples: VecDeque<(Nanos, f64)>,
    /// The first sample of the current wait: all samples since then found somebody waiting. When it
    /// was taken, and whether it was the first sample of all.
    since: Option<(Nanos, bool)>,
    /// The most that waited at a time, how long somebody did, and when the last wait ended.
    most: f64,
    waited: Nanos,
    ended: Nanos,
    /// What the kernel's queue and the server's own held last, where they are seen, and since when
    /// these are the queues that are seen.
    queues: [Option<f64>; 2],
    same_queues_since: Nanos,
    /// Whether the server reports its own queue now and then; else the kernel shows it at each look.
    pub(crate) is_reported: bool,
}

impl WaitingHistory {
    /// How many waited at this instant, in the kernel and inside the server.
    pub(crate) fn take(&mut self, at: Nanos, kernel: Option<f64>, inside: Option<f64>) {
        let queues = [kernel, inside];
        let has_changed =
            self.queues.map(|queue| queue.is_some()) != queues.map(|queue| queue.is_some());
        if has_changed {
            // One more or one less queue in sight is no change in how many wait: their trend begins
            // anew. But whoever waited before and waits now has waited all along.
            self.same_queues_since = at;
        }
        self.queues = queues;
        if queues == [None; 2] {
            self.samples.clear();
            self.since = None;
            return;
        }
        let waiting =
            kernel.filter(|length| *length >= LEAST_QUEUE).unwrap_or(0.0) + inside.unwrap_or(0.0);
        let is_first = self.samples.is_empty() || has_changed;
        if self.since.is_some() {
            let before = self.samples.back().map_or(at, |(before, _)| *before);
            self.waited += at.saturating_sub(before);
            self.ended = at;
        }
        self.most = self.most.max(waiting);
        self.since = if waiting > 0.0 { self.since.or(Some((at, is_first))) } else { None };
        self.samples.push_back((at, waiting));
        self.samples.drain(..self.samples.len().saturating_sub(MOST_SAMPLES));
    }

    /// Since when somebody waits without a pause; `None` if nobody does.
    pub(crate) fn span(&self) -> Option<WaitingSpan> {
        let (since, is_from_start) = self.since?;
        let length = self.samples.back()?.0.saturating_sub(since);
        Some(WaitingSpan { length, is_from_start, trend: self.trend(since) })
    }

    /// The waits that are over, if nobody waits now.
    pub(crate) fn earlier(&self) -> Option<EarlierWaits> {
        let (last, _) = self.samples.back()?;
        let is_over = self.since.is_none() && self.waited > Nanos::ZERO;
        is_over.then(|| EarlierWaits {
            most: self.most,
            length: self.waited,
            ago: last.saturating_sub(self.ended),
        })
    }

    /// How many more wait each second, by the samples from `since` on. After a jump, by the samples
    /// after it.
    fn trend(&self, since: Nanos) -> Option<f64> {
        let points = self
            .samples
            .iter()
            .filter(|(at, _)| *at >= since.max(self.same_queues_since))
            .map(|(at, waiting)| TrendPoint { seconds: at.as_secs_f64(), waiting: *waiting });
        let points: Vec<TrendPoint> = points.collect();
        let least = if self.is_reported && self.queues[1] > Some(0.0) {
            LEAST_SPAN_OF_REPORTS
        } else {
            LEAST_SPAN
        };
        let mut points = &points[..];
        loop {
            let span = points.last()?.seconds - points.first()?.seconds;
            if points.len() < LEAST_SAMPLES || span < least {
                return None;
            }
            let mean = points.iter().map(|it| it.waiting).sum::<f64>() / points.len() as f64;
            let slope = slope(points);
            if (slope * span).abs() < LEAST_CHANGE.max(mean / 4.0) {
                return Some(0.0);
            }
            let (early, late) = points.split_at(points.len() / 2);
            let is_like = |half: f64| half / slope >= LIKE_THE_WHOLE;
            if is_like(self::slope(early)) && is_like(self::slope(late)) {
                return Some(slope);
            }
            points = late;
        }
    }
}

/// How many waited at an instant.
struct TrendPoint {
    seconds: f64,
    waiting: f64,
}

/// The slope of the straight line through these points, by least squares.
fn slope(points: &[TrendPoint]) -> f64 {
    let count = points.len() as f64;
    let mean = points.iter().map(|it| it.waiting).sum::<f64>() / count;
    let middle = points.iter().map(|it| it.seconds).sum::<f64>() / count;
    let product: f64 = points.iter().map(|it| (it.seconds - middle) * (it.waiting - mean)).sum();
    let square: f64 = points.iter().map(|it| (it.seconds - middle).powi(2)).sum();
    product / square
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;
    use proptest::prelude::*;

    fn seconds(s: u64) -> Nanos {
        Nanos::from_secs(s)
    }

    #[test]
    fn a_gauge_is_weighted_by_time_and_a_gap_is_in_no_mean() {
        let mut series = QuantitySeries::default();
        assert_eq!((series.mean(), series.last), (None, None));
        // One look; 3 for one second, and 4 for three.
        let samples = [
            (0, Some(2.0), 2.0),
            (1, Some(4.0), 3.0),
            (4, Some(4.0), 3.75),
            (5, None, 3.75),
            (9, Some(0.0), 3.75),
        ];
        for (second, value, mean) in samples {
            series.take(seconds(second), value);
            assert_eq!((series.last, series.mean()), (value, Some(mean)), "{second}");
        }
        assert_eq!((series.least, series.most), (Some(0.0), Some(4.0)));
    }

    #[test]
    fn the_mean_of_a_rate_is_all_that_was_counted_by_all_the_time() {
        let mut series = QuantitySeries::default();
        for (from, to, counted) in
            [(0, 1, Some(10.0)), (1, 4, Some(6.0)), (4, 4, Some(5.0)), (4, 5, None)]
        {
            series.count(seconds(from), seconds(to), counted);
        }
        assert_eq!((series.least, series.mean(), series.most), (Some(2.0), Some(4.0), Some(10.0)));
        assert_eq!(
            (series.counted(), series.last),
            (Some(16.0), None),
            "no time, no rate; and a gap"
        );
    }

    #[test]
    fn what_is_recent_is_the_last_seconds_alone() {
        let mut series = QuantitySeries::default();
        assert_eq!(series.recent(), None);
        for second in 0..20 {
            series.take(seconds(second), Some(if second < 10 { 0.0 } else { 3.0 }));
        }
        assert_eq!((series.recent(), series.last), (Some(3.0), Some(3.0)));
        series.take(seconds(20), Some(5.0));
        assert_eq!((series.recent(), series.latest()), (Some(3.2), Some(4.0)));
        series.take(seconds(21), None);
        assert_eq!(series.recent(), None, "a gap");
        series.take(seconds(22), Some(1.0));
        assert_eq!(series.recent(), Some(1.0), "nothing of before the gap");
    }

    #[test]
    fn a_rate_is_the_mean_of_more_seconds_while_it_is_about_the_same() {
        let mut counter = QuantitySeries::default();
        for second in 0..40 {
            let counted = if second % 10 < 5 { 90.0 } else { 110.0 };
            counter.count(seconds(second), seconds(second + 1), Some(counted));
        }
        assert_eq!((counter.recent(), counter.recent_rate()), (Some(110.0), Some(100.0)));
        for second in 40..45 {
            counter.count(seconds(second), seconds(second + 1), Some(10.0));
        }
        assert_eq!(counter.recent_rate(), Some(10.0), "another load");
        let mut counter = QuantitySeries::default();
        counter.count(seconds(0), seconds(10), Some(100.0));
        counter.count(seconds(10), seconds(15), Some(5.0));
        assert_eq!((counter.recent(), counter.counted()), (Some(1.0), Some(105.0)));
    }

    proptest! {
        #[test]
        fn the_means_of_parts_add_up_to_the_mean_of_the_whole(
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

    /// Of samples a second apart, each of the kernel's queue and the server's own: how many seconds
    /// somebody waits, whether that was so from the start, and how many more each second.
    fn span(
        samples: impl IntoIterator<Item = [Option<f64>; 2]>,
    ) -> Option<(f64, bool, Option<f64>)> {
        let mut history = WaitingHistory { is_reported: true, ..WaitingHistory::default() };
        for (second, [kernel, inside]) in samples.into_iter().enumerate() {
            history.take(seconds(second as u64), kernel, inside);
        }
        history.span().map(|span| (span.length.as_secs_f64(), span.is_from_start, span.trend))
    }

    fn of_kernel(lengths: impl IntoIterator<Item = f64>) -> Option<(f64, bool, Option<f64>)> {
        span(lengths.into_iter().map(|length| [Some(length), None]))
    }

    #[test]
    fn a_wait_is_as_long_as_somebody_has_waited_without_a_pause() {
        assert_eq!(span([]), None);
        assert_eq!(of_kernel([3.0, 2.0, 4.0]), Some((2.0, true, None)));
        assert_eq!(of_kernel([0.0, 2.0, 4.0, 4.0]), Some((2.0, false, None)));
        assert_eq!(of_kernel([3.0, 0.0, 4.0]), Some((0.0, false, None)));
        assert_eq!(of_kernel([3.0, 0.3]), None, "one for a moment, now and then");
        assert_eq!(
            span([[None, None], [None, Some(2.0)], [None, Some(1.0)]]),
            Some((1.0, true, None))
        );
        // A queue that is no longer seen is no fall.
        let unseen = (0..28).map(|second| [Some(5.0), (second < 20).then_some(30.0)]);
        assert_eq!(span(unseen), Some((27.0, true, Some(0.0))));
        // One that comes into sight at the second look does not begin the wait anew.
        let late = (0..7).map(|second| [Some(15.0), (second > 0).then_some(0.0)]);
        assert_eq!(span(late), Some((6.0, true, Some(0.0))));
    }

    #[test]
    fn waits_that_are_over_are_remembered() {
        let mut history = WaitingHistory::default();
        for (second, waiting) in [0.0, 4.0, 20.0, 0.0, 3.0, 0.0, 0.0].into_iter().enumerate() {
            history.take(seconds(second as u64), Some(0.0), Some(waiting));
            let is_over = second >= 3 && waiting == 0.0;
            assert_eq!(history.earlier().is_some(), is_over, "{second}");
        }
        let earlier = history.earlier().unwrap();
        assert_eq!((earlier.most, earlier.length, earlier.ago), (20.0, seconds(3), seconds(1)));
        // A queue that comes into sight is no reason to forget.
        history.take(seconds(9), None, Some(0.0));
        assert_eq!(history.earlier().unwrap().length, seconds(3));
    }

    #[test]
    fn the_number_of_those_that_wait_grows_or_shrinks_or_is_steady() {
        let of = |lengths: &[f64]| of_kernel(lengths.iter().copied()).unwrap().2;
        // A change by nine of 50 is none.
        for (slope, trend) in [(0.0, 0.0), (1.0, 0.0), (3.0, 3.0), (-4.0, -4.0)] {
            let found =
                of(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0].map(|n| 50.0 + slope * n))
                    .unwrap();
            assert!((found - trend).abs() < 1e-9, "{slope}: {found}");
        }
        assert_eq!(of(&[30.0, 32.0, 29.0, 31.0, 30.0, 28.0, 31.0, 30.0]), Some(0.0), "noise");
        assert_eq!(of(&[10.0, 20.0, 30.0, 40.0]), None, "few samples");
        assert_eq!(of_kernel([0.0; 20]), None, "nobody waits");
        // A load that begins within a second, or doubles later: the number jumps, and stays.
        let jump = |at: usize, to: f64, seconds: usize| {
            of_kernel((0..seconds).map(|n| match n.cmp(&at) {
                Ordering::Less => 5.0,
                Ordering::Equal => to / 2.0,
                Ordering::Greater => to,
            }))
            .unwrap()
            .2
        };
        for (at, seconds) in [(0, 7), (0, 10), (3, 8), (3, 10), (20, 22)] {
            assert_eq!(jump(at, 15.0, seconds), None, "{at} {seconds}: too short");
        }
        for (at, seconds) in [(0, 13), (0, 40), (3, 12), (20, 40), (50, 100), (90, 119)] {
            assert_eq!(jump(at, 30.0, seconds), Some(0.0), "{at} {seconds}");
        }
        let reported = |seconds| {
            span((0..seconds).map(|n| [Some(0.0), Some(f64::from(n / 5) * 10.0 + 10.0)])).unwrap().2
        };
        assert!(
            reported(8).is_none() && reported(15) > Some(0.0),
            "of two reports there is no trend"
        );
        // What the kernel shows at each look has a trend sooner, also if the looks are a little
        // less than a second apart.
        let mut history = WaitingHistory::default();
        for look in 0..6 {
            history.take(Nanos::from_millis(999 * look), Some(0.0), Some(15.0));
        }
        assert_eq!(history.span().unwrap().trend, Some(0.0));
    }
}
