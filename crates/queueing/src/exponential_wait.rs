//! A wait that is nothing or exponential, with an exponential service after it: what M/M/c and D/M/c have in common.

use crate::{Invalid, check, search};

/// `P(W > x) = d · e^(-η·x)`, and a service time that is exponential and independent of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExponentialWait {
    /// `d`: the share that waits at all.
    pub delayed: f64,
    /// `η`: the rate at which the waits of those end.
    pub rate: f64,
    /// Mean service time.
    pub service: f64,
}

impl ExponentialWait {
    /// Mean wait of all, those who do not wait included: `d / η`.
    pub fn mean_wait(&self) -> f64 {
        self.delayed / self.rate
    }

    /// Mean response time: wait and service.
    pub fn mean_response(&self) -> f64 {
        self.mean_wait() + self.service
    }

    /// The share that waits for longer than `x`.
    pub fn wait_above(&self, x: f64) -> f64 {
        if x < 0.0 { 1.0 } else { self.delayed * (-self.rate * x).exp() }
    }

    /// The quantile of the wait: `ln(d / (1 - p)) / η`, or 0 where `p ≤ 1 - d`.
    ///
    /// # Errors
    /// Where `share` is not in 0 to 1.
    pub fn wait_quantile(&self, share: f64) -> Result<f64, Invalid> {
        let above = 1.0 - check::share(share)?;
        Ok(if self.delayed <= above { 0.0 } else { (self.delayed / above).ln() / self.rate })
    }

    /// The share whose response time is longer than `x`: `e^(-μx) + d·μ·(e^(-ηx) - e^(-μx)) / (μ - η)`, whose limit at
    /// `μ = η` is `e^(-μx)·(1 + d·μ·x)`.
    pub fn response_above(&self, x: f64) -> f64 {
        if x < 0.0 {
            return 1.0;
        }
        let mu = 1.0 / self.service;
        let difference = (mu - self.rate) * x;
        // (e^(difference) - 1) / difference, without its cancellation at 0 and its overflow far from it.
        let in_service = (-mu * x).exp();
        let waited = if difference.abs() < 1.0 {
            let part = if difference == 0.0 { 1.0 } else { difference.exp_m1() / difference };
            in_service * mu * x * part
        } else {
            mu * ((-self.rate * x).exp() - in_service) / (mu - self.rate)
        };
        (in_service + self.delayed * waited).min(1.0)
    }

    /// The quantile of the response time.
    ///
    /// # Errors
    /// Where `share` is not in 0 to 1.
    pub fn response_quantile(&self, share: f64) -> Result<f64, Invalid> {
        Ok(search::quantile(|x| self.response_above(x), check::share(share)?, self.service))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_formula_is_continuous_where_both_rates_are_one(
            delayed in 0.0f64..1.0, x in 0.0f64..30.0, off in -1e-9f64..1e-9
        ) {
            let at = |rate| ExponentialWait { delayed, rate, service: 1.0 }.response_above(x);
            let limit = (-x).exp() * (1.0 + delayed * x);
            prop_assert!((at(1.0 + off) - limit).abs() < 1e-8);
        }

        #[test]
        fn a_response_is_never_shorter_than_its_wait(delayed in 0.0f64..1.0, rate in 0.01f64..10.0, x in 0.0f64..100.0) {
            let wait = ExponentialWait { delayed, rate, service: 1.0 };
            let above = wait.response_above(x);
            prop_assert!((0.0..=1.0).contains(&above) && above >= wait.wait_above(x) - 1e-12);
        }
    }
}
