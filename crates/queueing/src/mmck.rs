//! M/M/c with room for `K`: what arrives while `K` are there is lost.
//!
//! Source: Kleinrock, Queueing Systems I, 3.6. There is a steady state at any load. Caution: a full accept queue of Linux
//! does not lose a request. It drops the SYN, and the client sends it again after 1, 2, 4 … s; the loss here is the share
//! of such attempts, and the times are of those that got in.

use crate::birth_death::distribution;
use crate::{Invalid, Load, check};

/// The most places: beyond, nothing is learnt, and memory is used.
const MOST: u32 = 1 << 20;

/// What a queue with a limit does.
#[derive(Clone, Debug, PartialEq)]
pub struct Finite {
    /// Probability of 0, 1, … `K` in the system.
    pub probabilities: Vec<f64>,
    /// Share of arrivals that find it full.
    pub lost: f64,
    /// Rate of those that get in, `λ·(1 - lost)`.
    pub rate: f64,
    /// Mean number in the system.
    pub in_system: f64,
    /// Mean wait of those that get in.
    pub mean_wait: f64,
    /// Mean response time of those that get in.
    pub mean_response: f64,
}

/// M/M/c/K: `places` in all, those in service included.
///
/// `p(n) ∝ Π a / min(j, c)`, lost `p(K)`, `W = L / (λ·(1 - p(K)))`.
///
/// # Errors
/// Where there are fewer places than slots, or more than a million.
pub fn finite(load: Load, places: u32) -> Result<Finite, Invalid> {
    let slots = load.slots();
    if places < slots {
        return Err(Invalid::TooFew { what: "places", given: places as usize, needed: slots as usize });
    }
    check::at_most("places", places, MOST)?;
    let work = load.work();
    let probabilities = distribution((1..=places).map(|n| work / f64::from(n.min(slots))));
    let lost = probabilities[places as usize];
    let mean = |count: &dyn Fn(usize) -> usize| -> f64 {
        probabilities.iter().enumerate().map(|(n, p)| count(n) as f64 * p).sum()
    };
    let in_system = mean(&|n| n);
    let waiting = mean(&|n| n.saturating_sub(slots as usize));
    // The rate from the other end, what the busy slots do: 1 - p(K) would cancel where nearly all is lost.
    let rate = mean(&|n| n.min(slots as usize)) / load.service();
    Ok(Finite { lost, rate, in_system, mean_wait: waiting / rate, mean_response: in_system / rate, probabilities })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn m_m_c_k_is_the_table() {
        // c, K, λ (μ = 1), loss, X, L, Wq, W.
        for (slots, places, rate, expected) in [
            (1, 5, 0.8, [0.088_819_498_66, 0.728_944_401_1, 1.868_332_032, 1.563_065_207, 2.563_065_207]),
            (2, 5, 2.0, [0.181_818_181_8, 1.636_363_636, 2.727_272_727, 0.666_666_666_7, 1.666_666_667]),
            (5, 10, 6.0, [0.212_593_133_1, 4.724_441_202, 7.287_533_566, 0.542_517_570_9, 1.542_517_571]),
            (20, 40, 18.0, [0.007_125_479_383, 17.871_741_37, 21.222_666_93, 0.187_498_548, 1.187_498_548]),
            (20, 40, 24.0, [0.168_209_782_3, 19.962_965_23, 35.233_473_42, 0.764_941_882_2, 1.764_941_882]),
            (20, 1044, 22.0, [0.090_909_090_91, 20.0, 1034.0, 50.7, 51.7]),
            (5, 1029, 6.0, [0.166_666_666_7, 5.0, 1024.0, 203.8, 204.8]),
        ] {
            let queue = finite(Load::new(slots, rate, 1.0).unwrap(), places).unwrap();
            let seen = [queue.lost, queue.rate, queue.in_system, queue.mean_wait, queue.mean_response];
            for (seen, exact) in seen.iter().zip(expected) {
                assert!((seen / exact - 1.0).abs() < 6e-10, "{slots}/{places} at {rate}: {seen}, exactly {exact}");
            }
        }
    }

    #[test]
    fn without_a_queue_it_is_erlang_b() {
        let queue = finite(Load::new(20, 18.0, 1.0).unwrap(), 20).unwrap();
        assert!((queue.lost - crate::erlang::blocked(20, 18.0).unwrap()).abs() < 1e-13);
        assert!(queue.mean_wait == 0.0 && finite(Load::new(20, 18.0, 1.0).unwrap(), 19).is_err());
    }

    #[test]
    fn with_much_room_it_is_erlang_c() {
        let load = Load::of_utilisation(5, 0.8).unwrap();
        let wait = crate::erlang::wait(load).unwrap();
        assert!((finite(load, 500).unwrap().mean_wait / wait.mean_wait() - 1.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn what_comes_is_served_or_lost(slots in 1u32..50, more in 0u32..500, rho in 0.01f64..100.0) {
            let load = Load::of_utilisation(slots, rho).unwrap();
            let queue = finite(load, slots + more).unwrap();
            prop_assert!((queue.rate + queue.lost * load.rate() - load.rate()).abs() < 1e-9 * load.rate());
            prop_assert!(queue.probabilities.iter().all(|p| (0.0..=1.0).contains(p)));
        }
    }
}
