//! Which of several requests is the n-th: a pure function, so that a run can be repeated.

use serde::{Deserialize, Serialize};

use crate::pace::uniform;

/// The order in which a list of requests is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Order {
    /// One after the other, and again from the first.
    #[default]
    Sequential,
    /// Each drawn by chance, independent of the others.
    Random {
        /// Chooses the draws; the same seed gives the same order for ever.
        seed: u64,
    },
}

impl Order {
    /// The place, below `len`, of the `n`-th request.
    ///
    /// # Panics
    /// Where `len` is 0.
    #[inline]
    pub fn index(self, n: u64, len: usize) -> usize {
        match self {
            _ if len == 1 => 0,
            Order::Sequential => (n % len as u64) as usize,
            // The draw is from (0, 1].
            Order::Random { seed } => {
                ((uniform(seed ^ 0x006F_7264_6572, n) * len as f64).ceil() as usize).clamp(1, len) - 1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_order_means_round_and_round() {
        assert_eq!((0..5).map(|n| Order::Sequential.index(n, 3)).collect::<Vec<_>>(), [0, 1, 2, 0, 1]);
    }

    #[test]
    fn at_random_every_one_has_its_chance() {
        let mut counts = [0u32; 4];
        for n in 0..4000 {
            counts[Order::Random { seed: 3 }.index(n, 4)] += 1;
        }
        // Chi-square with 3 degrees of freedom, 0.1 % point 16.27; the seed is fixed.
        let chi_square: f64 = counts.iter().map(|n| (f64::from(*n) - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi_square < 16.27, "{counts:?}");
    }
}
