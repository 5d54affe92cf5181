//! Birth and death: the stationary distribution of a queue that goes up and down by one.

/// The probabilities of the states 0, 1, …, where `births_over_deaths` are `λ₀/μ₁, λ₁/μ₂, …`:
/// `p(n) ∝ Π λ(j-1)/μ(j)` (Feller, Probability Theory I, XVII.5). In logarithms, since the products leave the range of an
/// f64 long before their shares do.
pub(crate) fn distribution(births_over_deaths: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut logs = vec![0.0f64];
    let mut log = 0.0;
    for ratio in births_over_deaths {
        log += ratio.ln();
        logs.push(log);
    }
    let highest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logs.iter().map(|log| (log - highest).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}
