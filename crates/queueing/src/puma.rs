//! Who waits in Puma, by its source: turns of ten, and the accept throttle.
//!
//! Sources: Puma 5.6.9 and 6.6.1, `lib/puma/const.rb` (`MAX_FAST_INLINE`, `FAST_TRACK_KA_TIMEOUT`),
//! `server.rb` (`process_client`), `client.rb` (`reset`); Puma 7.0.4 and later,
//! `cluster_accept_loop_delay.rb` and `server.rb` (`handle_servers`).

use crate::numeric::{QueueingError, positive, some};

/// Requests in a row on one connection, while others wait, in Puma 5 and 6: `MAX_FAST_INLINE`.
pub const TURN: u32 = 10;

/// How long a thread waits for its connection's next request: `FAST_TRACK_KA_TIMEOUT`, in seconds.
pub const HOLD_SECONDS: f64 = 0.2;

/// From Puma 7.0.4 a worker of a cluster with much to do accepts slowly, so that others can:
/// `wait_for_less_busy_worker`, the longest delay, in seconds, where the config file says nothing
/// else. It acts on new connections only: a keep-alive connection's next requests come by the
/// reactor.
pub const LONGEST_DELAY_SECONDS: f64 = 0.005;

/// From this many requests per thread on, the delay is the longest.
const FULL_AT: f64 = 25.0;

/// The delay before each accept, where `busy` requests run or wait in the worker: `longest·min(b,
/// 25t)/(25t)`.
pub fn accept_delay(longest: f64, busy: u32, threads: u32) -> f64 {
    let full = FULL_AT * f64::from(threads);
    longest * f64::from(busy).min(full) / full
}

/// How many requests a worker holds, running and waiting, in an overload with one connection per
/// request, once it accepts as many as it serves; the others wait in the kernel's queue, which all
/// workers share. `min(b, t)/s = 25t/(5 ms·b)`, so `b = 5000·s` (with the usual `longest` of 5 ms)
/// for services from `t/5000` s, and `√(5000·s·t)` for shorter ones, whose threads the throttle
/// keeps waiting. `None` above `25·t`, which is `s ≥ 5 ms·t`: a worker accepts at least as fast as
/// it serves even at the longest delay, the queue grows in the worker, and each worker is a queue
/// of its own.
///
/// # Errors
/// Without a thread, or where the service time or the longest delay is not above 0.
pub fn held_at_rest(
    longest: f64,
    threads: u32,
    service_seconds: f64,
) -> Result<Option<f64>, QueueingError> {
    let t = f64::from(some("thread", threads)?);
    let longest = positive("the longest delay", longest)?;
    let product = positive("the service time", service_seconds)? * FULL_AT / longest;
    let held = if product >= t { product } else { (product * t).sqrt() };
    Ok((held < FULL_AT * t).then_some(held))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delays_are_those_of_the_source() {
        for (busy, ms) in
            [(0, 0.0), (1, 0.04), (5, 0.2), (10, 0.4), (25, 1.0), (125, 5.0), (500, 5.0)]
        {
            assert!((accept_delay(LONGEST_DELAY_SECONDS, busy, 5) * 1e3 - ms).abs() < 1e-12);
        }
    }

    #[test]
    fn a_fast_app_shares_the_kernels_queue_and_a_slow_one_does_not() {
        let rest = |threads, service| held_at_rest(LONGEST_DELAY_SECONDS, threads, service);
        let held = |service| rest(5, service).unwrap().unwrap();
        assert!((held(0.001) - 5.0).abs() < 1e-9 && (held(0.01) - 50.0).abs() < 1e-9);
        assert_eq!([rest(5, 0.2), rest(5, 0.025), rest(40, 0.2)], [Ok(None), Ok(None), Ok(None)]);
        assert_eq!(rest(41, 0.2), Ok(Some(1000.0)));
        // In balance: as many accepted as served, also where threads are kept waiting.
        for service in [0.000_01, 0.000_1, 0.001, 0.02] {
            let accepted = 25.0 * 5.0 / (LONGEST_DELAY_SECONDS * held(service));
            assert!((accepted * service / held(service).min(5.0) - 1.0).abs() < 1e-12, "{service}");
        }
        assert!(rest(0, 1.0).is_err() && rest(1, 0.0).is_err());
    }
}
