//! The distributions that the disciplines predict: by formula where the service is constant, simulated where it scatters.

use super::{Discipline, Measured, Recording, Scatter};
use crate::closed::{self, Level};
use crate::simulate::{self, Effort, Pool, constant, exponential};
use crate::{Invalid, phantom, polling, split};

/// What random choices are made from: fixed, so that a comparison is a function of the figures.
const SEED: u64 = 1;

/// Response times for each law of service that is possible.
pub(super) struct Prediction {
    /// Requests per second.
    pub(super) rate: f64,
    /// Ascending samples, one list a law.
    laws: Vec<Vec<f64>>,
}

impl Prediction {
    /// From the lowest quantile at `from` to the highest at `to` of any law.
    pub(super) fn range(&self, from: f64, to: f64) -> (f64, f64) {
        let (mut low, mut high) = (f64::INFINITY, 0.0f64);
        for law in &self.laws {
            low = low.min(simulate::nearest_rank(law, from));
            high = high.max(simulate::nearest_rank(law, to));
        }
        (low, high)
    }
}

/// What `discipline` predicts: once, or for each assignment of connections to workers that is tried.
pub(super) fn all(measured: &Measured, discipline: Discipline) -> Result<Vec<Prediction>, Invalid> {
    let known = measured.by_worker.clone();
    let even = || {
        let (each, rest) = (measured.connections / measured.workers, measured.connections % measured.workers);
        (0..measured.workers).map(|worker| each + u32::from(worker < rest)).collect::<Vec<_>>()
    };
    let assignments = match (discipline, known) {
        (Discipline::Shared, _) => vec![vec![measured.connections]],
        (_, Some(known)) => vec![known],
        (Discipline::Turns, None) => vec![even()],
        (Discipline::Split, None) => {
            let draws = if measured.scatter == Scatter::Constant { 200 } else { 8 };
            (0..draws).map(|draw| at_random(measured.connections, measured.workers, SEED + draw)).collect()
        }
    };
    assignments.iter().map(|assignment| predict(measured, discipline, assignment)).collect()
}

/// Each connection's worker by dice.
fn at_random(connections: u32, workers: u32, seed: u64) -> Vec<u32> {
    let mut counts = vec![0; workers as usize];
    for connection in 0..u64::from(connections) {
        counts[((1.0 - model::pace::uniform(seed, connection)) * f64::from(workers)) as usize] += 1;
    }
    counts
}

fn predict(measured: &Measured, discipline: Discipline, assignment: &[u32]) -> Result<Prediction, Invalid> {
    let (threads, turn) = match discipline {
        Discipline::Shared => (measured.workers * measured.threads, 1),
        Discipline::Split => (measured.threads, 1),
        Discipline::Turns => (measured.threads, polling::TURN),
    };
    let shares = split::closed(assignment, threads, measured.service)?;
    let rate = shares.iter().map(|share| share.rate).sum();
    let mut constant_times = Vec::new();
    for share in shares.iter().filter(|share| share.connections > 0) {
        let levels = if turn == 1 {
            closed::levels(share.connections, threads)?
        } else {
            polling::levels(share.connections, threads, turn)?
        };
        // A worker has as many samples as requests.
        let samples: f64 = 4000.0 * share.rate / rate;
        for Level { turns, share } in levels {
            let count = (samples * share).round() as usize;
            constant_times.extend(std::iter::repeat_n(turns * measured.service, count));
        }
    }
    constant_times.sort_by(f64::total_cmp);
    let mut laws = vec![constant_times];
    if measured.scatter == Scatter::Some {
        let pools: Vec<Pool> = assignment
            .iter()
            .filter(|connections| **connections > 0)
            .map(|connections| Pool { threads, connections: *connections, turn, hold: polling::HOLD_SECONDS })
            .collect();
        let effort = Effort { replications: 2, requests: 10_000, warm_up: 5000, seed: SEED };
        laws.push(simulate::closed(&pools, &constant(0.0), &exponential(measured.service), effort)?.responses());
    }
    if measured.recording == Recording::Wrk {
        for law in &mut laws {
            *law = phantom::recorded_by_wrk(law, measured.connections, measured.rate)?;
        }
    }
    Ok(Prediction { rate, laws })
}
