//! The metrics of a comparison: where each is in a run, why there may be none, and which direction
//! is worse.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, VariantArray};
use thiserror::Error;

use super::ComparisonRun;
use crate::{Nanos, Quantile};

/// A figure of a run that is compared, in the order in which they are shown. Its word is what one
/// types.
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
    /// Good answers per second.
    Throughput,
    /// The mean response time of the good answers, in seconds.
    Mean,
    /// Half of the response times are shorter, in seconds.
    P50,
    /// 95 % are shorter.
    P95,
    /// 99 % are shorter.
    P99,
    /// Share of the requests that failed, 0 to 1.
    Failed,
    /// CPU time of the server's processes a request, in seconds.
    Cpu,
    /// CPU time of longtail's own process a request, in seconds.
    GeneratorCpu,
    /// Memory of the server's processes after the run, in bytes.
    Memory,
    /// Share of the requests in the slow one of two groups; 0 where there is one group.
    Slow,
    /// How far the worker furthest from an even share is from it, 0 to 1 and above.
    Workers,
}

/// Why a run has no figure of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissingFigure {
    /// Too many requests failed.
    #[error("too many requests failed")]
    Failures,
    /// Too few answers.
    #[error("too few answers")]
    TooFewAnswers,
    /// More was offered than the server can do: the times grow as long as the run lasts.
    #[error("overloaded")]
    Overloaded,
    /// The machine does not tell, or there is nothing to tell of.
    #[error("not known")]
    NotKnown,
}

fn no_metric(word: &str) -> String {
    let all: Vec<String> = Metric::VARIANTS.iter().map(Metric::to_string).collect();
    format!("'{word}' is no metric: {}", all.join(", "))
}

/// A mean says nothing of a run in which more than this share of the requests failed.
const FAILED_AT_MOST: f64 = 0.01;

/// Fewer failures than this do not matter.
const FAILED_MARGIN: f64 = 0.001;

impl Metric {
    /// Whether less of it is worse.
    pub fn is_worse_when_less(self) -> bool {
        self == Metric::Throughput
    }

    /// Whether it is a share, which may be 0: two of them are subtracted and not divided. A ratio
    /// to 0 says nothing, and from 0.1 % to 0.2 % is not the same news as from 10 % to 20 %.
    pub fn is_share(self) -> bool {
        matches!(self, Metric::Failed | Metric::Slow | Metric::Workers)
    }

    /// The unit in which it is printed, and how many of that its figure's own unit is.
    pub(super) fn unit(self) -> (&'static str, f64) {
        match self {
            Metric::Throughput => ("/s", 1.0),
            Metric::Memory => ("MB", 1e-6),
            Metric::Failed | Metric::Slow | Metric::Workers => ("%", 100.0),
            _ => ("ms", 1e3),
        }
    }

    /// A difference up to this does not matter, where `margin` is the one of the plan: a part of
    /// the base's figure, or of shares so much of all requests. One failure in a thousand requests
    /// always matters.
    pub(super) fn margin(self, margin: f64) -> f64 {
        if self == Metric::Failed { margin.min(FAILED_MARGIN) } else { margin }
    }

    /// A difference of logarithms as a part of the base's figure; of shares it is one already.
    pub(super) fn relative(self, difference: f64) -> f64 {
        if self.is_share() { difference } else { difference.exp_m1() }
    }

    /// The figure of a run.
    ///
    /// # Errors
    /// Why there is none.
    pub fn of(self, run: &ComparisonRun) -> Result<f64, MissingFigure> {
        let (whole, tally) = (&run.run, &run.run.tally);
        let (counts, answers) = (&tally.counts, tally.all_responses());
        let failed = counts.failed() as f64 / counts.total().max(1) as f64;
        let is_overloaded = || whole.statistics.as_ref().is_some_and(|it| it.is_overload(tally));
        let a_request = |cpu: Option<Nanos>| match cpu {
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
            // A request without an answer may have taken any time, and some kinds of failure take
            // none.
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
            // How well one run knows it does not matter: blocks tell that.
            Metric::P50 | Metric::P95 | Metric::P99 => self
                .quantile()
                .map_or(Err(MissingFigure::NotKnown), |q| seconds(tally.response_time_at(q))),
            // A failure may have cost the server less than an answer, or more.
            Metric::Cpu | Metric::GeneratorCpu | Metric::Slow if failed > FAILED_AT_MOST => {
                Err(MissingFigure::Failures)
            }
            Metric::Cpu => a_request(run.server.cpu),
            Metric::GeneratorCpu => a_request(run.generator_cpu),
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

    /// Of a percentile: which part of the answers takes no longer.
    pub fn quantile(self) -> Option<f64> {
        match self {
            Metric::P50 => Some(0.50),
            Metric::P95 => Some(0.95),
            Metric::P99 => Some(0.99),
            _ => None,
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
