//! What must add up in every run, whatever the law: Little's law and its relatives. They find mistakes in the bookkeeping,
//! of ours or of others.
//!
//! Source: Little, "A proof for the queuing formula L = λW", Operations Research 9 (1961); Denning and Buzen (1978).

use crate::{Invalid, check};

/// Mean number in flight, by rate and mean response time: `X·R`. In a closed loop without think time it is the number of
/// connections; more than that is impossible.
///
/// # Errors
/// Where one is negative or not finite.
pub fn in_flight(rate: f64, response: f64) -> Result<f64, Invalid> {
    Ok(check::not_negative("the rate", rate)? * check::not_negative("the response time", response)?)
}

/// The generator's own time in each cycle of a closed loop: `N/X - R`, from an answer to the next request. Below 0 the
/// figures contradict each other.
///
/// # Errors
/// Without a connection, where the rate is not above 0, or the response time is negative.
pub fn generator_think(connections: u32, rate: f64, response: f64) -> Result<f64, Invalid> {
    check::some("connection", connections)?;
    let cycle = f64::from(connections) / check::positive("the rate", rate)?;
    Ok(cycle - check::not_negative("the response time", response)?)
}

/// Share of the time that a slot is busy: `X·s / c`. More than 1 is impossible: then the service time is not what a slot is
/// held for, or the slots are more.
///
/// # Errors
/// Without a slot, or where rate or service time are negative.
pub fn utilisation(rate: f64, service: f64, slots: u32) -> Result<f64, Invalid> {
    Ok(in_flight(rate, service)? / f64::from(check::some("slot", slots)?))
}

/// Mean number in flight in the window `from..to`, from the requests themselves as (sent, ended): `Σ` of what each has of
/// the window, over its length. The same as the integral of the number in flight, exactly.
///
/// # Errors
/// Where the window has no length, or a request ended before it was sent.
pub fn in_flight_of(requests: &[(f64, f64)], from: f64, to: f64) -> Result<f64, Invalid> {
    let length = check::positive("the length of the window", to - from)?;
    let mut sum = 0.0;
    for (sent, ended) in requests {
        check::not_negative("the time from sent to ended", ended - sent)?;
        sum += (ended.min(to) - sent.max(from)).max(0.0);
    }
    Ok(sum / length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_tables_against_littles_law() {
        // wrk's means are of samples that were never sent; hey's are not.
        for (rate, response, connections, product, ratio) in [
            (4880.11, 2.31e-3, 4, 11.27, 2.82),
            (4278.15, 1.94e-3, 4, 8.30, 2.07),
            (2937.14, 41.30e-3, 32, 121.3, 3.79),
            (2962.91, 42.36e-3, 32, 125.5, 3.92),
            (41_197.7, 1.2e-3, 50, 49.4, 0.99),
        ] {
            let in_flight = in_flight(rate, response).unwrap();
            assert!((in_flight / product - 1.0).abs() < 1e-3, "{in_flight}");
            assert!((in_flight / f64::from(connections) - ratio).abs() < 5.1e-3);
            assert_eq!(generator_think(connections, rate, response).unwrap() < 0.0, ratio > 1.0);
        }
    }

    #[test]
    fn a_run_counted_by_hand() {
        // Two in flight in the first second, one in the second, one that began before and one that ended after.
        let requests = [(-1.0, 1.0), (0.0, 2.0), (2.0, 9.0)];
        assert!((in_flight_of(&requests, 0.0, 2.0).unwrap() - 1.5).abs() < 1e-15);
        assert!(in_flight_of(&requests, 2.0, 2.0).is_err() && in_flight_of(&[(1.0, 0.0)], 0.0, 2.0).is_err());
    }

    #[test]
    fn slots_cannot_be_busier_than_always() {
        assert!((utilisation(97.012, 0.2, 20).unwrap() - 0.970_12).abs() < 1e-12);
        assert!(utilisation(1.0, 1.0, 0).is_err() && utilisation(f64::NAN, 1.0, 1).is_err());
    }
}
