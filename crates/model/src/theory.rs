//! Theory compared with a run: the forecast with its inputs, what each order of service predicts
//! for a closed loop and which one the run resembles, and what an overload in open loop shows about
//! the server's capacity and slots.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Nanos;

pub use crate::service_time::{
    ClassAlone, LogNormalTime, LoneResponses, MeanAgain, ServiceTime, ServiceTimeSource,
};
pub use crate::usual_time::UsualTime;

/// An order of service: which request waits for which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Discipline {
    /// One queue for all slots: Puma 6 and older without keep-alive, Puma 7 and later with one
    /// worker.
    #[error("shared queue")]
    Shared,
    /// A queue for each worker: Puma 7 and later with several.
    #[error("split queues")]
    Split,
    /// A thread stays with a connection for ten requests, and all others wait in one queue: Puma 6
    /// and older with keep-alive.
    #[error("turns of ten")]
    Turns,
}

impl Discipline {
    /// All of them.
    pub const ALL: [Discipline; 3] = [Discipline::Shared, Discipline::Split, Discipline::Turns];
}

/// All orders of service compared with one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Theory {
    /// The order that this server should have by its version and settings; `None` if unknown.
    pub expected: Option<Discipline>,
    /// How far a figure may be from what an order allows and still fit, as a ratio.
    pub tolerance: f64,
    /// Why the run is not compared with any of them; `None` if it is.
    pub not_judged: Option<NotJudged>,
    /// Connections that each worker was seen to hold, the most first; `None` if that was not seen.
    /// If it was, there was no common queue for all workers.
    pub by_worker: Option<Vec<u32>>,
    /// Requests in a turn, if the server's configuration says other than ten.
    pub turn: Option<u32>,
    /// What each predicts, in the order of [`Discipline::ALL`]. With one worker, split queues equal
    /// a shared one and are left out.
    pub forecasts: Vec<DisciplineForecast>,
}

/// Why a run is not compared with any order of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotJudged {
    /// It is shorter than two turns of ten requests.
    #[error("the run is shorter than two turns of ten requests")]
    TooShort,
    /// Failures or too few responses leave no percentile above the median.
    #[error("it has no percentile above the median")]
    NoPercentiles,
    /// The generator, or nothing at all, was the limit; or the run is invalid.
    #[error("it did not measure the server")]
    NotTheServers,
    /// The number of workers and threads is unknown.
    #[error(
        "the number of workers is not known: give -w and -t (each worker's threads) instead of \
         --slots"
    )]
    ShapeUnknown,
    /// The app takes many times longer for some requests than for most, even when none waits for
    /// another.
    #[error(
        "the app takes many times longer for some requests than for most, even when none waits: long times need not come from the server's order"
    )]
    AppScatters,
    /// CPUs were the limit: requests share them instead of each holding a thread for its own time.
    #[error("its requests wait for a CPU, not only for a thread")]
    Computes,
}

/// What one order of service predicts for a run, and how far off the measurement is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DisciplineForecast {
    /// Which.
    pub discipline: Discipline,
    /// Requests per second.
    #[serde(rename = "rate_per_s")]
    pub rate: f64,
    /// Mean response time, by Little's law.
    #[serde(rename = "mean_ns")]
    pub mean: Nanos,
    /// Percentiles of the response time, rising.
    pub percentiles: Vec<PercentileRange>,
    /// How well it fits, with the service time of the forecast; `None` if the run is not judged.
    pub fit: Option<DisciplineFit>,
    /// The same by the shape of the distribution alone: with the service time that explains the
    /// measured rate.
    pub shape: Option<DisciplineFit>,
}

/// The values that an order of service allows for a percentile: a range if it lies between two
/// levels, or depends on chance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PercentileRange {
    /// The percentile, 0 to 1.
    pub quantile: f64,
    /// The least.
    #[serde(rename = "low_ns")]
    pub low: Nanos,
    /// The most.
    #[serde(rename = "high_ns")]
    pub high: Nanos,
}

impl PercentileRange {
    /// How far off `time` is: 0 if within, 0.04 if 4 % above the most, -0.04 if 4 % below the
    /// least.
    pub fn residual(&self, time: Nanos) -> f64 {
        let off = |end: Nanos| time.as_secs_f64() / end.as_secs_f64() - 1.0;
        if time > self.high && self.high > Nanos::ZERO {
            off(self.high)
        } else if time < self.low {
            off(self.low)
        } else {
            0.0
        }
    }
}

/// How well an order of service fits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DisciplineFit {
    /// For how long a request holds a slot, in this computation.
    #[serde(rename = "held_ns")]
    pub held: Nanos,
    /// How far off the worst figure is from what is allowed, as a ratio; 1 is within.
    pub worst: f64,
    /// The percentile that is furthest off, 0 to 1; `None` if it is the rate.
    pub worst_at: Option<f64>,
}

/// What a run looks like.
#[derive(Clone, Debug, PartialEq)]
pub enum Resemblance {
    /// These orders of service, with the known service time: one, or several that can't be told
    /// apart.
    These(Vec<Discipline>),
    /// None with the known service time, but these by the shape alone.
    ShapeOf(Vec<Discipline>),
    /// None.
    Nothing,
    /// It was not judged.
    Unknown(NotJudged),
}

impl Theory {
    /// For a run that can't be compared with any order of service.
    pub fn not_judged(why: NotJudged, tolerance: f64) -> Theory {
        Theory {
            expected: None,
            tolerance,
            not_judged: Some(why),
            by_worker: None,
            turn: None,
            forecasts: Vec::new(),
        }
    }

    /// The forecast of one order of service.
    pub fn forecast(&self, discipline: Discipline) -> Option<&DisciplineForecast> {
        self.forecasts.iter().find(|forecast| forecast.discipline == discipline)
    }

    /// What the run looks like.
    pub fn resemblance(&self) -> Resemblance {
        if let Some(why) = self.not_judged {
            return Resemblance::Unknown(why);
        }
        let fitting = |of: fn(&DisciplineForecast) -> Option<DisciplineFit>| -> Vec<Discipline> {
            let fits = |forecast: &&DisciplineForecast| {
                of(forecast).is_some_and(|fit| fit.worst <= self.tolerance)
            };
            self.forecasts.iter().filter(fits).map(|forecast| forecast.discipline).collect()
        };
        let exactly = fitting(|forecast| forecast.fit);
        if !exactly.is_empty() {
            return Resemblance::These(exactly);
        }
        let by_shape = fitting(|forecast| forecast.shape);
        if by_shape.is_empty() { Resemblance::Nothing } else { Resemblance::ShapeOf(by_shape) }
    }

    /// The forecast to show: the expected one, otherwise the one that fits, otherwise that of a
    /// shared queue.
    pub fn shown(&self) -> Option<&DisciplineForecast> {
        let fitting = match self.resemblance() {
            Resemblance::These(these) | Resemblance::ShapeOf(these) => these.first().copied(),
            Resemblance::Nothing | Resemblance::Unknown(_) => None,
        };
        self.forecast(self.expected.or(fitting).unwrap_or(Discipline::Shared))
    }
}

/// Before a sweep (`--probe-discipline`): a short closed loop at three times the slots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DisciplineProbe {
    /// Whether its connections carried more than one request.
    pub keep_alive: bool,
    /// Its connections.
    pub connections: u32,
    /// Its length, the warm-up not included.
    #[serde(rename = "measured_ns")]
    pub measured: Nanos,
    /// Good responses.
    pub answers: u64,
    /// What theory says about it; `None` if no service time is known.
    pub theory: Option<Theory>,
}

/// The order of service that the runs of a study show together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferredDiscipline {
    /// Runs that were judged, with more connections than slots.
    pub runs: usize,
    /// Orders of service that fit all of them; empty if no model fits.
    pub disciplines: Vec<Discipline>,
    /// Whether at least one run fits by its shape alone.
    pub by_shape: bool,
}

impl InferredDiscipline {
    /// From these theories; `None` if no run was judged.
    pub(crate) fn of<'a>(theories: impl Iterator<Item = &'a Theory>) -> Option<InferredDiscipline> {
        let mut inferred =
            InferredDiscipline { runs: 0, disciplines: Discipline::ALL.to_vec(), by_shape: false };
        for theory in theories {
            let fitting = match theory.resemblance() {
                Resemblance::Unknown(_) => continue,
                Resemblance::Nothing => Vec::new(),
                Resemblance::These(these) => these,
                Resemblance::ShapeOf(these) => {
                    inferred.by_shape = true;
                    these
                }
            };
            inferred.runs += 1;
            inferred.disciplines.retain(|discipline| fitting.contains(discipline));
        }
        (inferred.runs > 0).then_some(inferred)
    }
}

/// The expectation for one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// How long one request holds a slot.
    #[serde(rename = "service_time_ns")]
    pub service_time: Nanos,
    /// The highest possible rate, in requests per second: slots / service time.
    #[serde(rename = "maximum_rate_per_s")]
    pub maximum_rate: f64,
    /// What every request would take if all waited in one queue: service time x max(1, connections
    /// / slots).
    #[serde(rename = "ideal_response_time_ns")]
    pub ideal_response_time: Nanos,
}

/// A figure with its error (95 %).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The best guess.
    pub value: f64,
    /// Half the width of its interval.
    pub half_width: f64,
}

/// What an overload at a constant rate shows about the server, by response times that kept growing,
/// otherwise by the backlog.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overload {
    /// The offered rate, in requests per second.
    #[serde(rename = "offered_per_s")]
    pub offered: f64,
    /// Growth of the response time, in seconds per second of due time; `None` if only some requests
    /// got slower.
    pub growth: Option<f64>,
    /// Growth of the backlog, in requests per second.
    #[serde(rename = "backlog_growth_per_s")]
    pub backlog_growth: f64,
    /// The backlog when the last request became due.
    pub backlog_at_end: u64,
    /// The server's capacity, in requests per second: offered / (1 + growth), or offered - growth
    /// of the backlog.
    #[serde(rename = "capacity_per_s")]
    pub capacity: Estimate,
    /// Responses per second: the capacity by counting.
    #[serde(rename = "answered_per_s")]
    pub answered: f64,
    /// How long a request holds a slot, as stated by the user (`--service`).
    #[serde(rename = "service_time_ns")]
    pub service_time: Option<Nanos>,
    /// Capacity x service time.
    pub slots: Option<Estimate>,
    /// Why these figures should not be trusted; `None` if there is no reason.
    pub doubt: Option<OverloadDoubt>,
}

/// Reasons against an inferred capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverloadDoubt {
    /// Some requests have no good response, and so no response time that could have grown.
    Failures,
    /// The counted rate differs: response times did not grow linearly.
    Disagreement,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn theory(fits: [f64; 3], shapes: [f64; 3]) -> Theory {
        let ms = Nanos::from_millis;
        let fit = |worst| Some(DisciplineFit { held: ms(100), worst, worst_at: Some(0.99) });
        let forecast = |at: usize| DisciplineForecast {
            discipline: Discipline::ALL[at],
            rate: 10.0,
            mean: ms(100),
            percentiles: vec![PercentileRange { quantile: 0.99, low: ms(100), high: ms(200) }],
            fit: fit(fits[at]),
            shape: fit(shapes[at]),
        };
        let forecasts = (0..3).map(forecast).collect();
        Theory { forecasts, not_judged: None, ..Theory::not_judged(NotJudged::TooShort, 1.1) }
    }

    #[test]
    fn a_fit_with_the_known_service_time_beats_a_fit_by_shape() {
        let [shared, split, turns] = Discipline::ALL;
        assert_eq!(
            theory([1.0, 1.1, 5.0], [1.0; 3]).resemblance(),
            Resemblance::These(vec![shared, split])
        );
        assert_eq!(
            theory([2.0, 2.0, 2.0], [2.0, 2.0, 1.05]).resemblance(),
            Resemblance::ShapeOf(vec![turns])
        );
        assert_eq!(theory([2.0; 3], [2.0; 3]).resemblance(), Resemblance::Nothing);
        let unknown =
            Theory { not_judged: Some(NotJudged::TooShort), ..theory([1.0; 3], [1.0; 3]) };
        assert_eq!(unknown.resemblance(), Resemblance::Unknown(NotJudged::TooShort));
    }

    #[test]
    fn the_expected_forecast_is_shown_or_else_one_that_fits() {
        let shown = |theory: &Theory| theory.shown().unwrap().discipline;
        let fits_turns = theory([2.0, 2.0, 1.0], [2.0; 3]);
        assert_eq!(shown(&fits_turns), Discipline::Turns);
        assert_eq!(
            shown(&Theory { expected: Some(Discipline::Split), ..fits_turns }),
            Discipline::Split
        );
        assert_eq!(shown(&theory([2.0; 3], [2.0; 3])), Discipline::Shared);
    }
}
