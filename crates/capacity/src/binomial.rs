//! The tails of the binomial distribution: how likely so few, or so many, late requests are.
//!
//! Terms are added from the count away from the mean, where each is smaller than the one before,
//! until they no longer matter. That takes a few standard deviations' worth of terms, about
//! 7·√(n·p), however many requests there are.

/// Terms below this share of their sum are left out.
const NEGLIGIBLE: f64 = 1e-13;
/// Up to this number logarithms of factorials are sums, above it Stirling's series.
const EXACT_FACTORIAL: u64 = 32;

/// The probability of at most `count` among `n` independent requests, each with probability `p`.
pub fn likely_at_most(count: u64, n: u64, p: f64) -> f64 {
    if count >= n {
        return 1.0;
    }
    if count as f64 > n as f64 * p {
        return 1.0 - sum_upwards(count + 1, n, p);
    }
    sum_downwards(count, n, p)
}

/// The probability of at least `count`.
pub fn likely_at_least(count: u64, n: u64, p: f64) -> f64 {
    if count == 0 {
        return 1.0;
    }
    if count > n {
        return 0.0;
    }
    if (count as f64) < n as f64 * p {
        return 1.0 - sum_downwards(count - 1, n, p);
    }
    sum_upwards(count, n, p)
}

/// The probability of at most `count`, which is not above the mean.
fn sum_downwards(count: u64, n: u64, p: f64) -> f64 {
    let odds = (1.0 - p) / p;
    add_terms(term(count, n, p), (1..=count).rev().map(|k| k as f64 / (n - k + 1) as f64 * odds))
}

/// The probability of at least `count`, which is not below the mean.
fn sum_upwards(count: u64, n: u64, p: f64) -> f64 {
    let odds = p / (1.0 - p);
    add_terms(term(count, n, p), (count..n).map(|k| (n - k) as f64 / (k + 1) as f64 * odds))
}

/// The sum of terms of which each is so many times the one before it.
fn add_terms(first: f64, ratios: impl Iterator<Item = f64>) -> f64 {
    let mut term = first;
    let mut sum = first;
    for ratio in ratios {
        #[cfg(test)]
        tests::count_a_term();
        term *= ratio;
        sum += term;
        if term <= sum * NEGLIGIBLE {
            break;
        }
    }
    sum.min(1.0)
}

/// The probability of exactly `count`.
fn term(count: u64, n: u64, p: f64) -> f64 {
    let ways = ln_factorial(n) - ln_factorial(count) - ln_factorial(n - count);
    (ways + count as f64 * p.ln() + (n - count) as f64 * (-p).ln_1p()).exp()
}

/// The logarithm of n!, by Stirling's series where n is large: the next term is below 1e-14 there.
fn ln_factorial(n: u64) -> f64 {
    if n <= EXACT_FACTORIAL {
        return (2..=n).map(|k| (k as f64).ln()).sum();
    }
    let n = n as f64;
    let square = n * n;
    let series =
        (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / 1680.0 / square) / square) / square) / n;
    (n + 0.5) * n.ln() - n + 0.5 * std::f64::consts::TAU.ln() + series
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static TERMS: Cell<u64> = const { Cell::new(0) };
    }

    pub(super) fn count_a_term() {
        TERMS.set(TERMS.get() + 1);
    }

    /// How many terms were added meanwhile.
    pub(crate) fn terms_of(work: impl FnOnce()) -> u64 {
        let before = TERMS.get();
        work();
        TERMS.get() - before
    }

    #[test]
    fn tails_of_the_binomial_distribution_are_exact() {
        // Of 10 throws of a coin: (1 + 10 + 45) / 1024, and (120 + 45 + 10 + 1) / 1024.
        assert!((likely_at_most(2, 10, 0.5) - 56.0 / 1024.0).abs() < 1e-12);
        assert!((likely_at_least(7, 10, 0.5) - 176.0 / 1024.0).abs() < 1e-12);
        assert!((likely_at_most(0, 1000, 0.01) - 0.99f64.powi(1000)).abs() < 1e-15);
        assert!(likely_at_most(5, 5, 0.1) >= 1.0 && likely_at_least(0, 5, 0.1) >= 1.0);
        assert!(likely_at_least(6, 5, 0.1) <= 0.0);
        // Both tails and the count between them are everything, also where terms are tiny.
        for (count, n, p) in [(99, 10_000, 0.01), (40, 100, 0.5), (4_999_000, 10_000_000, 0.5)] {
            let all = likely_at_most(count, n, p) + likely_at_least(count + 1, n, p);
            assert!((all - 1.0).abs() < 1e-9, "{all}");
        }
    }

    #[test]
    fn large_counts_are_near_the_normal_distribution_and_cost_few_terms() {
        // Two standard deviations of 1581 below the mean, and as many above it.
        let terms = terms_of(|| {
            let below = likely_at_most(4_996_838, 10_000_000, 0.5);
            let above = likely_at_least(5_003_162, 10_000_000, 0.5);
            assert!((below - 0.02275).abs() < 5e-5, "{below}");
            assert!((above - 0.02275).abs() < 5e-5, "{above}");
        });
        assert!(terms < 25_000, "{terms}");
    }
}
