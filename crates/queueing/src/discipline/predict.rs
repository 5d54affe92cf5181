//! The distributions that the disciplines predict: by formula if the service time is constant,
//! simulated if it varies.

use model::Discipline;

use super::{ClosedLoopServer, ConnectionDealing, EDGE};
use crate::QueueingError;
use crate::closed_loop::{dealt_evenly, levels_in_step, levels_on_average};
use crate::puma::{HOLD_SECONDS, LONGEST_DELAY_SECONDS};
use crate::simulate::{
    self, AcceptThrottle, PoolArrivals, SimulationEffort, ThreadPool, TimeLaw, constant,
    exponential, nearest_rank,
};

/// The seed of every random choice. It is fixed, so that a comparison is a function of the figures.
const SEED: u64 = 1;

/// Seconds from a response to the client's next connection, under an accept throttle.
const RECONNECT: f64 = 0.000_1;

/// Predicted response times, for each possible law of service.
pub(super) struct ResponsePrediction {
    /// Requests per second.
    pub(super) rate: f64,
    /// Ascending samples, one list a law.
    pub(super) laws: Vec<Vec<f64>>,
}

impl ResponsePrediction {
    /// The lowest and the highest quantile at `share`, give or take [`EDGE`], by any of the laws.
    pub(super) fn range(&self, share: f64) -> (f64, f64) {
        let from = (share - EDGE).max(0.0);
        let to = (share + EDGE).min(1.0);
        let lows = self.laws.iter().map(|law| nearest_rank(law, from));
        let highs = self.laws.iter().map(|law| nearest_rank(law, to));
        (lows.fold(f64::INFINITY, f64::min), highs.fold(0.0, f64::max))
    }
}

/// What `discipline` predicts: once, or for each assignment of connections to workers that is
/// tried.
pub(super) fn all(
    server: &ClosedLoopServer,
    connections: u32,
    discipline: Discipline,
) -> Result<Vec<ResponsePrediction>, QueueingError> {
    if discipline == Discipline::Split && !server.order.is_kept {
        return Ok(vec![dealt_anew(server, connections)?]);
    }
    let assignments = match (discipline, &server.by_worker) {
        // A connection whose turn is over is closed where another waits to be accepted
        // (`process_client`, `request.rb`), and so goes to the end of the kernel's queue, which all
        // workers share.
        (Discipline::Shared, _) | (Discipline::Turns, None) => vec![vec![connections]],
        // If the workers accepted all connections before any request came, none of them is closed
        // after its turn, and each worker has turns of its own.
        (Discipline::Split | Discipline::Turns, Some(known)) => vec![known.clone()],
        (Discipline::Split, None) => {
            let draws = if server.scatters { 8 } else { 200 };
            (0..draws)
                .map(|draw| dealt(server, connections, SEED + draw))
                .collect::<Result<_, _>>()?
        }
    };
    assignments.iter().map(|assignment| assigned(server, discipline, assignment)).collect()
}

/// Connections of each worker, in one draw.
fn dealt(
    server: &ClosedLoopServer,
    connections: u32,
    seed: u64,
) -> Result<Vec<u32>, QueueingError> {
    match server.order.dealing {
        ConnectionDealing::ByChance | ConnectionDealing::Unknown => {
            let mut counts = vec![0; server.workers as usize];
            for connection in 0..u64::from(connections) {
                let drawn = 1.0 - model::pace::uniform(seed, connection);
                counts[(drawn * f64::from(server.workers)) as usize] += 1;
            }
            Ok(counts)
        }
        ConnectionDealing::Throttled(longest) => {
            let throttle =
                if seed.is_multiple_of(2) { AcceptThrottle::quiet } else { AcceptThrottle::busy };
            simulate::dealt_by_throttle(
                connections,
                server.workers,
                server.threads,
                throttle(longest.as_secs_f64()),
                seed,
            )
        }
    }
}

/// Split queues when each request is a connection of its own and goes to a worker anew: by chance,
/// or by a throttle, on a quiet machine or on a busy one.
fn dealt_anew(
    server: &ClosedLoopServer,
    connections: u32,
) -> Result<ResponsePrediction, QueueingError> {
    let throttled = |throttle| (PoolArrivals::Throttled(throttle), RECONNECT);
    let ways = match server.order.dealing {
        ConnectionDealing::ByChance => vec![(PoolArrivals::Random, 0.0)],
        // A throttle on a quiet machine deals as evenly as can be.
        ConnectionDealing::Unknown => {
            vec![
                (PoolArrivals::Random, 0.0),
                throttled(AcceptThrottle::quiet(LONGEST_DELAY_SECONDS)),
            ]
        }
        ConnectionDealing::Throttled(longest) => [AcceptThrottle::quiet, AcceptThrottle::busy]
            .map(|of| throttled(of(longest.as_secs_f64())))
            .to_vec(),
    };
    let even = dealt_evenly(connections, server.workers).into_iter();
    let pools: Vec<_> = even.map(|count| ThreadPool::first_come(server.threads, count)).collect();
    let effort = SimulationEffort {
        replications: 4,
        requests: 20_000.max(20 * connections),
        warm_up: 5000,
        seed: SEED,
    };
    let run = |law: TimeLaw<'_>| {
        let each = ways.iter().map(|(arrivals, pause)| {
            simulate::closed(&pools, *arrivals, &constant(*pause), law, effort)
        });
        each.collect::<Result<Vec<_>, _>>()
    };
    let mut all = run(&constant(server.service()))?;
    let rate = all.iter().map(|sleeps| sleeps.rate().value).sum::<f64>() / all.len() as f64;
    if server.scatters {
        all.extend(run(&exponential(server.service()))?);
    }
    Ok(ResponsePrediction { rate, laws: all.iter().map(simulate::Simulated::responses).collect() })
}

fn assigned(
    server: &ClosedLoopServer,
    discipline: Discipline,
    assignment: &[u32],
) -> Result<ResponsePrediction, QueueingError> {
    let (threads, turn) = match discipline {
        Discipline::Shared => (server.slots(), 1),
        Discipline::Split => (server.threads, 1),
        Discipline::Turns if server.by_worker.is_some() => (server.threads, server.order.turn),
        Discipline::Turns => (server.slots(), server.order.turn),
    };
    let pools: Vec<ThreadPool> = assignment
        .iter()
        .filter(|connections| **connections > 0)
        .map(|connections| ThreadPool {
            threads,
            connections: *connections,
            turn,
            hold: HOLD_SECONDS,
        })
        .collect();
    let busy = |pool: &ThreadPool| f64::from(pool.connections.min(threads));
    let all_busy: f64 = pools.iter().map(busy).sum();
    // In step, requests take whole numbers of turns. With a little jitter all requests of one queue
    // take the mean. Real servers are between the two. (Split queues that are dealt by chance vary
    // by more than that.)
    let in_step_alone = discipline == Discipline::Split && server.by_worker.is_none();
    let ways = if in_step_alone {
        vec![levels_in_step as fn(_, _, _) -> _]
    } else {
        vec![levels_in_step, levels_on_average]
    };
    let mut laws = Vec::new();
    for levels_of in ways {
        let mut law = Vec::new();
        for pool in &pools {
            // A worker has as many samples as requests.
            let samples = 4000.0 * busy(pool) / all_busy;
            for level in levels_of(pool.connections, threads, turn)? {
                let count = (samples * level.share).round() as usize;
                law.extend(std::iter::repeat_n(level.turns * server.service(), count));
            }
        }
        law.sort_by(f64::total_cmp);
        laws.push(law);
    }
    if server.scatters {
        let effort =
            SimulationEffort { replications: 2, requests: 10_000, warm_up: 5000, seed: SEED };
        let service = exponential(server.service());
        laws.push(
            simulate::closed(&pools, PoolArrivals::Kept, &constant(0.0), &service, effort)?
                .responses(),
        );
    }
    Ok(ResponsePrediction { rate: all_busy / server.service(), laws })
}
