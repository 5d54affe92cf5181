//! The closed network without think time: `N` connections, `c` slots, service time `s`.
//!
//! For any service law and any discipline that leaves no slot idle while a request waits, Little's law gives
//! `X = min(N, c) / s` and a mean response time of `s · max(1, N / c)`, exactly (methods: Denning and Buzen, "The
//! operational analysis of queueing network models", Computing Surveys 10(3), 1978).

use model::Nanos;
use model::forecast::{Forecast, ServiceTimeSource};

/// The rate that `slots` slots can do at the most, in requests per second: `c / s`.
pub fn maximum_rate(slots: u32, service_time: Nanos) -> f64 {
    f64::from(slots) / service_time.as_secs_f64()
}

/// The mean response time, which is everybody's where all wait their turn in one line: `s · max(1, N / c)`.
pub fn ideal_response_time(connections: u32, slots: u32, service_time: Nanos) -> Nanos {
    let turns = (f64::from(connections) / f64::from(slots)).max(1.0);
    Nanos::from_secs_f64(service_time.as_secs_f64() * turns)
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
    fn an_app_that_takes_no_time_has_no_forecast() {
        assert_eq!(forecast(1, 1, Nanos::ZERO, ServiceTimeSource::Given), None);
    }
}
