//! One queue for all workers, or one for each. A worker with a queue of its own is an M/·/t of its own, and waits while
//! its neighbour idles.
//!
//! Which one it is: Puma up to 6, with a connection for each request, shares the kernel's accept queue (one queue,
//! [`Load`] as it is). Puma 7 accepts at once, so that each worker has its queue ([`a_workers_load`]). Source: independent
//! thinning of a Poisson process is Poisson (Kingman, Poisson Processes, 5.1), so each worker is its own queue at the same
//! utilisation, with fewer slots.

use crate::{Invalid, Load, check};

/// The load of one of `workers` workers, where each arrival goes to one of them at random and stays: the same
/// utilisation on `slots / workers` slots.
///
/// # Errors
/// Where the slots cannot be divided among the workers.
pub fn a_workers_load(load: Load, workers: u32) -> Result<Load, Invalid> {
    check::some("worker", workers)?;
    if !load.slots().is_multiple_of(workers) {
        return Err(Invalid::Undetermined("workers that do not divide the slots"));
    }
    Load::new(load.slots() / workers, load.rate() / f64::from(workers), load.service())
}

/// A worker in a closed loop without think time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Its connections.
    pub connections: u32,
    /// Requests per unit of time: `min(N(k), t) / s`.
    pub rate: f64,
    /// Mean response time, everybody's where the service is constant and `N(k)` a multiple of `t`: `s·max(1, N(k)/t)`.
    pub response: f64,
}

/// Each worker in a closed loop whose connections stay with their worker. A worker with fewer connections than threads
/// leaves slots idle whatever its neighbours' queues are.
///
/// # Errors
/// Without a worker or a thread, or where the service time is not above 0.
pub fn closed(connections: &[u32], threads: u32, service: f64) -> Result<Vec<Share>, Invalid> {
    check::some("worker", u32::try_from(connections.len()).unwrap_or(u32::MAX))?;
    check::some("thread", threads)?;
    check::positive("the service time", service)?;
    let share = |n: &u32| Share {
        connections: *n,
        rate: f64::from(*n.min(&threads)) / service,
        response: service * (f64::from(*n) / f64::from(threads)).max(1.0),
    };
    Ok(connections.iter().map(share).collect())
}

/// Connections of a worker, from its own rate and mean response time: `X·R` (Little). So a split pool shows in its response
/// times who got how many.
///
/// # Errors
/// Where one of the two is not above 0.
pub fn connections_of(rate: f64, response: f64) -> Result<f64, Invalid> {
    Ok(check::positive("the rate", rate)? * check::positive("the response time", response)?)
}

/// The rate of a run that ends when a fixed count of requests is done: the fullest worker, which does the share
/// `largest_share` of them on `threads` threads, is the last. `t / (s·share)`, where that worker is busy to the end.
///
/// # Errors
/// Without a thread, where the service time is not above 0 or the share not above 0 and at most 1.
pub fn rate_of_a_fixed_count(threads: u32, service: f64, largest_share: f64) -> Result<f64, Invalid> {
    check::some("thread", threads)?;
    check::positive("the service time", service)?;
    check::positive("the largest share", largest_share)?;
    if largest_share > 1.0 {
        return Err(Invalid::NotAShare(largest_share));
    }
    Ok(f64::from(threads) / (service * largest_share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{erlang, mdc::Mdc};

    #[test]
    fn shared_against_split_is_the_table() {
        // ρ, of w = 4, t = 5: M/M Wq split and shared, R99 both; M/D Wq both, R99 both, R99.9 both.
        for (rho, m, d) in [
            (
                0.5,
                [0.052_148_52, 0.000_373_112_6, 4.688_44, 4.605_58],
                [0.030_653_19, 0.000_280_198_7, 1.558_36, 1.0, 1.900_96, 1.104_87],
            ),
            (
                0.7,
                [0.251_892_2, 0.015_593_54, 5.134_43, 4.623_71],
                [0.135_517_1, 0.009_544_476, 2.165_88, 1.231_52, 2.846_92, 1.406_76],
            ),
            (
                0.8,
                [0.554_112_6, 0.064_019_45, 6.079_66, 4.687_08],
                [0.289_060_0, 0.035_874_1, 2.937_44, 1.423_11, 4.006_32, 1.689_99],
            ),
            (
                0.9,
                [1.524_986, 0.275_384_5, 10.049_8, 5.041_62],
                [0.776_695_2, 0.144_286_1, 5.244_99, 1.997_64, 7.468_13, 2.553_43],
            ),
            (
                0.95,
                [3.511_196, 0.755_401_2, 19.050_1, 6.364_34],
                [1.770_788, 0.385_730_8, 9.852_68, 3.149_13, 14.379_8, 4.280_91],
            ),
        ] {
            let near =
                |seen: f64, exact: f64| assert!((seen / exact - 1.0).abs() < 6e-6, "{rho}: {seen}, exactly {exact}");
            let shared = Load::of_utilisation(20, rho).unwrap();
            let split = a_workers_load(shared, 4).unwrap();
            let (five, twenty) = (erlang::wait(split).unwrap(), erlang::wait(shared).unwrap());
            near(five.mean_wait(), m[0]);
            near(twenty.mean_wait(), m[1]);
            near(five.response_quantile(0.99).unwrap(), m[2]);
            near(twenty.response_quantile(0.99).unwrap(), m[3]);
            let (five, twenty) = (Mdc::new(split).unwrap(), Mdc::new(shared).unwrap());
            near(five.mean_wait(), d[0]);
            near(twenty.mean_wait(), d[1]);
            near(five.response_quantile(0.99).unwrap(), d[2]);
            near(twenty.response_quantile(0.99).unwrap(), d[3]);
            near(five.response_quantile(0.999).unwrap(), d[4]);
            near(twenty.response_quantile(0.999).unwrap(), d[5]);
        }
    }

    #[test]
    fn a_worker_with_few_connections_idles() {
        let workers = closed(&[2, 8, 10, 20], 5, 0.2).unwrap();
        let near = |seen: f64, exact: f64| assert!((seen - exact).abs() < 1e-12, "{seen}, not {exact}");
        for (worker, (rate, response)) in workers.iter().zip([(10.0, 0.2), (25.0, 0.32), (25.0, 0.4), (25.0, 0.8)]) {
            near(worker.rate, rate);
            near(worker.response, response);
            near(connections_of(worker.rate, worker.response).unwrap(), f64::from(worker.connections));
        }
        assert!(closed(&[], 5, 0.2).is_err() && closed(&[1], 0, 0.2).is_err() && closed(&[1], 1, 0.0).is_err());
    }

    #[test]
    fn what_does_not_divide_is_refused() {
        let load = Load::of_utilisation(20, 0.5).unwrap();
        assert!(a_workers_load(load, 3).is_err() && a_workers_load(load, 0).is_err());
        assert!(rate_of_a_fixed_count(5, 0.2, 1.5).is_err());
    }
}
