//! Who gets which connection: `N` connections that each stay with one of `w` workers of `t` threads, chosen at random.
//!
//! Source: the numbers are multinomial (Feller, Probability Theory I, VI.9); the fullest by summing over the workers one
//! after the other, in probabilities, so that no factorial is computed.

use crate::{Invalid, check};

/// The most connections: the sums grow with their square.
const MOST: u32 = 2000;

/// What chance does to a closed loop without think time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assignment {
    /// Expected rate / the rate with all slots busy: `w·E[min(Bin(N, 1/w), t)] / (w·t)`.
    pub rate: f64,
    /// Expected number of connections of the fullest worker; the slowest percentiles are its, and so is the end of a run
    /// of a fixed count.
    pub fullest: f64,
    /// That / the even share `N/w`.
    pub excess: f64,
    /// Probability that all have the same number; 0 where `w` does not divide `N`.
    pub even: f64,
}

/// Random assignment of `connections` to `workers` of `threads` threads.
///
/// # Errors
/// Without a connection, worker or thread, with more than 2000 connections or 1000 workers.
pub fn random(connections: u32, workers: u32, threads: u32) -> Result<Assignment, Invalid> {
    check::some("connection", connections)?;
    check::at_most("connections", connections, MOST)?;
    check::some("worker", workers)?;
    check::at_most("workers", workers, 1000)?;
    check::some("thread", threads)?;
    let one = binomial(connections, 1.0 / f64::from(workers));
    let busy: f64 = (0u32..).zip(&one).map(|(n, p)| f64::from(n.min(threads)) * p).sum();
    let mean = f64::from(connections) / f64::from(workers);
    // E[max] = Σ P(max > m); certain below the even share, and at last impossible.
    let mut fullest = 0.0;
    let certain = connections.div_ceil(workers);
    for most in 0..connections {
        let more = if most < certain { 1.0 } else { 1.0 - none_above(connections, workers, most) };
        fullest += more;
        if more < 1e-13 {
            break;
        }
    }
    let even = if connections.is_multiple_of(workers) { none_above(connections, workers, certain) } else { 0.0 };
    Ok(Assignment { rate: busy / f64::from(threads), fullest, excess: fullest / mean, even })
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
    use proptest::prelude::*;

    #[test]
    fn random_assignment_is_the_table() {
        for (connections, workers, threads, rate, fullest, excess, even) in [
            (20, 4, 5, 0.848_252, 7.382_5, 1.476_5, 0.010_671),
            (30, 4, 5, 0.970_388, 10.399_4, 1.386_6, 0.0),
            (40, 4, 5, 0.995_618, 13.338_1, 1.333_8, 0.003_892_2),
            (80, 4, 5, 0.999_999, 24.688_6, 1.234_4, 0.001_397_8),
            (8, 2, 4, 0.863_281, 5.093_8, 1.273_4, 0.273_44),
            (16, 2, 5, 0.989_719, 9.571_0, 1.196_4, 0.196_38),
            (64, 2, 5, 1.0, 35.179_1, 1.099_3, 0.099_347),
        ] {
            let seen = random(connections, workers, threads).unwrap();
            let text = format!("{connections} on {workers} x {threads}: {seen:?}");
            assert!((seen.rate - rate).abs() < 6e-7, "{text}");
            assert!((seen.fullest - fullest).abs() < 6e-5 && (seen.excess - excess).abs() < 6e-5, "{text}");
            assert!((seen.even - even).abs() <= 6e-5 * even, "{text}");
        }
    }

    #[test]
    fn an_even_split_of_twenty_is_one_chance_in_ninety_four() {
        // 20! / (5!)^4 / 4^20, by its factors.
        let exact: f64 = (1..=20).map(|k| f64::from(k) / (f64::from((k - 1) % 5 + 1) * 4.0)).product();
        assert!((random(20, 4, 5).unwrap().even / exact - 1.0).abs() < 1e-12 && (exact - 0.010_67).abs() < 1e-5);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(random(0, 1, 1).is_err() && random(1, 0, 1).is_err() && random(1, 1, 0).is_err());
        assert!(random(2001, 4, 5).is_err());
        let one = random(7, 1, 5).unwrap();
        assert!((one.fullest - 7.0).abs() < 1e-12 && (one.even - 1.0).abs() < 1e-12 && (one.rate - 1.0).abs() < 1e-12);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn the_fullest_is_between_even_and_all(connections in 1u32..60, workers in 1u32..9, threads in 1u32..10) {
            let seen = random(connections, workers, threads).unwrap();
            prop_assert!((0.0..=1.0 + 1e-12).contains(&seen.rate) && (0.0..=1.0).contains(&seen.even));
            prop_assert!(seen.fullest >= f64::from(connections.div_ceil(workers)) - 1e-9);
            prop_assert!(seen.fullest <= f64::from(connections) + 1e-9);
        }
    }
}
