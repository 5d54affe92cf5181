//! The closed network without think time: `N` connections, `c` slots, service time `s`.
//!
//! For any service law and any discipline that leaves no slot idle while a request waits, Little's law gives
//! `X = min(N, c) / s` and a mean response time of `s · max(1, N / c)`, exactly (methods: Denning and Buzen, "The
//! operational analysis of queueing network models", Computing Surveys 10(3), 1978).

use model::Nanos;
use model::forecast::{Forecast, ServiceTimeSource};

use crate::{Invalid, check};

/// The rate that `slots` slots can do at the most, in requests per second: `c / s`.
pub fn maximum_rate(slots: u32, service_time: Nanos) -> f64 {
    f64::from(slots) / service_time.as_secs_f64()
}

/// The mean response time, which is everybody's where all wait their turn in one line: `s · max(1, N / c)`.
pub fn ideal_response_time(connections: u32, slots: u32, service_time: Nanos) -> Nanos {
    let turns = (f64::from(connections) / f64::from(slots)).max(1.0);
    Nanos::from_secs_f64(service_time.as_secs_f64() * turns)
}

/// A response time of the closed loop with constant service, and how many have it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// The response time, in service times.
    pub turns: f64,
    /// The share of the requests that take it.
    pub share: f64,
}

/// The response times of a closed loop with constant service, one first-come-first-served line and no think time (D//c):
/// with `N = q·c + r` connections on `c` slots, `(c - r)/c` of the requests take `q` turns and `r/c` take `q + 1`; all take
/// one where `N ≤ c`. Ascending. Where the two meet, a percentile is ambiguous: p50 of half and half is either.
///
/// # Errors
/// Without a connection or a slot.
pub fn levels(connections: u32, slots: u32) -> Result<Vec<Level>, Invalid> {
    check::some("connection", connections)?;
    check::some("slot", slots)?;
    let (whole, rest) = (connections / slots, connections % slots);
    let later = f64::from(rest) / f64::from(slots);
    Ok(if connections <= slots {
        vec![Level { turns: 1.0, share: 1.0 }]
    } else if rest == 0 {
        vec![Level { turns: f64::from(whole), share: 1.0 }]
    } else {
        vec![
            Level { turns: f64::from(whole), share: 1.0 - later },
            Level { turns: f64::from(whole) + 1.0, share: later },
        ]
    })
}

/// The quantile of some levels in ascending order, in service times: the first that at least `share` of the requests do not exceed.
///
/// # Errors
/// Where `share` is not in 0 to 1, or there is no level.
pub fn quantile(levels: &[Level], share: f64) -> Result<f64, Invalid> {
    check::share(share)?;
    let mut below = 0.0;
    for level in levels {
        below += level.share;
        // A share such as 0.9 is not exact in binary; the boundary belongs to the lower level.
        if below >= share - 1e-12 {
            return Ok(level.turns);
        }
    }
    levels.last().map(|level| level.turns).ok_or(Invalid::None("level"))
}

/// Both, as the forecast of one run. `None` for a service time of zero, of which theory has nothing to say.
pub fn forecast(connections: u32, slots: u32, service_time: Nanos, source: ServiceTimeSource) -> Option<Forecast> {
    (service_time > Nanos::ZERO && slots > 0).then(|| Forecast {
        model: "closed loop, one first-come-first-served line".to_owned(),
        service_time,
        service_time_source: source,
        maximum_rate: maximum_rate(slots, service_time),
        ideal_response_time: ideal_response_time(connections, slots, service_time),
    })
}

/// The same of a run whose CPUs allow `cpu_rate` requests per second at the most: where that is less than what the slots allow, the
/// app computes, and first come, first served is connections / throughput (Little's law), for its slots share what they compute with.
pub fn on_cpus(slots: Forecast, connections: u32, cpu_rate: Option<f64>, throughput: f64) -> Forecast {
    match cpu_rate.filter(|rate| *rate < slots.maximum_rate && throughput > 0.0) {
        None => slots,
        Some(rate) => Forecast {
            model: "closed loop on CPUs, connections / throughput".to_owned(),
            maximum_rate: rate,
            ideal_response_time: slots.service_time.max(Nanos::from_secs_f64(f64::from(connections) / throughput)),
            ..slots
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_slots_of_200_ms_do_a_hundred_a_second() {
        assert_eq!(maximum_rate(20, Nanos::from_millis(200)).to_bits(), 100.0f64.to_bits());
    }

    #[test]
    fn everybody_waits_as_often_as_there_are_turns() {
        let ideal = |n| ideal_response_time(n, 20, Nanos::from_millis(200));
        let expected = [(10, 200), (20, 200), (30, 300), (40, 400), (60, 600), (80, 800)];
        assert!(expected.iter().all(|(n, ms)| ideal(*n) == Nanos::from_millis(*ms)));
    }

    #[test]
    fn the_levels_are_the_table() {
        for (connections, slots, expected) in [
            (10, 20, vec![(1.0, 1.0)]),
            (20, 20, vec![(1.0, 1.0)]),
            (30, 20, vec![(1.0, 0.5), (2.0, 0.5)]),
            (40, 20, vec![(2.0, 1.0)]),
            (60, 20, vec![(3.0, 1.0)]),
            (80, 20, vec![(4.0, 1.0)]),
            (7, 5, vec![(1.0, 0.6), (2.0, 0.4)]),
            (8, 5, vec![(1.0, 0.4), (2.0, 0.6)]),
        ] {
            let levels = levels(connections, slots).unwrap();
            assert_eq!(levels.len(), expected.len());
            for (level, (turns, share)) in levels.iter().zip(expected) {
                assert!((level.turns - turns).abs() + (level.share - share).abs() < 1e-15, "{connections} on {slots}");
            }
            // Their mean is Little's law.
            let mean: f64 = levels.iter().map(|level| level.turns * level.share).sum();
            assert!((mean - (f64::from(connections) / f64::from(slots)).max(1.0)).abs() < 1e-12);
        }
        assert!(super::levels(0, 1).is_err() && super::levels(1, 0).is_err());
    }

    #[test]
    fn a_quantile_is_one_of_the_levels() {
        let levels = levels(30, 20).unwrap();
        let at = |share| quantile(&levels, share).unwrap();
        assert_eq!([at(0.0), at(0.5), at(0.500_001), at(0.99)].map(|turns| turns as u32), [1, 1, 2, 2]);
        assert!(quantile(&levels, 1.0).is_err() && quantile(&[], 0.5).is_err());
    }

    #[test]
    fn an_app_that_computes_is_limited_by_its_cpus() {
        // 10 ms of Ruby under two workers of five threads, on two CPUs.
        let slots = |n| forecast(n, 10, Nanos::from_millis(10), ServiceTimeSource::Measured).unwrap();
        let on = on_cpus(slots(40), 40, Some(194.0), 178.0);
        assert!((on.maximum_rate - 194.0).abs() < 1e-9 && on.ideal_response_time.0 / 1_000_000 == 224, "{on:?}");
        assert_eq!(on_cpus(slots(1), 1, Some(194.0), 110.0).ideal_response_time, Nanos::from_millis(10), "no less");
        assert_eq!(on_cpus(slots(40), 40, Some(20_000.0), 990.0), slots(40), "one that waits");
        assert_eq!(on_cpus(slots(40), 40, None, 990.0), slots(40));
    }

    #[test]
    fn an_app_that_takes_no_time_has_no_forecast() {
        assert_eq!(forecast(1, 1, Nanos::ZERO, ServiceTimeSource::Given), None);
    }
}
