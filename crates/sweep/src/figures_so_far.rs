//! The rate and the response times of a run that goes on, for whoever watches it.

use std::time::Duration;

use engine::RunProgress;
use model::Nanos;

/// The figures of a run so far.
#[derive(Clone, Copy, Debug)]
pub struct FiguresSoFar {
    /// Requests that ended per second since the figures before these.
    pub rate_per_s: f64,
    /// Median of the response times; `None` if it is not known yet.
    pub p50: Option<Nanos>,
    /// Their 99th percentile.
    pub p99: Option<Nanos>,
}

/// Computes them now and then.
#[derive(Debug, Default)]
pub struct FiguresMeter {
    /// When they were computed last, since the run was first shown.
    at: Duration,
    /// How many requests had ended then.
    ended: u64,
}

impl FiguresMeter {
    /// How often the figures are computed: for that, every generator thread has to copy its tally.
    pub const REFRESH: Duration = Duration::from_secs(2);

    /// New figures, `now` after the run was first shown, if those before are old enough.
    pub fn read(&mut self, progress: &RunProgress, now: Duration) -> Option<FiguresSoFar> {
        let passed = now.saturating_sub(self.at);
        if passed < FiguresMeter::REFRESH {
            return None;
        }
        let ended = progress.ended();
        let rate_per_s = ended.saturating_sub(self.ended) as f64 / passed.as_secs_f64();
        let tally = progress.tally();
        let response_time =
            |quantile| tally.as_ref().and_then(|tally| tally.response_time_at(quantile).time());
        self.at = now;
        self.ended = ended;
        Some(FiguresSoFar { rate_per_s, p50: response_time(0.5), p99: response_time(0.99) })
    }
}
