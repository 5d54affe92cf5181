//! Which order of service was it? What each says of a closed loop without think time (one queue for all, one for each worker, Puma's
//! turns of ten), and how well that fits a run.
//!
//! All three have the same mean response time (Little), so only the distribution tells. Each is predicted, and its figures
//! are held against the measured ones; a discipline fits where all of them do. Where there are no more connections than
//! slots, all are the same.

mod predict;

use model::run::PERCENTILES;
use model::theory::{DisciplineFit, DisciplineForecast, NotJudged, PercentileRange, Theory, not_the_servers};
use model::{Discipline, Nanos, Run};

use self::predict::ResponsePrediction;
use crate::QueueingError;
use crate::error::{positive, share, some};
use crate::puma::TURN;
use crate::simulate::nearest_rank;

/// Which worker gets a connection, where each has a queue of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionDealing {
    /// Any, by chance.
    ByChance,
    /// By chance or nearly evenly, as the server may have it (round robin, whoever has least to do): it is not known.
    Unknown,
    /// The one that accepts first, each after the delay of Puma's throttle ([`crate::puma`]), which is so long at the most.
    Throttled(Nanos),
}

/// Who waits for whom, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceOrder {
    /// The order of service that the server ought to have.
    pub discipline: Option<Discipline>,
    /// Whether a connection stays for all of its requests: with split queues it has its worker. Else each request is dealt anew.
    pub is_kept: bool,
    /// How connections come to the workers, where each has a queue.
    pub dealing: ConnectionDealing,
    /// Requests of one connection in a row, where there are turns: [`TURN`] unless the server says otherwise.
    pub turn: u32,
}

/// What is known of the server of a closed loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedLoopServer {
    /// Its workers, each with a queue of its own where the order of service says so.
    pub workers: u32,
    /// Threads of each.
    pub threads: u32,
    /// For how long a request holds a slot, by the user's word or measured.
    pub service_time: Nanos,
    /// Whether that scatters, somewhere between not at all (an app that sleeps) and exponentially.
    pub scatters: bool,
    /// Who waits for whom.
    pub order: ServiceOrder,
    /// Connections that each worker was seen to hold: then they did not wait in one line for all. `None` where that was not seen.
    pub by_worker: Option<Vec<u32>>,
}

impl ClosedLoopServer {
    fn slots(&self) -> u32 {
        self.workers.saturating_mul(self.threads)
    }

    fn service(&self) -> f64 {
        self.service_time.as_secs_f64()
    }

    fn checked(&self, connections: u32) -> Result<(), QueueingError> {
        some("connection", connections)?;
        some("worker", self.workers)?;
        some("thread", self.threads)?;
        some("request in a turn", self.order.turn)?;
        positive("the service time", self.service())?;
        match &self.by_worker {
            Some(held) if held.len() != self.workers as usize || held.iter().sum::<u32>() != connections => {
                Err(QueueingError::Undetermined("workers' connections that do not add up"))
            }
            _ => Ok(()),
        }
    }

    /// Whether each worker was seen to hold connections of its own while some of them had to wait: those cannot have stood in one line
    /// for all workers.
    fn holds_waiting(&self, connections: u32) -> bool {
        self.workers > 1 && self.by_worker.is_some() && connections > self.slots()
    }
}

/// A measured quantile of the response time: between two ends with some confidence, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct MeasuredQuantile {
    share: f64,
    low: f64,
    /// May be infinite.
    high: f64,
}

/// What was measured of a closed loop.
#[derive(Clone, Debug, PartialEq)]
struct MeasuredLoop {
    connections: u32,
    /// Completed requests per second.
    rate: f64,
    quantiles: Vec<MeasuredQuantile>,
}

impl MeasuredLoop {
    /// The run's percentiles from the median upwards, each with its 95 % interval where the run has one: the low ones are of those that
    /// did not wait, in every model alike.
    fn of_run(run: &Run) -> MeasuredLoop {
        let quantile = |share: f64| {
            let time = run.response_time(share).time()?;
            let interval = run.statistics.as_ref().and_then(|statistics| statistics.interval(share));
            let (low, high) = match interval.filter(|interval| interval.inflation.is_some()) {
                Some(known) => (known.low.unwrap_or(time), known.high),
                None => (time, Some(time)),
            };
            let high = high.map_or(f64::INFINITY, Nanos::as_secs_f64);
            Some(MeasuredQuantile { share, low: low.as_secs_f64(), high })
        };
        let quantiles = PERCENTILES.into_iter().filter(|share| (0.5..0.995).contains(share)).filter_map(quantile);
        MeasuredLoop { connections: run.connections, rate: run.completed_rate(), quantiles: quantiles.collect() }
    }
}

/// How far off a figure may be and still fit, as a ratio: what is not slots (reading a request, the way to a thread) is up to a
/// tenth of the times that are usual here, and the orders of service differ by more.
pub const TOLERANCE: f64 = 1.15;

/// The percentiles that are shown.
const SHOWN: [f64; 3] = [0.50, 0.95, 0.99];

/// More connections than this are not tried: with scatter they are simulated.
const MOST_CONNECTIONS: u32 = 5000;

/// A run is over too soon where it has fewer rounds of all connections, or fewer turns of ten, than these.
const ROUNDS: f64 = 5.0;
const TURNS: f64 = 2.0;
/// A turn without an end is never over: a run need not last for two of them.
const MOST_OF_A_TURN: u32 = 10 * TURN;

/// A quantile may be that of a share so much lower or higher: at the edge between two levels it is either.
const EDGE: f64 = 0.015;

/// Theory beside `run`; `None` where there is none: no slot, no service time, or very many connections.
pub fn theory(run: &Run, server: &ClosedLoopServer) -> Option<Theory> {
    if run.connections > MOST_CONNECTIONS {
        return None;
    }
    let measured = MeasuredLoop::of_run(run);
    let not_judged = not_judged(run, server, &measured);
    beside(server, &measured, not_judged, TOLERANCE).ok()
}

fn not_judged(run: &Run, server: &ClosedLoopServer, measured: &MeasuredLoop) -> Option<NotJudged> {
    let slots = server.slots();
    let round = server.service() * (f64::from(run.connections) / f64::from(slots.max(1))).max(1.0);
    let turn = server.service() * f64::from(server.order.turn.min(MOST_OF_A_TURN));
    let is_short = run.connections > slots
        && (run.measured.as_secs_f64() < TURNS * turn || run.elapsed.as_secs_f64() < ROUNDS * round);
    let no_percentiles = measured.quantiles.iter().all(|quantile| quantile.share <= 0.5) || measured.rate <= 0.0;
    not_the_servers(run)
        .or(is_short.then_some(NotJudged::TooShort))
        .or(no_percentiles.then_some(NotJudged::NoPercentiles))
}

/// Every order of service beside what was measured. `tolerance` is a ratio, such as 1.1: a figure may be 10 % off.
fn beside(
    server: &ClosedLoopServer,
    measured: &MeasuredLoop,
    not_judged: Option<NotJudged>,
    tolerance: f64,
) -> Result<Theory, QueueingError> {
    server.checked(measured.connections)?;
    // With one worker split queues are a shared one.
    let all = Discipline::ALL.into_iter().filter(|it| *it != Discipline::Split || server.workers > 1);
    let forecasts = all.map(|discipline| {
        let predictions = predict::all(server, measured.connections, discipline)?;
        let said = forecast(discipline, measured.connections, &predictions);
        match not_judged {
            Some(_) => Ok(said),
            None => judged(said, server, measured, &predictions, tolerance),
        }
    });
    Ok(Theory {
        expected: server.order.discipline,
        tolerance,
        not_judged,
        by_worker: server.by_worker.clone(),
        turn: (server.order.turn != TURN).then_some(server.order.turn),
        forecasts: forecasts.collect::<Result<_, QueueingError>>()?,
    })
}

/// What a discipline says, of the measured figures none is used. Where chance deals the connections to workers, the rate is the median
/// of the draws, and a quantile is within its ends for nine in ten.
fn forecast(discipline: Discipline, connections: u32, predictions: &[ResponsePrediction]) -> DisciplineForecast {
    let at = |share: f64, of: &dyn Fn(&ResponsePrediction) -> f64| {
        let mut all: Vec<f64> = predictions.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        nearest_rank(&all, share)
    };
    let percentile = |quantile: f64| PercentileRange {
        quantile,
        low: Nanos::from_secs_f64(at(0.05, &|prediction| prediction.range(quantile).0)),
        high: Nanos::from_secs_f64(at(0.95, &|prediction| prediction.range(quantile).1)),
    };
    let rate = at(0.5, &|prediction| prediction.rate);
    DisciplineForecast {
        discipline,
        rate,
        mean: Nanos::from_secs_f64(f64::from(connections) / rate),
        percentiles: SHOWN.map(percentile).to_vec(),
        fit: None,
        shape: None,
    }
}

/// The same with how well it fits what was measured: rate and quantiles with the service time that is known; and the shape of the
/// distribution alone, with the service time that explains the measured rate. So a server is known whose slots are held for longer than
/// the app takes. One that would be held for shorter than the service time is no explanation.
///
/// Where the workers' connections are not known, those of a split pool are dealt anew as [`ConnectionDealing`] says (200 draws from a
/// fixed seed; 8 with scatter), and one in twenty must fit: for an even split, which is the same as one queue, is rare by chance, but
/// for two workers not rare enough. Where they are known and somebody must wait, one line for all workers cannot be.
fn judged(
    said: DisciplineForecast,
    server: &ClosedLoopServer,
    measured: &MeasuredLoop,
    predictions: &[ResponsePrediction],
    tolerance: f64,
) -> Result<DisciplineForecast, QueueingError> {
    positive("the rate", measured.rate)?;
    for quantile in &measured.quantiles {
        share(quantile.share)?;
        positive("a quantile", quantile.low)?;
    }
    if said.discipline == Discipline::Shared && server.holds_waiting(measured.connections) {
        return Ok(said);
    }
    let best = |of: &dyn Fn(&ResponsePrediction) -> Option<DisciplineFit>| {
        let mut fits: Vec<Option<DisciplineFit>> = predictions.iter().map(of).collect();
        // What is impossible goes to the end.
        let worst = |fit: &Option<DisciplineFit>| fit.map_or(f64::INFINITY, |fit| fit.worst);
        fits.sort_by(|a, b| worst(a).total_cmp(&worst(b)));
        fits[fits.len() / 20]
    };
    let scaled = |prediction: &ResponsePrediction, scale: f64, off: f64| fit(server, measured, prediction, scale, off);
    Ok(DisciplineForecast {
        fit: best(&|prediction| {
            let off = (measured.rate / prediction.rate).max(prediction.rate / measured.rate);
            Some(scaled(prediction, 1.0, off))
        }),
        shape: best(&|prediction| {
            let scale = prediction.rate / measured.rate;
            (scale * tolerance >= 1.0).then(|| scaled(prediction, scale, 1.0))
        }),
        ..said
    })
}

/// The figure that is farthest off, where all times are `scale` times the predicted ones, and the rate is `rate_off` off.
fn fit(
    server: &ClosedLoopServer,
    measured: &MeasuredLoop,
    prediction: &ResponsePrediction,
    scale: f64,
    rate_off: f64,
) -> DisciplineFit {
    let (mut worst, mut worst_at) = (rate_off, None);
    for quantile in &measured.quantiles {
        let (low, high) = prediction.range(quantile.share);
        let off = (low * scale / quantile.high).max(quantile.low / (high * scale));
        if off > worst {
            (worst, worst_at) = (off, Some(quantile.share));
        }
    }
    DisciplineFit { held: Nanos::from_secs_f64(server.service() * scale), worst, worst_at }
}

#[cfg(test)]
mod tests;
