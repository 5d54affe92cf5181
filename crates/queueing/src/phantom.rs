//! What wrk's tables show of a distribution: after each run wrk adds samples that were never sent.
//!
//! Source: wg/wrk at a211dd5, `src/wrk.c` and `src/stats.c` (`stats_correct`): with `E = connections / rate`, for each time
//! `n ≥ 2E` it adds `n - E`, `n - 2E`, … while above `E`. So a prediction that is to be held against a table of wrk must
//! have them, too.

use crate::{Invalid, check};

/// `times`, with wrk's phantom samples for `connections` connections at `rate`. Ascending. In whole microseconds, as wrk
/// counts, where times are in seconds.
///
/// # Errors
/// Without a connection, where the rate is not above 0, or `E` is less than a microsecond.
pub fn recorded_by_wrk(times: &[f64], connections: u32, rate: f64) -> Result<Vec<f64>, Invalid> {
    check::some("connection", connections)?;
    let expected = (f64::from(connections) / check::positive("the rate", rate)? * 1e6).floor();
    check::positive("the microseconds between two requests of a connection", expected)?;
    let mut all = Vec::with_capacity(times.len() * 2);
    for time in times {
        let micros = (check::not_negative("a time", *time)? * 1e6).floor();
        all.push(micros / 1e6);
        if micros >= 2.0 * expected {
            let mut phantom = micros - expected;
            while phantom > expected {
                all.push(phantom / 1e6);
                phantom -= expected;
            }
        }
    }
    all.sort_by(f64::total_cmp);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_times_have_a_trail() {
        // E = 1 ms: 5 ms adds 4, 3 and 2, not 1; 2 ms adds none, since 1 ms is not above E.
        let seen = recorded_by_wrk(&[0.0005, 0.002, 0.005], 1, 1000.0).unwrap();
        let expected = [0.0005, 0.002, 0.002, 0.003, 0.004, 0.005];
        assert!(seen.len() == 6 && seen.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{seen:?}");
        assert!(recorded_by_wrk(&[1.0], 0, 1.0).is_err() && recorded_by_wrk(&[1.0], 1, 1e9).is_err());
        assert!(recorded_by_wrk(&[f64::NAN], 1, 1.0).is_err());
    }
}
