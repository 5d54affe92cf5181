//! M/D/c, exactly: Poisson arrivals, constant service, `c` slots, first come, first served. The
//! model of an open loop against an app that sleeps.
//!
//! Source: Crommelin, "Delay probability formulae when the holding times are constant", P.O.
//! Electrical Engineers' Journal 25 (1932) 41-50; the waiting times by Franx, "A simple solution
//! for the M/D/c waiting time distribution", Operations Research Letters 29 (2001) 221-229, whose
//! sums have positive terms only. Valid for ρ < 1 and up to [`MOST_SLOTS`] slots; agrees with the
//! published tables to 1e-10.

use crate::numeric::{QueueingError, at_most, first_where, poisson, solve_linear};
use crate::open_loop::{ErlangQueue, OfferedLoad, SteadyQueue};

/// The most slots: with more, the linear equations take seconds.
pub const MOST_SLOTS: u32 = 256;

/// The steady state of an M/D/c queue.
#[derive(Clone, Debug)]
pub struct ConstantServiceQueue {
    load: OfferedLoad,
    sizes: SystemSizes,
    /// The mean wait of M/M/c, an upper bound for that of M/D/c.
    mean_bound: f64,
}

impl ConstantServiceQueue {
    /// Solves for the steady state: linear equations, some milliseconds.
    ///
    /// # Errors
    /// If there is no steady state, or there are more than [`MOST_SLOTS`] slots.
    pub fn new(load: OfferedLoad) -> Result<ConstantServiceQueue, QueueingError> {
        at_most("slots", load.slots(), MOST_SLOTS)?;
        let mean_bound = ErlangQueue::new(load)?.mean_wait();
        Ok(ConstantServiceQueue {
            load,
            sizes: SystemSizes::solve(load.slots() as usize, load.work())?,
            mean_bound,
        })
    }
}

impl SteadyQueue for ConstantServiceQueue {
    fn load(&self) -> OfferedLoad {
        self.load
    }

    /// The mean number waiting / λ (Little).
    fn mean_wait(&self) -> f64 {
        // At a tiny load this is the quotient of two rounding errors; M/M/c bounds it.
        (self.sizes.mean_waiting() / self.load.rate()).clamp(0.0, self.mean_bound)
    }

    /// For `(k - 1)·s ≤ x < k·s` `P(W ≤ x) = Σ Q(kc - 1 - j) · e^(-y) y^j / j!` over `j < kc`, with
    /// `y = λ·(k·s - x)` and `Q(j) = P(N ≤ c + j)`; summed here as its complement, so that small
    /// shares keep their digits.
    fn wait_above(&self, x: f64) -> f64 {
        if x < 0.0 {
            return 1.0;
        }
        let turns = x / self.load.service();
        let k = turns.floor() + 1.0;
        let y = self.load.work() * (k - turns);
        let slots = self.load.slots() as usize;
        let last = k * slots as f64 - 1.0;
        // Later Poisson terms are 0: y is at most the offered work.
        let terms = (y + 12.0 * y.sqrt() + 40.0).min(last + 1.0);
        let weights = poisson(y, terms as usize);
        let later: f64 = 1.0 - weights.iter().sum::<f64>();
        let longer: f64 = (0u32..)
            .zip(&weights)
            .map(|(j, weight)| weight * self.sizes.above(slots as f64 + last - f64::from(j)))
            .sum();
        // If the sum has all its terms, the rest of the Poisson law counts in full.
        let all = longer + if terms > last { later.max(0.0) } else { 0.0 };
        // At low loads the tail's probabilities are smaller than the rounding errors of the others.
        all.clamp(0.0, 1.0)
    }

    fn response_above(&self, x: f64) -> f64 {
        self.wait_above(x - self.load.service())
    }
}

/// The largest permitted error of the tail's equations, which were not solved for.
const RESIDUE: f64 = 1e-13;

/// The error if the equations cannot be solved.
const UNBALANCED: QueueingError =
    QueueingError::Undetermined("the balance equations, so near to a full load,");

/// The most states before the tail.
const MOST: usize = 1400;

/// Probabilities of 0, 1, … in the system, by Crommelin's equations with a geometric tail: `p(j) =
/// a(j)·Σ p(k), k ≤ c, + Σ p(k)·a(j - k + c), c < k ≤ c + j`, where `a` is the Poisson law of the
/// arrivals in one service time. Far out `p(n + 1) / p(n)` is `1/τ`, with `τ > 1` the root of
/// `λs·(τ - 1) = c·ln τ` (Tijms, A First Course in Stochastic Models, 9.6), so that finitely many
/// unknowns suffice. Their number is checked: the equation of the tail's first state must hold too.
#[derive(Clone, Debug)]
struct SystemSizes {
    slots: usize,
    /// Probabilities of the states before the tail and of the tail's first.
    probabilities: Vec<f64>,
    /// `above[n]`: the probability of more than `n`.
    above: Vec<f64>,
    /// `1/τ`, the ratio of each probability in the tail to the one before it.
    ratio: f64,
}

impl SystemSizes {
    /// Solves the equations for `work` below `slots`.
    fn solve(slots: usize, work: f64) -> Result<SystemSizes, QueueingError> {
        let c = slots as f64;
        // λs·(τ - 1) - c·ln τ falls to 1/ρ and rises from there.
        let rises = |tau: f64| work * (tau - 1.0) > c * tau.ln();
        let lowest = c / work;
        let mut high = 2.0 * lowest;
        while !rises(high) {
            high *= 2.0;
        }
        let tau = first_where(lowest, high, rises);
        let ratio = 1.0 / tau;
        let mut more = 40.max((36.0 / tau.ln().max(0.6)) as usize);
        loop {
            let states =
                SystemSizes::with_tail_at(slots, work, ratio, slots + more).ok_or(UNBALANCED)?;
            if states.residue(work) <= RESIDUE {
                return Ok(states);
            }
            more *= 2;
            if slots + more > MOST {
                return Err(UNBALANCED);
            }
        }
    }

    fn with_tail_at(slots: usize, work: f64, ratio: f64, tail: usize) -> Option<SystemSizes> {
        let arrivals = poisson(work, tail + slots + 1);
        let mut matrix = vec![vec![0.0; tail + 1]; tail + 1];
        for (j, row) in matrix.iter_mut().enumerate().take(tail) {
            for entry in row.iter_mut().take(slots + 1) {
                *entry += arrivals[j];
            }
            for k in slots + 1..=slots + j {
                let weight = arrivals[j + slots - k];
                if k <= tail {
                    row[k] += weight;
                } else {
                    row[tail] += weight * ratio.powf((k - tail) as f64);
                }
            }
            row[j] -= 1.0;
        }
        // The last equation follows from the others, so the sum of all probabilities replaces it.
        matrix[tail].fill(1.0);
        matrix[tail][tail] = 1.0 / (1.0 - ratio);
        let mut right = vec![0.0; tail + 1];
        right[tail] = 1.0;
        let probabilities = solve_linear(matrix, right)?;
        let mut above = vec![0.0; tail + 1];
        above[tail] = probabilities[tail] * ratio / (1.0 - ratio);
        for n in (0..tail).rev() {
            above[n] = above[n + 1] + probabilities[n + 1];
        }
        Some(SystemSizes { slots, probabilities, above, ratio })
    }

    /// The error of the equations of the tail's first states.
    fn residue(&self, work: f64) -> f64 {
        let tail = self.probabilities.len() - 1;
        let arrivals = poisson(work, tail + 2 * self.slots + 2);
        let few: f64 = self.probabilities[..=self.slots].iter().sum();
        (tail..=tail + 1)
            .map(|j| {
                let more: f64 = (self.slots + 1..=self.slots + j)
                    .map(|k| self.probability(k) * arrivals[j + self.slots - k])
                    .sum();
                (arrivals[j] * few + more - self.probability(j)).abs()
            })
            .fold(0.0, f64::max)
    }

    fn probability(&self, count: usize) -> f64 {
        let tail = self.probabilities.len() - 1;
        if count <= tail {
            self.probabilities[count]
        } else {
            self.probabilities[tail] * self.ratio.powf((count - tail) as f64)
        }
    }

    /// Probability of more than `count`, a whole number.
    fn above(&self, count: f64) -> f64 {
        let tail = self.above.len() - 1;
        if count <= tail as f64 {
            self.above[count as usize]
        } else {
            self.above[tail] * self.ratio.powf(count - tail as f64)
        }
    }

    /// Mean number waiting.
    fn mean_waiting(&self) -> f64 {
        // Σ P(N > n) over n ≥ c, the tail's part as its geometric sum.
        let tail = self.above.len() - 1;
        let near: f64 = self.above[self.slots..tail].iter().sum();
        near + self.above[tail] / (1.0 - self.ratio)
    }
}

#[cfg(test)]
mod tests;
