//! An open loop: arrivals by a law, one queue or one a worker, first come first served.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::estimate::Sample;
use super::{Effort, Law, Simulated, Stream, stream};
use crate::{Invalid, Load, check};

/// Who waits with whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queues {
    /// All in one line for all slots.
    Shared,
    /// One line for each of so many workers, which share the slots evenly; each arrival goes to one of them at random.
    Split(u32),
}

/// A time in a heap.
#[derive(Clone, Copy, PartialEq)]
struct At(f64);

impl Eq for At {}

impl PartialOrd for At {
    fn partial_cmp(&self, other: &At) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for At {
    fn cmp(&self, other: &At) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Simulates an open loop of the laws `gaps` between arrivals and `services`, whose means are those of `load`.
///
/// Each arrival takes the slot of its queue that is free first (Kiefer and Wolfowitz, Trans. AMS 78, 1955), so no event
/// list is needed.
///
/// # Errors
/// Where there is no steady state, the workers do not divide the slots, the effort is none, or a law gives no time.
pub fn open(
    load: Load,
    queues: Queues,
    gaps: Law<'_>,
    services: Law<'_>,
    effort: Effort,
) -> Result<Simulated, Invalid> {
    let load = load.steady()?;
    let effort = effort.checked()?;
    let workers = match queues {
        Queues::Shared => 1,
        Queues::Split(workers) => check::some("worker", workers)?,
    };
    let slots = crate::split::a_workers_load(load, workers)?.slots();
    let samples = (0..effort.replications).map(|replication| {
        let of = |which| stream(effort.seed, replication, which);
        let (of_arrivals, of_services, of_workers) = (of(Stream::Arrival), of(Stream::Service), of(Stream::Worker));
        let mut free: Vec<BinaryHeap<Reverse<At>>> =
            (0..workers).map(|_| (0..slots).map(|_| Reverse(At(0.0))).collect()).collect();
        let mut sample = Sample::default();
        let (mut now, mut began) = (0.0, 0.0);
        let warm_up = u64::from(effort.warm_up);
        for number in 0..warm_up + u64::from(effort.requests) {
            now += check::not_negative("a gap", gaps(of_arrivals, number))?;
            let service = check::not_negative("a service time", services(of_services, number))?;
            let worker = if workers == 1 {
                0
            } else {
                // Draws are in (0, 1].
                ((1.0 - model::pace::uniform(of_workers, number)) * f64::from(workers)) as usize
            };
            let Some(Reverse(At(first_free))) = free[worker].pop() else {
                return Err(Invalid::None("slot"));
            };
            let wait = f64::max(first_free - now, 0.0);
            free[worker].push(Reverse(At(now + wait + service)));
            if number < warm_up {
                began = now;
            } else {
                sample.record(wait, wait + service);
            }
        }
        Ok(sample.finished(check::positive("the simulated time", now - began)?))
    });
    Ok(Simulated::new(samples.collect::<Result<_, _>>()?))
}
