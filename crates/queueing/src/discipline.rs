//! Which order of service (queueing discipline) does a server have? Theory predicts the response
//! times of a closed loop without think time for each of three (one queue for all workers, one for
//! each worker, Puma's turns of ten) and compares them with a run.
//!
//! At the same rate all three have the same mean response time (Little's law), so the mean does not
//! tell them apart, but the distribution does. A discipline fits when every measured figure fits.
//! Where no request waits for a thread, all three are the same.

mod predict;

use model::run::PERCENTILES;
use model::theory::{DisciplineFit, DisciplineForecast, NotJudged, PercentileRange, Theory};
use model::{Discipline, Nanos, Run, Verdict};

use self::predict::ResponsePrediction;
use crate::numeric::{QueueingError, positive, some};
use crate::puma::TURN;
use crate::simulate::nearest_rank;

/// Which worker gets a connection, when each worker has a queue of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionDealing {
    /// Any, by chance.
    ByChance,
    /// It is not known: by chance, or nearly evenly (round robin, least connections).
    Unknown,
    /// The worker that accepts first. Each waits for the delay of Puma's throttle
    /// ([`crate::puma`]), of which this is the longest.
    Throttled(Nanos),
}

/// Who waits for whom, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceOrder {
    /// The order of service that the server should have.
    pub discipline: Option<Discipline>,
    /// Whether a connection carries many requests, and with split queues stays with its worker. If
    /// not, each request is dealt anew.
    pub is_kept: bool,
    /// How connections come to the workers, when each worker has a queue.
    pub dealing: ConnectionDealing,
    /// Requests of one connection in a row, where there are turns: [`TURN`] unless the server says
    /// otherwise.
    pub turn: u32,
}

/// What is known of the server of a closed loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedLoopServer {
    /// Its workers, each with a queue of its own where the order of service says so.
    pub workers: u32,
    /// Threads of each.
    pub threads: u32,
    /// How long a request holds a slot, as given by the user or as measured.
    pub service_time: Nanos,
    /// Whether the service time varies, anywhere between constant (an app that sleeps) and
    /// exponential.
    pub scatters: bool,
    /// Who waits for whom.
    pub order: ServiceOrder,
    /// Connections that each worker was seen to hold; `None` if that was not seen.
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
            Some(held)
                if held.len() != self.workers as usize
                    || held.iter().sum::<u32>() != connections =>
            {
                Err(QueueingError::Undetermined("workers' connections that do not add up"))
            }
            _ => Ok(()),
        }
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
    /// The run's percentiles from the median upwards, each with its 95 % interval if the run has
    /// one. Lower percentiles tell nothing: those requests did not wait, in any model.
    fn of_run(run: &Run) -> MeasuredLoop {
        let quantile = |share: f64| {
            let time = run.response_time(share).time()?;
            let interval =
                run.statistics.as_ref().and_then(|statistics| statistics.interval(share));
            let (low, high) = match interval.filter(|interval| interval.inflation.is_some()) {
                Some(known) => (known.low.unwrap_or(time), known.high),
                None => (time, Some(time)),
            };
            let high = high.map_or(f64::INFINITY, Nanos::as_secs_f64);
            Some(MeasuredQuantile { share, low: low.as_secs_f64(), high })
        };
        let quantiles = PERCENTILES
            .into_iter()
            .filter(|share| (0.5..0.995).contains(share))
            .filter_map(quantile);
        MeasuredLoop {
            connections: run.connections,
            rate: run.completed_rate(),
            quantiles: quantiles.collect(),
        }
    }
}

/// How far off a figure may be and still fit, as a ratio. Work outside the slots (reading a
/// request, handing it to a thread) is up to a tenth of typical times, and the orders of service
/// differ by more.
pub const TOLERANCE: f64 = 1.15;

/// The percentiles of a forecast.
const SHOWN: [f64; 3] = [0.50, 0.95, 0.99];

/// More connections than this are not tried: a service time that varies is simulated.
const MOST_CONNECTIONS: u32 = 5000;

/// A run is too short to judge if it has fewer rounds of all connections, or fewer turns of ten,
/// than these.
const ROUNDS: f64 = 5.0;
const TURNS: f64 = 2.0;
/// Of a longer turn only this many requests count here: a server may be configured for turns
/// without an end, and no run lasts for two of those.
const MOST_OF_A_TURN: u32 = 10 * TURN;

/// A measured quantile may be that of a share this much lower or higher. Predicted times come in
/// levels (one service time, two, …), and a quantile where one level ends and the next begins may
/// be measured as either.
const EDGE: f64 = 0.015;

/// Theory beside `run`; `None` without a slot or a service time, or with very many connections.
pub fn theory(run: &Run, server: &ClosedLoopServer) -> Option<Theory> {
    if run.connections > MOST_CONNECTIONS {
        return None;
    }
    let measured = MeasuredLoop::of_run(run);
    let not_judged = not_judged(run, server, &measured);
    compare_with(server, &measured, not_judged, TOLERANCE).ok()
}

fn not_judged(run: &Run, server: &ClosedLoopServer, measured: &MeasuredLoop) -> Option<NotJudged> {
    let slots = server.slots();
    let round = server.service() * (f64::from(run.connections) / f64::from(slots.max(1))).max(1.0);
    let turn = server.service() * f64::from(server.order.turn.min(MOST_OF_A_TURN));
    let is_short = run.connections > slots
        && (run.measured.as_secs_f64() < TURNS * turn
            || run.elapsed.as_secs_f64() < ROUNDS * round);
    let no_percentiles =
        measured.quantiles.iter().all(|quantile| quantile.share <= 0.5) || measured.rate <= 0.0;
    not_the_servers(run)
        .or(is_short.then_some(NotJudged::TooShort))
        .or(no_percentiles.then_some(NotJudged::NoPercentiles))
}

/// Why the figures of a run say nothing about the server's order of service, if they do not.
fn not_the_servers(run: &Run) -> Option<NotJudged> {
    let judgement = run.judgement.as_ref()?;
    match judgement.verdict {
        Verdict::GeneratorBound | Verdict::Invalid => Some(NotJudged::NotTheServers),
        _ => judgement
            .limit
            .as_ref()
            .filter(|limit| limit.is_computing())
            .map(|_| NotJudged::Computes),
    }
}

/// Compares every order of service with what was measured. `tolerance` is a ratio, such as 1.1: a
/// figure may be 10 % off.
fn compare_with(
    server: &ClosedLoopServer,
    measured: &MeasuredLoop,
    not_judged: Option<NotJudged>,
    tolerance: f64,
) -> Result<Theory, QueueingError> {
    server.checked(measured.connections)?;
    // With one worker split queues are a shared one.
    let all =
        Discipline::ALL.into_iter().filter(|it| *it != Discipline::Split || server.workers > 1);
    let forecasts = all.map(|discipline| {
        let predictions = predict::all(server, measured.connections, discipline)?;
        let said = forecast(discipline, measured.connections, &predictions);
        let is_judged = not_judged.is_none();
        Ok(if is_judged { judged(said, server, measured, &predictions, tolerance) } else { said })
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

/// What a discipline predicts; it uses none of the measured figures. When chance deals the
/// connections to workers, each draw has a prediction: the rate is the median of theirs, and the
/// range of a percentile holds that of nine draws in ten.
fn forecast(
    discipline: Discipline,
    connections: u32,
    predictions: &[ResponsePrediction],
) -> DisciplineForecast {
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

/// Adds how well a forecast fits what was measured, twice. `fit` compares rate and quantiles, with
/// the known service time. `shape` compares the shape of the distribution alone, with the service
/// time that explains the measured rate: it recognises a server whose slots are held for longer
/// than the app takes. A slot cannot be held for less than the service time.
///
/// When the workers' connections are not known, those of split queues are drawn as
/// [`ConnectionDealing`] says (200 draws from a fixed seed, 8 if the service time varies), and one
/// draw in twenty must fit. A single one is not enough, since an even draw looks like one queue:
/// among many workers fewer than one draw in twenty is even, but among two workers more are, and
/// then both orders may fit. When the connections are known and some of them must wait, there is no
/// queue that all workers share.
fn judged(
    said: DisciplineForecast,
    server: &ClosedLoopServer,
    measured: &MeasuredLoop,
    predictions: &[ResponsePrediction],
    tolerance: f64,
) -> DisciplineForecast {
    // Each worker was seen to hold connections of its own while some of them had to wait, so they
    // did not wait in a queue that all workers share.
    let holds_waiting =
        server.workers > 1 && server.by_worker.is_some() && measured.connections > server.slots();
    if said.discipline == Discipline::Shared && holds_waiting {
        return said;
    }
    let best = |of: &dyn Fn(&ResponsePrediction) -> Option<DisciplineFit>| {
        let mut fits: Vec<Option<DisciplineFit>> = predictions.iter().map(of).collect();
        // A draw that cannot fit at all sorts last.
        let worst = |fit: &Option<DisciplineFit>| fit.map_or(f64::INFINITY, |fit| fit.worst);
        fits.sort_by(|a, b| worst(a).total_cmp(&worst(b)));
        fits[fits.len() / 20]
    };
    DisciplineForecast {
        fit: best(&|prediction| {
            let off = (measured.rate / prediction.rate).max(prediction.rate / measured.rate);
            Some(fit(server, measured, prediction, 1.0, off))
        }),
        shape: best(&|prediction| {
            let scale = prediction.rate / measured.rate;
            (scale * tolerance >= 1.0).then(|| fit(server, measured, prediction, scale, 1.0))
        }),
        ..said
    }
}

/// The figure that is farthest off, if all times are `scale` times the predicted ones and the rate
/// is `rate_off` off.
fn fit(
    server: &ClosedLoopServer,
    measured: &MeasuredLoop,
    prediction: &ResponsePrediction,
    scale: f64,
    rate_off: f64,
) -> DisciplineFit {
    let mut worst = rate_off;
    let mut worst_at = None;
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
