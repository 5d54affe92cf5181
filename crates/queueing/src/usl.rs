//! The Universal Scalability Law: how a rate grows with the load, and where it turns back.
//!
//! `X(N) = γN / (1 + α(N - 1) + βN(N - 1))`: γ the rate of one, α what they wait for each other (contention), β what they
//! have to tell each other (coherency). Source: Gunther, Guerrilla Capacity Planning (2007); the fit is by least squares on
//! `X` itself, with α, β, γ ≥ 0, as in S. Möding's R package `usl`. A description, no mechanism: only a β well above its
//! error together with a rate that falls says that a rate will turn back, and nothing follows for loads that were not
//! measured. Take six loads or more, from a quarter of the peak to twice as many.

mod fit;

pub use self::fit::fit;

/// The law's three numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usl {
    /// γ: rate at `N = 1`.
    pub gamma: f64,
    /// α: contention.
    pub alpha: f64,
    /// β: coherency.
    pub beta: f64,
}

impl Usl {
    /// `X(N)`.
    pub fn rate(&self, load: f64) -> f64 {
        self.gamma * load / self.denominator(load)
    }

    fn denominator(&self, load: f64) -> f64 {
        1.0 + self.alpha * (load - 1.0) + self.beta * load * (load - 1.0)
    }

    /// Where the rate is highest: `√((1 - α)/β)`. `None` where it never turns back, which is β = 0, or α ≥ 1.
    pub fn peak(&self) -> Option<f64> {
        let square = (1.0 - self.alpha) / self.beta;
        (square.is_finite() && square > 0.0).then(|| square.sqrt())
    }

    /// What the rate never exceeds where β = 0: `γ/α` (Amdahl). `None` where it turns back, or grows for ever.
    pub fn limit(&self) -> Option<f64> {
        (self.beta == 0.0 && self.alpha > 0.0).then(|| self.gamma / self.alpha)
    }
}

/// A fitted law.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The law.
    pub law: Usl,
    /// Standard errors of γ, α, β; `None` for one that lies on its bound of 0, or with only as many points as numbers.
    pub errors: [Option<f64>; 3],
    /// Measured - fitted, point by point.
    pub residuals: Vec<f64>,
}
