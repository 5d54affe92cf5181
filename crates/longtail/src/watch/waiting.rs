//! How many requests and connections wait for the server, over time: since when any does, and whether they become more.

use std::collections::VecDeque;

use model::Nanos;

/// Samples that are kept: with one a second the trend is that of the last two minutes.
const MOST_SAMPLES: usize = 120;
/// The trend of fewer samples, or of a shorter time, is chance.
const LEAST_SAMPLES: usize = 6;
const LEAST_SPAN: f64 = 5.0;
/// The workers of a cluster report every five seconds: what they say has no trend before the third report.
const LEAST_SPAN_OF_REPORTS: f64 = 12.0;
/// A change by less than this, and by less than a quarter, is none.
const LEAST_CHANGE: f64 = 3.0;
/// So many connections wait at the least, on average over the last seconds, where anything is said to wait in the kernel.
pub(crate) const LEAST_QUEUE: f64 = 0.5;

/// Where the number of those that wait goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum WaitingTrend {
    Steady,
    /// So many more wait each second.
    Grows(f64),
    /// So many fewer wait each second.
    Shrinks(f64),
}

/// Since when somebody waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WaitingSpan {
    pub(crate) length: Nanos,
    /// Whether somebody waited already when the watch began, so that it may be longer.
    pub(crate) is_from_start: bool,
}

/// How many wait, over time.
#[derive(Debug, Default)]
pub(crate) struct WaitingHistory {
    samples: VecDeque<(Nanos, f64)>,
    /// When the first of those samples was taken that found somebody and had none without before the last.
    since: Option<(Nanos, bool)>,
    /// Whether the kernel's queue and the server's own are seen.
    sees: (bool, bool),
    inside: f64,
    last: Nanos,
}

impl WaitingHistory {
    /// How many waited at this instant, in the kernel and inside the server.
    pub(crate) fn take(&mut self, at: Nanos, kernel: Option<f64>, inside: Option<f64>) {
        let sees = (kernel.is_some(), inside.is_some());
        if self.sees != sees {
            // What one queue more or less holds is no change of those that wait.
            *self = WaitingHistory { sees, ..WaitingHistory::default() };
        }
        if sees == (false, false) {
            return;
        }
        let is_first = self.samples.is_empty();
        self.inside = inside.unwrap_or(0.0);
        let kernel = kernel.filter(|length| *length >= LEAST_QUEUE).unwrap_or(0.0);
        let waiting = kernel + self.inside;
        self.last = at;
        self.since = if waiting > 0.0 { self.since.or(Some((at, is_first))) } else { None };
        self.samples.push_back((at, waiting));
        self.samples.drain(..self.samples.len().saturating_sub(MOST_SAMPLES));
    }

    /// Since when somebody waits without a pause; `None` where nobody does.
    pub(crate) fn span(&self) -> Option<WaitingSpan> {
        let (since, is_from_start) = self.since?;
        Some(WaitingSpan { length: self.last.saturating_sub(since), is_from_start })
    }

    /// Where the number goes: the slope of the straight line through the samples since somebody waits. `None` where it is not known yet.
    pub(crate) fn trend(&self) -> Option<WaitingTrend> {
        let (since, _) = self.since?;
        let points: Vec<(f64, f64)> =
            self.samples.iter().filter(|(at, _)| *at >= since).map(|(at, n)| (at.as_secs_f64(), *n)).collect();
        let span = points.last()?.0 - points.first()?.0;
        let count = points.len() as f64;
        let mean = points.iter().map(|(_, n)| n).sum::<f64>() / count;
        let is_reported = self.inside > 0.0;
        if points.len() < LEAST_SAMPLES || span < if is_reported { LEAST_SPAN_OF_REPORTS } else { LEAST_SPAN } {
            return None;
        }
        let middle = points.iter().map(|(at, _)| at).sum::<f64>() / count;
        let (product, square) = points.iter().fold((0.0, 0.0), |(product, square), (at, n)| {
            (product + (at - middle) * (n - mean), square + (at - middle).powi(2))
        });
        let slope = product / square;
        let change = slope * span;
        Some(match change {
            _ if change.abs() < LEAST_CHANGE.max(mean / 4.0) => WaitingTrend::Steady,
            _ if change > 0.0 => WaitingTrend::Grows(slope),
            _ => WaitingTrend::Shrinks(-slope),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(samples: impl IntoIterator<Item = (Option<f64>, Option<f64>)>) -> WaitingHistory {
        let mut history = WaitingHistory::default();
        for (second, (kernel, inside)) in samples.into_iter().enumerate() {
            history.take(Nanos::from_secs(second as u64), kernel, inside);
        }
        history
    }

    fn of_kernel(lengths: impl IntoIterator<Item = f64>) -> WaitingHistory {
        history(lengths.into_iter().map(|length| (Some(length), None)))
    }

    #[test]
    fn a_wait_is_as_long_as_somebody_has_waited_without_a_pause() {
        let span =
            |history: &WaitingHistory| history.span().map(|span| (span.length.as_secs_f64(), span.is_from_start));
        assert_eq!(span(&WaitingHistory::default()), None);
        assert_eq!(span(&of_kernel([3.0, 2.0, 4.0])), Some((2.0, true)));
        assert_eq!(span(&of_kernel([0.0, 2.0, 4.0, 4.0])), Some((2.0, false)));
        assert_eq!(span(&of_kernel([3.0, 0.0, 4.0])), Some((0.0, false)));
        assert_eq!(span(&of_kernel([3.0, 0.3])), None, "one for a moment, now and then");
        assert_eq!(span(&history([(None, None), (None, Some(2.0)), (None, Some(1.0))])), Some((1.0, true)));
    }

    #[test]
    fn those_that_wait_become_more_or_fewer_or_stay() {
        let ramp = |slope: f64| of_kernel((0..10).map(|n| 50.0 + slope * f64::from(n))).trend();
        assert_eq!(ramp(0.0), Some(WaitingTrend::Steady));
        assert_eq!(ramp(1.0), Some(WaitingTrend::Steady), "nine of 50");
        assert!(matches!(ramp(3.0), Some(WaitingTrend::Grows(slope)) if (slope - 3.0).abs() < 1e-9));
        assert!(matches!(ramp(-4.0), Some(WaitingTrend::Shrinks(slope)) if (slope - 4.0).abs() < 1e-9));
        let noise = [30.0, 32.0, 29.0, 31.0, 30.0, 28.0, 31.0, 30.0];
        assert_eq!(of_kernel(noise).trend(), Some(WaitingTrend::Steady));
    }

    #[test]
    fn of_few_samples_or_reports_no_trend_is_said() {
        assert_eq!(of_kernel([10.0, 20.0, 30.0, 40.0]).trend(), None);
        let reported =
            |seconds: u32| history((0..seconds).map(|n| (Some(0.0), Some(f64::from(n / 5) * 10.0 + 10.0)))).trend();
        assert_eq!(reported(8), None, "two reports");
        assert!(matches!(reported(15), Some(WaitingTrend::Grows(_))));
        assert_eq!(of_kernel([0.0; 20]).trend(), None, "nobody waits");
    }

    #[test]
    fn a_queue_that_is_no_longer_seen_is_no_fall() {
        let seen = (0..20).map(|_| (Some(5.0), Some(30.0)));
        let unseen = (0..8).map(|_| (Some(5.0), None));
        let history = history(seen.chain(unseen));
        assert_eq!(history.trend(), Some(WaitingTrend::Steady));
        assert_eq!(history.span().map(|span| (span.length, span.is_from_start)), Some((Nanos::from_secs(7), true)));
    }
}
