//! The rate and the response times of a run that goes on, for whoever watches it.

use std::time::Duration;

use engine::RunProgress;
use model::{Nanos, Tally};

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
        let response_time = |quantile| response_time_so_far(tally.as_ref()?, quantile);
        self.at = now;
        self.ended = ended;
        Some(FiguresSoFar { rate_per_s, p50: response_time(0.5), p99: response_time(0.99) })
    }
}

/// Responses above a percentile before it is shown. Responses depend on each other, and the report
/// leaves out a percentile above which fewer than one independent response is expected: what was
/// shown meanwhile should be there, too.
const ENOUGH_ABOVE: f64 = 10.0;

/// A percentile of the response times so far, if enough responses are above it.
fn response_time_so_far(tally: &Tally, quantile: f64) -> Option<Nanos> {
    let above = tally.population() as f64 * (1.0 - quantile);
    tally.response_time_at(quantile).time().filter(|_| above >= ENOUGH_ABOVE - 1e-9)
}

#[cfg(test)]
mod tests {
    use model::{Exchange, Outcome, Window};

    use super::*;

    #[test]
    fn a_percentile_is_shown_when_enough_responses_are_above_it() {
        let window = Window { from: Nanos::ZERO, until: Nanos::from_secs(100) };
        let mut tally = Tally::new(window, 1);
        let mut shown = Vec::new();
        for n in 1..=1000 {
            let sent = Nanos::from_millis(50 * n);
            let ended = sent + Nanos::from_millis(20);
            let outcome = Outcome::Answered(200);
            tally.record(&Exchange { due: sent, sent, ended, received_bytes: 0, outcome }, 0);
            if [19, 20, 999, 1000].contains(&n) {
                let [p50, p99] = [0.5, 0.99].map(|q| response_time_so_far(&tally, q).is_some());
                shown.push((n, p50, p99));
            }
        }
        let expected =
            [(19, false, false), (20, true, false), (999, true, false), (1000, true, true)];
        assert_eq!(shown, expected);
    }
}
