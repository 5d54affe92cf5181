//! Poisson arrivals, exponential service, `c` slots: Erlang's formulas, M/M/c.
//!
//! Source: A. K. Erlang, "Solution of some problems in the theory of probabilities of significance in automatic telephone
//! exchanges" (1917); Kleinrock, Queueing Systems I, 3.4 and 3.5. First come, first served; a steady state needs ρ < 1.

use crate::exponential_wait::ExponentialWait;
use crate::{Invalid, Load, check};

/// Erlang B: the share of arrivals that find all `slots` busy, where none can wait. `work = λ·s`, which may be more than
/// there are slots.
///
/// `B(0) = 1, B(k) = a·B(k-1) / (k + a·B(k-1))`: no factorial, no overflow.
///
/// # Errors
/// Without a slot, or where `work` is not a number above 0.
pub fn blocked(slots: u32, work: f64) -> Result<f64, Invalid> {
    check::some("slot", slots)?;
    check::positive("the offered work", work)?;
    Ok((1..=slots).fold(1.0, |blocked, k| work * blocked / (f64::from(k) + work * blocked)))
}

/// Erlang C: the share of arrivals that wait. `C = B / (1 - ρ·(1 - B))`.
///
/// # Errors
/// Where there is no steady state.
pub fn delayed(load: Load) -> Result<f64, Invalid> {
    let load = load.steady()?;
    let blocked = blocked(load.slots(), load.work())?;
    Ok(blocked / (1.0 - load.utilisation() * (1.0 - blocked)))
}

/// M/M/c: the wait is none with probability `1 - C`, and else exponential with rate `c·μ - λ`. Mean wait `C / (cμ - λ)`.
///
/// # Errors
/// Where there is no steady state.
pub fn wait(load: Load) -> Result<ExponentialWait, Invalid> {
    let rate = f64::from(load.slots()) / load.service() - load.rate();
    Ok(ExponentialWait { delayed: delayed(load)?, rate, service: load.service() })
}

/// Mean number in the system, waiting and in service: `λ·W` (Little).
///
/// # Errors
/// Where there is no steady state.
pub fn in_system(load: Load) -> Result<f64, Invalid> {
    Ok(load.rate() * wait(load)?.mean_response())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn assert_digits(what: &str, seen: f64, exact: f64, digits: i32) {
        // Half a unit in the last digit given.
        let unit = 10f64.powi(exact.abs().log10().floor() as i32 + 1 - digits);
        assert!((seen - exact).abs() <= 0.5001 * unit, "{what}: {seen}, exactly {exact}");
    }

    #[test]
    fn m_m_c_is_the_table() {
        // c, ρ, C, Wq, L, R50, R99, R99.9, in units of s.
        for (slots, rho, c, wq, l, r50, r99, r999) in [
            (1, 0.5, 0.5, 1.0, 1.0, 1.386_294_4, 9.210_340_4, 13.815_511),
            (2, 0.5, 0.333_333_333_3, 0.333_333_333_3, 1.333_333_333, 0.974_411_61, 5.665_960_7, 8.227_51),
            (2, 0.9, 0.852_631_578_9, 4.263_157_895, 9.473_684_211, 3.769_159_4, 23.344_43, 34.857_355),
            (5, 0.5, 0.130_371_297_5, 0.052_148_518_98, 2.630_371_297, 0.750_194_12, 4.688_442_3, 6.991_095_7),
            (5, 0.8, 0.554_112_554_1, 0.554_112_554_1, 6.216_450_216, 1.204_394_9, 6.079_662_5, 8.665_942),
            (5, 0.9, 0.762_493_220_7, 1.524_986_441, 11.362_438_99, 1.952_449_2, 10.049_781, 14.659_03),
            (5, 0.95, 0.877_799_024_7, 3.511_196_099, 21.428_181_47, 3.354_642_5, 19.050_058, 28.260_399),
            (10, 0.9, 0.668_731_524_1, 0.668_731_524_1, 15.018_583_72, 1.329_091_9, 6.249_876_7, 8.841_056_8),
            (20, 0.7, 0.093_561_243_47, 0.015_593_540_58, 14.218_309_57, 0.711_161_8, 4.623_709_5, 6.926_294_6),
            (20, 0.9, 0.550_769_004_8, 0.275_384_502_4, 22.956_921_04, 0.990_437_08, 5.041_623, 7.346_277_1),
            (20, 0.95, 0.755_401_232_1, 0.755_401_232_1, 33.352_623_41, 1.423_121_8, 6.364_343_2, 8.957_583_9),
        ] {
            let load = Load::of_utilisation(slots, rho).unwrap();
            let wait = wait(load).unwrap();
            assert_digits("C", wait.delayed, c, 10);
            assert_digits("Wq", wait.mean_wait(), wq, 10);
            assert_digits("L", in_system(load).unwrap(), l, 10);
            assert_digits("R50", wait.response_quantile(0.5).unwrap(), r50, 8);
            assert_digits("R99", wait.response_quantile(0.99).unwrap(), r99, 8);
            assert_digits("R99.9", wait.response_quantile(0.999).unwrap(), r999, 8);
        }
    }

    #[test]
    fn erlang_b_is_the_table() {
        for (slots, work, b) in [
            (1, 0.5, 0.333_333_333_333),
            (5, 3.0, 0.110_054_347_826),
            (10, 8.0, 0.121_661_064_253),
            (20, 18.0, 0.109_212_845_873),
            (100, 90.0, 0.026_957_380_464_4),
        ] {
            assert_digits("B", blocked(slots, work).unwrap(), b, 12);
        }
        assert_digits("C", delayed(Load::of_utilisation(100, 0.9).unwrap()).unwrap(), 0.216_940_480_906, 12);
    }

    #[test]
    fn an_overload_has_no_answer() {
        let load = Load::new(5, 6.0, 1.0).unwrap();
        assert!(matches!(wait(load), Err(Invalid::NoSteadyState { utilisation }) if (utilisation - 1.2).abs() < 1e-12));
        assert_eq!(blocked(0, 1.0), Err(Invalid::None("slot")));
        assert!(wait(Load::of_utilisation(5, 0.5).unwrap()).unwrap().wait_quantile(1.0).is_err());
    }

    proptest! {
        #[test]
        fn every_answer_is_a_number(slots in 1u32..5000, rho in 1e-6f64..0.999_999, share in 0.0f64..0.9999) {
            let wait = wait(Load::of_utilisation(slots, rho).unwrap()).unwrap();
            prop_assert!((0.0..=1.0).contains(&wait.delayed));
            let (w, r) = (wait.wait_quantile(share).unwrap(), wait.response_quantile(share).unwrap());
            prop_assert!(w.is_finite() && r.is_finite() && w >= 0.0 && r >= w);
        }
    }
}
