//! The distributions that the disciplines predict: by formula where the service is constant, simulated where it scatters.

use super::{Connections, Dealing, Discipline, Measured, Recording, Scatter};
use crate::closed::{self, Level};
use crate::simulate::{self, Effort, Law, Pool, Simulated, Throttle, constant, exponential};
use crate::{Invalid, phantom, polling, split, throttle};

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
        // A connection whose turn is over is closed where another waits to be accepted (`process_client`, `request.rb`), and so goes
        // to the end of the kernel's queue, which all workers share.
        (Discipline::Shared, _) | (Discipline::Turns, None) => vec![vec![measured.connections]],
        // Where all were accepted (their requests came after them, so that no thread was taken) nobody is closed, and the turns are
        // those of each worker.
        (Discipline::Split | Discipline::Turns, Some(known)) => vec![known],
        (Discipline::Split, None) => {
            let draws = if measured.scatter == Scatter::Constant { 200 } else { 8 };
            (0..draws).map(|draw| dealt(measured, SEED + draw)).collect::<Result<_, _>>()?
        }
    };
    assignments.iter().map(|assignment| predict(measured, discipline, assignment)).collect()
}

/// Connections of each worker, in one draw.
fn dealt(measured: &Measured, seed: u64) -> Result<Vec<u32>, Invalid> {
    match measured.dealing {
        Dealing::ByChance | Dealing::Unknown => Ok(at_random(measured.connections, measured.workers, seed)),
        Dealing::Throttled(longest) => {
            let of = if seed.is_multiple_of(2) { Throttle::quiet } else { Throttle::busy };
            let throttle = of(longest.as_secs_f64());
            simulate::dealt_by_throttle(measured.connections, measured.workers, measured.threads, throttle, seed)
        }
    }
}

/// Each connection's worker by dice.
fn at_random(connections: u32, workers: u32, seed: u64) -> Vec<u32> {
    let mut counts = vec![0; workers as usize];
    for connection in 0..u64::from(connections) {
        counts[((1.0 - model::pace::uniform(seed, connection)) * f64::from(workers)) as usize] += 1;
    }
    counts
}

/// Split queues where each request is a connection of its own, and so dealt to a worker anew: by chance, or by a throttle, on a quiet
/// machine or on a busy one.
fn dealt_anew(measured: &Measured, even: &[u32]) -> Result<Prediction, Invalid> {
    let pools: Vec<Pool> = even.iter().map(|count| Pool::first_come(measured.threads, *count)).collect();
    let effort = Effort { replications: 4, requests: 20_000.max(20 * measured.connections), warm_up: 5000, seed: SEED };
    let run = |law: Law<'_>| -> Result<Vec<Simulated>, Invalid> {
        match measured.dealing {
            Dealing::ByChance => Ok(vec![simulate::closed_dealt_anew(&pools, &constant(0.0), law, effort)?]),
            // A throttle on a quiet machine deals as evenly as can be.
            Dealing::Unknown => Ok(vec![
                simulate::closed_dealt_anew(&pools, &constant(0.0), law, effort)?,
                simulate::closed_throttled(&pools, Throttle::quiet(throttle::LONGEST_SECONDS), law, effort)?,
            ]),
            Dealing::Throttled(longest) => [Throttle::quiet, Throttle::busy]
                .map(|of| simulate::closed_throttled(&pools, of(longest.as_secs_f64()), law, effort))
                .into_iter()
                .collect(),
        }
    };
    let sleeps = run(&constant(measured.service))?;
    let rate = sleeps.iter().map(|sleeps| sleeps.rate().value).sum::<f64>() / sleeps.len() as f64;
    let mut laws: Vec<Vec<f64>> = sleeps.iter().map(Simulated::responses).collect();
    if measured.scatter == Scatter::Some {
        laws.extend(run(&exponential(measured.service))?.iter().map(Simulated::responses));
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
        Discipline::Turns if measured.by_worker.is_some() => (measured.threads, measured.turn),
        Discipline::Turns => (measured.workers * measured.threads, measured.turn),
    };
    let shares = split::closed(assignment, threads, measured.service)?;
    let rate = shares.iter().map(|share| share.rate).sum();
    // In step, requests take whole numbers of turns; with a little jitter all of one queue take the mean. What is real is between the
    // two. (Of split queues whose dealing is by chance that varies by more.)
    let (mut in_step, mut smooth) = (Vec::new(), Vec::new());
    for share in shares.iter().filter(|share| share.connections > 0) {
        // A worker has as many samples as requests.
        let samples: f64 = 4000.0 * share.rate / rate;
        let add = |law: &mut Vec<f64>, levels: Vec<Level>| {
            for Level { turns, share } in levels {
                let count = (samples * share).round() as usize;
                law.extend(std::iter::repeat_n(turns * measured.service, count));
            }
        };
        if turn == 1 {
            add(&mut in_step, closed::levels(share.connections, threads)?);
            smooth.extend(std::iter::repeat_n(share.response, samples.round() as usize));
        } else {
            add(&mut in_step, polling::levels_in_step(share.connections, threads, turn)?);
            add(&mut smooth, polling::levels(share.connections, threads, turn)?);
        }
    }
    in_step.sort_by(f64::total_cmp);
    let mut laws = vec![in_step];
    if discipline != Discipline::Split || measured.by_worker.is_some() {
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
