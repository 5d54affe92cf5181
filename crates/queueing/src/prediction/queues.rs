//! What each order of service makes of a load: one queue for all workers (shared), one for each
//! (split), and Puma's turns of ten.

use model::{DelayLaw, Nanos, number};
use serde::Serialize;

use super::queue_model::{QueueModel, SimulatedQueue};
use super::server::{PredictedServer, TimeGoal};
use super::times::{TimeSummary, WaitAndResponse};
use crate::closed_loop::{ResponseLevel, assigned_at_random, dealt_evenly, levels_in_step};
use crate::open_loop::highest_utilisation;
use crate::puma::{HOLD_SECONDS, TURN};
use crate::simulate::{self, PoolArrivals, ThreadPool};
use crate::{OfferedLoad, QueueingError};

/// How exactly a simulated objective is searched, as a part of the slots.
const SIMULATED_WIDTH: f64 = 0.002;
/// The same for an objective that has a formula.
const EXACT_WIDTH: f64 = 1e-9;
/// Above this utilisation a simulation is doubted.
const NEARLY_FULL: f64 = 0.9;

/// What one order of service makes of the load.
#[derive(Clone, Debug, Serialize)]
pub struct PredictedQueue {
    /// shared, split, turns
    pub queue: &'static str,
    /// The formula, or that it is simulated.
    pub how: String,
    /// Completed per second.
    pub rate_per_s: f64,
    /// Share of the time that a slot is busy.
    pub utilisation: f64,
    /// Absent in an overload, which has no steady state.
    pub wait: Option<TimeSummary>,
    /// Absent like the wait.
    pub response: Option<TimeSummary>,
    /// The highest rate that keeps the objective; absent without one, or if no rate keeps it.
    pub highest_rate_per_s: Option<f64>,
}

/// The orders of service, and what there is to say about them.
#[derive(Default)]
pub(crate) struct PredictedQueues {
    pub(crate) lines: Vec<PredictedQueue>,
    pub(crate) notes: Vec<String>,
}

/// The load of one queue of an order of service.
#[derive(Clone, Copy)]
struct QueueLoad {
    queue: &'static str,
    load: OfferedLoad,
}

/// Shared and split. A single worker has only one queue.
fn queue_loads(
    server: &PredictedServer,
    load: OfferedLoad,
) -> Result<Vec<QueueLoad>, QueueingError> {
    let mut all = vec![QueueLoad { queue: "shared", load }];
    if server.workers > 1 {
        all.push(QueueLoad { queue: "split", load: load.of_one_worker(server.workers)? });
    }
    Ok(all)
}

/// Predicts each queue on a thread of its own, because simulations take their time.
fn in_parallel<T: Send>(
    queues: Vec<QueueLoad>,
    predict: impl Fn(QueueLoad) -> Result<T, QueueingError> + Sync,
) -> Result<Vec<T>, QueueingError> {
    let predict = &predict;
    std::thread::scope(|scope| {
        let running: Vec<_> =
            queues.into_iter().map(|queue| scope.spawn(move || predict(queue))).collect();
        running.into_iter().map(|one| one.join().expect("a prediction ends")).collect()
    })
}

/// Random arrivals. The rate that keeps an objective is searched up to `most` requests per second.
pub(crate) fn open_loop(
    server: &PredictedServer,
    rate: f64,
    goal: Option<TimeGoal>,
    most: f64,
) -> Result<PredictedQueues, QueueingError> {
    let load = OfferedLoad::new(server.slots(), rate, server.service())?;
    let utilisation = load.utilisation();
    let lines = in_parallel(queue_loads(server, load)?, |queue| {
        let mut line = open_line(server, queue, rate, utilisation)?;
        if let Some(goal) = goal {
            line.highest_rate_per_s = highest_rate(server, queue.load.slots(), goal, most)?;
        }
        Ok(line)
    })?;
    let notes = open_notes(server, &load, goal, &lines);
    Ok(PredictedQueues { lines, notes })
}

fn open_line(
    server: &PredictedServer,
    queue: QueueLoad,
    rate: f64,
    utilisation: f64,
) -> Result<PredictedQueue, QueueingError> {
    let QueueLoad { queue, load } = queue;
    let mut line = PredictedQueue {
        queue,
        how: "overload".to_owned(),
        rate_per_s: rate.min(server.by_threads()),
        utilisation: utilisation.min(1.0),
        wait: None,
        response: None,
        highest_rate_per_s: None,
    };
    if utilisation < 1.0 {
        let model = QueueModel::open(server, load)?;
        line.how = match &model {
            QueueModel::Exact { formula, .. } => format!("{formula}/{}, exact", load.slots()),
            QueueModel::Levels { .. } | QueueModel::Simulated(_) => {
                format!("M/G/{}, simulated", load.slots())
            }
        };
        let WaitAndResponse { wait, response } = model.summaries()?;
        line.wait = Some(wait);
        line.response = Some(response);
    }
    Ok(line)
}

fn open_notes(
    server: &PredictedServer,
    load: &OfferedLoad,
    goal: Option<TimeGoal>,
    lines: &[PredictedQueue],
) -> Vec<String> {
    let utilisation = load.utilisation();
    let mut notes = Vec::new();
    if utilisation >= 1.0 {
        notes.push(format!(
            "overload: no steady state. Response times grow by {} s in each second; after a \
             minute they are {} s",
            number::significant(utilisation - 1.0),
            number::significant(load.response_in_overload(60.0))
        ));
    }
    if let Some(goal) = goal
        && lines.iter().all(|line| line.highest_rate_per_s.is_none())
    {
        notes.push(format!(
            "no rate keeps {}: a request takes longer without any load",
            goal.objective
        ));
    }
    let is_doubted = |line: &PredictedQueue| {
        let highest = line.highest_rate_per_s.unwrap_or(0.0) / server.by_threads();
        line.how.ends_with("simulated") && utilisation.max(highest) > NEARLY_FULL
    };
    if lines.iter().any(is_doubted) {
        notes.push(
            "simulated this near to full, a run may not have forgotten how it began: true waits may be longer"
                .to_owned(),
        );
    }
    notes
}

/// The highest rate of all workers at which a queue of `slots` keeps the goal, at most `most`; a
/// simulation is judged by the upper end of its interval. `None` if no rate keeps it.
fn highest_rate(
    server: &PredictedServer,
    slots: u32,
    goal: TimeGoal,
    most: f64,
) -> Result<Option<f64>, QueueingError> {
    let width = if server.is_simulated() { SIMULATED_WIDTH } else { EXACT_WIDTH };
    let found = highest_utilisation(slots, server.service(), goal.limit, width, |load| {
        let model = QueueModel::open(server, load)?;
        let times = match goal.share {
            Some(share) => model.quantiles(share)?,
            None => model.means(),
        };
        Ok(times.response.at_most())
    });
    match found {
        Ok(utilisation) => Ok(Some((utilisation * server.by_threads()).min(most))),
        Err(QueueingError::OutOfReach { .. }) => Ok(None),
        Err(why) => Err(why),
    }
}

/// Connections that wait for their responses: shared, split with the connections dealt evenly, and
/// turns of ten, for which all of them wait in one queue. `think`: the pause in seconds.
pub(crate) fn closed_loop(
    server: &PredictedServer,
    connections: u32,
    think: f64,
) -> Result<PredictedQueues, QueueingError> {
    let one_queue =
        |turn| vec![ThreadPool { threads: server.slots(), connections, turn, hold: HOLD_SECONDS }];
    let mut queues = PredictedQueues::default();
    queues.lines.push(closed_line(server, "shared", &one_queue(1), think)?);
    if server.workers > 1 {
        let dealt = dealt_evenly(connections, server.workers);
        let pools: Vec<ThreadPool> = dealt
            .into_iter()
            .filter(|count| *count > 0)
            .map(|count| ThreadPool {
                threads: server.threads,
                connections: count,
                turn: 1,
                hold: HOLD_SECONDS,
            })
            .collect();
        queues.lines.push(closed_line(server, "split", &pools, think)?);
        queues.notes.push("split: the connections dealt evenly to the workers".to_owned());
        if think == 0.0 {
            queues.notes.extend(dealt_at_random_note(server, connections));
        }
    }
    queues.lines.push(closed_line(server, "turns", &one_queue(TURN), think)?);
    queues.notes.push(
        "turns: Puma up to 6 with keep-alive, ten requests of one connection in a row".to_owned(),
    );
    Ok(queues)
}

fn dealt_at_random_note(server: &PredictedServer, connections: u32) -> Option<String> {
    let dealt = assigned_at_random(connections, server.workers, server.threads).ok()?;
    Some(format!(
        "dealt at random the fullest worker has {} instead of {}, and the expected rate is {} % \
         of all slots busy",
        number::significant(dealt.fullest),
        number::significant(f64::from(connections) / f64::from(server.workers)),
        number::percent(dealt.rate)
    ))
}

/// A model and the rate that it completes.
struct ClosedModel {
    model: QueueModel,
    how: &'static str,
    rate: f64,
}

fn closed_line(
    server: &PredictedServer,
    queue: &'static str,
    pools: &[ThreadPool],
    think: f64,
) -> Result<PredictedQueue, QueueingError> {
    let ClosedModel { model, how, rate } = if has_levels(server, pools, think) {
        levels_of(server, pools)?
    } else {
        simulated(server, pools, think)?
    };
    let WaitAndResponse { wait, response } = model.summaries()?;
    Ok(PredictedQueue {
        queue,
        how: how.to_owned(),
        rate_per_s: rate,
        utilisation: (rate / server.by_threads()).min(1.0),
        wait: Some(wait),
        response: Some(response),
        highest_rate_per_s: None,
    })
}

/// Whether all response times are whole multiples of one service time.
fn has_levels(server: &PredictedServer, pools: &[ThreadPool], think: f64) -> bool {
    // Turns of connections that the threads do not divide are not in step, and have more levels.
    let is_in_step = |pool: &ThreadPool| {
        pool.turn == 1
            || pool.connections <= pool.threads
            || pool.connections.is_multiple_of(pool.threads)
    };
    matches!(server.law, DelayLaw::Constant(_)) && think == 0.0 && pools.iter().all(is_in_step)
}

/// Threads of a pool that are busy without think time.
fn busy_threads(pool: &ThreadPool) -> f64 {
    f64::from(pool.connections.min(pool.threads))
}

fn levels_of(server: &PredictedServer, pools: &[ThreadPool]) -> Result<ClosedModel, QueueingError> {
    let all_busy: f64 = pools.iter().map(busy_threads).sum();
    let mut levels = Vec::new();
    for pool in pools {
        // Each pool counts by its rate.
        let weight = busy_threads(pool) / all_busy;
        for level in levels_in_step(pool.connections, pool.threads, pool.turn)? {
            levels.push(ResponseLevel { share: level.share * weight, ..level });
        }
    }
    levels.sort_by(|a, b| a.turns.total_cmp(&b.turns));
    let service = server.service();
    Ok(ClosedModel {
        model: QueueModel::Levels { levels, service },
        how: "levels, exact",
        rate: all_busy / service,
    })
}

fn simulated(
    server: &PredictedServer,
    pools: &[ThreadPool],
    think: f64,
) -> Result<ClosedModel, QueueingError> {
    let service = server.service();
    let connections: u32 = pools.iter().map(|pool| pool.connections).sum();
    let effort = server.closed_effort(connections);
    let thinks = simulate::constant(think);
    let times = simulate::closed(pools, PoolArrivals::Kept, &thinks, &server.draws(), effort)?;
    // Without think time no thread is idle while somebody waits, whatever the law. So the rate is
    // known, and by Little's law the mean.
    let all_busy: f64 = pools.iter().map(busy_threads).sum();
    let known_rate = (think == 0.0).then_some(all_busy / service);
    let rate = known_rate.unwrap_or(times.rate().value);
    let model = QueueModel::Simulated(SimulatedQueue {
        times,
        service,
        levels: server.levels(),
        mean_response: known_rate.map(|rate| f64::from(connections) / rate),
    });
    Ok(ClosedModel { model, how: "simulated", rate })
}

/// A point of the plot.
pub struct PredictedP99 {
    /// Random arrivals at this rate.
    pub rate_per_s: f64,
    /// shared, split
    pub queue: &'static str,
    /// p99 of the response time.
    pub p99: Nanos,
}

/// p99 of each queue, from a tenth to nearly all of what the slots can do.
///
/// # Errors
/// If there is no prediction.
pub fn plot(server: &PredictedServer) -> Result<Vec<PredictedP99>, QueueingError> {
    let mut points = Vec::new();
    for utilisation in [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95] {
        let rate_per_s = utilisation * server.by_threads();
        let load = OfferedLoad::new(server.slots(), rate_per_s, server.service())?;
        points.extend(in_parallel(queue_loads(server, load)?, |QueueLoad { queue, load }| {
            let p99 = QueueModel::open(server, load)?.quantiles(0.99)?.response.ns;
            Ok(PredictedP99 { rate_per_s, queue, p99 })
        })?);
    }
    Ok(points)
}
