//! The highest load that keeps an objective, such as p99 of the response time ≤ 2 s.
//!
//! By bisection of the exact models: a response time's quantile grows with the load. What a search by measurement finds
//! must agree with it, where the server does what the model says.

use crate::mdc::Mdc;
use crate::{Invalid, Load, check, erlang};

/// So near to the answer of an exact model.
const WIDTH: f64 = 1e-10;

/// Hardly any load.
const AT_REST: f64 = 1e-6;

/// The highest utilisation of M/D/c whose response time's quantile `share` is at most `limit`. A load of the answer keeps
/// it, one of a ten-thousand-millionth more does not.
///
/// # Errors
/// Where even one request alone takes longer than `limit`, without a slot, with more than 256, or for a bad `share`.
pub fn constant_service(slots: u32, service: f64, share: f64, limit: f64) -> Result<f64, Invalid> {
    check::share(share)?;
    highest(slots, service, limit, WIDTH, |load| Mdc::new(load)?.response_quantile(share))
}

/// The highest utilisation of M/M/c whose response time's quantile `share` is at most `limit`.
///
/// # Errors
/// As [`constant_service`]; without load the quantile is `-s·ln(1 - share)`.
pub fn exponential_service(slots: u32, service: f64, share: f64, limit: f64) -> Result<f64, Invalid> {
    check::share(share)?;
    highest(slots, service, limit, WIDTH, |load| erlang::wait(load)?.response_quantile(share))
}

/// The highest utilisation at which `figure`, which grows with the load, is at most `limit`; to `width`. A load at which
/// there is no figure does not keep it.
///
/// # Errors
/// Where it is more than `limit` at hardly any load, has no value there, or a parameter is none.
pub fn highest(
    slots: u32,
    service: f64,
    limit: f64,
    width: f64,
    figure: impl Fn(Load) -> Result<f64, Invalid>,
) -> Result<f64, Invalid> {
    check::some("slot", slots)?;
    check::positive("the service time", service)?;
    check::positive("the limit", limit)?;
    check::positive("the width", width)?;
    let at = |utilisation: f64| Load::new(slots, utilisation * f64::from(slots) / service, service);
    let at_rest = figure(at(AT_REST)?)?;
    if at_rest > limit {
        return Err(Invalid::OutOfReach { at_rest, limit });
    }
    let kept = |utilisation: f64| at(utilisation).and_then(&figure).is_ok_and(|figure| figure <= limit);
    let (mut low, mut high) = (AT_REST, 1.0);
    while high - low > width {
        let next = f64::midpoint(low, high);
        if kept(next) { low = next } else { high = next }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of the table's figures is that of the exact model, to its last digit: below it the limit is kept, above it is not.
    fn assert_between(slots: u32, share: f64, limit: f64, rho: f64, response: impl Fn(Load) -> f64) {
        let at = |rho| response(Load::of_utilisation(slots, rho).unwrap());
        let (below, above) = (at(rho - 1.1e-6), at(rho + 1.1e-6));
        assert!(below <= limit && limit <= above, "{slots}, p{share}, {limit}: {below}, {above} around {rho}");
    }

    #[test]
    fn constant_service_is_the_table() {
        for (slots, share, rhos) in [
            (1, 0.95, [0.093_299, 0.287_048, 0.492_452, 0.693_772]),
            (1, 0.99, [0.019_707, 0.135_157, 0.319_502, 0.560_783]),
            (1, 0.999, [0.001_997, 0.044_068, 0.163_414, 0.405_629]),
            (2, 0.95, [0.310_003, 0.528_966, 0.706_490, 0.835_023]),
            (2, 0.99, [0.143_557, 0.361_989, 0.577_259, 0.754_721]),
            (2, 0.999, [0.045_228, 0.204_638, 0.424_304, 0.649_710]),
            (5, 0.95, [0.625_489, 0.770_942, 0.870_065, 0.930_392]),
            (5, 0.99, [0.465_918, 0.664_097, 0.805_269, 0.894_388]),
            (5, 0.999, [0.290_531, 0.530_044, 0.718_534, 0.844_560]),
            (10, 0.95, [0.787_138, 0.875_699, 0.932_055, 0.964_371]),
            (10, 0.99, [0.685_005, 0.813_391, 0.896_870, 0.945_587]),
            (10, 0.999, [0.551_032, 0.729_489, 0.848_114, 0.919_145]),
            (20, 0.95, [0.882_983, 0.934_295, 0.964_999, 0.981_908]),
            (20, 0.99, [0.823_945, 0.900_205, 0.946_538, 0.972_280]),
            (20, 0.999, [0.743_883, 0.852_870, 0.920_539, 0.958_615]),
        ] {
            for (limit, rho) in [1.5, 2.0, 3.0, 5.0].into_iter().zip(rhos) {
                assert_between(slots, share, limit, rho, |load| {
                    Mdc::new(load).unwrap().response_quantile(share).unwrap()
                });
            }
        }
    }

    #[test]
    fn exponential_service_is_the_table() {
        for (slots, rhos) in [
            (1, [0.020_176_6, 0.078_966_0, 0.232_471_6, 0.424_353_7, 0.539_483_0]),
            (5, [0.513_575_7, 0.668_849_1, 0.795_007_9, 0.867_919_8, 0.899_423_2]),
            (20, [0.809_871_6, 0.895_172_0, 0.943_541_9, 0.965_387_8, 0.974_038_5]),
        ] {
            for (limit, rho) in [4.7, 5.0, 6.0, 8.0, 10.0].into_iter().zip(rhos) {
                let found = exponential_service(slots, 1.0, 0.99, limit).unwrap();
                assert!((found - rho).abs() < 6e-7, "{slots}, {limit}: {found}, table {rho}");
            }
        }
    }

    #[test]
    fn the_search_finds_the_table() {
        for (slots, rho) in [(5, 0.664_097), (20, 0.900_205)] {
            let found = constant_service(slots, 0.2, 0.99, 0.4).unwrap();
            assert!((found - rho).abs() < 1.1e-6, "{slots}: {found}, table {rho}");
        }
    }

    #[test]
    fn what_is_too_slow_at_rest_cannot_be_kept() {
        assert!(matches!(constant_service(5, 1.0, 0.99, 0.9), Err(Invalid::OutOfReach { .. })));
        assert!(matches!(exponential_service(5, 1.0, 0.99, 4.6), Err(Invalid::OutOfReach { .. })));
        assert!(constant_service(5, 1.0, 1.0, 2.0).is_err() && constant_service(0, 1.0, 0.5, 2.0).is_err());
        assert!(matches!(constant_service(500, 1.0, 0.5, 2.0), Err(Invalid::TooMany { .. })));
    }
}
