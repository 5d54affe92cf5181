//! What queueing theory expects of a server: the exact formula where there is one, else a
//! simulation with its interval.

pub(crate) mod text;

use std::collections::BTreeSet;

use model::Nanos;
use model::theory::Estimate;
use queueing::closed_loop::{
    ResponseLevel, WorkerDemand, assigned_at_random, dealt_evenly, highest_rate, levels_in_step,
    quantile, saturated_rate, worker,
};
use queueing::mdc::{ConstantServiceQueue, MOST_SLOTS};
use queueing::open_loop::{ErlangQueue, SteadyQueue, highest_utilisation};
use queueing::puma::{HOLD_SECONDS, TURN};
use queueing::simulate::{self, PoolArrivals, Simulated, SimulationEffort, ThreadPool};
use queueing::{OfferedLoad, QueueingError};
use report::number;
use serde::Serialize;
use sink::DelayLaw;

use crate::args::{Goal, PredictLoad};

/// Numbers of threads that are compared under Ruby's lock, beside the server's own.
const THREADS: [u32; 8] = [1, 2, 3, 4, 5, 8, 16, 32];

/// A simulated objective is searched to this part of the slots.
const SIMULATED_WIDTH: f64 = 0.002;

/// Above this a simulation is doubted.
const NEARLY_FULL: f64 = 0.9;

/// A server as theory knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PredictedServer {
    pub(crate) workers: u32,
    /// Of each worker.
    pub(crate) threads: u32,
    /// Of the time a request holds a slot.
    pub(crate) law: DelayLaw,
    /// Chooses what is random in a simulation.
    pub(crate) seed: u64,
}

impl PredictedServer {
    fn slots(&self) -> u32 {
        self.workers * self.threads
    }

    /// Mean time a request holds a slot, in seconds.
    fn service(&self) -> f64 {
        self.law.mean().as_secs_f64()
    }

    /// What its slots can do at most, in requests per second.
    fn at_most(&self) -> f64 {
        f64::from(self.slots()) / self.service()
    }

    /// A law for the simulator: the sink's own draws.
    fn draws(&self) -> impl Fn(u64, u64) -> f64 + use<> {
        let law = self.law;
        move |seed, number| law.of(seed, number).as_secs_f64()
    }

    /// `requests` for each of ten runs, and some service times of each slot to warm up.
    fn effort(&self, rounds: u32) -> SimulationEffort {
        let (requests, warm_up) = (20_000.max(rounds), 4000.max(self.slots() * 20).max(rounds));
        SimulationEffort { replications: 10, requests, warm_up, seed: self.seed }
    }
}

/// A time in ns; the half width of its 95 % interval where it is simulated.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct PredictedTime {
    pub(crate) ns: Nanos,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) half_width_ns: Option<Nanos>,
}

impl PredictedTime {
    fn exact(seconds: f64) -> PredictedTime {
        PredictedTime { ns: Nanos::from_secs_f64(seconds), half_width_ns: None }
    }

    fn simulated(seconds: Estimate) -> PredictedTime {
        PredictedTime {
            ns: Nanos::from_secs_f64(seconds.value),
            half_width_ns: Some(Nanos::from_secs_f64(seconds.half_width)),
        }
    }
}

/// A time's mean and percentiles.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct TimeSummary {
    pub(crate) mean: PredictedTime,
    pub(crate) p50: PredictedTime,
    pub(crate) p95: PredictedTime,
    pub(crate) p99: PredictedTime,
}

/// What one order of service makes of the load.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PredictedQueue {
    /// shared, split, turns
    pub(crate) queue: &'static str,
    /// The formula, or that it is simulated.
    pub(crate) how: String,
    /// Completed per second.
    pub(crate) rate_per_s: f64,
    /// Share of the time that a slot is busy.
    pub(crate) utilisation: f64,
    /// Absent in an overload, which has no steady state.
    pub(crate) wait: Option<TimeSummary>,
    /// As the wait.
    pub(crate) response: Option<TimeSummary>,
    /// The highest rate that keeps the objective; absent without one, or where none keeps it.
    pub(crate) highest_rate_per_s: Option<f64>,
}

/// All that is predicted.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Prediction {
    pub(crate) workers: u32,
    pub(crate) threads: u32,
    pub(crate) slots: u32,
    /// The law of the service time, as `--service` takes it.
    pub(crate) service: String,
    pub(crate) service_mean_ns: Nanos,
    /// What loads it, in words.
    pub(crate) load: String,
    /// What the slots can do at most.
    pub(crate) at_most_per_s: f64,
    /// From so many connections on a closed loop's requests must wait.
    pub(crate) knee_connections: f64,
    /// As it was asked for.
    pub(crate) objective: Option<String>,
    pub(crate) lines: Vec<PredictedQueue>,
    /// What else is to be known.
    pub(crate) notes: Vec<String>,
    /// What Ruby's lock leaves, where it was asked for.
    pub(crate) lock: Option<RubyLock>,
}

/// What theory says; of Ruby's lock where it is known how long a request holds it, `cpu`.
///
/// # Errors
/// Where it says nothing.
pub(crate) fn predict(
    server: &PredictedServer,
    load: PredictLoad,
    goal: Option<Goal>,
    cpu: Option<Nanos>,
) -> Result<Prediction, QueueingError> {
    let (words, think, (lines, notes)) = match load {
        PredictLoad::Open(rate) => {
            let words = format!(
                "open loop, random arrivals, {} req/s",
                number::rate_in_words(rate.per_second())
            );
            (words, 0.0, open_loop(server, rate.per_second(), goal)?)
        }
        PredictLoad::Closed(connections, pause) => {
            let pauses = if pause.0 == 0 { String::new() } else { format!(" that pause {pause}") };
            let words = format!("closed loop, {connections} connections{pauses}");
            (words, pause.as_secs_f64(), closed_loop(server, connections, pause.as_secs_f64())?)
        }
    };
    Ok(Prediction {
        workers: server.workers,
        threads: server.threads,
        slots: server.slots(),
        service: server.law.to_string(),
        service_mean_ns: server.law.mean(),
        load: words,
        at_most_per_s: server.at_most(),
        knee_connections: server.at_most() * (think + server.service()),
        objective: goal.map(|goal| goal.objective.to_string()),
        lines,
        notes,
        lock: cpu.map(|cpu| lock(server, cpu.as_secs_f64(), load)).transpose()?,
    })
}

/// How it is known what a queue does.
enum QueueModel {
    /// By this formula.
    Exact(&'static str, Box<dyn SteadyQueue>),
    /// Levels of constant service, with that service time.
    Levels(Vec<ResponseLevel>, f64),
    Simulated(Simulated),
}

impl QueueModel {
    /// Random arrivals: M/D/c and M/M/c exactly, other laws simulated.
    fn open(server: &PredictedServer, load: OfferedLoad) -> Result<QueueModel, QueueingError> {
        Ok(match server.law {
            DelayLaw::Constant(_) if load.slots() <= MOST_SLOTS => {
                QueueModel::Exact("M/D", Box::new(ConstantServiceQueue::new(load)?))
            }
            DelayLaw::Exponential { .. } => {
                QueueModel::Exact("M/M", Box::new(ErlangQueue::new(load)?))
            }
            _ => {
                let gaps = simulate::exponential(1.0 / load.rate());
                QueueModel::Simulated(simulate::open(
                    load,
                    &gaps,
                    &server.draws(),
                    server.effort(0),
                )?)
            }
        })
    }

    /// Mean wait and mean response time, or the quantile of both at that share.
    fn times(&self, share: Option<f64>) -> Result<[PredictedTime; 2], QueueingError> {
        Ok(match (self, share) {
            (QueueModel::Exact(_, queue), None) => {
                [queue.mean_wait(), queue.mean_response()].map(PredictedTime::exact)
            }
            (QueueModel::Exact(_, queue), Some(share)) => {
                [queue.wait_quantile(share)?, queue.response_quantile(share)?]
                    .map(PredictedTime::exact)
            }
            (QueueModel::Levels(levels, service), share) => {
                let mean = || levels.iter().map(|level| level.turns * level.share).sum();
                let turns: f64 =
                    share.map_or_else(|| Ok(mean()), |share| quantile(levels, share))?;
                [(turns - 1.0) * service, turns * service].map(PredictedTime::exact)
            }
            (QueueModel::Simulated(all), None) => {
                [all.mean_wait(), all.mean_response()].map(PredictedTime::simulated)
            }
            (QueueModel::Simulated(all), Some(share)) => {
                [all.wait_quantile(share)?, all.response_quantile(share)?]
                    .map(PredictedTime::simulated)
            }
        })
    }

    /// Wait and response time.
    fn summaries(&self) -> Result<[TimeSummary; 2], QueueingError> {
        let [mean, p50, p95, p99] = [
            self.times(None)?,
            self.times(Some(0.5))?,
            self.times(Some(0.95))?,
            self.times(Some(0.99))?,
        ];
        Ok([0, 1].map(|at| TimeSummary {
            mean: mean[at],
            p50: p50[at],
            p95: p95[at],
            p99: p99[at],
        }))
    }
}

type LinesAndNotes = (Vec<PredictedQueue>, Vec<String>);

/// The load of one queue of each order of service: shared, and split. A single worker has but one
/// queue.
fn queues(
    server: &PredictedServer,
    load: OfferedLoad,
) -> Result<Vec<(&'static str, OfferedLoad)>, QueueingError> {
    let mut all = vec![("shared", load)];
    if server.workers > 1 {
        all.push(("split", load.of_one_worker(server.workers)?));
    }
    Ok(all)
}

fn open_loop(
    server: &PredictedServer,
    rate: f64,
    goal: Option<Goal>,
) -> Result<LinesAndNotes, QueueingError> {
    let load = OfferedLoad::new(server.slots(), rate, server.service())?;
    let full = load.utilisation();
    let line = |(queue, one): (&'static str, OfferedLoad)| {
        let model = if full < 1.0 { Some(QueueModel::open(server, one)?) } else { None };
        let how = match &model {
            None => "overload".to_owned(),
            Some(QueueModel::Exact(formula, _)) => format!("{formula}/{}, exact", one.slots()),
            Some(_) => format!("M/G/{}, simulated", one.slots()),
        };
        let [wait, response] =
            model.map_or(Ok([None; 2]), |model| Ok(model.summaries()?.map(Some)))?;
        let highest = goal.map(|goal| highest(server, one.slots(), goal)).transpose()?.flatten();
        Ok(PredictedQueue {
            queue,
            how,
            rate_per_s: rate.min(server.at_most()),
            utilisation: full.min(1.0),
            wait,
            response,
            highest_rate_per_s: highest.map(|full| full * server.at_most()),
        })
    };
    let lines: Vec<PredictedQueue> =
        queues(server, load)?.into_iter().map(line).collect::<Result<_, QueueingError>>()?;
    let mut notes = Vec::new();
    if full >= 1.0 {
        notes.push(format!(
            "overload: no steady state. Response times grow by {} s in each second; after a minute they are {} s",
            number::significant(full - 1.0),
            number::significant(load.response_in_overload(60.0))
        ));
    }
    if let (Some(goal), true) = (goal, lines.iter().all(|line| line.highest_rate_per_s.is_none())) {
        notes.push(format!(
            "no rate keeps {}: a request takes longer without any load",
            goal.objective
        ));
    }
    let is_doubted = |line: &PredictedQueue| {
        let highest = line.highest_rate_per_s.unwrap_or(0.0) / server.at_most();
        line.how.ends_with("simulated") && full.max(highest) > NEARLY_FULL
    };
    if lines.iter().any(is_doubted) {
        notes.push(
            "simulated this near to full, a run may not have forgotten how it began: true waits may be longer"
                .to_owned(),
        );
    }
    Ok((lines, notes))
}

/// The highest utilisation of one queue that keeps the goal; of a simulation by the upper end of
/// its interval. `None` where none does.
fn highest(server: &PredictedServer, slots: u32, goal: Goal) -> Result<Option<f64>, QueueingError> {
    let simulated = !matches!(server.law, DelayLaw::Constant(_) | DelayLaw::Exponential { .. })
        || slots > MOST_SLOTS;
    let width = if simulated { SIMULATED_WIDTH } else { 1e-9 };
    let found = highest_utilisation(slots, server.service(), goal.limit, width, |load| {
        let [_, response] = QueueModel::open(server, load)?.times(goal.share)?;
        Ok((response.ns + response.half_width_ns.unwrap_or_default()).as_secs_f64())
    });
    match found {
        Ok(full) => Ok(Some(full)),
        Err(QueueingError::OutOfReach { .. }) => Ok(None),
        Err(why) => Err(why),
    }
}

/// Connections that wait for their answers: shared, split with the connections dealt evenly, and
/// turns of ten, for which all wait in one line.
fn closed_loop(
    server: &PredictedServer,
    connections: u32,
    think: f64,
) -> Result<LinesAndNotes, QueueingError> {
    let pool =
        |threads, connections, turn| ThreadPool { threads, connections, turn, hold: HOLD_SECONDS };
    let one_line = |turn| vec![pool(server.slots(), connections, turn)];
    let mut lines = vec![closed_line(server, "shared", &one_line(1), think)?];
    let mut notes = Vec::new();
    if server.workers > 1 {
        let dealt =
            dealt_evenly(connections, server.workers).into_iter().filter(|count| *count > 0);
        let pools: Vec<_> = dealt.map(|count| pool(server.threads, count, 1)).collect();
        lines.push(closed_line(server, "split", &pools, think)?);
        notes.push("split: the connections dealt evenly to the workers".to_owned());
        if let (Ok(dealt), true) =
            (assigned_at_random(connections, server.workers, server.threads), think == 0.0)
        {
            notes.push(format!(
                "dealt at random the fullest worker has {} instead of {}, and the expected rate is {} % of all slots busy",
                number::significant(dealt.fullest),
                number::significant(f64::from(connections) / f64::from(server.workers)),
                number::percent(dealt.rate)
            ));
        }
    }
    lines.push(closed_line(server, "turns", &one_line(TURN), think)?);
    notes.push(
        "turns: Puma up to 6 with keep-alive, ten requests of one connection in a row".to_owned(),
    );
    Ok((lines, notes))
}

/// The levels of constant service exactly, all else simulated.
fn closed_line(
    server: &PredictedServer,
    queue: &'static str,
    pools: &[ThreadPool],
    think: f64,
) -> Result<PredictedQueue, QueueingError> {
    let service = server.service();
    // Turns of connections that do not divide have more levels than those in step.
    let divides = |pool: &ThreadPool| {
        pool.turn == 1
            || pool.connections <= pool.threads
            || pool.connections.is_multiple_of(pool.threads)
    };
    let is_exact =
        matches!(server.law, DelayLaw::Constant(_)) && think == 0.0 && pools.iter().all(divides);
    let (how, rate, model) = if is_exact {
        let busy = |pool: &ThreadPool| f64::from(pool.connections.min(pool.threads));
        let all_busy: f64 = pools.iter().map(busy).sum();
        let mut levels = Vec::new();
        for pool in pools {
            // Each with the weight of its rate.
            let of_all = busy(pool) / all_busy;
            let weighted =
                |level: ResponseLevel| ResponseLevel { share: level.share * of_all, ..level };
            levels.extend(
                levels_in_step(pool.connections, pool.threads, pool.turn)?
                    .into_iter()
                    .map(weighted),
            );
        }
        levels.sort_by(|a, b| a.turns.total_cmp(&b.turns));
        ("levels, exact", all_busy / service, QueueModel::Levels(levels, service))
    } else {
        // Some rounds of everybody's turn to warm up, and as many to look at.
        let effort = server.effort(pools.iter().map(|pool| pool.connections).sum::<u32>() * 20);
        let thinks = simulate::constant(think);
        let simulated =
            simulate::closed(pools, PoolArrivals::Kept, &thinks, &server.draws(), effort)?;
        ("simulated", simulated.rate().value, QueueModel::Simulated(simulated))
    };
    let [wait, response] = model.summaries()?.map(Some);
    let utilisation = (rate / server.at_most()).min(1.0);
    let (how, highest_rate_per_s) = (how.to_owned(), None);
    Ok(PredictedQueue {
        queue,
        how,
        rate_per_s: rate,
        utilisation,
        wait,
        response,
        highest_rate_per_s,
    })
}

/// A point of the plot.
pub(crate) struct PredictedP99 {
    pub(crate) rate_per_s: f64,
    pub(crate) queue: &'static str,
    /// Of the response time.
    pub(crate) p99: Nanos,
}

/// p99 of each queue, from a tenth to nearly all of what the slots can do.
///
/// # Errors
/// As the prediction.
pub(crate) fn plot(server: &PredictedServer) -> Result<Vec<PredictedP99>, QueueingError> {
    let mut points = Vec::new();
    for full in [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95] {
        let rate_per_s = full * server.at_most();
        for (queue, load) in
            queues(server, OfferedLoad::new(server.slots(), rate_per_s, server.service())?)?
        {
            let [_, response] = QueueModel::open(server, load)?.times(Some(0.99))?;
            points.push(PredictedP99 { rate_per_s, queue, p99: response.ns });
        }
    }
    Ok(points)
}

/// What Ruby's global lock leaves of threads: those of a worker compute one at a time.
///
/// The lines of the orders of service take no account of it. Here is what a worker of each number
/// of threads can do: at most, by any law, and with all threads busy where the times scatter
/// exponentially, for which the formula is exact (`queueing::closed_loop`).
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RubyLock {
    /// How long a request holds it.
    pub(crate) cpu_ns: Nanos,
    /// What the workers can do at most, however many threads they have.
    pub(crate) at_most_per_s: f64,
    pub(crate) by_threads: Vec<LockedThreads>,
}

/// Workers of one number of threads.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct LockedThreads {
    /// Of each worker.
    pub(crate) threads: u32,
    /// All workers', at most, by any law.
    pub(crate) at_most_per_s: f64,
    /// All workers', with all threads busy.
    pub(crate) all_busy_per_s: f64,
    /// That, of what as many slots would do without the lock.
    pub(crate) of_slots: f64,
    /// With the connections of a closed loop, dealt evenly to the workers; null in an open one.
    pub(crate) closed: Option<LockedLoop>,
    /// The rate of an open loop, of that with all threads busy: from 1 on there is no steady state;
    /// null in a closed one.
    pub(crate) offered_of_all_busy: Option<f64>,
}

/// What a closed loop has.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct LockedLoop {
    pub(crate) rate_per_s: f64,
    pub(crate) response_mean_ns: Nanos,
}

/// What the lock leaves of this server, of whose service time a request holds it for `cpu` seconds.
///
/// # Errors
/// Where that is not above 0 or leaves nothing of the service time, or a worker has more
/// connections than are computed.
fn lock(server: &PredictedServer, cpu: f64, load: PredictLoad) -> Result<RubyLock, QueueingError> {
    let demand = WorkerDemand { io: server.service() - cpu, cpu };
    let workers = f64::from(server.workers);
    let of = |threads: u32| {
        let all_busy = workers * saturated_rate(threads, demand)?;
        let (closed, offered) = match load {
            PredictLoad::Open(rate) => (None, Some(rate.per_second() / all_busy)),
            PredictLoad::Closed(connections, think) => {
                let (mut rate, mut in_flight) = (0.0, 0.0);
                for dealt in
                    dealt_evenly(connections, server.workers).into_iter().filter(|count| *count > 0)
                {
                    let means = worker(dealt, threads, demand, think.as_secs_f64())?;
                    rate += means.rate;
                    in_flight += means.rate * means.response;
                }
                (
                    Some(LockedLoop {
                        rate_per_s: rate,
                        response_mean_ns: Nanos::from_secs_f64(in_flight / rate),
                    }),
                    None,
                )
            }
        };
        Ok(LockedThreads {
            threads,
            at_most_per_s: workers * highest_rate(threads, demand)?,
            all_busy_per_s: all_busy,
            of_slots: all_busy * server.service() / (workers * f64::from(threads)),
            closed,
            offered_of_all_busy: offered,
        })
    };
    let all: BTreeSet<u32> = THREADS.into_iter().chain([server.threads]).collect();
    let by_threads = all.into_iter().map(of).collect::<Result<_, QueueingError>>()?;
    Ok(RubyLock { cpu_ns: Nanos::from_secs_f64(cpu), at_most_per_s: workers / cpu, by_threads })
}
