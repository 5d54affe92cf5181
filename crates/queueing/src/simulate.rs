//! A small simulator for models without a formula: other distributions of service time, split
//! queues, and turns of ten in which the thread waits for a client that thinks between requests.
//!
//! It is a pure function of its seed. A law is a function of a seed and a number, as everything
//! random in longtail is, so that the sink's laws can be simulated as they are. Results have an
//! interval, by Student's t over independent replications, each without its warm-up (Law and
//! Kelton, Simulation Modeling and Analysis, 9.4). The interval covers chance only: near
//! saturation, where the warm-up would have to be longer than the run, it is too narrow.

mod closed;
mod quantile;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use model::statistics::student;
use model::steadiness::mean;
use model::theory::Estimate;

pub use self::closed::{AcceptThrottle, PoolArrivals, ThreadPool, closed, dealt_by_throttle};
use self::quantile::SimulatedTimes;
pub use self::quantile::{QuantileEstimate, ServiceLevel};
use crate::OfferedLoad;
use crate::numeric::{QueueingError, positive, some};

/// A law of times: the `number`-th draw of the stream `seed`.
pub type TimeLaw<'a> = &'a dyn Fn(u64, u64) -> f64;

/// Always `time`.
pub fn constant(time: f64) -> impl Fn(u64, u64) -> f64 {
    move |_, _| time
}

/// Exponential with that mean.
pub fn exponential(mean: f64) -> impl Fn(u64, u64) -> f64 {
    move |seed, number| -mean * model::pace::uniform(seed, number).ln()
}

/// What is drawn at random: each has its own stream of random numbers.
#[derive(Clone, Copy)]
enum RandomStream {
    Arrival,
    Service,
    Worker,
    Think,
}

/// How much is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulationEffort {
    /// Independent runs; an interval needs at least two.
    pub replications: u32,
    /// Requests measured in each.
    pub requests: u32,
    /// Requests of the warm-up of each.
    pub warm_up: u32,
    /// The seed of all random numbers.
    pub seed: u64,
}

/// The most requests of a run whose length depends on its load.
const LONGEST: u32 = 100_000;

impl SimulationEffort {
    /// The effort for a prediction: some tenths of a second.
    pub fn usual(seed: u64) -> SimulationEffort {
        SimulationEffort { replications: 30, requests: 30_000, warm_up: 4000, seed }
    }

    /// The effort for an open loop of this `utilisation`, with service times of this coefficient of
    /// variation. A queue's state depends on about the last `(1 + cv²) / (1 - ρ)²` requests: each
    /// run is 50 times as long, up to a limit, and a tenth of it is warm-up.
    pub fn of_open_loop(seed: u64, utilisation: f64, variation: f64) -> SimulationEffort {
        let usual = SimulationEffort::usual(seed);
        let remembered = (1.0 + variation.powi(2)) / (1.0 - utilisation).powi(2);
        let requests = ((50.0 * remembered) as u32).clamp(usual.requests, LONGEST);
        SimulationEffort { requests, warm_up: usual.warm_up.max(requests / 10), ..usual }
    }

    /// The seed of a stream of a replication.
    fn stream(&self, replication: u32, stream: RandomStream) -> u64 {
        // The draws hash their seed, so consecutive seeds give independent streams.
        self.seed
            .wrapping_mul(1 << 10)
            .wrapping_add(u64::from(replication))
            .wrapping_mul(4)
            .wrapping_add(stream as u64)
    }

    fn replicate(
        &self,
        run: impl FnMut(u32) -> Result<Replication, QueueingError>,
    ) -> Result<Simulated, QueueingError> {
        some("replication", self.replications)?;
        some("request", self.requests)?;
        Ok(Simulated { replications: (0..self.replications).map(run).collect::<Result<_, _>>()? })
    }
}

/// One independent run.
#[derive(Clone, Debug, Default)]
struct Replication {
    /// Ascending, once finished.
    waits: Vec<f64>,
    /// Ascending, once finished.
    responses: Vec<f64>,
    /// Requests per unit of time.
    rate: f64,
}

impl Replication {
    fn record(&mut self, wait: f64, response: f64) {
        self.waits.push(wait);
        self.responses.push(response);
    }

    fn finished(mut self, span: f64) -> Result<Replication, QueueingError> {
        self.rate = self.waits.len() as f64 / positive("the simulated time", span)?;
        self.waits.sort_unstable_by(f64::total_cmp);
        self.responses.sort_unstable_by(f64::total_cmp);
        Ok(self)
    }
}

/// The result of a simulation.
#[derive(Clone, Debug)]
pub struct Simulated {
    replications: Vec<Replication>,
}

impl Simulated {
    /// Requests per unit of time.
    pub fn rate(&self) -> Estimate {
        self.mean_of(|run| run.rate)
    }

    /// Mean wait.
    pub fn mean_wait(&self) -> Estimate {
        self.mean_of(|run| mean(&run.waits))
    }

    /// Mean response time.
    pub fn mean_response(&self) -> Estimate {
        self.mean_of(|run| mean(&run.responses))
    }

    /// Quantile of the wait, by nearest rank.
    ///
    /// # Errors
    /// If `at` is not in 0 to 1.
    pub fn wait_quantile(&self, at: f64) -> Result<QuantileEstimate, QueueingError> {
        SimulatedTimes::alone(self.waits_of_runs()).quantile(at)
    }

    /// Quantile of the response time, by nearest rank.
    ///
    /// # Errors
    /// If `at` is not in 0 to 1.
    pub fn response_quantile(&self, at: f64) -> Result<QuantileEstimate, QueueingError> {
        let responses = self.replications.iter().map(|run| run.responses.as_slice());
        SimulatedTimes::alone(responses.collect()).quantile(at)
    }

    /// Quantile of the response time if each request's service takes one of `levels`: from the
    /// waits and the exact shares of the levels, so that chance cannot put it on the wrong side of
    /// a jump.
    ///
    /// # Errors
    /// As [`Simulated::response_quantile`].
    pub fn response_quantile_of(
        &self,
        levels: &[ServiceLevel],
        at: f64,
    ) -> Result<QuantileEstimate, QueueingError> {
        SimulatedTimes::with(self.waits_of_runs(), levels).quantile(at)
    }

    fn waits_of_runs(&self) -> Vec<&[f64]> {
        self.replications.iter().map(|run| run.waits.as_slice()).collect()
    }

    /// All response times, ascending.
    pub fn responses(&self) -> Vec<f64> {
        ascending(self.replications.iter().map(|run| run.responses.as_slice()))
    }

    /// All waits, ascending.
    pub fn waits(&self) -> Vec<f64> {
        ascending(self.waits_of_runs().into_iter())
    }

    fn mean_of(&self, figure: impl Fn(&Replication) -> f64) -> Estimate {
        MeanOfRuns::of(&self.replications.iter().map(figure).collect::<Vec<_>>()).interval()
    }
}

fn ascending<'a>(runs: impl Iterator<Item = &'a [f64]>) -> Vec<f64> {
    let mut all = runs.collect::<Vec<_>>().concat();
    all.sort_by(f64::total_cmp);
    all
}

/// Student's t assumes normal figures, and those of runs with bursts are not: intervals are widened
/// by this factor, to about 99 %. Then they hold the truth in at least 95 of 100 cases
/// (`tests/queueing/coverage.rs`).
const WIDER: f64 = 1.3;

/// How many standard errors the truth may lie from the mean of this many runs.
fn reach(runs: usize) -> f64 {
    WIDER * student(runs as u64 - 1)
}

/// The mean of independent runs' figures.
struct MeanOfRuns {
    value: f64,
    /// The standard error of the mean; infinite for a single run.
    error: f64,
    runs: usize,
}

impl MeanOfRuns {
    fn of(figures: &[f64]) -> MeanOfRuns {
        let value = mean(figures);
        let degrees = figures.len() - 1;
        let squares = figures.iter().map(|figure| (figure - value).powi(2)).sum::<f64>();
        let error = if degrees == 0 {
            f64::INFINITY
        } else {
            (squares / degrees as f64 / figures.len() as f64).sqrt()
        };
        MeanOfRuns { value, error, runs: figures.len() }
    }

    fn interval(&self) -> Estimate {
        Estimate { value: self.value, half_width: reach(self.runs) * self.error }
    }
}

/// The smallest value of an ascending, non-empty list that at least `share` of it do not exceed.
pub(crate) fn nearest_rank(ascending: &[f64], share: f64) -> f64 {
    // A share such as 0.9 is not exact in binary: 0.9 · 10 must not become the tenth.
    let rank = (share * ascending.len() as f64 - 1e-9).ceil().max(1.0) as usize;
    ascending[rank.min(ascending.len()) - 1]
}

/// Simulates an open loop of the laws `gaps` between arrivals and `services`, whose means are those
/// of `load`: one queue, first come, first served. Each arrival takes the slot that is free first
/// (Kiefer and Wolfowitz, Trans. AMS 78, 1955), so no event list is needed.
///
/// # Errors
/// If there is no steady state, or effort or times are 0.
pub fn open(
    load: OfferedLoad,
    gaps: TimeLaw<'_>,
    services: TimeLaw<'_>,
    effort: SimulationEffort,
) -> Result<Simulated, QueueingError> {
    let load = load.steady()?;
    effort.replicate(|replication| {
        let [arrivals, draws] = [RandomStream::Arrival, RandomStream::Service]
            .map(|which| effort.stream(replication, which));
        // Non-negative times have the order of their bits.
        let mut free: BinaryHeap<Reverse<u64>> = (0..load.slots()).map(|_| Reverse(0)).collect();
        let mut run = Replication::default();
        let mut now = 0.0;
        let mut began = 0.0;
        let warm_up = u64::from(effort.warm_up);
        for number in 0..warm_up + u64::from(effort.requests) {
            now += gaps(arrivals, number);
            let service = services(draws, number);
            let first_free = free.pop().map_or(0.0, |Reverse(bits)| f64::from_bits(bits));
            let wait = f64::max(first_free - now, 0.0);
            free.push(Reverse((now + wait + service).to_bits()));
            if number < warm_up {
                began = now;
            } else {
                run.record(wait, wait + service);
            }
        }
        run.finished(now - began)
    })
}

#[cfg(test)]
mod tests;
