//! Poisson probabilities.

/// P(N = 0), P(N = 1), … for the mean `mean`, as many as `count`, in logarithms, so that nothing is lost to
/// underflow that later terms need. Their relative error is some 1e-14.
pub(crate) fn probabilities(mean: f64, count: usize) -> Vec<f64> {
    let mut log = -mean;
    (0..count)
        .map(|j| {
            if j > 0 {
                log += (mean / j as f64).ln();
            }
            log.exp()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_sum_to_one() {
        for mean in [0.01, 1.0, 18.0, 200.0] {
            let sum: f64 = probabilities(mean, 500).iter().sum();
            assert!((sum - 1.0).abs() < 1e-12, "{mean}: {sum}");
        }
        assert!((probabilities(2.0, 3)[2] - 2.0 * (-2.0f64).exp()).abs() < 1e-15);
        assert_eq!(probabilities(0.0, 2), [1.0, 0.0]);
    }
}
