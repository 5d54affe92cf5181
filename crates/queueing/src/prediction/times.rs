//! Predicted times: exact, or simulated with an interval.

use model::Nanos;
use model::theory::Estimate;
use serde::Serialize;

use crate::simulate::QuantileEstimate;

/// A time in ns, with its 95 % interval if it is simulated.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PredictedTime {
    /// The time.
    pub ns: Nanos,
    /// Absent if the time is exact.
    #[serde(flatten)]
    pub interval: Option<TimeInterval>,
}

/// The interval in which a simulated time lies.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TimeInterval {
    /// The distance of the farther end; null if that is not known.
    #[serde(rename = "half_width_ns")]
    pub half_width: Option<Nanos>,
    /// The lower end.
    #[serde(rename = "low_ns")]
    pub low: Nanos,
    /// The upper end; null if too few simulated times lie above to tell.
    #[serde(rename = "high_ns")]
    pub high: Option<Nanos>,
}

impl PredictedTime {
    pub(crate) fn exact(seconds: f64) -> PredictedTime {
        PredictedTime { ns: Nanos::from_secs_f64(seconds), interval: None }
    }

    /// A simulated mean.
    pub(crate) fn mean(seconds: Estimate) -> PredictedTime {
        PredictedTime::quantile(QuantileEstimate {
            value: seconds.value,
            low: (seconds.value - seconds.half_width).max(0.0),
            high: seconds.value + seconds.half_width,
        })
    }

    /// A simulated quantile.
    pub(crate) fn quantile(seconds: QuantileEstimate) -> PredictedTime {
        let ns = Nanos::from_secs_f64(seconds.value);
        let low = Nanos::from_secs_f64(seconds.low);
        let high = seconds.high.is_finite().then(|| Nanos::from_secs_f64(seconds.high));
        let half_width = high.map(|high| high.saturating_sub(ns).max(ns.saturating_sub(low)));
        PredictedTime { ns, interval: Some(TimeInterval { half_width, low, high }) }
    }

    /// The longest that it may be, in seconds.
    pub(crate) fn at_most(&self) -> f64 {
        match self.interval {
            None => self.ns.as_secs_f64(),
            Some(interval) => interval.high.map_or(f64::INFINITY, Nanos::as_secs_f64),
        }
    }
}

/// A time's mean and percentiles.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TimeSummary {
    /// The mean.
    pub mean: PredictedTime,
    /// The median.
    pub p50: PredictedTime,
    /// Longer than 95 % of all.
    pub p95: PredictedTime,
    /// Longer than 99 % of all.
    pub p99: PredictedTime,
}

/// Wait and response time of one queue: a mean of both, or a percentile of both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitAndResponse<T> {
    pub(crate) wait: T,
    pub(crate) response: T,
}

impl<T> WaitAndResponse<T> {
    pub(crate) fn map<U>(self, change: impl Fn(T) -> U) -> WaitAndResponse<U> {
        WaitAndResponse { wait: change(self.wait), response: change(self.response) }
    }
}
