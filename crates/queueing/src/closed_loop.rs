//! Closed loops, without think time and with it.
//!
//! Without: `N` connections, `c` slots, service time `s`. For any law of service and any discipline
//! that leaves no slot idle while a request waits, Little's law gives `X = min(N, c) / s` and a
//! mean response time of `s · max(1, N / c)`, exactly (Denning and Buzen, "The operational analysis
//! of queueing network models", Computing Surveys 10(3), 1978). What differs is who waits.
//!
//! With: connections send their next request some time after the last response, on a number of
//! slots (M/M/c//N, the machine-repair problem), or on a Ruby worker whose threads wait for I/O
//! side by side and compute one at a time. Sources: Feller, Probability Theory I, XVII.5 and
//! XVII.7; Kleinrock, Queueing Systems I, 3.8; for the limit on what is inside a worker, Chandy,
//! Herzog and Woo, "Parametric analysis of queueing networks", IBM J. R&D 19 (1975). Computed as a
//! birth-death process in logarithms, for any number of connections, because mean value analysis of
//! several slots loses all digits (`tests/queueing/mva.rs`). Exact for exponential service; only
//! the mean of the think time matters.

use model::{Forecast, Nanos};

use crate::numeric::{QueueingError, at_most, not_negative, positive, share, some};

/// The forecast of one run: `c / s`, and the mean response time, which every request has if all
/// wait in one queue. `None` without slots, or for a service time of zero.
pub fn forecast(connections: u32, slots: u32, service_time: Nanos) -> Option<Forecast> {
    let service = service_time.as_secs_f64();
    let turns = (f64::from(connections) / f64::from(slots)).max(1.0);
    (service_time > Nanos::ZERO && slots > 0).then(|| Forecast {
        service_time,
        maximum_rate: f64::from(slots) / service,
        ideal_response_time: Nanos::from_secs_f64(service * turns),
    })
}

/// The forecast of a run whose CPUs allow at most `cpu_rate` requests per second. If that is less
/// than the slots allow, the slots share the CPUs, and the response time of first come, first
/// served is connections / throughput (Little's law).
pub fn on_cpus(
    slots: Forecast,
    connections: u32,
    cpu_rate: Option<f64>,
    throughput: f64,
) -> Forecast {
    match cpu_rate.filter(|rate| *rate < slots.maximum_rate && throughput > 0.0) {
        None => slots,
        Some(rate) => Forecast {
            maximum_rate: rate,
            ideal_response_time: slots
                .service_time
                .max(Nanos::from_secs_f64(f64::from(connections) / throughput)),
            ..slots
        },
    }
}

/// A response time of the closed loop with constant service, and how many have it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResponseLevel {
    /// The response time, in service times.
    pub turns: f64,
    /// The share of the requests that take it.
    pub share: f64,
}

/// The response times with constant service if all connections wait in one queue for `slots` slots,
/// and a slot serves its connection for `turn` requests in a row while others wait. All turns end
/// at the same time. So with `N = q·c + r` connections the first request of a turn waits for `q -
/// 1` whole turns in `(c - r)/c` of the turns, and for `q` in `r/c` of them; the other requests
/// don't wait. With a turn of 1 this is D//c: `q` or `q + 1` service times. Ascending. A percentile
/// between two levels is ambiguous: if half of the requests have each level, p50 may be either.
///
/// # Errors
/// Without a connection, slot, or request in a turn.
pub fn levels_in_step(
    connections: u32,
    slots: u32,
    turn: u32,
) -> Result<Vec<ResponseLevel>, QueueingError> {
    let (n, c, length) = checked(connections, slots, turn)?;
    if n <= c {
        return Ok(vec![ResponseLevel { turns: 1.0, share: 1.0 }]);
    }
    let later = (n % c) / c;
    let first = |whole: f64, share: f64| ResponseLevel {
        turns: length * (whole - 1.0) + 1.0,
        share: share / length,
    };
    let others = ResponseLevel { turns: 1.0, share: 1.0 - 1.0 / length };
    let all = [others, first((n / c).floor(), 1.0 - later), first((n / c).floor() + 1.0, later)];
    Ok(all.into_iter().filter(|level| level.share > 0.0).collect())
}

/// As [`levels_in_step`], but turns end at different times: the first request of each waits for all
/// other turns, `L·(n/t - 1) + 1` with turns of `L`. The mean is the same.
///
/// # Errors
/// As [`levels_in_step`].
pub fn levels_on_average(
    connections: u32,
    slots: u32,
    turn: u32,
) -> Result<Vec<ResponseLevel>, QueueingError> {
    let (n, c, length) = checked(connections, slots, turn)?;
    if n <= c {
        return Ok(vec![ResponseLevel { turns: 1.0, share: 1.0 }]);
    }
    let others = ResponseLevel { turns: 1.0, share: 1.0 - 1.0 / length };
    let first = ResponseLevel { turns: length * (n / c - 1.0) + 1.0, share: 1.0 / length };
    Ok([others, first].into_iter().filter(|level| level.share > 0.0).collect())
}

fn checked(connections: u32, slots: u32, turn: u32) -> Result<(f64, f64, f64), QueueingError> {
    let [n, c, length] =
        [some("connection", connections)?, some("slot", slots)?, some("request in a turn", turn)?]
            .map(f64::from);
    Ok((n, c, length))
}

/// The quantile of some levels in ascending order, in service times: the first that at least `at`
/// of the requests do not exceed.
///
/// # Errors
/// If `at` is not in 0 to 1, or there is no level.
pub fn quantile(levels: &[ResponseLevel], at: f64) -> Result<f64, QueueingError> {
    share(at)?;
    let mut below = 0.0;
    for level in levels {
        below += level.share;
        // A share such as 0.9 is not exact in binary; the boundary belongs to the lower level.
        if below >= at - 1e-12 {
            return Ok(level.turns);
        }
    }
    levels.last().map(|level| level.turns).ok_or(QueueingError::None("level"))
}

/// `connections` dealt to `workers` as evenly as possible.
pub fn dealt_evenly(connections: u32, workers: u32) -> Vec<u32> {
    (0..workers)
        .map(|worker| connections / workers + u32::from(worker < connections % workers))
        .collect()
}

/// The most connections that are dealt at random: the time for the sums grows with their square.
const MOST: u32 = 2000;

/// What a closed loop loses if its connections are dealt to workers at random and stay there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomAssignment {
    /// Expected rate / the rate with all slots busy: `w·E[min(Bin(N, 1/w), t)] / (w·t)`.
    pub rate: f64,
    /// Expected number of connections of the fullest worker, which has the slowest percentiles and
    /// ends last in a run of a fixed count.
    pub fullest: f64,
}

/// `connections` that are each dealt to one of `workers` workers of `threads` threads at random.
/// The numbers are multinomial (Feller, Probability Theory I, VI.9); the fullest worker is found by
/// summing probabilities worker by worker, so that no factorial is computed.
///
/// # Errors
/// Without a connection, worker or thread, with more than 2000 connections or 1000 workers.
pub fn assigned_at_random(
    connections: u32,
    workers: u32,
    threads: u32,
) -> Result<RandomAssignment, QueueingError> {
    at_most("connections", some("connection", connections)?, MOST)?;
    at_most("workers", some("worker", workers)?, 1000)?;
    some("thread", threads)?;
    let one = binomial(connections, 1.0 / f64::from(workers));
    let busy: f64 = (0u32..).zip(&one).map(|(n, p)| f64::from(n.min(threads)) * p).sum();
    // E[max] = Σ P(max > m), where P is 1 below the even share and 0 from the total on.
    let certain = connections.div_ceil(workers);
    let mut fullest = f64::from(certain);
    for most in certain..connections {
        let more = 1.0 - none_above(connections, workers, most);
        fullest += more;
        if more < 1e-13 {
            break;
        }
    }
    Ok(RandomAssignment { rate: busy / f64::from(threads), fullest })
}

/// P(0), P(1), … of a binomial law.
fn binomial(n: u32, p: f64) -> Vec<f64> {
    let (first, weights) = model::statistics::binomial(p, n.into());
    let mut all = vec![0.0; first as usize];
    all.extend(weights);
    all.resize(n as usize + 1, 0.0);
    all
}

/// The probability that no worker has more than `most` connections. One worker after the other
/// takes a binomial share of the connections that are left; `left[r]` is the probability that `r`
/// are left and that no worker so far has more than `most`.
fn none_above(connections: u32, workers: u32, most: u32) -> f64 {
    let mut left = vec![0.0; connections as usize + 1];
    left[connections as usize] = 1.0;
    for remaining in (1..=workers).rev() {
        let mut next = vec![0.0; connections as usize + 1];
        for (rest, probability) in (0u32..).zip(&left) {
            // The remaining workers can take at most `most` each.
            let at_least = rest.saturating_sub(most.saturating_mul(remaining - 1));
            if *probability == 0.0 || at_least > most.min(rest) {
                continue;
            }
            let part = binomial(rest, 1.0 / f64::from(remaining));
            for taken in at_least..=most.min(rest) {
                next[(rest - taken) as usize] += probability * part[taken as usize];
            }
        }
        left = next;
    }
    left[0].min(1.0)
}

/// The most connections of a worker that computes: the time for the sums grows with their square.
pub const MOST_CONNECTIONS: u32 = 5000;

/// The throughput and the mean response time of a closed loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClosedLoopMeans {
    /// `X`: requests per unit of time.
    pub rate: f64,
    /// `R`: mean response time, `L / X`.
    pub response: f64,
}

/// `connections` that think for `think` and then need one of the slots, whose joint rate is
/// `rate_with(n)` with `n` requests inside: `p(n) ∝ Π (N - j + 1)/Z / rate(j)`, `X = Σ
/// p(n)·rate(n)`, `R = L/X`. Computed in logarithms, because the products leave the range of an f64
/// long before their shares do. Without think time all connections are always inside.
fn birth_and_death(
    connections: u32,
    think: f64,
    rate_with: impl Fn(u32) -> f64,
) -> ClosedLoopMeans {
    if think == 0.0 {
        let rate = rate_with(connections);
        return ClosedLoopMeans { rate, response: f64::from(connections) / rate };
    }
    let mut logs = vec![0.0f64];
    let mut log = 0.0;
    for n in 1..=connections {
        log += (f64::from(connections - n + 1) / (think * rate_with(n))).ln();
        logs.push(log);
    }
    let highest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut all = 0.0;
    let mut rate = 0.0;
    let mut inside = 0.0;
    for (n, log) in (0..).zip(logs) {
        let weight = (log - highest).exp();
        all += weight;
        rate += weight * if n == 0 { 0.0 } else { rate_with(n) };
        inside += weight * f64::from(n);
    }
    ClosedLoopMeans { rate: rate / all, response: inside / rate }
}

/// `connections` that think for `think`, on `slots` slots of mean service time `service`.
///
/// # Errors
/// Without a connection or a slot, where the service time is not above 0, or the think time is
/// negative.
pub fn machine_repair(
    connections: u32,
    slots: u32,
    service: f64,
    think: f64,
) -> Result<ClosedLoopMeans, QueueingError> {
    some("connection", connections)?;
    some("slot", slots)?;
    positive("the service time", service)?;
    not_negative("the think time", think)?;
    Ok(birth_and_death(connections, think, |n| f64::from(n.min(slots)) / service))
}

/// What a request needs from a worker, in one unit of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkerDemand {
    /// Time without Ruby's lock: database, network, sleep.
    pub io: f64,
    /// Time with the lock.
    pub cpu: f64,
}

/// The highest possible rate of a worker, for any distribution: `min(t/(s_io + s_cpu), 1/s_cpu)`
/// (Denning and Buzen, Computing Surveys 10(3), 1978).
///
/// # Errors
/// Without a thread, where the I/O time is below 0, or the CPU time is not above 0.
pub fn highest_rate(threads: u32, demand: WorkerDemand) -> Result<f64, QueueingError> {
    some("thread", threads)?;
    let io = not_negative("the I/O time", demand.io)?;
    let cpu = positive("the CPU time", demand.cpu)?;
    Ok(f64::min(f64::from(threads) / (io + cpu), 1.0 / cpu))
}

/// The rate of a worker whose threads are always busy: less than [`highest_rate`], because threads
/// wait for the lock. `t` requests alternate between I/O (a delay) and CPU (one server): M/M/1//t.
///
/// # Errors
/// As [`highest_rate`].
pub fn saturated_rate(threads: u32, demand: WorkerDemand) -> Result<f64, QueueingError> {
    Ok(machine_repair(threads, 1, demand.cpu, not_negative("the I/O time", demand.io)?)?.rate)
}

/// `connections` that think for `think`, on a worker of `threads` threads. Each request holds its
/// thread from start to end, so the rate depends on how many are inside, at most `t`.
///
/// # Errors
/// Without a connection or thread, with more than [`MOST_CONNECTIONS`], where a time is not above
/// 0, or the think time negative.
pub fn worker(
    connections: u32,
    threads: u32,
    demand: WorkerDemand,
    think: f64,
) -> Result<ClosedLoopMeans, QueueingError> {
    at_most("connections", some("connection", connections)?, MOST_CONNECTIONS)?;
    some("thread", threads)?;
    not_negative("the think time", think)?;
    let rates: Vec<f64> = (1..=threads.min(connections))
        .map(|inside| saturated_rate(inside, demand))
        .collect::<Result<_, _>>()?;
    Ok(birth_and_death(connections, think, |n| rates[(n.min(threads) - 1) as usize]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::puma::TURN;
    use proptest::prelude::*;

    fn assert_levels(levels: &[ResponseLevel], expected: &[(f64, f64)], what: &str) {
        assert_eq!(levels.len(), expected.len(), "{what}: {levels:?}");
        for (level, (turns, share)) in levels.iter().zip(expected) {
            assert!(
                (level.turns - turns).abs() + (level.share - share).abs() < 1e-12,
                "{what}: {levels:?}"
            );
        }
    }

    #[test]
    fn with_whole_turns_all_requests_wait_equally_long() {
        for (n, ms) in [(10, 200), (20, 200), (30, 300), (40, 400), (60, 600), (80, 800)] {
            let forecast = forecast(n, 20, Nanos::from_millis(200)).unwrap();
            assert_eq!(forecast.ideal_response_time, Nanos::from_millis(ms));
            assert_eq!(
                forecast.maximum_rate.to_bits(),
                100.0f64.to_bits(),
                "twenty slots of 200 ms"
            );
        }
        assert_eq!(forecast(1, 1, Nanos::ZERO), None, "an app that takes no time");
    }

    #[test]
    fn an_app_that_computes_is_limited_by_its_cpus() {
        // 10 ms of Ruby under two workers of five threads, on two CPUs.
        let slots = |n| forecast(n, 10, Nanos::from_millis(10)).unwrap();
        let on = on_cpus(slots(40), 40, Some(194.0), 178.0);
        assert!(
            (on.maximum_rate - 194.0).abs() < 1e-9 && on.ideal_response_time.0 / 1_000_000 == 224,
            "{on:?}"
        );
        assert_eq!(
            on_cpus(slots(1), 1, Some(194.0), 110.0).ideal_response_time,
            Nanos::from_millis(10),
            "no less"
        );
        assert_eq!(on_cpus(slots(40), 40, Some(20_000.0), 990.0), slots(40), "one that waits");
        assert_eq!(on_cpus(slots(40), 40, None, 990.0), slots(40));
    }

    #[test]
    fn levels_agree_with_the_table() {
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
            let levels = levels_in_step(connections, slots, 1).unwrap();
            assert_levels(&levels, &expected, &format!("{connections} on {slots}"));
            let average = [(f64::from(connections) / f64::from(slots)).max(1.0), 1.0];
            assert_levels(
                &levels_on_average(connections, slots, 1).unwrap(),
                &[average.into()],
                "on average",
            );
        }
        let levels = levels_in_step(30, 20, 1).unwrap();
        let at = |share| quantile(&levels, share).unwrap();
        assert_eq!(
            [at(0.0), at(0.5), at(0.500_001), at(0.99)].map(|turns| turns as u32),
            [1, 1, 2, 2]
        );
        assert!(quantile(&levels, 1.0).is_err() && quantile(&[], 0.5).is_err());
        for of in [levels_in_step, levels_on_average] {
            assert!(of(0, 1, 1).is_err() && of(1, 0, 1).is_err() && of(1, 1, 0).is_err());
        }
    }

    #[test]
    fn one_request_in_ten_waits_for_all_other_turns() {
        for (connections, threads, first) in [
            (8, 5, 7.0),
            (10, 5, 11.0),
            (20, 5, 31.0),
            (30, 5, 51.0),
            (32, 5, 55.0),
            (40, 5, 71.0),
            (12, 2, 51.0),
        ] {
            let levels = levels_on_average(connections, threads, TURN).unwrap();
            assert_levels(
                &levels,
                &[(1.0, 0.9), (first, 0.1)],
                &format!("{connections} on {threads}"),
            );
        }
        // Puma 5.6.5, N = 12, c = 2, an app of 21.1 ms: p99 1081.7 ms.
        assert!((51.0 * 0.0211 / 1.0817 - 1.0f64).abs() < 0.01);
        // Fifteen on ten: five of ten turns begin at once, and five after a whole turn of the
        // others.
        for (connections, expected) in [
            (10, vec![(1.0, 1.0)]),
            (15, vec![(1.0, 0.9), (1.0, 0.05), (11.0, 0.05)]),
            (40, vec![(1.0, 0.9), (31.0, 0.1)]),
        ] {
            assert_levels(
                &levels_in_step(connections, 10, TURN).unwrap(),
                &expected,
                &connections.to_string(),
            );
        }
    }

    #[test]
    fn a_random_split_is_rarely_even() {
        // An even split of twenty is one chance in ninety-four: 20! / (5!)^4 / 4^20, by its
        // factors.
        let exact: f64 =
            (1..=20).map(|k| f64::from(k) / (f64::from((k - 1) % 5 + 1) * 4.0)).product();
        assert!(
            (none_above(20, 4, 5) / exact - 1.0).abs() < 1e-12 && (exact - 0.010_67).abs() < 1e-5
        );
        assert!(assigned_at_random(0, 1, 1).is_err() && assigned_at_random(1, 0, 1).is_err());
        assert!(assigned_at_random(1, 1, 0).is_err() && assigned_at_random(2001, 4, 5).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn every_order_has_the_mean_of_littles_law(connections in 1u32..500, slots in 1u32..50, turn in 1u32..20) {
            let little = (f64::from(connections) / f64::from(slots)).max(1.0);
            for of in [levels_in_step, levels_on_average] {
                let levels = of(connections, slots, turn).unwrap();
                let mean: f64 = levels.iter().map(|level| level.turns * level.share).sum();
                prop_assert!((mean / little - 1.0).abs() < 1e-12);
            }
        }

        #[test]
        fn the_fullest_worker_has_between_an_even_share_and_all(connections in 1u32..60, workers in 1u32..9, threads in 1u32..10) {
            let seen = assigned_at_random(connections, workers, threads).unwrap();
            prop_assert!((0.0..=1.0 + 1e-12).contains(&seen.rate));
            prop_assert!(seen.fullest >= f64::from(connections.div_ceil(workers)) - 1e-9);
            prop_assert!(seen.fullest <= f64::from(connections) + 1e-9);
        }
    }

    const DEMAND: WorkerDemand = WorkerDemand { io: 0.1, cpu: 0.02 };

    #[test]
    fn impossible_parameters_are_refused() {
        assert_eq!(machine_repair(0, 1, 1.0, 1.0), Err(QueueingError::None("connection")));
        assert_eq!(machine_repair(1, 0, 1.0, 1.0), Err(QueueingError::None("slot")));
        assert!(
            machine_repair(1, 1, f64::NAN, 1.0).is_err()
                && machine_repair(1, 1, 1.0, -1.0).is_err()
        );
        assert!(worker(0, 1, DEMAND, 0.0).is_err() && worker(1, 0, DEMAND, 0.0).is_err());
        assert!(worker(5001, 1, DEMAND, 0.0).is_err() && worker(1, 1, DEMAND, -1.0).is_err());
        assert!(
            worker(1, 1, WorkerDemand { io: -1.0, cpu: 1.0 }, 0.0).is_err()
                && worker(1, 1, WorkerDemand { io: 1.0, cpu: 0.0 }, 0.0).is_err()
                && highest_rate(0, DEMAND).is_err()
        );
    }

    #[test]
    fn more_threads_help_until_the_lock_is_full() {
        let rates: Vec<_> =
            (1..=40).map(|threads| saturated_rate(threads, DEMAND).unwrap()).collect();
        assert!(rates.windows(2).all(|pair| pair[0] < pair[1] + 1e-9));
        assert!((rates[0] - 1.0 / 0.12).abs() < 1e-12 && (rates[39] - 50.0).abs() < 1e-9);
        for (threads, rate) in (1..).zip(&rates) {
            assert!(*rate <= highest_rate(threads, DEMAND).unwrap() * (1.0 + 1e-12));
        }
        // An app that only computes does as much with one thread as with five.
        let computing = WorkerDemand { io: 0.0, cpu: 0.02 };
        for threads in [1, 5] {
            assert!((saturated_rate(threads, computing).unwrap() - 50.0).abs() < 1e-9);
            assert!((highest_rate(threads, computing).unwrap() - 50.0).abs() < 1e-9);
        }
        // Five threads: 41.7/s by the bound, 34.2/s where times scatter.
        assert!((highest_rate(5, DEMAND).unwrap() - 41.666_666_67).abs() < 1e-7);
    }

    proptest! {
        #[test]
        fn every_connection_waits_or_thinks_and_no_bound_is_exceeded(
            connections in 1u32..500, slots in 1u32..50, service in 0.001f64..10.0, think in 0.001f64..100.0
        ) {
            let means = machine_repair(connections, slots, service, think).unwrap();
            let n = f64::from(connections);
            let c = f64::from(slots);
            // Little's law for the whole cycle.
            prop_assert!((means.rate * (means.response + think) / n - 1.0).abs() < 1e-9);
            prop_assert!(means.rate <= f64::min(c / service, n / (think + service)) * (1.0 + 1e-9));
            prop_assert!(means.response >= f64::max(service, n * service / c - think) * (1.0 - 1e-9));
        }

        #[test]
        fn littles_law_holds_for_the_whole_cycle_of_a_worker(
            connections in 1u32..100, threads in 1u32..20, io in 0.001f64..1.0, cpu in 0.001f64..1.0, think in 0.001f64..10.0
        ) {
            let demand = WorkerDemand { io, cpu };
            let means = worker(connections, threads, demand, think).unwrap();
            prop_assert!((means.rate * (means.response + think) / f64::from(connections) - 1.0).abs() < 1e-9);
            prop_assert!(means.rate <= highest_rate(threads, demand).unwrap() * (1.0 + 1e-9));
        }
    }
}
