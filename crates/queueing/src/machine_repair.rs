//! Closed loops with think time: connections that send their next request some time after the last answer, on a number of slots
//! (M/M/c//N, the machine-repair problem), and on a Ruby worker whose threads wait for I/O side by side and compute one at a time.
//!
//! Sources: Feller, Probability Theory I, XVII.5 and XVII.7; Kleinrock, Queueing Systems I, 3.8; for the limit on what is inside a
//! worker, Chandy, Herzog and Woo, "Parametric analysis of queueing networks", IBM J. R&D 19 (1975). By birth and death in
//! logarithms, for any number of connections: mean value analysis of several slots loses all digits (`tests/queueing/mva.rs`). Exact for
//! exponential service; of the think time only the mean matters.

use crate::QueueingError;
use crate::error::{at_most, not_negative, positive, some};

/// The most connections of a worker that computes: the sums grow with their square.
pub const MOST_CONNECTIONS: u32 = 5000;

/// What a closed loop does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClosedLoopMeans {
    /// `X`: requests per unit of time.
    pub rate: f64,
    /// `R`: mean response time, `L / X`.
    pub response: f64,
}

/// `connections` that think for `think` and then want one of the slots, which do `rate_with(n)` together where `n` are there:
/// `p(n) ∝ Π (N - j + 1)/Z / rate(j)`, `X = Σ p(n)·rate(n)`, `R = L/X`. In logarithms, since the products leave the range of an f64
/// long before their shares do. Without think time all are always there.
fn birth_and_death(connections: u32, think: f64, rate_with: impl Fn(u32) -> f64) -> ClosedLoopMeans {
    if think == 0.0 {
        let rate = rate_with(connections);
        return ClosedLoopMeans { rate, response: f64::from(connections) / rate };
    }
    let mut logs = vec![0.0f64];
    let mut log = 0.0;
    for n in 1..=connections {
        log += (f64::from(connections - n + 1) / (think * rate_with(n))).ln();
        logs.push(log);
    }
    let highest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (mut all, mut rate, mut inside) = (0.0, 0.0, 0.0);
    for (n, log) in (0..).zip(logs) {
        let weight = (log - highest).exp();
        all += weight;
        rate += weight * if n == 0 { 0.0 } else { rate_with(n) };
        inside += weight * f64::from(n);
    }
    ClosedLoopMeans { rate: rate / all, response: inside / rate }
}

/// `slots` slots of mean service time `service`, for which `connections` wait that think for `think`.
///
/// # Errors
/// Without a connection or a slot, where the service time is not above 0, or the think time is negative.
pub fn machine_repair(
    connections: u32,
    slots: u32,
    service: f64,
    think: f64,
) -> Result<ClosedLoopMeans, QueueingError> {
    some("connection", connections)?;
    some("slot", slots)?;
    positive("the service time", service)?;
    not_negative("the think time", think)?;
    Ok(birth_and_death(connections, think, |n| f64::from(n.min(slots)) / service))
}

/// What a request needs of a worker, in one unit of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkerDemand {
    /// Time in which Ruby's lock is free: database, network, sleep.
    pub io: f64,
    /// Time for which it holds the lock.
    pub cpu: f64,
}

/// The most that a worker can do, by any law: `min(t/(s_io + s_cpu), 1/s_cpu)` (Denning and Buzen, Computing Surveys 10(3), 1978).
///
/// # Errors
/// Without a thread, or where a time is not above 0.
pub fn highest_rate(threads: u32, demand: WorkerDemand) -> Result<f64, QueueingError> {
    some("thread", threads)?;
    let (io, cpu) = (positive("the I/O time", demand.io)?, positive("the CPU time", demand.cpu)?);
    Ok(f64::min(f64::from(threads) / (io + cpu), 1.0 / cpu))
}

/// What a worker does with all its threads always busy: below [`highest_rate`], since threads meet at the lock. `t`
/// requests go round between I/O (a delay) and CPU (one server): M/M/1//t.
///
/// # Errors
/// As [`highest_rate`].
pub fn saturated_rate(threads: u32, demand: WorkerDemand) -> Result<f64, QueueingError> {
    Ok(machine_repair(threads, 1, demand.cpu, positive("the I/O time", demand.io)?)?.rate)
}

/// `connections` that think for `think` on a worker of `threads` threads, each request keeping its thread from beginning to end: a
/// server whose rate depends on how many are inside, at most `t`.
///
/// # Errors
/// Without a connection or thread, with more than [`MOST_CONNECTIONS`], where a time is not above 0, or the think time negative.
pub fn worker(
    connections: u32,
    threads: u32,
    demand: WorkerDemand,
    think: f64,
) -> Result<ClosedLoopMeans, QueueingError> {
    at_most("connections", some("connection", connections)?, MOST_CONNECTIONS)?;
    some("thread", threads)?;
    not_negative("the think time", think)?;
    let rates: Vec<f64> =
        (1..=threads.min(connections)).map(|inside| saturated_rate(inside, demand)).collect::<Result<_, _>>()?;
    Ok(birth_and_death(connections, think, |n| rates[(n.min(threads) - 1) as usize]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DEMAND: WorkerDemand = WorkerDemand { io: 0.1, cpu: 0.02 };

    #[test]
    fn what_cannot_be_is_refused() {
        assert_eq!(machine_repair(0, 1, 1.0, 1.0), Err(QueueingError::None("connection")));
        assert_eq!(machine_repair(1, 0, 1.0, 1.0), Err(QueueingError::None("slot")));
        assert!(machine_repair(1, 1, f64::NAN, 1.0).is_err() && machine_repair(1, 1, 1.0, -1.0).is_err());
        assert!(worker(0, 1, DEMAND, 0.0).is_err() && worker(1, 0, DEMAND, 0.0).is_err());
        assert!(worker(5001, 1, DEMAND, 0.0).is_err() && worker(1, 1, DEMAND, -1.0).is_err());
        assert!(worker(1, 1, WorkerDemand { io: 0.0, cpu: 1.0 }, 0.0).is_err() && highest_rate(0, DEMAND).is_err());
    }

    #[test]
    fn more_threads_help_until_the_lock_is_full() {
        let rates: Vec<_> = (1..=40).map(|threads| saturated_rate(threads, DEMAND).unwrap()).collect();
        assert!(rates.windows(2).all(|pair| pair[0] < pair[1] + 1e-9));
        assert!((rates[0] - 1.0 / 0.12).abs() < 1e-12 && (rates[39] - 50.0).abs() < 1e-9);
        for (threads, rate) in (1..).zip(&rates) {
            assert!(*rate <= highest_rate(threads, DEMAND).unwrap() * (1.0 + 1e-12));
        }
        // Five threads: 41.7/s by the bound, 34.2/s where times scatter.
        assert!((highest_rate(5, DEMAND).unwrap() - 41.666_666_67).abs() < 1e-7);
    }

    proptest! {
        #[test]
        fn every_connection_waits_or_thinks_and_no_bound_is_exceeded(
            connections in 1u32..500, slots in 1u32..50, service in 0.001f64..10.0, think in 0.001f64..100.0
        ) {
            let means = machine_repair(connections, slots, service, think).unwrap();
            let (n, c) = (f64::from(connections), f64::from(slots));
            // Little's law for the whole cycle.
            prop_assert!((means.rate * (means.response + think) / n - 1.0).abs() < 1e-9);
            prop_assert!(means.rate <= f64::min(c / service, n / (think + service)) * (1.0 + 1e-9));
            prop_assert!(means.response >= f64::max(service, n * service / c - think) * (1.0 - 1e-9));
        }

        #[test]
        fn littles_law_holds_for_the_whole_cycle_of_a_worker(
            connections in 1u32..100, threads in 1u32..20, io in 0.001f64..1.0, cpu in 0.001f64..1.0, think in 0.001f64..10.0
        ) {
            let demand = WorkerDemand { io, cpu };
            let means = worker(connections, threads, demand, think).unwrap();
            prop_assert!((means.rate * (means.response + think) / f64::from(connections) - 1.0).abs() < 1e-9);
            prop_assert!(means.rate <= highest_rate(threads, demand).unwrap() * (1.0 + 1e-9));
        }
    }
}
