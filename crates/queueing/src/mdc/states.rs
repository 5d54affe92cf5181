//! How many are in an M/D/c system: Crommelin's equations with a geometric tail.
//!
//! `p(j) = a(j)·Σ p(k), k ≤ c, + Σ p(k)·a(j - k + c), c < k ≤ c + j`, where `a` is the Poisson law of the arrivals in one
//! service time. Far out `p(n + 1) / p(n)` is `1/τ`, with `τ > 1` the root of `λs·(τ - 1) = c·ln τ` (Tijms, A First Course
//! in Stochastic Models, 9.6), so that finitely many unknowns are enough. How many is checked, not guessed: the equation
//! of the first state of the tail must hold too.

use crate::{Invalid, linear, poisson, search};

/// How far off the equations of the tail may be, which nobody solved for.
const RESIDUE: f64 = 1e-13;

/// Why there may be no answer after all.
const UNBALANCED: Invalid = Invalid::Undetermined("the balance equations, so near to a full load,");

/// The most states before the tail.
const MOST: usize = 1400;

/// Probabilities of 0, 1, … in the system.
#[derive(Clone, Debug)]
pub(super) struct States {
    slots: usize,
    /// Of the states before the tail, and of the tail's first.
    probabilities: Vec<f64>,
    /// `above[n]`: the probability of more than `n`.
    above: Vec<f64>,
    /// Of two neighbours of the tail, the farther / the nearer: `1/τ`.
    ratio: f64,
}

impl States {
    /// For `work` below `slots`.
    pub(super) fn solve(slots: usize, work: f64) -> Result<States, Invalid> {
        let c = slots as f64;
        // λs·(τ - 1) - c·ln τ falls to 1/ρ and rises from there.
        let rises = |tau: f64| work * (tau - 1.0) > c * tau.ln();
        let lowest = c / work;
        let mut high = 2.0 * lowest;
        while !rises(high) {
            high *= 2.0;
        }
        let tau = search::first(lowest, high, rises);
        let ratio = 1.0 / tau;
        let mut more = 40.max((36.0 / tau.ln().max(0.6)) as usize);
        loop {
            let states = States::with_tail_at(slots, work, ratio, slots + more).ok_or(UNBALANCED)?;
            if states.residue(work) <= RESIDUE {
                return Ok(states);
            }
            more *= 2;
            if slots + more > MOST {
                return Err(UNBALANCED);
            }
        }
    }

    fn with_tail_at(slots: usize, work: f64, ratio: f64, tail: usize) -> Option<States> {
        let arrivals = poisson::probabilities(work, tail + slots + 1);
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
        // The probabilities' sum in place of the last equation, which the others imply.
        matrix[tail].fill(1.0);
        matrix[tail][tail] = 1.0 / (1.0 - ratio);
        let mut right = vec![0.0; tail + 1];
        right[tail] = 1.0;
        let probabilities = linear::solve(matrix, right)?;
        let mut above = vec![0.0; tail + 1];
        above[tail] = probabilities[tail] * ratio / (1.0 - ratio);
        for n in (0..tail).rev() {
            above[n] = above[n + 1] + probabilities[n + 1];
        }
        Some(States { slots, probabilities, above, ratio })
    }

    /// By how much the first states of the tail miss their own equations.
    fn residue(&self, work: f64) -> f64 {
        let tail = self.probabilities.len() - 1;
        let arrivals = poisson::probabilities(work, tail + 2 * self.slots + 2);
        let few: f64 = self.probabilities[..=self.slots].iter().sum();
        (tail..=tail + 1)
            .map(|j| {
                let more: f64 =
                    (self.slots + 1..=self.slots + j).map(|k| self.probability(k) * arrivals[j + self.slots - k]).sum();
                (arrivals[j] * few + more - self.probability(j)).abs()
            })
            .fold(0.0, f64::max)
    }

    pub(super) fn probability(&self, count: usize) -> f64 {
        let tail = self.probabilities.len() - 1;
        if count <= tail {
            self.probabilities[count]
        } else {
            self.probabilities[tail] * self.ratio.powf((count - tail) as f64)
        }
    }

    /// Probability of more than `count`, a whole number.
    pub(super) fn above(&self, count: f64) -> f64 {
        let tail = self.above.len() - 1;
        if count <= tail as f64 {
            self.above[count as usize]
        } else {
            self.above[tail] * self.ratio.powf(count - tail as f64)
        }
    }

    /// Mean number waiting.
    pub(super) fn mean_waiting(&self) -> f64 {
        // Σ P(N > n) over n ≥ c, the tail's part as its geometric sum.
        let tail = self.above.len() - 1;
        let near: f64 = self.above[self.slots..tail].iter().sum();
        near + self.above[tail] / (1.0 - self.ratio)
    }
}
