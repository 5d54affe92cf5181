//! Closed loops without think time: `N` connections, `c` slots, service time `s`. For any law of service and any discipline that
//! leaves no slot idle while a request waits, Little's law gives `X = min(N, c) / s` and a mean response time of
//! `s · max(1, N / c)`, exactly (Denning and Buzen, "The operational analysis of queueing network models", Computing Surveys
//! 10(3), 1978). What differs is who waits.

use model::{Forecast, Nanos};

use crate::QueueingError;
use crate::error::{at_most, share, some};

/// The forecast of one run: `c / s`, and the mean response time, which is everybody's where all wait their turn in one line. `None`
/// for a service time of zero, of which theory has nothing to say.
pub fn forecast(connections: u32, slots: u32, service_time: Nanos) -> Option<Forecast> {
    let service = service_time.as_secs_f64();
    let turns = (f64::from(connections) / f64::from(slots)).max(1.0);
    (service_time > Nanos::ZERO && slots > 0).then(|| Forecast {
        service_time,
        maximum_rate: f64::from(slots) / service,
        ideal_response_time: Nanos::from_secs_f64(service * turns),
    })
}

/// The same of a run whose CPUs allow `cpu_rate` requests per second at the most: where that is less than what the slots allow, the
/// app computes, and first come, first served is connections / throughput (Little's law), for its slots share what they compute with.
pub fn on_cpus(slots: Forecast, connections: u32, cpu_rate: Option<f64>, throughput: f64) -> Forecast {
    match cpu_rate.filter(|rate| *rate < slots.maximum_rate && throughput > 0.0) {
        None => slots,
        Some(rate) => Forecast {
            maximum_rate: rate,
            ideal_response_time: slots.service_time.max(Nanos::from_secs_f64(f64::from(connections) / throughput)),
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

/// The response times with constant service on `slots` slots of one line, each of which goes on with its connection for `turn`
/// requests while others wait. With `N = q·c + r` connections the first requests of `(c - r)/c` of the turns wait for `q - 1` whole
/// turns and those of `r/c` for `q`, as all turns end at once; the other requests wait for nobody. With a turn of 1 it is D//c: `q`
/// service times or `q + 1`. Ascending. Where two levels meet a percentile is ambiguous: p50 of half and half is either.
///
/// # Errors
/// Without a connection, slot, or request in a turn.
pub fn levels_in_step(connections: u32, slots: u32, turn: u32) -> Result<Vec<ResponseLevel>, QueueingError> {
    let (n, c, length) = checked(connections, slots, turn)?;
    if n <= c {
        return Ok(vec![ResponseLevel { turns: 1.0, share: 1.0 }]);
    }
    let later = (n % c) / c;
    let first = |whole: f64, share: f64| ResponseLevel { turns: length * (whole - 1.0) + 1.0, share: share / length };
    let others = ResponseLevel { turns: 1.0, share: 1.0 - 1.0 / length };
    let all = [others, first((n / c).floor(), 1.0 - later), first((n / c).floor() + 1.0, later)];
    Ok(all.into_iter().filter(|level| level.share > 0.0).collect())
}

/// As [`levels_in_step`], where the turns end at other times: the first of each waits for every other turn, `L·(n/t - 1) + 1` with
/// turns of `L`. It has the same mean.
///
/// # Errors
/// As [`levels_in_step`].
pub fn levels_on_average(connections: u32, slots: u32, turn: u32) -> Result<Vec<ResponseLevel>, QueueingError> {
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
        [some("connection", connections)?, some("slot", slots)?, some("request in a turn", turn)?].map(f64::from);
    Ok((n, c, length))
}

/// The quantile of some levels in ascending order, in service times: the first that at least `at` of the requests do not exceed.
///
/// # Errors
/// Where `at` is not in 0 to 1, or there is no level.
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

/// `connections` dealt to `workers` as evenly as can be.
pub fn dealt_evenly(connections: u32, workers: u32) -> Vec<u32> {
    (0..workers).map(|worker| connections / workers + u32::from(worker < connections % workers)).collect()
}

/// The most connections that are dealt at random: the sums grow with their square.
const MOST: u32 = 2000;

/// What chance does to a closed loop whose connections each stay with one of some workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomAssignment {
    /// Expected rate / the rate with all slots busy: `w·E[min(Bin(N, 1/w), t)] / (w·t)`.
    pub rate: f64,
    /// Expected number of connections of the fullest worker; the slowest percentiles are its, and so is the end of a run
    /// of a fixed count.
    pub fullest: f64,
}

/// `connections` that each go to one of `workers` workers of `threads` threads by chance. The numbers are multinomial (Feller,
/// Probability Theory I, VI.9); the fullest by summing over the workers one after the other, in probabilities, so that no factorial
/// is computed.
///
/// # Errors
/// Without a connection, worker or thread, with more than 2000 connections or 1000 workers.
pub fn assigned_at_random(connections: u32, workers: u32, threads: u32) -> Result<RandomAssignment, QueueingError> {
    at_most("connections", some("connection", connections)?, MOST)?;
    at_most("workers", some("worker", workers)?, 1000)?;
    some("thread", threads)?;
    let one = binomial(connections, 1.0 / f64::from(workers));
    let busy: f64 = (0u32..).zip(&one).map(|(n, p)| f64::from(n.min(threads)) * p).sum();
    // E[max] = Σ P(max > m); certain below the even share, and at last impossible.
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

/// P(0), P(1), … of a binomial law, in logarithms.
fn binomial(n: u32, p: f64) -> Vec<f64> {
    if p >= 1.0 {
        let mut all = vec![0.0; n as usize + 1];
        all[n as usize] = 1.0;
        return all;
    }
    let (log_p, log_q) = (p.ln(), (-p).ln_1p());
    let mut log_choose = 0.0;
    (0..=n)
        .map(|k| {
            if k > 0 {
                log_choose += (f64::from(n - k + 1) / f64::from(k)).ln();
            }
            (log_choose + f64::from(k) * log_p + f64::from(n - k) * log_q).exp()
        })
        .collect()
}

/// Probability that no worker has more than `most`: worker after worker takes a binomial part of what is left, and
/// `left[r]` is the probability that `r` are left with nobody above `most` so far.
fn none_above(connections: u32, workers: u32, most: u32) -> f64 {
    let mut left = vec![0.0; connections as usize + 1];
    left[connections as usize] = 1.0;
    for remaining in (1..=workers).rev() {
        let mut next = vec![0.0; connections as usize + 1];
        for (rest, probability) in (0u32..).zip(&left) {
            // Those after this worker can take at most `most` each.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::puma::TURN;
    use proptest::prelude::*;

    fn mean(levels: &[ResponseLevel]) -> f64 {
        levels.iter().map(|level| level.turns * level.share).sum()
    }

    fn assert_levels(levels: &[ResponseLevel], expected: &[(f64, f64)], what: &str) {
        assert_eq!(levels.len(), expected.len(), "{what}: {levels:?}");
        for (level, (turns, share)) in levels.iter().zip(expected) {
            assert!((level.turns - turns).abs() + (level.share - share).abs() < 1e-12, "{what}: {levels:?}");
        }
    }

    #[test]
    fn everybody_waits_as_often_as_there_are_turns() {
        for (n, ms) in [(10, 200), (20, 200), (30, 300), (40, 400), (60, 600), (80, 800)] {
            let forecast = forecast(n, 20, Nanos::from_millis(200)).unwrap();
            assert_eq!(forecast.ideal_response_time, Nanos::from_millis(ms));
            assert_eq!(forecast.maximum_rate.to_bits(), 100.0f64.to_bits(), "twenty slots of 200 ms");
        }
        assert_eq!(forecast(1, 1, Nanos::ZERO), None, "an app that takes no time");
    }

    #[test]
    fn an_app_that_computes_is_limited_by_its_cpus() {
        // 10 ms of Ruby under two workers of five threads, on two CPUs.
        let slots = |n| forecast(n, 10, Nanos::from_millis(10)).unwrap();
        let on = on_cpus(slots(40), 40, Some(194.0), 178.0);
        assert!((on.maximum_rate - 194.0).abs() < 1e-9 && on.ideal_response_time.0 / 1_000_000 == 224, "{on:?}");
        assert_eq!(on_cpus(slots(1), 1, Some(194.0), 110.0).ideal_response_time, Nanos::from_millis(10), "no less");
        assert_eq!(on_cpus(slots(40), 40, Some(20_000.0), 990.0), slots(40), "one that waits");
        assert_eq!(on_cpus(slots(40), 40, None, 990.0), slots(40));
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
            let levels = levels_in_step(connections, slots, 1).unwrap();
            assert_levels(&levels, &expected, &format!("{connections} on {slots}"));
            let average = [(f64::from(connections) / f64::from(slots)).max(1.0), 1.0];
            assert_levels(&levels_on_average(connections, slots, 1).unwrap(), &[average.into()], "on average");
        }
        let levels = levels_in_step(30, 20, 1).unwrap();
        let at = |share| quantile(&levels, share).unwrap();
        assert_eq!([at(0.0), at(0.5), at(0.500_001), at(0.99)].map(|turns| turns as u32), [1, 1, 2, 2]);
        assert!(quantile(&levels, 1.0).is_err() && quantile(&[], 0.5).is_err());
        for of in [levels_in_step, levels_on_average] {
            assert!(of(0, 1, 1).is_err() && of(1, 0, 1).is_err() && of(1, 1, 0).is_err());
        }
    }

    #[test]
    fn one_in_ten_waits_for_the_turns_of_all() {
        for (connections, threads, first) in
            [(8, 5, 7.0), (10, 5, 11.0), (20, 5, 31.0), (30, 5, 51.0), (32, 5, 55.0), (40, 5, 71.0), (12, 2, 51.0)]
        {
            let levels = levels_on_average(connections, threads, TURN).unwrap();
            assert_levels(&levels, &[(1.0, 0.9), (first, 0.1)], &format!("{connections} on {threads}"));
        }
        // Puma 5.6.5, N = 12, c = 2, an app of 21.1 ms: p99 1081.7 ms.
        assert!((51.0 * 0.0211 / 1.0817 - 1.0f64).abs() < 0.01);
        // Fifteen on ten: five of ten turns begin at once, and five after a whole turn of the others.
        for (connections, expected) in [
            (10, vec![(1.0, 1.0)]),
            (15, vec![(1.0, 0.9), (1.0, 0.05), (11.0, 0.05)]),
            (40, vec![(1.0, 0.9), (31.0, 0.1)]),
        ] {
            assert_levels(&levels_in_step(connections, 10, TURN).unwrap(), &expected, &connections.to_string());
        }
    }

    #[test]
    fn an_even_split_by_chance_is_rare() {
        // An even split of twenty is one chance in ninety-four: 20! / (5!)^4 / 4^20, by its factors.
        let exact: f64 = (1..=20).map(|k| f64::from(k) / (f64::from((k - 1) % 5 + 1) * 4.0)).product();
        assert!((none_above(20, 4, 5) / exact - 1.0).abs() < 1e-12 && (exact - 0.010_67).abs() < 1e-5);
        assert!(assigned_at_random(0, 1, 1).is_err() && assigned_at_random(1, 0, 1).is_err());
        assert!(assigned_at_random(1, 1, 0).is_err() && assigned_at_random(2001, 4, 5).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn every_order_has_the_mean_of_littles_law(connections in 1u32..500, slots in 1u32..50, turn in 1u32..20) {
            let little = (f64::from(connections) / f64::from(slots)).max(1.0);
            for of in [levels_in_step, levels_on_average] {
                prop_assert!((mean(&of(connections, slots, turn).unwrap()) / little - 1.0).abs() < 1e-12);
            }
        }

        #[test]
        fn the_fullest_is_between_even_and_all(connections in 1u32..60, workers in 1u32..9, threads in 1u32..10) {
            let seen = assigned_at_random(connections, workers, threads).unwrap();
            prop_assert!((0.0..=1.0 + 1e-12).contains(&seen.rate));
            prop_assert!(seen.fullest >= f64::from(connections.div_ceil(workers)) - 1e-9);
            prop_assert!(seen.fullest <= f64::from(connections) + 1e-9);
        }
    }
}
