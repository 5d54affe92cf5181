//! The right answers: what each request of a run should have taken, computed from the seeded draws and the due times
//! alone. No clock is read here.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use model::histogram::rank;
use model::{Histogram, Nanos};
use serde::Serialize;
use sink::{DelayLaw, StallLaw};

/// The figures of a distribution that are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ResponseFigures {
    #[serde(rename = "mean_ns")]
    pub(crate) mean: Nanos,
    #[serde(rename = "p50_ns")]
    pub(crate) p50: Nanos,
    #[serde(rename = "p99_ns")]
    pub(crate) p99: Nanos,
    #[serde(rename = "p999_ns")]
    pub(crate) p999: Nanos,
}

impl ResponseFigures {
    /// Exactly, by nearest rank; `None` of nothing.
    pub(crate) fn exactly(times: &[Nanos]) -> Option<ResponseFigures> {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        let count = sorted.len() as u64;
        let at = |q| sorted.get(rank(q, count) as usize - 1).copied();
        let mean = Nanos(sorted.iter().copied().sum::<Nanos>().0.checked_div(count)?);
        Some(ResponseFigures { mean, p50: at(0.5)?, p99: at(0.99)?, p999: at(0.999)? })
    }

    /// Of a histogram, `None` of an empty one.
    pub(crate) fn of(times: &Histogram) -> Option<ResponseFigures> {
        let at = |q| times.quantile(q);
        Some(ResponseFigures { mean: times.mean()?, p50: at(0.5)?, p99: at(0.99)?, p999: at(0.999)? })
    }

    /// In the order they are printed.
    pub(crate) fn all(self) -> [Nanos; 4] {
        [self.mean, self.p50, self.p99, self.p999]
    }
}

/// The very delays that the sink draws for its first `count` requests, whichever connection gets which.
pub(crate) fn draws(delay: &DelayLaw, seed: u64, count: u64) -> Vec<Nanos> {
    (0..count).map(|number| delay.of(seed, number)).collect()
}

/// Requests due at `due` that take `service` each and go out when no pause holds them. Due times are counted from
/// `offset` after the sink's start.
pub(crate) fn stalled(due: &[Nanos], offset: Nanos, service: Nanos, stalls: StallLaw) -> Vec<Nanos> {
    due.iter().map(|due| stalls.release(offset + *due + service) - (offset + *due)).collect()
}

/// First come, first served by `slots` slots, each request holding one for `service`: Kiefer and Wolfowitz's
/// recursion (1955). Request k starts when it came or when a slot is free, whichever is later.
pub(crate) fn first_come(due: &[Nanos], slots: u32, service: Nanos) -> Vec<Nanos> {
    let mut free: BinaryHeap<Reverse<Nanos>> = (0..slots).map(|_| Reverse(Nanos::ZERO)).collect();
    let serve = |due: &Nanos| {
        let start = free.pop().map_or(*due, |Reverse(free)| free.max(*due));
        free.push(Reverse(start + service));
        start + service - *due
    };
    due.iter().map(serve).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Arrivals, Pace, Profile, Rate};

    fn due(arrivals: Arrivals, rate: f64, count: usize) -> Vec<Nanos> {
        let profile = Profile::Flat { rate: Rate::new(rate).unwrap() };
        Pace::Open { profile, arrivals, seed: 1, burst: 1 }.schedule().unwrap().take(count).collect()
    }

    /// M/D/5 at a load of 0.8 in its steady state, in units of the service time: mean wait by Crommelin's series, quantiles by
    /// Franx (2001); the response is one more.
    const MD5_WAIT: [f64; 4] = [0.289_060_007_263, 0.051_470_91, 1.937_438_8, 3.006_321_8];

    #[test]
    fn a_long_path_of_random_arrivals_comes_to_the_steady_state() {
        let service = Nanos::from_millis(10);
        let times = first_come(&due(Arrivals::Poisson, 400.0, 2_000_000), 5, service);
        let path = ResponseFigures::exactly(&times).unwrap();
        let ratio = |(time, wait): (Nanos, f64)| time.0 as f64 / (service.0 as f64 * (wait + 1.0));
        let ratios: Vec<f64> = path.all().into_iter().zip(MD5_WAIT).map(ratio).collect();
        // Neighbours wait together, so that two million requests tell the last of these to about 2 %.
        assert!(ratios.iter().all(|ratio| (ratio - 1.0).abs() < 0.03), "{ratios:?}");
    }

    #[test]
    fn a_pause_holds_what_would_end_in_it() {
        let stalls: StallLaw = "1s:100ms".parse().unwrap();
        let due = [0, 949, 998, 1097, 1098].map(Nanos::from_millis);
        let times = stalled(&due, Nanos::from_millis(1), Nanos::from_millis(1), stalls);
        assert_eq!(times.iter().map(|time| time.0 / 1_000_000).collect::<Vec<_>>(), [1, 1, 101, 2, 1]);
    }
}
