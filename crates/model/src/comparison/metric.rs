//! The metrics of a comparison: how to read each from a run, why it may be missing, and which
//! direction is worse.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, VariantArray};
use thiserror::Error;

use super::ComparisonRun;
use crate::{Nanos, Quantile};

/// A figure of a run that can be compared, in display order. Its word is what a user types.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "kebab-case", parse_err_ty = String, parse_err_fn = no_metric)]
pub enum Metric {
    /// Good responses per second.
    Throughput,
    /// The mean response time of the good responses, in seconds.
    Mean,
    /// The median response time, in seconds.
    P50,
    /// The 95th percentile of the response times, in seconds.
    P95,
    /// The 99th percentile of the response times, in seconds.
    P99,
    /// Share of the requests that failed, 0 to 1.
    Failed,
    /// CPU time of the server's processes per request, in seconds.
    Cpu,
    /// CPU time of longtail's own process per request, in seconds.
    GeneratorCpu,
    /// Memory of the server's processes after the run, in bytes.
    Memory,
    /// Share of the requests in the slow one of two groups; 0 if there is one group.
    Slow,
    /// The largest deviation of a worker from an even share, 0 to 1 or more.
    Workers,
}

/// Why a run has no figure of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissingFigure {
    /// Too many requests failed.
    #[error("too many requests failed")]
    Failures,
    /// Too few responses.
    #[error("too few responses")]
    TooFewAnswers,
    /// More was offered than the server can do: the times grow as long as the run lasts.
    #[error("overloaded")]
    Overloaded,
    /// The machine doesn't report it, or there is nothing to report.
    #[error("not known")]
    NotKnown,
}

fn no_metric(word: &str) -> String {
    let all: Vec<String> = Metric::VARIANTS.iter().map(Metric::to_string).collect();
    format!("'{word}' is not a metric: {}", all.join(", "))
}

/// A mean says nothing if more than this share of the requests failed.
const FAILED_AT_MOST: f64 = 0.01;

/// Fewer failures than this do not matter.
const FAILED_MARGIN: f64 = 0.001;

impl Metric {
    /// Whether a smaller value is worse.
    pub fn is_worse_when_less(self) -> bool {
        self == Metric::Throughput
    }

    /// Whether it is a share, which may be 0: shares are subtracted, not divided. A ratio to 0 says
    /// nothing, and 0.2 % instead of 0.1 % is not the same as 20 % instead of 10 %.
    pub fn is_share(self) -> bool {
        matches!(self, Metric::Failed | Metric::Slow | Metric::Workers)
    }

    /// The unit for printing, and the factor from the figure's own unit.
    pub(super) fn unit(self) -> (&'static str, f64) {
        match self {
            Metric::Throughput => ("/s", 1.0),
            Metric::Memory => ("MB", 1e-6),
            Metric::Failed | Metric::Slow | Metric::Workers => ("%", 100.0),
            Metric::Mean
            | Metric::P50
            | Metric::P95
            | Metric::P99
            | Metric::Cpu
            | Metric::GeneratorCpu => ("ms", 1e3),
        }
    }

    /// A difference up to this does not matter. `margin`: the plan's margin, relative to the base's
    /// figure, or for shares a share of all requests. One failure in a thousand requests always
    /// matters.
    pub(super) fn margin(self, margin: f64) -> f64 {
        if self == Metric::Failed { margin.min(FAILED_MARGIN) } else { margin }
    }

    /// A difference of an arm from the base, turned round: of the base from the arm.
    pub(super) fn turned(self, part: f64) -> f64 {
        if self.is_share() { -part } else { 1.0 / (1.0 + part) - 1.0 }
    }

    /// A difference of logarithms, relative to the base's figure; shares stay as they are.
    pub(super) fn relative(self, difference: f64) -> f64 {
        if self.is_share() { difference } else { difference.exp_m1() }
    }

    /// The figure of a run.
    ///
    /// # Errors
    /// Why there is no figure.
    pub fn of(self, run: &ComparisonRun) -> Result<f64, MissingFigure> {
        let whole = &run.run;
        let tally = &run.run.tally;
        let counts = &tally.counts;
        let answers = tally.all_responses();
        let failed = counts.failed() as f64 / counts.total().max(1) as f64;
        let is_overloaded = || whole.statistics.as_ref().is_some_and(|it| it.is_overload(tally));
        let per_request = |cpu: Option<Nanos>| match cpu {
            _ if answers == 0 => Err(MissingFigure::TooFewAnswers),
            Some(cpu) => Ok(cpu.as_secs_f64() / answers as f64),
            None => Err(MissingFigure::NotKnown),
        };
        match self {
            _ if counts.total() == 0 => Err(MissingFigure::TooFewAnswers),
            Metric::Throughput if whole.completed_rate() <= 0.0 => {
                Err(MissingFigure::TooFewAnswers)
            }
            Metric::Throughput => Ok(whole.completed_rate()),
            // A request without a response may have taken any time, and some failures take none.
            Metric::Mean if failed > FAILED_AT_MOST || counts.censored() > 0 => {
                Err(MissingFigure::Failures)
            }
            Metric::Mean | Metric::P50 | Metric::P95 | Metric::P99 if is_overloaded() => {
                Err(MissingFigure::Overloaded)
            }
            Metric::Mean => whole
                .mean_response_time()
                .map(Nanos::as_secs_f64)
                .ok_or(MissingFigure::TooFewAnswers),
            // The uncertainty within a run does not matter; the differences between blocks show it.
            Metric::P50 | Metric::P95 | Metric::P99 => self
                .quantile()
                .map_or(Err(MissingFigure::NotKnown), |q| seconds(tally.response_time_at(q))),
            // A failure may have cost the server less than a response, or more.
            Metric::Cpu | Metric::GeneratorCpu | Metric::Slow if failed > FAILED_AT_MOST => {
                Err(MissingFigure::Failures)
            }
            Metric::Cpu => per_request(run.server.cpu),
            Metric::GeneratorCpu => per_request(run.generator_cpu),
            Metric::Memory => {
                run.server.memory_bytes.map(|bytes| bytes as f64).ok_or(MissingFigure::NotKnown)
            }
            Metric::Failed => Ok(failed),
            Metric::Slow => {
                Ok(tally.response_time.two_groups().map_or(0.0, |groups| groups.slow_share))
            }
            Metric::Workers => {
                let deviations = whole.worker_deviations();
                let furthest =
                    deviations.iter().map(|deviation| deviation.abs()).max_by(f64::total_cmp);
                furthest.filter(|_| deviations.len() > 1).ok_or(MissingFigure::NotKnown)
            }
        }
    }

    /// The figure of a run, if it is a percentile that the run alone has too few independent responses
    /// for. As the run's own figure it is exact, and how far it varies from run to run, the blocks
    /// show; so it is compared, but says little about what another run would have.
    pub fn of_few(self, run: &ComparisonRun) -> Option<f64> {
        let is_of_few = run.run.response_time(self.quantile()?) == Quantile::TooFew;
        self.of(run).ok().filter(|_| is_of_few)
    }

    /// The metric that is this percentile.
    pub fn of_quantile(quantile: f64) -> Option<Metric> {
        Metric::VARIANTS.iter().copied().find(|metric| metric.quantile() == Some(quantile))
    }

    /// For a percentile: the share of the responses that take no longer.
    pub fn quantile(self) -> Option<f64> {
        match self {
            Metric::P50 => Some(0.50),
            Metric::P95 => Some(0.95),
            Metric::P99 => Some(0.99),
            Metric::Throughput
            | Metric::Mean
            | Metric::Failed
            | Metric::Cpu
            | Metric::GeneratorCpu
            | Metric::Memory
            | Metric::Slow
            | Metric::Workers => None,
        }
    }
}

fn seconds(quantile: Quantile) -> Result<f64, MissingFigure> {
    match quantile {
        Quantile::Time(time) => Ok(time.as_secs_f64()),
        Quantile::Unanswered => Err(MissingFigure::Failures),
        Quantile::TooFew => Err(MissingFigure::TooFewAnswers),
        Quantile::Growing => Err(MissingFigure::Overloaded),
        Quantile::NotPrinted => Err(MissingFigure::NotKnown),
    }
}
