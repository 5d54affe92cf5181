//! Any arrivals, any service, `c` slots: approximations of the mean wait of G/G/c from two moments of each.
//!
//! An exact formula beside them in this crate is always to be preferred; these are for what has none. `scv` is a squared
//! coefficient of variation, variance / mean²: 0 constant, 1 exponential. First come, first served; ρ < 1.

use crate::{Invalid, Load, check, erlang, mdc};

/// How much arrivals and service times scatter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scatter {
    /// Squared coefficient of variation of the gaps between arrivals.
    pub arrivals: f64,
    /// Squared coefficient of variation of the service times.
    pub service: f64,
}

impl Scatter {
    fn checked(self) -> Result<Scatter, Invalid> {
        check::not_negative("the variation of the arrivals", self.arrivals)?;
        check::not_negative("the variation of the service", self.service)?;
        Ok(self)
    }

    /// `(ca² + cs²) / 2`
    fn mean(self) -> f64 {
        f64::midpoint(self.arrivals, self.service)
    }
}

/// Allen and Cunneen: `Wq ≈ Wq(M/M/c)·(ca² + cs²)/2` (Allen, Probability, Statistics and Queueing Theory, 5.3). Exact for
/// M/M/c and M/G/1; for even arrivals 8 to 96 % too high.
///
/// # Errors
/// Where there is no steady state, or a variation is negative or not finite.
pub fn allen_cunneen(load: Load, scatter: Scatter) -> Result<f64, Invalid> {
    Ok(erlang::wait(load)?.mean_wait() * scatter.checked()?.mean())
}

/// Cosmetatos: `Wq(M/D/c) ≈ ½·(1 + γ)·Wq(M/M/c)` with `γ = (1 - ρ)(c - 1)(√(4 + 5c) - 2) / (16ρc)` ("Some approximate
/// equilibrium results for the multi-server queue M/G/r", Operational Research Quarterly 27, 1976). Within 0.6 % for ρ
/// from 0.5; at low loads γ is too large ([`whitt`] caps it).
///
/// # Errors
/// Where there is no steady state.
pub fn cosmetatos(load: Load) -> Result<f64, Invalid> {
    let load = load.steady()?;
    Ok(0.5 * (1.0 + gamma(load)) * erlang::wait(load)?.mean_wait())
}

/// Kimura: the harmonic mean of the two exact ends, `(1 + cs²) / (2cs²/Wq(M/M/c) + (1 - cs²)/Wq(M/D/c))`, for Poisson
/// arrivals and `cs² ≤ 1` ("Approximations for multi-server queues: system interpolations", Queueing Systems 17, 1994).
///
/// # Errors
/// Where there is no steady state, more than 256 slots, or `cs²` is not in 0 to 1.
pub fn kimura(load: Load, service_scv: f64) -> Result<f64, Invalid> {
    check::not_negative("the variation of the service", service_scv)?;
    if service_scv > 1.0 {
        return Err(Invalid::Undetermined(
            "the two ends, constant and exponential service, when the variation is above 1,",
        ));
    }
    let exponential = erlang::wait(load)?.mean_wait();
    let constant = mdc::Mdc::new(load)?.mean_wait();
    Ok((1.0 + service_scv) / (2.0 * service_scv / exponential + (1.0 - service_scv) / constant))
}

fn gamma(load: Load) -> f64 {
    let (c, rho) = (f64::from(load.slots()), load.utilisation());
    (1.0 - rho) * (c - 1.0) * ((4.0 + 5.0 * c).sqrt() - 2.0) / (16.0 * rho * c)
}

/// Whitt: Allen and Cunneen's, corrected by a factor `φ(ρ, ca², cs², c)` ("Approximations for the GI/G/m queue",
/// Production and Operations Management 2, 1993, equations 2.13 to 2.25). Within 1 % of M/D/c from ρ = 0.5, 7 % above
/// E₂/D/2 at ρ = 0.9, and up to 25 % above D/M/c, for which [`even_arrivals`] and [`crate::dmc`] are there.
///
/// # Errors
/// As [`allen_cunneen`].
pub fn whitt(load: Load, scatter: Scatter) -> Result<f64, Invalid> {
    let load = load.steady()?;
    let Scatter { arrivals: ca, service: cs } = scatter.checked()?;
    if ca + cs == 0.0 {
        // Even arrivals, constant service: nobody waits.
        return Ok(0.0);
    }
    let c2 = scatter.mean();
    let phi1 = 1.0 + gamma(load).min(0.24);
    let phi3 = of_even_arrivals(load);
    let phi4 = f64::midpoint(phi1, phi3).min(1.0);
    let psi = if c2 >= 1.0 { 1.0 } else { phi4.powf(2.0 * (1.0 - c2)) };
    let phi = if ca > cs {
        (4.0 * (ca - cs) * phi1 + cs * psi) / (4.0 * ca - 3.0 * cs)
    } else if ca < cs {
        ((cs - ca) * phi3 + (cs + 3.0 * ca) * psi) / (2.0 * (ca + cs))
    } else {
        psi
    };
    Ok(phi * allen_cunneen(load, scatter)?)
}

/// Whitt's `φ₃ = (1 - 4γ)·e^(-2(1 - ρ)/(3ρ))`.
fn of_even_arrivals(load: Load) -> f64 {
    let rho = load.utilisation();
    (1.0 - 4.0 * gamma(load).min(0.24)) * (-2.0 * (1.0 - rho) / (3.0 * rho)).exp()
}

/// Whitt: `Wq(D/M/c) ≈ ½·φ₃·Wq(M/M/c)` (equation 2.20 of the same paper). Within 0.7 %; [`crate::dmc`] is exact.
///
/// # Errors
/// Where there is no steady state.
pub fn even_arrivals(load: Load) -> Result<f64, Invalid> {
    let load = load.steady()?;
    Ok(0.5 * of_even_arrivals(load) * erlang::wait(load)?.mean_wait())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn load(slots: u32, rho: f64) -> Load {
        Load::of_utilisation(slots, rho).unwrap()
    }

    #[test]
    fn allen_and_cunneen_are_the_table() {
        for (slots, rho, arrivals, service, wq) in [
            (5, 0.8, 1.0, 0.25, 0.346_320_346_3),
            (5, 0.8, 1.0, 4.0, 1.385_281_385),
            (20, 0.9, 0.0, 1.0, 0.137_692_251_2),
            (20, 0.9, 1.0, 0.25, 0.172_115_314),
            (4, 0.7, 0.5, 0.5, 0.178_605_965_9),
            (10, 0.9, 1.0, 0.0, 0.334_365_8),
            (2, 0.5, 1.0, 0.0, 0.166_666_7),
        ] {
            let seen = allen_cunneen(load(slots, rho), Scatter { arrivals, service }).unwrap();
            assert!((seen - wq).abs() < 6e-8, "{slots} at {rho}: {seen}, table {wq}");
        }
    }

    #[test]
    fn cosmetatos_is_the_table_and_near_the_truth() {
        for (slots, rho, wq) in [
            (1, 0.5, 0.5),
            (2, 0.5, 0.175_737_8),
            (2, 0.8, 0.900_983_7),
            (2, 0.9, 2.144_469_5),
            (4, 0.8, 0.385_434_2),
            (5, 0.5, 0.030_487_5),
            (5, 0.8, 0.288_779_8),
            (5, 0.9, 0.776_833_0),
            (5, 0.95, 1.771_237_5),
            (10, 0.9, 0.345_542_9),
            (20, 0.9, 0.145_139_2),
            (20, 0.95, 0.387_376_9),
        ] {
            let seen = cosmetatos(load(slots, rho)).unwrap();
            assert!((seen - wq).abs() < 6e-8, "{slots} at {rho}: {seen}, table {wq}");
            let exact = mdc::Mdc::new(load(slots, rho)).unwrap().mean_wait();
            assert!((seen / exact - 1.0).abs() < 0.0061, "{slots} at {rho}: {seen}, exactly {exact}");
            // Whitt's formula has it as its case of constant service.
            let whitt = whitt(load(slots, rho), Scatter { arrivals: 1.0, service: 0.0 }).unwrap();
            assert!((whitt / seen - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn whitt_is_near_even_arrivals_where_allen_and_cunneen_are_not() {
        let even = Scatter { arrivals: 0.0, service: 1.0 };
        for (slots, rho, table) in [
            (1, 0.5, 0.2567),
            (1, 0.9, 4.1787),
            (2, 0.8, 0.7115),
            (5, 0.8, 0.1948),
            (5, 0.9, 0.6548),
            (20, 0.9, 0.1002),
        ] {
            let seen = even_arrivals(load(slots, rho)).unwrap();
            assert!((seen - table).abs() < 6e-5, "{slots} at {rho}: {seen}, table {table}");
            let exact = crate::dmc::wait(load(slots, rho)).unwrap().mean_wait();
            assert!((seen / exact - 1.0).abs() < 0.0071);
            let (whitt, plain) =
                (whitt(load(slots, rho), even).unwrap(), allen_cunneen(load(slots, rho), even).unwrap());
            assert!(plain / exact > 1.07 && exact < whitt && whitt < plain && whitt / exact < 1.25);
        }
    }

    #[test]
    fn whitt_is_near_what_others_have_computed() {
        // Erlang-2 arrivals, constant service, two slots, ρ = 0.9: Wq 0.899969 with s = 0.9 (Q-MAM, by line-solver).
        let load = Load::new(2, 2.0, 0.9).unwrap();
        let seen = whitt(load, Scatter { arrivals: 0.5, service: 0.0 }).unwrap();
        assert!((seen / 0.899_969_294_641_594 - 1.0).abs() < 0.075, "{seen}");
        let plain = allen_cunneen(load, Scatter { arrivals: 0.5, service: 0.0 }).unwrap();
        assert!((plain / 0.899_969_294_641_594 - 1.0).abs() < 0.075, "{plain}");
    }

    #[test]
    fn kimura_is_exact_at_both_ends() {
        let load = load(5, 0.8);
        assert!((kimura(load, 0.0).unwrap() / 0.289_060_007_263 - 1.0).abs() < 1e-11);
        assert!((kimura(load, 1.0).unwrap() / 0.554_112_554_1 - 1.0).abs() < 1e-9);
        assert!(kimura(load, 1.5).is_err() && kimura(load, f64::NAN).is_err());
    }

    proptest! {
        #[test]
        fn they_are_numbers_and_grow_with_the_scatter(
            slots in 1u32..100, rho in 0.01f64..0.999, arrivals in 0.0f64..10.0, service in 0.0f64..10.0
        ) {
            let scatter = Scatter { arrivals, service };
            let wait = whitt(load(slots, rho), scatter).unwrap();
            prop_assert!(wait.is_finite() && wait >= 0.0);
            let more = allen_cunneen(load(slots, rho), Scatter { arrivals: arrivals + 1.0, service }).unwrap();
            prop_assert!(more > allen_cunneen(load(slots, rho), scatter).unwrap());
        }
    }
}
