//! Quantiles of simulated times, with an interval that also holds where times come in jumps.
//!
//! If requests take one of two times, each run's quantile is one or the other by chance, and their
//! mean is a time that no request has, so Student's t does not apply. But the *share* of the times
//! up to `t` is a mean for any `t`. So the interval contains the times whose share may be the given
//! one, and need not be symmetric (Woodruff, "Confidence intervals for medians and other position
//! measures", JASA 47, 1952).

use model::steadiness::mean;

use super::{MeanOfRuns, reach};
use crate::numeric::{QueueingError, first_where, share};

/// A quantile with its 95 % interval, which may be asymmetric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantileEstimate {
    /// The quantile of what was simulated.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end; infinite if too few times lie above to tell.
    pub high: f64,
}

/// A service time, and the share of the requests that have it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServiceLevel {
    /// How long a request holds a slot.
    pub time: f64,
    /// The share of the requests.
    pub share: f64,
}

/// What adds nothing.
const NOTHING: ServiceLevel = ServiceLevel { time: 0.0, share: 1.0 };

/// What `n` times don't show may still occur in `3 / n` of all (95 %, the rule of three).
const UNSEEN: f64 = 3.0;

/// Times that differ by less than this share differ only by rounding.
const ROUNDING: f64 = 1e-9;

/// Times of independent runs, to each of which a random level is added. The levels' shares are
/// exact, so only the wait of a response time is simulated.
pub(super) struct SimulatedTimes<'a> {
    /// The times of each run, ascending.
    runs: Vec<&'a [f64]>,
    added: &'a [ServiceLevel],
}

impl<'a> SimulatedTimes<'a> {
    /// The times without levels.
    pub(super) fn alone(runs: Vec<&'a [f64]>) -> SimulatedTimes<'a> {
        SimulatedTimes { runs, added: &[NOTHING] }
    }

    /// The times with one of these levels added to each.
    pub(super) fn with(runs: Vec<&'a [f64]>, added: &'a [ServiceLevel]) -> SimulatedTimes<'a> {
        SimulatedTimes { runs, added }
    }

    /// The quantile of all runs' times together, with the interval of the times whose share may be
    /// `at`.
    ///
    /// # Errors
    /// If `at` is not in 0 to 1.
    pub(super) fn quantile(&self, at: f64) -> Result<QuantileEstimate, QueueingError> {
        // A share such as 0.9 is not exact in binary.
        let at = share(at)? - ROUNDING;
        Ok(QuantileEstimate {
            value: self.first_time(|time| mean(&self.shares_up_to(time)) >= at),
            low: self.first_time(|time| self.most_up_to(time) >= at),
            high: self.first_time(|time| self.least_up_to(time) >= at),
        })
    }

    /// The first time from which on `holds` is true; infinite if that is later than all times.
    fn first_time(&self, holds: impl Fn(f64) -> bool) -> f64 {
        let longest_added = self.added.iter().map(|level| level.time).fold(0.0, f64::max);
        let longest = self.runs.iter().filter_map(|run| run.last()).copied().fold(0.0, f64::max);
        // Rounded up, so that no sum exceeds this.
        let most = (longest + longest_added) * (1.0 + ROUNDING);
        if holds(0.0) {
            0.0
        } else if holds(most) {
            first_where(0.0, most, holds)
        } else {
            f64::INFINITY
        }
    }

    /// Upper bound of the share of the times up to `time`.
    fn most_up_to(&self, time: f64) -> f64 {
        let estimate = MeanOfRuns::of(&self.shares_up_to(time)).interval();
        estimate.value + estimate.half_width + self.unseen()
    }

    /// Lower bound of that share. Long times come in bursts, and one more burst as large as the
    /// largest may have been missed, so the interval of a rare event extends further upwards (Fay
    /// and Feuer, "Confidence intervals for directly standardized rates", Statistics in Medicine
    /// 16, 1997; the quantile of their gamma law by its square root, which is nearly normal).
    fn least_up_to(&self, time: f64) -> f64 {
        let above: Vec<f64> = self.shares_up_to(time).iter().map(|share| 1.0 - share).collect();
        let seen = MeanOfRuns::of(&above);
        let largest = above.iter().copied().fold(0.0, f64::max);
        let burst = (largest - seen.value) / above.len() as f64;
        let value = seen.value + burst;
        if value <= 0.0 {
            return 1.0 - self.unseen();
        }
        let spread = seen.error.hypot(burst) / value;
        let most_above = value * (1.0 + reach(above.len()) * spread / 2.0).powi(2);
        1.0 - most_above - self.unseen()
    }

    fn unseen(&self) -> f64 {
        let count: usize = self.runs.iter().map(|run| run.len()).sum();
        UNSEEN / count as f64
    }

    /// The share of the times up to `time`, in each run.
    fn shares_up_to(&self, time: f64) -> Vec<f64> {
        let share_of = |run: &&[f64]| {
            let of_level = |level: &ServiceLevel| {
                level.share * run.partition_point(|other| *other <= time - level.time) as f64
            };
            self.added.iter().map(of_level).sum::<f64>() / run.len() as f64
        };
        self.runs.iter().map(share_of).collect()
    }
}
