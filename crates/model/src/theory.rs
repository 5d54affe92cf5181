//! Theory beside a run, with its inputs named: the forecast, what each order of service predicts
//! for a closed loop and which the run resembles, and what an overload in open loop says of the
//! server's capacity and slots.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Nanos;

pub use crate::service_time::{
    LogNormalTime, LoneResponses, MeanAgain, ServiceTime, ServiceTimeSource,
};
pub use crate::usual_time::UsualTime;

/// An order of service: who waits for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Discipline {
    /// One line for all slots: Puma up to 6 without keep-alive, any Puma from 7 with one worker.
    #[error("shared queue")]
    Shared,
    /// Each worker has a line: Puma from 7 with several.
    #[error("split queues")]
    Split,
    /// A thread stays with a connection for ten requests, and all others wait in one line: Puma up
    /// to 6 with keep-alive.
    #[error("turns of ten")]
    Turns,
}

impl Discipline {
    /// All of them.
    pub const ALL: [Discipline; 3] = [Discipline::Shared, Discipline::Split, Discipline::Turns];
}

/// All orders of service beside one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Theory {
    /// The order that this server has by its version and settings; `None` where that is not known.
    pub expected: Option<Discipline>,
    /// How far off a figure may be from what an order allows and still fit, as a ratio.
    pub tolerance: f64,
    /// Why the run is held against none of them; `None` where it is.
    pub not_judged: Option<NotJudged>,
    /// Connections that each worker was seen to hold, the most first; `None` if that was not seen.
    /// They did not wait in one line for all workers.
    pub by_worker: Option<Vec<u32>>,
    /// Requests in a turn, where the server's configuration says other than ten.
    pub turn: Option<u32>,
    /// What each says, in the order of [`Discipline::ALL`]; with one worker split queues are a
    /// shared one, and left out.
    pub forecasts: Vec<DisciplineForecast>,
}

/// Why a run is not held against any order of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotJudged {
    /// It was over before two turns of ten requests were.
    #[error("the run is shorter than two turns of ten requests")]
    TooShort,
    /// Failures, or too few responses, leave no percentile above the median.
    #[error("it has no percentile above the median")]
    NoPercentiles,
    /// The generator, or nothing at all, was the limit; or the run is void.
    #[error("it was not the server that was measured")]
    NotTheServers,
    /// How many workers and threads the server has is not known.
    #[error(
        "how many workers the server has is not known: give -w and -t (each worker's threads) in place of --slots"
    )]
    ShapeUnknown,
    /// The app takes many times longer for some requests than for most, also where none has to
    /// wait.
    #[error(
        "some requests take the app many times longer than most, also where none waits: long times need not be the server's order"
    )]
    AppScatters,
    /// CPUs were the limit: requests share them, and hold no thread for a time of their own.
    #[error("its requests wait for a CPU, and not for a thread alone")]
    Computes,
}

/// What one order of service says of a run, and how far off the measurement is.
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
    /// How well it fits, with the service time of the forecast; `None` where the run is not judged.
    pub fit: Option<DisciplineFit>,
    /// The same by the shape of the distribution alone: with the service time that explains the
    /// measured rate.
    pub shape: Option<DisciplineFit>,
}

/// What an order of service allows a percentile to be. It is a range if the percentile lies between
/// two levels, or depends on chance.
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
    /// How far off `time` is: 0 within, 0.04 where it is 4 % above the most, -0.04 where it is 4 %
    /// below the least.
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
    /// For how long a request holds a slot, as this was computed.
    #[serde(rename = "held_ns")]
    pub held: Nanos,
    /// The figure that is farthest off: its distance from what is allowed, as a ratio; 1 is within.
    pub worst: f64,
    /// The percentile that is, 0 to 1; `None`: it is the rate.
    pub worst_at: Option<f64>,
}

/// What a run looks like.
#[derive(Clone, Debug, PartialEq)]
pub enum Resemblance {
    /// These orders of service, with the known service time: one, or several that the run does not
    /// tell apart.
    These(Vec<Discipline>),
    /// None with the known service time; by the shape alone these.
    ShapeOf(Vec<Discipline>),
    /// None.
    Nothing,
    /// It was not judged.
    Unknown(NotJudged),
}

impl Theory {
    /// Of a run that cannot be held against any order of service.
    pub fn not_judged(why: NotJudged, tolerance: f64) -> Theory {
        let (expected, forecasts) = (None, Vec::new());
        Theory {
            expected,
            tolerance,
            not_judged: Some(why),
            by_worker: None,
            turn: None,
            forecasts,
        }
    }

    /// The forecast of one.
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

    /// The forecast to show: the expected one; else the one that fits; else that of a shared queue.
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
    /// What theory says of it; `None` where no service time is known.
    pub theory: Option<Theory>,
}

/// What the runs of a study say together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferredDiscipline {
    /// Runs that were judged, with more connections than slots.
    pub runs: usize,
    /// Orders of service that fit all of them; empty: no model fits.
    pub disciplines: Vec<Discipline>,
    /// Whether at least one run fits by its shape alone.
    pub by_shape: bool,
}

impl InferredDiscipline {
    /// By these theories; `None` where no run was judged.
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
    /// How long a slot is held by one request.
    #[serde(rename = "service_time_ns")]
    pub service_time: Nanos,
    /// The highest possible rate, in requests per second: slots / service time.
    #[serde(rename = "maximum_rate_per_s")]
    pub maximum_rate: f64,
    /// What every request would take if all waited their turn in one line: service time x max(1,
    /// connections / slots).
    #[serde(rename = "ideal_response_time_ns")]
    pub ideal_response_time: Nanos,
}

/// A figure, and how far off chance may have put it (95 %).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The best guess.
    pub value: f64,
    /// How far off it may be.
    pub half_width: f64,
}

/// What an overload at one rate says of the server: response times that grew all along, or else the
/// backlog.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overload {
    /// What was due, in requests per second.
    #[serde(rename = "offered_per_s")]
    pub offered: f64,
    /// Growth of the response time, in seconds per second of due time; `None` where only some got
    /// slower.
    pub growth: Option<f64>,
    /// Growth of the backlog, in requests a second.
    #[serde(rename = "backlog_growth_per_s")]
    pub backlog_growth: f64,
    /// The backlog when the last request became due.
    pub backlog_at_end: u64,
    /// What the server does, in requests per second: offered / (1 + growth), or offered - growth of
    /// the backlog.
    #[serde(rename = "capacity_per_s")]
    pub capacity: Estimate,
    /// What was answered, in requests per second: the same by counting.
    #[serde(rename = "answered_per_s")]
    pub answered: f64,
    /// For how long a request holds a slot, by the user's word (`--service`).
    #[serde(rename = "service_time_ns")]
    pub service_time: Option<Nanos>,
    /// Capacity x service time.
    pub slots: Option<Estimate>,
    /// Why these figures are not to be trusted; `None` where nothing speaks against them.
    pub doubt: Option<OverloadDoubt>,
}

/// What speaks against an inferred capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverloadDoubt {
    /// Requests have no good response, and so no response time that could have grown.
    Failures,
    /// What was counted is another figure: response times did not grow along a line.
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
    fn what_fits_with_the_known_service_time_goes_before_the_shape() {
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
    fn the_expected_one_is_shown_and_else_what_fits() {
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
