//! What no law can exceed: asymptotic bounds of a closed loop.
//!
//! Source: Denning and Buzen, Computing Surveys 10(3), 1978; Muntz and Wong (1974). They hold for any law of service and
//! think times and any order of service.

use crate::{Invalid, check};

/// Something that a request needs: a number of servers, and how long it holds one on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Station {
    /// `c`: a worker's threads, processors, or 1 for a global lock.
    pub servers: u32,
    /// `D`: time of one server that one request takes.
    pub demand: f64,
}

/// The bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The rate with any number of connections is at most this: `min(c/D)` over the stations.
    pub saturation: f64,
    /// With one request at a time a response takes `ΣD`.
    pub shortest: f64,
    /// `N* = saturation·(Z + ΣD)`: the connections where the two bounds of the rate meet; with more, requests must wait.
    pub knee: f64,
    think: f64,
}

impl Bounds {
    /// For `stations` and a think time.
    ///
    /// # Errors
    /// Without a station or a server, where a demand is not above 0, or the think time is negative.
    pub fn new(stations: &[Station], think: f64) -> Result<Bounds, Invalid> {
        check::some("station", u32::try_from(stations.len()).unwrap_or(u32::MAX))?;
        check::not_negative("the think time", think)?;
        let (mut saturation, mut shortest) = (f64::INFINITY, 0.0);
        for station in stations {
            check::some("server", station.servers)?;
            check::positive("the demand", station.demand)?;
            saturation = f64::min(saturation, f64::from(station.servers) / station.demand);
            shortest += station.demand;
        }
        Ok(Bounds { saturation, shortest, knee: saturation * (think + shortest), think })
    }

    /// The rate with `connections` connections is at most this: `min(saturation, N / (Z + ΣD))`.
    pub fn rate(&self, connections: u32) -> f64 {
        self.saturation.min(f64::from(connections) / (self.think + self.shortest))
    }

    /// The mean response time is at least this: `max(ΣD, N/saturation - Z)`.
    pub fn response(&self, connections: u32) -> f64 {
        self.shortest.max(f64::from(connections) / self.saturation - self.think)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_repair::{Closed, machine_repair};
    use proptest::prelude::*;

    #[test]
    fn the_knee_of_twenty_slots_without_thought_is_twenty() {
        let bounds = Bounds::new(&[Station { servers: 20, demand: 0.2 }], 0.0).unwrap();
        assert!((bounds.knee - 20.0).abs() < 1e-12 && (bounds.saturation - 100.0).abs() < 1e-12);
        assert!((bounds.rate(10) - 50.0).abs() < 1e-12 && (bounds.response(80) - 0.8).abs() < 1e-12);
    }

    #[test]
    fn the_narrowest_station_is_the_limit() {
        // Ruby: four threads of 100 ms, of which a lock lets one compute for 20 ms.
        let stations = [Station { servers: 4, demand: 0.1 }, Station { servers: 1, demand: 0.03 }];
        let bounds = Bounds::new(&stations, 1.0).unwrap();
        assert!((bounds.saturation - 1.0 / 0.03).abs() < 1e-12 && (bounds.knee - 1.13 / 0.03).abs() < 1e-9);
        assert!(Bounds::new(&[], 0.0).is_err() && Bounds::new(&stations, -1.0).is_err());
        assert!(Bounds::new(&[Station { servers: 0, demand: 1.0 }], 0.0).is_err());
    }

    proptest! {
        #[test]
        fn no_exact_answer_is_beyond_them(
            connections in 1u32..300, slots in 1u32..50, service in 0.01f64..10.0, think in 0.0f64..100.0
        ) {
            let exact = machine_repair(Closed { connections, slots, service, think }).unwrap();
            let bounds = Bounds::new(&[Station { servers: slots, demand: service }], think).unwrap();
            prop_assert!(exact.rate <= bounds.rate(connections) * (1.0 + 1e-9));
            prop_assert!(exact.response >= bounds.response(connections) * (1.0 - 1e-9));
        }
    }
}
