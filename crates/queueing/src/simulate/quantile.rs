//! Quantiles of simulated times, with an interval that also holds where times come in jumps.
//!
//! Where requests take one of two times, each run's quantile is one or the other by chance: their
//! mean is a time that nobody has, and Student's t knows nothing of it. The *share* of the times up
//! to `t` is a mean at any `t`. So the interval is that of the times whose share may be the asked
//! one; its ends lie where they lie (Woodruff, "Confidence intervals for medians and other position
//! measures", JASA 47, 1952).

use model::steadiness::mean;

use super::{MeanOfRuns, reach};
use crate::numeric::{QueueingError, first_where, share};

/// A quantile with its 95 % interval, whose ends may lie at different distances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantileEstimate {
    /// The quantile of what was simulated.
    pub value: f64,
    /// It is hardly less.
    pub low: f64,
    /// It is hardly more; infinite where too few times lie above it to tell.
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

/// What `n` times do not show may still be in `3 / n` of all (95 %, the rule of three).
const UNSEEN: f64 = 3.0;

/// Times that differ by less, as a share, are the same time and the rounding of its sums.
const ROUNDING: f64 = 1e-9;

/// Times of independent runs, to each of which one of some levels is added by chance. The levels'
/// shares are exact, so that of a response time only the wait is known by simulation.
pub(super) struct SimulatedTimes<'a> {
    /// Ascending, of each run.
    runs: Vec<&'a [f64]>,
    added: &'a [ServiceLevel],
}

impl<'a> SimulatedTimes<'a> {
    /// The times as they are.
    pub(super) fn alone(runs: Vec<&'a [f64]>) -> SimulatedTimes<'a> {
        SimulatedTimes { runs, added: &[NOTHING] }
    }

    /// Each with one of these levels added.
    pub(super) fn with(runs: Vec<&'a [f64]>, added: &'a [ServiceLevel]) -> SimulatedTimes<'a> {
        SimulatedTimes { runs, added }
    }

    /// The quantile of all runs' times together, and between which times it lies: those whose share
    /// may be `at`.
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

    /// The first time for which that holds, which does for all later ones; infinite where it is
    /// later than all.
    fn first_time(&self, holds: impl Fn(f64) -> bool) -> f64 {
        let longest_added = self.added.iter().map(|level| level.time).fold(0.0, f64::max);
        let longest = self.runs.iter().filter_map(|run| run.last()).copied().fold(0.0, f64::max);
        // Rounded up, so that no sum is more than this.
        let most = (longest + longest_added) * (1.0 + ROUNDING);
        if holds(0.0) {
            0.0
        } else if holds(most) {
            first_where(0.0, most, holds)
        } else {
            f64::INFINITY
        }
    }

    /// The share of the times up to `time` is hardly more than this.
    fn most_up_to(&self, time: f64) -> f64 {
        let estimate = MeanOfRuns::of(&self.shares_up_to(time)).interval();
        estimate.value + estimate.half_width + self.unseen()
    }

    /// Nor is it less than this. Long times come in bursts, and there may be one more burst, as
    /// large as the largest, among those above: so the interval of what is rare has its longer end
    /// at more of it (Fay and Feuer, "Confidence intervals for directly standardized rates",
    /// Statistics in Medicine 16, 1997; the quantile of their gamma law by its square root, which
    /// is nearly normal).
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
