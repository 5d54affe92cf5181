//! The closed loop with think time: `N` connections, `c` slots, exponential service `s`, exponential think time `Z`. The
//! old name is the machine-repair problem, M/M/c//N.
//!
//! Source: Feller, Probability Theory I, XVII.7; Kleinrock, Queueing Systems I, 3.8. By birth and death in logarithms, for
//! any number of connections. Not by mean value analysis, whose recursion for several slots loses all digits
//! (`tests/mva.rs`). The think time's law does not matter, only its mean.

use crate::birth_death::distribution;
use crate::{Invalid, check};

/// The most connections: one f64 each.
const MOST: u32 = 1 << 22;

/// A closed loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Closed {
    /// `N`
    pub connections: u32,
    /// `c`
    pub slots: u32,
    /// `s`, the mean time a request holds a slot.
    pub service: f64,
    /// `Z`, the mean time from an answer to the connection's next request.
    pub think: f64,
}

/// What it does.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// `X`: requests per unit of time.
    pub rate: f64,
    /// `R`: mean response time, `L / X`.
    pub response: f64,
    /// Share of the time a slot is busy.
    pub utilisation: f64,
    /// Probability of 0, 1, … `N` requests in the server.
    pub probabilities: Vec<f64>,
}

/// `p(n) ∝ Π (N - j + 1)/Z · s/min(j, c)`, `X = Σ p(n)·min(n, c)/s`, `R = L/X`. Without think time `X = min(N, c)/s`.
///
/// # Errors
/// Without a connection or a slot, where the service time is not above 0, or the think time is negative.
pub fn machine_repair(closed: Closed) -> Result<Answer, Invalid> {
    let Closed { connections, slots, service, think } = closed;
    check::some("connection", connections)?;
    check::at_most("connections", connections, MOST)?;
    check::some("slot", slots)?;
    check::positive("the service time", service)?;
    check::not_negative("the think time", think)?;
    let probabilities = if think > 0.0 {
        let ratio = check::positive("service time / think time", service / think)?;
        distribution((1..=connections).map(|j| f64::from(connections - j + 1) * ratio / f64::from(j.min(slots))))
    } else {
        let mut always_all = vec![0.0; connections as usize + 1];
        always_all[connections as usize] = 1.0;
        always_all
    };
    let mean = |count: &dyn Fn(u32) -> u32| -> f64 {
        (0..=connections).zip(&probabilities).map(|(n, p)| f64::from(count(n)) * p).sum()
    };
    let busy = mean(&|n| n.min(slots));
    let rate = busy / service;
    let response = mean(&|n| n) / rate;
    Ok(Answer { rate, response, utilisation: busy / f64::from(slots), probabilities })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn machine_repair_is_the_table() {
        for (connections, slots, service, think, x, r, u) in [
            (5, 1, 1.0, 4.0, 0.800_933_126, 2.242_718_447, 0.800_933),
            (10, 2, 1.0, 5.0, 1.519_255_694, 1.582_170_493, 0.759_628),
            (30, 20, 0.2, 0.1, 95.479_573_126, 0.214_203_332, 0.954_796),
            (80, 20, 0.2, 0.5, 99.290_521_373, 0.305_716_386, 0.992_905),
            (100, 5, 0.05, 1.0, 90.907_133_913, 0.100_023_680, 0.909_071),
            (40, 20, 0.2, 1.0, 33.333_333_086, 0.200_000_009, 0.333_333),
        ] {
            let answer = machine_repair(Closed { connections, slots, service, think }).unwrap();
            assert!((answer.rate - x).abs() < 6e-10, "X {}, exactly {x}", answer.rate);
            assert!((answer.response - r).abs() < 6e-10, "R {}, exactly {r}", answer.response);
            assert!((answer.utilisation - u).abs() < 6e-7);
        }
    }

    #[test]
    fn without_thought_it_is_the_closed_network() {
        let answer = machine_repair(Closed { connections: 30, slots: 20, service: 0.2, think: 0.0 }).unwrap();
        assert!((answer.rate - 100.0).abs() < 1e-12 && (answer.response - 0.3).abs() < 1e-12);
    }

    #[test]
    fn a_hundred_thousand_connections_are_no_trouble() {
        let answer = machine_repair(Closed { connections: 100_000, slots: 20, service: 0.2, think: 0.5 }).unwrap();
        assert!((answer.rate - 100.0).abs() < 1e-9 && (answer.response - (1000.0 - 0.5)).abs() < 1e-6);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let closed = Closed { connections: 1, slots: 1, service: 1.0, think: 1.0 };
        assert_eq!(machine_repair(Closed { connections: 0, ..closed }), Err(Invalid::None("connection")));
        assert_eq!(machine_repair(Closed { slots: 0, ..closed }), Err(Invalid::None("slot")));
        assert!(machine_repair(Closed { service: f64::NAN, ..closed }).is_err());
        assert!(machine_repair(Closed { think: -1.0, ..closed }).is_err());
    }

    proptest! {
        #[test]
        fn every_connection_waits_or_thinks(
            connections in 1u32..500, slots in 1u32..50, service in 0.001f64..10.0, think in 0.001f64..100.0
        ) {
            let answer = machine_repair(Closed { connections, slots, service, think }).unwrap();
            // Little's law for the whole cycle.
            let all = answer.rate * (answer.response + think);
            prop_assert!((all / f64::from(connections) - 1.0).abs() < 1e-9, "{}", all);
            prop_assert!(answer.response >= service * (1.0 - 1e-12));
        }
    }
}
