//! How far a quantile of a sample may be from the true one: the ranks of order statistics that hold it with 95 %.
//!
//! Of `n` independent times, the number at or below the true quantile `p` is binomial, so the `l`-th and `u`-th smallest hold it
//! with probability `F(u-1) - F(l-1)`; no law of the times is assumed (David, Nagaraja: Order Statistics, section 7.1). Times of
//! one run are not independent: `n` of them are worth `n / inflation` ([`crate::statistics`]).

/// What is left outside of an interval on each side.
const EACH_SIDE: f64 = 0.025;

/// The ranks (1-based) of the times between which the true quantile is, with 95 %; `None` where the sample has no such time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuantileRanks {
    /// Of the lower end.
    pub low: Option<u64>,
    /// Of the upper end.
    pub high: Option<u64>,
}

/// The ranks for the quantile `p` (0 to 1, exclusive) of `n` times that are worth `n / inflation` independent ones
/// (`inflation` ≥ 1): the highest `l` with `F(l-1) ≤ 2.5 %` and the lowest `u` with `F(u-1) ≥ 97.5 %`, F the binomial distribution.
pub fn ranks(p: f64, n: u64, inflation: f64) -> QuantileRanks {
    let worth = (n as f64 / inflation.max(1.0)).floor() as u64;
    if worth == 0 || !(0.0 < p && p < 1.0) {
        return QuantileRanks { low: None, high: None };
    }
    let (first, weights) = binomial(p, worth);
    let distribution: Vec<f64> = weights
        .iter()
        .scan(0.0, |below, weight| {
            *below += weight;
            Some(*below)
        })
        .collect();
    // (Where the weights begin above 0, all that was left out below is nothing.)
    let low = first + distribution.partition_point(|f| *f <= EACH_SIDE) as u64;
    let high = first + distribution.partition_point(|f| *f < 1.0 - EACH_SIDE) as u64 + 1;
    // A rank among those they are worth, as a rank among all.
    let scale = n as f64 / worth as f64;
    let scaled = |rank: u64| rank as f64 * scale;
    QuantileRanks {
        low: (low > 0).then(|| (scaled(low).floor() as u64).max(1)),
        high: (high <= worth).then(|| (scaled(high).ceil() as u64).min(n)),
    }
}

/// The fewest independent times of which one is above the quantile `p` with 97.5 %, so that its interval has an upper end.
pub(crate) fn fewest_for_both_ends(p: f64) -> f64 {
    (EACH_SIDE.ln() / p.ln()).ceil()
}

/// The binomial probabilities that are not nothing, and the count that the first of them is of.
///
/// By the recurrence `P(k+1) / P(k) = (n-k)/(k+1) · p/(1-p)` from the mode outwards, made to sum to one: exact to rounding
/// for any `n`, in `O(√n)`.
pub fn binomial(p: f64, n: u64) -> (u64, Vec<f64>) {
    const NOTHING: f64 = 1e-20;
    let odds = p / (1.0 - p);
    let mode = (((n + 1) as f64 * p).floor() as u64).min(n);
    let mut down = Vec::new();
    let (mut weight, mut k) = (1.0, mode);
    while k > 0 && weight > NOTHING {
        weight *= k as f64 / ((n - k + 1) as f64 * odds);
        k -= 1;
        down.push(weight);
    }
    let first = k;
    down.reverse();
    let mut weights = down;
    weights.push(1.0);
    (weight, k) = (1.0, mode);
    while k < n && weight > NOTHING {
        weight *= (n - k) as f64 / (k + 1) as f64 * odds;
        k += 1;
        weights.push(weight);
    }
    let sum: f64 = weights.iter().sum();
    for weight in &mut weights {
        *weight /= sum;
    }
    (first, weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(p: f64, n: u64) -> (Option<u64>, Option<u64>) {
        let QuantileRanks { low, high } = ranks(p, n, 1.0);
        (low, high)
    }

    /// P(l ≤ B < u) for the binomial B.
    fn coverage(p: f64, n: u64, l: u64, u: u64) -> f64 {
        let (first, weights) = binomial(p, n);
        (l..u).map(|k| k.checked_sub(first).and_then(|at| weights.get(at as usize)).unwrap_or(&0.0)).sum()
    }

    #[test]
    fn ranks_are_those_of_the_table() {
        let table = [
            (0.5, 100, 40, Some(61), 0.96480),
            (0.5, 1000, 469, Some(532), 0.95371),
            (0.9, 100, 84, Some(96), 0.95569),
            (0.9, 1000, 881, Some(919), 0.95491),
            (0.99, 300, 293, None, 0.98853),
            (0.99, 1000, 983, Some(997), 0.97609),
            (0.99, 10_000, 9880, Some(9920), 0.95575),
            (0.999, 1000, 997, None, 0.98107),
            (0.999, 10_000, 9983, Some(9997), 0.97546),
            (0.999, 100_000, 99_880, Some(99_920), 0.95479),
        ];
        for (p, n, low, high, covered) in table {
            assert_eq!(of(p, n), (Some(low), high), "p {p} n {n}");
            let seen = coverage(p, n, low, high.unwrap_or(n + 1));
            assert!((seen - covered).abs() < 5e-6, "p {p} n {n}: {seen}");
        }
        // 1.96 √(n/4) on each side.
        assert_eq!(of(0.5, 100_000_000), (Some(50_000_000 - 9800), Some(50_000_000 + 9801)));
        assert_eq!(of(0.5, 0), (None, None));
    }

    #[test]
    fn an_upper_end_needs_so_many_times() {
        // p^n ≤ 2.5 %.
        for (p, least) in [(0.9, 36), (0.95, 72), (0.99, 368), (0.995, 736), (0.999, 3688), (0.9999, 36_887)] {
            assert_eq!((of(p, least - 1).1.is_some(), of(p, least).1.is_some()), (false, true), "p {p}");
        }
    }

    #[test]
    fn times_that_hang_together_are_worth_less() {
        let (narrow, wide) = (ranks(0.9, 10_000, 1.0), ranks(0.9, 10_000, 10.0));
        assert!(wide.low < narrow.low && wide.high > narrow.high);
        // As 1000 independent ones, each ten times.
        assert_eq!((wide.low, wide.high), (Some(8810), Some(9190)));
        assert_eq!(ranks(0.99, 1000, 10.0).high, None);
    }
}
