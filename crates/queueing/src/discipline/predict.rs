//! The distributions that the disciplines predict: by formula where the service is constant, simulated where it scatters.

use super::{Connections, Discipline, Measured, Recording, Scatter};
use crate::closed::{self, Level};
use crate::simulate::{self, Effort, Law, Pool, constant, exponential};
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
    if discipline == Discipline::Split && measured.connections_are == Connections::OfOneRequest {
        return Ok(vec![dealt_anew(measured, &even())?]);
    }
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

/// Split queues where each request is a connection of its own, and so dealt to a worker anew.
fn dealt_anew(measured: &Measured, even: &[u32]) -> Result<Prediction, Invalid> {
    let pools: Vec<Pool> = even.iter().map(|count| Pool::first_come(measured.threads, *count)).collect();
    let run = |law: Law<'_>| {
        let effort =
            Effort { replications: 4, requests: 20_000.max(20 * measured.connections), warm_up: 5000, seed: SEED };
        simulate::closed_dealt_anew(&pools, &constant(0.0), law, effort)
    };
    let sleeps = run(&constant(measured.service))?;
    let (rate, mut laws) = (sleeps.rate().value, vec![sleeps.responses()]);
    if measured.scatter == Scatter::Some {
        laws.push(run(&exponential(measured.service))?.responses());
    }
    recorded(measured, &mut laws)?;
    Ok(Prediction { rate, laws })
}

/// As the recorder that was used writes it down.
fn recorded(measured: &Measured, laws: &mut [Vec<f64>]) -> Result<(), Invalid> {
    if measured.recording == Recording::Wrk {
        for law in laws {
            *law = phantom::recorded_by_wrk(law, measured.connections, measured.rate)?;
        }
    }
    Ok(())
}

fn predict(measured: &Measured, discipline: Discipline, assignment: &[u32]) -> Result<Prediction, Invalid> {
    let (threads, turn) = match discipline {
        Discipline::Shared => (measured.workers * measured.threads, 1),
        Discipline::Split => (measured.threads, 1),
        Discipline::Turns => (measured.threads, polling::TURN),
    };
    let shares = split::closed(assignment, threads, measured.service)?;
    let rate = shares.iter().map(|share| share.rate).sum();
    // In step, requests take whole numbers of turns; with a little jitter all of one queue take the mean. What is real is between the
    // two. (Of split queues the dealing varies by more than that.)
    let (mut in_step, mut smooth) = (Vec::new(), Vec::new());
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
            in_step.extend(std::iter::repeat_n(turns * measured.service, count));
        }
        smooth.extend(std::iter::repeat_n(share.response, samples.round() as usize));
    }
    in_step.sort_by(f64::total_cmp);
    let mut laws = vec![in_step];
    if discipline == Discipline::Shared {
        smooth.sort_by(f64::total_cmp);
        laws.push(smooth);
    }
    if measured.scatter == Scatter::Some {
        let pools: Vec<Pool> = assignment
            .iter()
            .filter(|connections| **connections > 0)
            .map(|connections| Pool { threads, connections: *connections, turn, hold: polling::HOLD_SECONDS })
            .collect();
        let effort = Effort { replications: 2, requests: 10_000, warm_up: 5000, seed: SEED };
        laws.push(simulate::closed(&pools, &constant(0.0), &exponential(measured.service), effort)?.responses());
    }
    recorded(measured, &mut laws)?;
    Ok(Prediction { rate, laws })
}
