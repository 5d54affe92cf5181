//! Even arrivals, exponential service, `c` slots: D/M/c, exactly. A paced load on an app whose times scatter.
//!
//! Source: Takács, Introduction to the Theory of Queues (1962), chapter 2, for GI/M/c; Gross and Harris, Fundamentals of
//! Queueing Theory, 5.3. First come, first served; ρ < 1.

use crate::exponential_wait::ExponentialWait;
use crate::{Invalid, Load, check, search};

/// The most slots that it is tested for.
const MOST_SLOTS: u32 = 256;

/// The ratio `σ` of the probabilities that an arrival finds `n + 1` and `n`, for `n ≥ c`: the root below 1 of
/// `σ = e^(-(1 - σ)/ρ)`.
///
/// # Errors
/// Where there is no steady state.
pub fn ratio(load: Load) -> Result<f64, Invalid> {
    let rho = load.steady()?.utilisation();
    // With y = 1 - σ: y = 1 - e^(-y/ρ), whose root above 0 is below 2·(1 - ρ)/ρ at the most, and at least 1 - ρ.
    let below = |y: f64| -(-y / rho).exp_m1() <= y;
    Ok(1.0 - search::first(f64::MIN_POSITIVE.max((1.0 - rho) * 0.5), 1.0, below))
}

/// D/M/c: the share that waits, and the exponential law of its waits, with rate `c·μ·(1 - σ)`.
///
/// `P(W > 0) = 1 / (1 + (1 - σ)·Σ C(c,j)/(C(j)·(1 - φ(j))) · (c·(1 - φ(j)) - j)/(c·(1 - σ) - j))` over `1 ≤ j ≤ c`, with
/// `φ(j) = e^(-j·μ/λ)` and `C(j) = Π φ(i)/(1 - φ(i))`. Numerator and denominator change sign together: all terms are
/// positive.
///
/// # Errors
/// Where there is no steady state, or more than 256 slots.
pub fn wait(load: Load) -> Result<ExponentialWait, Invalid> {
    let slots = check::at_most("slots", load.slots(), MOST_SLOTS)?;
    let sigma = ratio(load)?;
    let (c, free) = (f64::from(slots), 1.0 - sigma);
    let gap = 1.0 / load.work();
    // In logarithms: binomials and products leave the range of an f64 where their quotient does not.
    let mut log = 0.0;
    let mut sum = 0.0;
    for j in 1..=slots {
        let j = f64::from(j);
        let (goes_on, ends) = ((-j * gap).exp(), -(-j * gap).exp_m1());
        log += ((c - j + 1.0) / j).ln() + ends.ln() + j * gap;
        let distance = c * free - j;
        let quotient = if distance.abs() < 1e-7 * c {
            // Both are 0 there: the ratio of their slopes.
            1.0 - goes_on * c * gap
        } else {
            (c * ends - j) / distance
        };
        sum += (log - ends.ln()).exp() * quotient;
    }
    let delayed = 1.0 / (1.0 + free * sum);
    Ok(ExponentialWait { delayed, rate: c * free / load.service(), service: load.service() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(slots: u32, rho: f64) -> ExponentialWait {
        wait(Load::of_utilisation(slots, rho).unwrap()).unwrap()
    }

    #[test]
    fn d_m_c_is_the_table() {
        for (slots, rho, wq) in [
            (1, 0.5, 0.255_000_974_9),
            (1, 0.9, 4.178_659_422_2),
            (2, 0.8, 0.711_114_831_5),
            (5, 0.8, 0.194_707_310_1),
            (5, 0.9, 0.656_737_020_7),
            (20, 0.9, 0.100_838_765_1),
        ] {
            let seen = at(slots, rho).mean_wait();
            assert!((seen - wq).abs() < 6e-11, "D/M/{slots} at {rho}: {seen}, exactly {wq}");
        }
        assert!((at(5, 0.8).delayed - 0.361_542_467_0).abs() < 6e-11);
        for (rho, sigma) in [(0.5, 0.203_187_869_98), (0.9, 0.806_899_832_856)] {
            assert!((ratio(Load::of_utilisation(1, rho).unwrap()).unwrap() - sigma).abs() < 6e-12);
        }
    }

    #[test]
    fn with_one_slot_the_delayed_are_the_ratio() {
        for rho in [0.1, 0.5, 0.99] {
            let load = Load::of_utilisation(1, rho).unwrap();
            assert!((wait(load).unwrap().delayed - ratio(load).unwrap()).abs() < 1e-12);
        }
    }

    proptest! {
        #[test]
        fn even_arrivals_wait_less_than_random_ones(slots in 1u32..200, rho in 0.01f64..0.999) {
            let load = Load::of_utilisation(slots, rho).unwrap();
            let (even, random) = (wait(load).unwrap(), crate::erlang::wait(load).unwrap());
            prop_assert!((0.0..=1.0).contains(&even.delayed));
            prop_assert!(even.mean_wait() <= random.mean_wait() * (1.0 + 1e-9));
        }
    }
}
