//! The accept throttle of Puma from 7.0.4 in cluster mode: a worker with much to do accepts slowly, so that others can.
//!
//! Source: Puma 7.0.4 and later, `lib/puma/cluster_accept_loop_delay.rb` and `server.rb` (`handle_servers`); off with one
//! worker. Read in the source, not measured. It acts on new connections only: a keep-alive connection's next requests
//! come by the reactor.

use crate::{Invalid, check};

/// `wait_for_less_busy_worker`, the longest delay, in seconds.
pub const LONGEST_SECONDS: f64 = 0.005;

/// The delay is the longest at so many requests a thread.
pub const FULL_AT: f64 = 25.0;

/// The delay before each accept, where `busy` requests run or wait in the worker: `5 ms·min(b, 25t)/(25t)`.
///
/// # Errors
/// Without a thread, or where `busy` is negative.
pub fn delay_seconds(busy: f64, threads: u32) -> Result<f64, Invalid> {
    delay_of(LONGEST_SECONDS, busy, threads)
}

/// The same where the longest delay is another: what the config file says of `wait_for_less_busy_worker`.
///
/// # Errors
/// As [`delay_seconds`].
pub fn delay_of(longest: f64, busy: f64, threads: u32) -> Result<f64, Invalid> {
    let full = FULL_AT * f64::from(check::some("thread", threads)?);
    Ok(longest * check::not_negative("the number of busy requests", busy)?.min(full) / full)
}

/// The most connections that a worker accepts in a second: one a delay. `None` where there is no delay.
///
/// # Errors
/// As [`delay_seconds`].
pub fn accepts_per_second(busy: f64, threads: u32) -> Result<Option<f64>, Invalid> {
    let delay = delay_seconds(busy, threads)?;
    Ok((delay > 0.0).then(|| 1.0 / delay))
}

/// Where an overload with a connection a request comes to rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rest {
    /// A worker holds so many, running and waiting; the others wait in the kernel's queue, which all workers share.
    Holds(f64),
    /// A worker accepts at least as fast as it serves even at the longest delay: the queue grows in the worker, and the
    /// split model applies.
    Grows,
}

/// How many requests a worker holds in an overload, where it accepts as many as it serves: `min(b, t)/s = 25t/(5 ms·b)`,
/// so `b = 5000·s` (with the usual `longest` of 5 ms) for services from `t/5000` s, and `√(5000·s·t)` for shorter ones, whose threads the throttle keeps
/// waiting. Above `25·t`, which is `s ≥ 5 ms·t`, there is no rest.
///
/// # Errors
/// Without a thread, or where the service time or the longest delay is not above 0.
pub fn rest(longest: f64, threads: u32, service_seconds: f64) -> Result<Rest, Invalid> {
    let t = f64::from(check::some("thread", threads)?);
    let longest = check::positive("the longest delay", longest)?;
    let product = check::positive("the service time", service_seconds)? * FULL_AT / longest;
    let held = if product >= t { product } else { (product * t).sqrt() };
    Ok(if held < FULL_AT * t { Rest::Holds(held) } else { Rest::Grows })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delays_are_those_of_the_source() {
        for (busy, ms, rate) in [
            (1.0, 0.04, 25_000.0),
            (5.0, 0.2, 5000.0),
            (10.0, 0.4, 2500.0),
            (25.0, 1.0, 1000.0),
            (50.0, 2.0, 500.0),
            (125.0, 5.0, 200.0),
            (500.0, 5.0, 200.0),
        ] {
            assert!((delay_seconds(busy, 5).unwrap() * 1e3 - ms).abs() < 1e-12);
            assert!((accepts_per_second(busy, 5).unwrap().unwrap() / rate - 1.0).abs() < 1e-12);
        }
        assert_eq!(accepts_per_second(0.0, 5), Ok(None));
        assert!(delay_seconds(1.0, 0).is_err() && delay_seconds(-1.0, 5).is_err());
    }

    #[test]
    fn a_fast_app_shares_the_kernels_queue_and_a_slow_one_does_not() {
        let rest = |threads, service| rest(LONGEST_SECONDS, threads, service);
        let held = |service| match rest(5, service).unwrap() {
            Rest::Holds(held) => held,
            Rest::Grows => f64::INFINITY,
        };
        assert!((held(0.001) - 5.0).abs() < 1e-9 && (held(0.01) - 50.0).abs() < 1e-9);
        assert_eq!([rest(5, 0.2), rest(5, 0.025), rest(40, 0.2)], [Ok(Rest::Grows), Ok(Rest::Grows), Ok(Rest::Grows)]);
        assert_eq!(rest(41, 0.2), Ok(Rest::Holds(1000.0)));
        // In balance: as many accepted as served, also where threads are kept waiting.
        for service in [0.000_01, 0.000_1, 0.001, 0.02] {
            let accepted = accepts_per_second(held(service), 5).unwrap().unwrap();
            assert!((accepted * service / held(service).min(5.0) - 1.0).abs() < 1e-12, "{service}");
        }
        assert!(rest(0, 1.0).is_err() && rest(1, 0.0).is_err());
    }
}
