//! Predicts the times of one queue: by a formula if there is one, else by a simulation.

use model::DelayLaw;
use model::theory::Estimate;

use super::server::PredictedServer;
use super::times::{PredictedTime, TimeSummary, WaitAndResponse};
use crate::closed_loop::{ResponseLevel, quantile};
use crate::mdc::{ConstantServiceQueue, MOST_SLOTS};
use crate::open_loop::{ErlangQueue, SteadyQueue};
use crate::simulate::{self, QuantileEstimate, ServiceLevel, Simulated};
use crate::{OfferedLoad, QueueingError};

/// A percentile this near to the next level may be on either.
const EDGE: f64 = 1e-9;

/// One queue whose times are known.
pub(crate) enum QueueModel {
    /// By a formula.
    Exact {
        /// Its name in Kendall's letters.
        formula: &'static str,
        queue: Box<dyn SteadyQueue>,
    },
    /// Response times that are whole multiples of one constant service time.
    Levels {
        levels: Vec<ResponseLevel>,
        service: f64,
    },
    Simulated(SimulatedQueue),
}

/// A simulation's times, and what is known of the queue without simulating it.
pub(crate) struct SimulatedQueue {
    pub(crate) times: Simulated,
    /// Mean service time in seconds.
    pub(crate) service: f64,
    /// The service times, if there are only one or two.
    pub(crate) levels: Option<Vec<ServiceLevel>>,
    /// Mean response time in seconds, if Little's law gives it.
    pub(crate) mean_response: Option<f64>,
}

impl SimulatedQueue {
    fn means(&self) -> WaitAndResponse<PredictedTime> {
        if let Some(response) = self.mean_response {
            let means = WaitAndResponse { wait: response - self.service, response };
            return means.map(PredictedTime::exact);
        }
        // The mean service time is exact, so a response time is as uncertain as its wait.
        let wait = self.times.mean_wait();
        let response = Estimate { value: wait.value + self.service, ..wait };
        WaitAndResponse { wait, response }.map(PredictedTime::mean)
    }

    fn quantiles(&self, share: f64) -> Result<WaitAndResponse<PredictedTime>, QueueingError> {
        let wait = self.times.wait_quantile(share)?;
        let response = match &self.levels {
            Some(levels) => self.times.response_quantile_of(levels, share)?,
            None => self.times.response_quantile(share)?,
        };
        Ok(WaitAndResponse { wait, response }.map(PredictedTime::quantile))
    }
}

impl QueueModel {
    /// Random arrivals: M/D/c and M/M/c by their formulas, other laws simulated.
    pub(crate) fn open(
        server: &PredictedServer,
        load: OfferedLoad,
    ) -> Result<QueueModel, QueueingError> {
        match server.law {
            DelayLaw::Constant(_) if load.slots() <= MOST_SLOTS => Ok(QueueModel::Exact {
                formula: "M/D",
                queue: Box::new(ConstantServiceQueue::new(load)?),
            }),
            DelayLaw::Exponential { .. } => {
                Ok(QueueModel::Exact { formula: "M/M", queue: Box::new(ErlangQueue::new(load)?) })
            }
            DelayLaw::Constant(_)
            | DelayLaw::Uniform { .. }
            | DelayLaw::Bimodal { .. }
            | DelayLaw::LogNormal { .. } => {
                let gaps = simulate::exponential(1.0 / load.rate());
                let effort = server.open_effort(load.utilisation());
                Ok(QueueModel::Simulated(SimulatedQueue {
                    times: simulate::open(load, &gaps, &server.draws(), effort)?,
                    service: server.service(),
                    levels: server.levels(),
                    mean_response: None,
                }))
            }
        }
    }

    /// Mean wait and mean response time.
    pub(crate) fn means(&self) -> WaitAndResponse<PredictedTime> {
        match self {
            QueueModel::Exact { queue, .. } => {
                WaitAndResponse { wait: queue.mean_wait(), response: queue.mean_response() }
                    .map(PredictedTime::exact)
            }
            QueueModel::Levels { levels, service } => {
                let turns: f64 = levels.iter().map(|level| level.turns * level.share).sum();
                WaitAndResponse { wait: (turns - 1.0) * service, response: turns * service }
                    .map(PredictedTime::exact)
            }
            QueueModel::Simulated(queue) => queue.means(),
        }
    }

    /// The quantile of the wait and that of the response time at this share.
    pub(crate) fn quantiles(
        &self,
        share: f64,
    ) -> Result<WaitAndResponse<PredictedTime>, QueueingError> {
        match self {
            QueueModel::Exact { queue, .. } => {
                let wait = queue.wait_quantile(share)?;
                let response = queue.response_quantile(share)?;
                Ok(WaitAndResponse { wait, response }.map(PredictedTime::exact))
            }
            QueueModel::Levels { levels, service } => {
                let lower = quantile(levels, share)?;
                let upper = quantile(levels, share + EDGE)?;
                let time = |turns: WaitAndResponse<f64>| turns.map(|turns| turns * service);
                let low = time(WaitAndResponse { wait: lower - 1.0, response: lower });
                let high = time(WaitAndResponse { wait: upper - 1.0, response: upper });
                Ok(WaitAndResponse {
                    wait: between_levels(low.wait, high.wait),
                    response: between_levels(low.response, high.response),
                })
            }
            QueueModel::Simulated(queue) => queue.quantiles(share),
        }
    }

    /// Mean and percentiles of both times.
    pub(crate) fn summaries(&self) -> Result<WaitAndResponse<TimeSummary>, QueueingError> {
        let mean = self.means();
        let p50 = self.quantiles(0.5)?;
        let p95 = self.quantiles(0.95)?;
        let p99 = self.quantiles(0.99)?;
        Ok(WaitAndResponse {
            wait: TimeSummary { mean: mean.wait, p50: p50.wait, p95: p95.wait, p99: p99.wait },
            response: TimeSummary {
                mean: mean.response,
                p50: p50.response,
                p95: p95.response,
                p99: p99.response,
            },
        })
    }
}

/// A percentile on the edge of two levels may be either: the lower, with an interval up to the
/// higher.
fn between_levels(low: f64, high: f64) -> PredictedTime {
    if low < high {
        PredictedTime::quantile(QuantileEstimate { value: low, low, high })
    } else {
        PredictedTime::exact(low)
    }
}
