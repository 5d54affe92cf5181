//! Poisson arrivals, constant service, `c` slots, first come first served: M/D/c, exactly. The right expectation for an
//! open loop against an app that sleeps.
//!
//! Source: Crommelin, "Delay probability formulae when the holding times are constant", P.O. Electrical Engineers' Journal
//! 25 (1932) 41-50; the waiting times by Franx, "A simple solution for the M/D/c waiting time distribution", Operations
//! Research Letters 29 (2001) 221-229, whose sums have positive terms only. Valid for ρ < 1 and up to [`MOST_SLOTS`]
//! slots; the tables are met to 1e-10.

mod states;

use self::states::States;
use crate::{Invalid, Load, check, erlang, poisson, search};

/// The most slots: beyond, the linear equations take seconds.
pub const MOST_SLOTS: u32 = 256;

/// The steady state of an M/D/c queue.
#[derive(Clone, Debug)]
pub struct Mdc {
    load: Load,
    /// Of the number in the system.
    states: States,
    /// Mean wait of M/M/c, above which that of M/D/c never is.
    longest: f64,
}

impl Mdc {
    /// Solves for the steady state: linear equations, some milliseconds.
    ///
    /// # Errors
    /// Where there is no steady state, or there are more than [`MOST_SLOTS`] slots.
    pub fn new(load: Load) -> Result<Mdc, Invalid> {
        let load = load.steady()?;
        check::at_most("slots", load.slots(), MOST_SLOTS)?;
        let longest = erlang::wait(load)?.mean_wait();
        Ok(Mdc { load, states: States::solve(load.slots() as usize, load.work())?, longest })
    }

    /// The load that it is the answer to.
    pub fn load(&self) -> Load {
        self.load
    }

    /// Probability of `count` in the system, waiting and in service.
    pub fn probability(&self, count: usize) -> f64 {
        // So low a probability may be below the rounding of the others.
        self.states.probability(count).max(0.0)
    }

    /// The share that waits at all.
    pub fn delayed(&self) -> f64 {
        self.wait_above(0.0)
    }

    /// Mean wait of all: the mean number waiting / λ (Little).
    pub fn mean_wait(&self) -> f64 {
        // At hardly any load the quotient of two roundings; an exponential service waits longer in any case.
        (self.states.mean_waiting() / self.load.rate()).clamp(0.0, self.longest)
    }

    /// Mean response time: wait and service.
    pub fn mean_response(&self) -> f64 {
        self.mean_wait() + self.load.service()
    }

    /// The share that waits for longer than `x`. For `(k - 1)·s ≤ x < k·s`
    /// `P(W ≤ x) = Σ Q(kc - 1 - j) · e^(-y) y^j / j!` over `j < kc`, with `y = λ·(k·s - x)` and `Q(j) = P(N ≤ c + j)`;
    /// summed here as its complement, so that small shares keep their digits.
    pub fn wait_above(&self, x: f64) -> f64 {
        if x < 0.0 {
            return 1.0;
        }
        let turns = x / self.load.service();
        let k = turns.floor() + 1.0;
        let y = self.load.work() * (k - turns);
        let slots = self.load.slots() as usize;
        let last = k * slots as f64 - 1.0;
        // Beyond these the Poisson terms are nothing: y is at most the offered work.
        let terms = (y + 12.0 * y.sqrt() + 40.0).min(last + 1.0);
        let weights = poisson::probabilities(y, terms as usize);
        let later: f64 = 1.0 - weights.iter().sum::<f64>();
        let longer: f64 = (0u32..)
            .zip(&weights)
            .map(|(j, weight)| weight * self.states.above(slots as f64 + last - f64::from(j)))
            .sum();
        // Where all terms of the sum are there, what is left of the Poisson law counts in full.
        let all = longer + if terms > last { later.max(0.0) } else { 0.0 };
        // At low loads the tail's probabilities are below the rounding of the others.
        all.clamp(0.0, 1.0)
    }

    /// The quantile of the wait.
    ///
    /// # Errors
    /// Where `share` is not in 0 to 1.
    pub fn wait_quantile(&self, share: f64) -> Result<f64, Invalid> {
        Ok(search::quantile(|x| self.wait_above(x), check::share(share)?, self.load.service()))
    }

    /// The quantile of the response time: the wait's and the service time.
    ///
    /// # Errors
    /// As [`Mdc::wait_quantile`].
    pub fn response_quantile(&self, share: f64) -> Result<f64, Invalid> {
        Ok(self.wait_quantile(share)? + self.load.service())
    }
}

#[cfg(test)]
mod tests;
