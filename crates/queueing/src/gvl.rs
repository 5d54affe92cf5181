//! Ruby's global lock: a worker's threads wait for I/O side by side, and compute one at a time.
//!
//! Two models of one worker. [`two_stage`] is the open-ended network: requests pass I/O in `t` servers and CPU in one, and
//! one that waits for the CPU leaves its I/O server to others. [`worker`] is nearer to Puma: a request keeps its thread
//! through both, so that at most `t` are inside. Both are exact for exponential times (the I/O's law does not matter in
//! `worker`, where it never queues). Sources: Gordon and Newell, Operations Research 15 (1967); Buzen, CACM 16(9), 1973; for
//! the limit on what is inside, Chandy, Herzog and Woo, "Parametric analysis of queueing networks", IBM J. R&D 19 (1975),
//! which is exact where the think time is exponential and the inner network of product form.

use crate::birth_death::distribution;
use crate::bounds::{Bounds, Station};
use crate::machine_repair::{Closed, machine_repair};
use crate::{Invalid, check};

/// The most connections of a worker: the sums grow with their square.
pub const MOST_CONNECTIONS: u32 = 5000;

/// What a request needs of a worker, in one unit of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Time in which the lock is free: database, network, sleep.
    pub io: f64,
    /// Time for which it holds the lock.
    pub cpu: f64,
}

impl Work {
    fn checked(self) -> Result<Work, Invalid> {
        check::positive("the I/O time", self.io)?;
        check::positive("the CPU time", self.cpu)?;
        Ok(self)
    }
}

/// What a closed loop on a worker does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// Requests per unit of time.
    pub rate: f64,
    /// Mean response time.
    pub response: f64,
}

/// The most that a worker can do, by any law: `min(t/(s_io + s_cpu), 1/s_cpu)`.
///
/// # Errors
/// Without a thread, or where a time is not above 0.
pub fn highest_rate(threads: u32, work: Work) -> Result<f64, Invalid> {
    let Work { io, cpu } = work.checked()?;
    Ok(Bounds::new(&[Station { servers: threads, demand: io + cpu }, Station { servers: 1, demand: cpu }], 0.0)?
        .saturation)
}

/// What a worker does with all its threads always busy: below [`highest_rate`], since threads meet at the lock. `t`
/// requests go round between I/O (a delay) and CPU (one server): M/M/1//t.
///
/// # Errors
/// As [`highest_rate`].
pub fn saturated_rate(threads: u32, work: Work) -> Result<f64, Invalid> {
    let Work { io, cpu } = work.checked()?;
    Ok(machine_repair(Closed { connections: threads, slots: 1, service: cpu, think: io })?.rate)
}

/// `connections` connections that think for `think` on a worker of `threads` threads, each request keeping its thread from
/// beginning to end. Without think time the threads are always busy where there are connections enough.
///
/// # Errors
/// Without a connection or thread, with more than 5000 connections, where a time is not above 0, or the think time negative.
pub fn worker(connections: u32, threads: u32, work: Work, think: f64) -> Result<Answer, Invalid> {
    check::some("connection", connections)?;
    check::at_most("connections", connections, MOST_CONNECTIONS)?;
    check::some("thread", threads)?;
    check::not_negative("the think time", think)?;
    // A server whose rate depends on how many are inside, at most `t`.
    let rates: Vec<f64> =
        (1..=threads.min(connections)).map(|inside| saturated_rate(inside, work)).collect::<Result<_, _>>()?;
    let rate_with = |n: u32| rates[(n.min(threads) - 1) as usize];
    if think == 0.0 {
        let rate = rate_with(connections);
        return Ok(Answer { rate, response: f64::from(connections) / rate });
    }
    let probabilities =
        distribution((1..=connections).map(|n| f64::from(connections - n + 1) / (think * rate_with(n))));
    let rate: f64 = (1..=connections).map(|n| probabilities[n as usize] * rate_with(n)).sum();
    let inside: f64 = (0..=connections).zip(&probabilities).map(|(n, p)| f64::from(n) * p).sum();
    Ok(Answer { rate, response: inside / rate })
}

/// The two stages as a network: think time, I/O in `threads` servers, CPU in one. Product form, by convolution in
/// logarithms: `X(N) = G(N - 1)/G(N)`.
///
/// # Errors
/// As [`worker`].
pub fn two_stage(connections: u32, threads: u32, work: Work, think: f64) -> Result<Answer, Invalid> {
    let Work { io, cpu } = work.checked()?;
    check::some("connection", connections)?;
    check::at_most("connections", connections, MOST_CONNECTIONS)?;
    check::some("thread", threads)?;
    check::not_negative("the think time", think)?;
    // Each station's factor, as logarithms: time^k / (what it can do of k at once).
    let factors = |time: f64, at_once: &dyn Fn(u32) -> u32| -> Vec<f64> {
        let mut log = 0.0;
        std::iter::once(0.0)
            .chain((1..=connections).map(|k| {
                log += (time / f64::from(at_once(k))).ln();
                log
            }))
            .collect()
    };
    let mut sums = convolved(&factors(io, &|k| k.min(threads)), &factors(cpu, &|_| 1));
    if think > 0.0 {
        sums = convolved(&sums, &factors(think, &|k| k));
    }
    let n = connections as usize;
    let rate = (sums[n - 1] - sums[n]).exp();
    Ok(Answer { rate, response: f64::from(connections) / rate - think })
}

/// `log Σ e^(a(j) + b(k - j))` for each `k`.
fn convolved(a: &[f64], b: &[f64]) -> Vec<f64> {
    (0..a.len())
        .map(|k| {
            let highest = (0..=k).map(|j| a[j] + b[k - j]).fold(f64::NEG_INFINITY, f64::max);
            highest + (0..=k).map(|j| (a[j] + b[k - j] - highest).exp()).sum::<f64>().ln()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WORK: Work = Work { io: 0.1, cpu: 0.02 };

    #[test]
    fn the_two_stages_are_the_table() {
        for (connections, rate) in
            [(10, 8.897_71), (20, 17.649_31), (30, 25.947_97), (40, 33.081_56), (50, 37.816_37), (60, 39.623_04)]
        {
            let answer = two_stage(connections, 4, WORK, 1.0).unwrap();
            assert!((answer.rate - rate).abs() < 6e-6, "{connections}: {}, exactly {rate}", answer.rate);
        }
        // By then its four I/O servers are all it has.
        assert!((two_stage(5000, 4, WORK, 1.0).unwrap().rate - 40.0).abs() < 1e-6);
    }

    #[test]
    fn a_request_that_keeps_its_thread_gets_less_done() {
        for connections in [5, 10, 20, 40, 80] {
            let (open, kept) =
                (two_stage(connections, 4, WORK, 1.0).unwrap(), worker(connections, 4, WORK, 1.0).unwrap());
            assert!(kept.rate < open.rate, "{connections}: {} {}", kept.rate, open.rate);
        }
        // Without more requests than threads there is nothing to keep: the same network.
        let (open, kept) = (two_stage(4, 4, WORK, 1.0).unwrap(), worker(4, 4, WORK, 1.0).unwrap());
        assert!((open.rate / kept.rate - 1.0).abs() < 1e-12 && (open.response / kept.response - 1.0).abs() < 1e-11);
    }

    #[test]
    fn more_threads_help_until_the_lock_is_full() {
        let rates: Vec<_> = (1..=40).map(|threads| saturated_rate(threads, WORK).unwrap()).collect();
        assert!(rates.windows(2).all(|pair| pair[0] < pair[1] + 1e-9));
        assert!((rates[0] - 1.0 / 0.12).abs() < 1e-12 && (rates[39] - 50.0).abs() < 1e-9);
        for (threads, rate) in (1..).zip(&rates) {
            assert!(*rate <= highest_rate(threads, WORK).unwrap() * (1.0 + 1e-12));
        }
        // Five threads: 41.7/s by the bound, 34.2/s where times scatter.
        assert!((highest_rate(5, WORK).unwrap() - 41.666_666_67).abs() < 1e-7);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(worker(0, 1, WORK, 0.0).is_err() && worker(1, 0, WORK, 0.0).is_err());
        assert!(two_stage(1, 1, Work { io: 0.0, cpu: 1.0 }, 0.0).is_err() && worker(1, 1, WORK, -1.0).is_err());
        assert!(two_stage(5001, 1, WORK, 0.0).is_err() && highest_rate(0, WORK).is_err());
    }

    proptest! {
        #[test]
        fn littles_law_holds_for_the_whole_cycle(
            connections in 1u32..100, threads in 1u32..20, io in 0.001f64..1.0, cpu in 0.001f64..1.0, think in 0.001f64..10.0
        ) {
            let work = Work { io, cpu };
            let answer = worker(connections, threads, work, think).unwrap();
            prop_assert!((answer.rate * (answer.response + think) / f64::from(connections) - 1.0).abs() < 1e-9);
            prop_assert!(answer.rate <= highest_rate(threads, work).unwrap() * (1.0 + 1e-9));
            prop_assert!(two_stage(connections, threads, work, think).unwrap().rate >= answer.rate * (1.0 - 1e-9));
        }
    }
}
