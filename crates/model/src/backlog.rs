//! The backlog of an open loop (requests that are due but not answered), sampled during the run,
//! and whether it kept growing: an overload.
//!
//! The backlog shows an overload whatever the order of service, while response times grow only if
//! all requests wait their turn. If the server keeps up, the backlog comes and goes; in an overload
//! it grows all the time. The increments between parts of the run decide: if the backlog returns
//! they cancel out, and if it wanders their mean is within its own error.

use serde::{Deserialize, Serialize};

use crate::batch_width::{BatchWidth, MOST};
use crate::steadiness::{in_errors, mean};
use crate::{Nanos, Window};

/// Parts of the run whose increments are compared. The first is left out, because a run begins with
/// nothing in flight.
const PARTS: usize = 16;
/// Growth below this share of the offered rate is too small for a run to show.
const LEAST_GROWTH: f64 = 0.01;
/// Growth of this many standard errors counts as beyond chance. A false alarm comes once in fifty
/// runs if exactly as much is offered as the server can do, once in a thousand at 95 % of that.
const BEYOND_CHANCE: f64 = 3.0;
/// A backlog of fewer requests than this comes and goes.
const FEW: f64 = 5.0;

/// The samples of a lane's backlog, or of a whole run's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BacklogSamples {
    from: Nanos,
    /// The time between two samples.
    width: BatchWidth,
    all: Vec<u64>,
    next: Nanos,
    last_due: Nanos,
}

impl BacklogSamples {
    /// For a run with this measured window.
    pub fn new(window: Window) -> BacklogSamples {
        BacklogSamples {
            from: window.from,
            width: BatchWidth::new(window),
            all: Vec::with_capacity(MOST),
            next: window.from,
            last_due: window.from,
        }
    }

    /// When the next sample is due.
    #[inline]
    pub fn next(&self) -> Nanos {
        self.next
    }

    /// Takes the samples up to `now`. `backlog`: requests that are due but not answered.
    #[cold]
    pub fn take(&mut self, now: Nanos, backlog: u64) {
        while self.next <= now {
            if self.all.len() == MOST {
                if !self.width.can_double() {
                    self.next = Nanos::MAX;
                    return;
                }
                self.halve();
            } else {
                self.all.push(backlog);
            }
            self.next = self.from + self.width.now() * self.all.len() as u64;
        }
    }

    /// Says when the last request became due. No samples are taken after it, because there is no
    /// more load.
    pub fn end(&mut self, last_due: Nanos) {
        self.last_due = self.last_due.max(last_due);
        self.next = Nanos::MAX;
    }

    /// Leaves out every second sample.
    fn halve(&mut self) {
        let mut at = 0;
        self.all.retain(|_| {
            at += 1;
            at % 2 == 1
        });
        self.width.double();
    }

    /// Adds another lane's samples of the same run, as far as both have them.
    pub fn merge(&mut self, mut other: BacklogSamples) {
        while self.width.now() < other.width.now() {
            self.halve();
        }
        while other.width.now() < self.width.now() {
            other.halve();
        }
        self.all.truncate(other.all.len());
        self.all.iter_mut().zip(&other.all).for_each(|(mine, theirs)| *mine += theirs);
        self.last_due = self.last_due.max(other.last_due);
    }

    /// Whether they fit a run with this measured window; another process may have written anything.
    pub fn is_of(&self, window: Window) -> bool {
        self.width.is_of(window) && self.from == window.from && self.all.len() <= MOST + 1
    }

    /// The backlog of a run in which `requests` became due. `length`: the window, if the run was
    /// ended by time. `None` if the run is too short to tell.
    pub fn backlog(&self, requests: u64, length: Option<Nanos>) -> Option<Backlog> {
        let last = self.all.len().checked_sub(1).filter(|last| *last >= 2 * PARTS)?;
        // Include the gap after the last request.
        let by_count = || {
            self.last_due.saturating_sub(self.from).as_secs_f64()
                * (1.0 + 1.0 / (requests.max(2) - 1) as f64)
        };
        let over = length.unwrap_or_else(|| Nanos::from_secs_f64(by_count()));
        let ends: Vec<f64> = (1..=PARTS).map(|part| self.all[part * last / PARTS] as f64).collect();
        let increments: Vec<f64> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let count = increments.len() as f64;
        let step = mean(&increments);
        let variance = increments.iter().map(|increment| (increment - step).powi(2)).sum::<f64>()
            / (count - 1.0);
        let part = self.width.now().as_secs_f64() * last as f64 / PARTS as f64;
        (over > Nanos::ZERO).then(|| Backlog {
            over,
            offered: requests as f64 / over.as_secs_f64(),
            at_end: self.all[last],
            growth: step / part,
            error: (variance / count).sqrt() / part,
            late_growth: mean(&increments[increments.len() / 2..]) / part,
        })
    }
}

/// The backlog of an open loop over time: requests that were due but not answered, including those
/// that were given up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Backlog {
    /// For how long requests became due.
    #[serde(rename = "over_ns")]
    pub over: Nanos,
    /// Requests per second that became due in that time.
    #[serde(rename = "offered_per_s")]
    pub offered: f64,
    /// The backlog at its end.
    pub at_end: u64,
    /// Growth, in requests per second.
    #[serde(rename = "growth_per_s")]
    pub growth: f64,
    /// The standard error of the growth.
    #[serde(rename = "error_per_s")]
    pub error: f64,
    /// Growth in the second half.
    #[serde(rename = "late_growth_per_s")]
    pub late_growth: f64,
}

impl Backlog {
    /// Whether it kept growing, beyond chance.
    pub fn grows(&self) -> bool {
        self.growth > LEAST_GROWTH * self.offered
            && self.growth * self.over.as_secs_f64() >= FEW
            && in_errors(self.growth, self.error) >= BEYOND_CHANCE
            && self.late_growth >= self.growth / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::uniform;

    const LENGTH: Nanos = Nanos::from_secs(10);
    const WINDOW: Window = Window { from: Nanos::from_secs(1), until: Nanos::from_secs(11) };

    /// A run of ten seconds. `at`: the backlog at a time after the start, in seconds.
    fn run(window: Window, offered: u64, at: impl Fn(f64) -> f64) -> Backlog {
        let mut samples = BacklogSamples::new(window);
        for ms in 0..10_000 {
            let now = window.from + Nanos::from_millis(ms);
            if now >= samples.next() {
                samples.take(now, at(ms as f64 / 1e3) as u64);
            }
        }
        samples.end(window.from + LENGTH - LENGTH / (10 * offered));
        samples.backlog(10 * offered, (window.until != Nanos::MAX).then_some(LENGTH)).unwrap()
    }

    /// A random walk around 0 with independent steps, like random arrivals and responses.
    fn wandering(t: f64) -> f64 {
        (0..(t * 100.0) as u64).map(|n| if uniform(3, n) < 0.5 { -1.0 } else { 1.0 }).sum()
    }

    #[test]
    fn a_growing_backlog_is_told_apart_from_one_that_returns() {
        let endless = Window { until: Nanos::MAX, ..WINDOW };
        for window in [WINDOW, endless] {
            let of = |offered, at: &dyn Fn(f64) -> f64| run(window, offered, at);
            let overload = of(60, &|t| 17.2 * t);
            assert!(overload.grows() && (overload.growth - 17.2).abs() < 0.3, "{overload:?}");
            assert!(
                (overload.offered - 60.0).abs() < 0.1 && (169..=172).contains(&overload.at_end),
                "{overload:?}"
            );
            assert!(of(60, &|t| 40.0 + 17.2 * t).grows(), "it was already filled in the warm-up");
            assert!(
                of(1000, &|t| 200.0 + 100.0 * t + wandering(t)).grows(),
                "growth far beyond chance"
            );
            for (what, steady) in [
                ("a constant backlog", &(|_| 6.0) as &dyn Fn(f64) -> f64),
                ("it fills at the start", &|t| 20.0 * t.min(0.5)),
                ("a stall that is over", &|t| {
                    if (4.0..6.0).contains(&t) { 60.0 * (t - 4.0) } else { 0.0 }
                }),
                ("half of the run, then no more", &|t| 10.0 * t.min(5.0)),
                ("chance", &|t| 200.0 + wandering(t)),
                ("a request in a hundred seconds", &|t| t / 100.0),
            ] {
                assert!(!of(60, steady).grows(), "{what}");
            }
        }
    }

    #[test]
    fn merged_lanes_equal_one_lane_and_a_short_run_tells_nothing() {
        let lane = |millis: u64| {
            let mut samples = BacklogSamples::new(Window { from: Nanos::ZERO, until: Nanos::MAX });
            (0..millis).for_each(|ms| samples.take(Nanos::from_millis(ms), ms));
            samples.end(Nanos::from_millis(millis));
            samples
        };
        // A lane that ended earlier has more samples per second.
        let mut merged = lane(200);
        let mut other = lane(1000);
        other.merge(lane(200));
        merged.merge(lane(1000));
        assert_eq!(
            (&merged.all, merged.width, merged.last_due),
            (&other.all, other.width, other.last_due)
        );
        let expected: Vec<u64> = (0..merged.all.len() as u64)
            .map(|n| 2 * n * merged.width.now().0 / 1_000_000)
            .collect();
        assert_eq!(merged.all, expected);
        assert_eq!(merged.width.now(), Nanos::from_millis(8));
        assert_eq!(
            lane(3).backlog(120, Some(Nanos::from_secs(2))),
            None,
            "too short a run tells nothing"
        );
    }
}
